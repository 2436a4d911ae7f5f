"""Cases in child processes, several at a time until they are ready to be timed, then timed one after another.

Compiling takes the CPU for long and times nothing, so children do it side by side. A child that is ready says so and
waits; while one is timed all others of its GPU are stopped, with every process that they started, so that nothing of
theirs runs. They can have several turns each: what disturbs the machine for a second then disturbs one of them. Where
there are several GPUs, one child of each is timed at a time. What disturbs a search for the fastest configuration,
another search or eager's own run, waits for a lock that all children of a GPU share. What is left to do afterwards and
times nothing is again done side by side.

``run_each`` is for children that are never timed.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import queue
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY = "ready"
TIMED = "timed"
STOPPED = "T"  # as /proc has it
STOP_SECONDS = 5


@dataclass(frozen=True)
class Child:
    """What a child process was told: the case, and the folder in which it meets the parent."""

    case: str
    folder: Path

    @property
    def rows(self) -> Path:
        """The file that its rows go to, one JSON object a line."""
        return self.folder / "rows"

    def wait_for_turn(self) -> None:
        """Say that everything is prepared, and wait until nobody else is timed."""
        (self.folder / READY).touch()
        sys.stdin.readline()

    def end_turn(self) -> None:
        """Say that everything is timed, and wait for the next turn; after the last one until everybody has had theirs,
        before what need not be quiet."""
        (self.folder / TIMED).touch()
        sys.stdin.readline()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody else searches for configurations or runs eager meanwhile."""
        with (self.folder.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def search_quietly(self) -> None:
        """Let both compilers' searches for the fastest configuration wait for a quiet GPU."""
        import compiler.kernel_library

        for search in ("tune", "time_padding", "time_bias"):
            setattr(compiler.kernel_library, search, self._quietly(getattr(compiler.kernel_library, search)))
        try:
            from torch._inductor.runtime.triton_heuristics import CachingAutotuner
        except ImportError:
            return
        if hasattr(CachingAutotuner, "benchmark_all_configs"):
            CachingAutotuner.benchmark_all_configs = self._quietly(CachingAutotuner.benchmark_all_configs)

    def _quietly(self, search: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(search)
        def call(*arguments: Any, **keywords: Any) -> Any:
            import torch

            with self.quiet():
                found = search(*arguments, **keywords)
                torch.cuda.synchronize()
            return found

        return call


def run_children(
    script: str,
    arguments: Sequence[str],
    cases: Sequence[str],
    *,
    workers: int,
    case_seconds: float,
    budget_seconds: float,
    cwd: Path,
    lanes: Sequence[Mapping[str, str]] = ({},),
    turns: int = 1,
) -> Iterator[tuple[str, list[str], str]]:
    """Each case with the lines that its child wrote and what became of the child, as children end.

    ``workers`` children prepare side by side. A child has ``case_seconds`` to be ready and as many for each of its
    ``turns`` of being timed; the whole ends after ``budget_seconds``. ``lanes`` are settings of the environment, as of
    the GPU: children get them in turn, and one of each lane is timed at a time.
    """
    deadline = time.monotonic() + budget_seconds
    with tempfile.TemporaryDirectory() as name:
        for first in range(0, len(cases), workers):
            wave = [
                _Running(Child(case, Path(name) / f"lane{at % len(lanes)}" / case), at % len(lanes))
                for at, case in enumerate(cases[first : first + workers])
            ]
            yield from _wave(script, arguments, wave, case_seconds, deadline, cwd, lanes, turns)


def run_each(
    commands: Mapping[str, Sequence[str]],
    *,
    jobs: int,
    case_seconds: float,
    budget_seconds: float,
    cwd: Path,
    logs: Path,
) -> Iterator[tuple[str, str]]:
    """Names of the commands and what became of each, as they end; ``jobs`` run at once.

    A command has ``case_seconds``; the whole ends after ``budget_seconds``. What a command says goes to ``NAME.log`` in
    ``logs``.
    """
    deadline = time.monotonic() + budget_seconds
    threads = max(1, (os.cpu_count() or 1) // jobs)
    shared = {"TORCHINDUCTOR_COMPILE_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), **os.environ}
    waiting = list(reversed(commands.items()))
    running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    logs.mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and len(running) < jobs and time.monotonic() + 10 < deadline:
                name, command = waiting.pop()
                with (logs / f"{name}.log").open("wb") as log:
                    process = subprocess.Popen(
                        command, cwd=cwd, env=shared, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                running[name] = process, min(time.monotonic() + case_seconds, deadline)
            if not running:
                break
            for name, (process, limit) in list(running.items()):
                if process.poll() is not None:
                    fate = f"The process ended with code {process.returncode}."
                elif time.monotonic() > limit:
                    _kill(process)
                    fate = "Stopped: its time was over."
                else:
                    continue
                del running[name]
                yield name, fate
            time.sleep(0.1)
        for name, _ in reversed(waiting):
            yield name, "Not run: the time for the whole benchmark was over."
    finally:
        for process, _ in running.values():
            _kill(process)


def _kill(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


@dataclass
class _Running:
    child: Child
    lane: int
    process: subprocess.Popen[str] | None = None
    fate: str = ""

    def start(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        self.child.folder.mkdir(parents=True)
        self.child.rows.touch()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, cwd=cwd, env=environment, text=True, start_new_session=True
        )

    def signal(self, number: signal.Signals) -> None:
        """To the child and what it started: compilers of its own, for one."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def stop(self) -> None:
        """Stop the child and what it started; on a busy machine that takes until they would have run next."""
        self.signal(signal.SIGSTOP)
        limit = time.monotonic() + STOP_SECONDS
        while not self.is_gone and self._state() != STOPPED and time.monotonic() < limit:
            time.sleep(0.001)

    def _state(self) -> str:
        assert self.process is not None
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    @property
    def is_gone(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def wait_for(self, word: str, limit: float) -> bool:
        """Whether it says so, or goes, by ``limit``."""
        while not (said := self.is_gone or (self.child.folder / word).exists()) and time.monotonic() < limit:
            time.sleep(0.1)
        return said

    def wait_for_end(self, limit: float) -> None:
        while not self.is_gone and time.monotonic() < limit:
            time.sleep(0.1)

    def go_on(self) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # it is gone
            self.process.stdin.write("go\n")
            self.process.stdin.flush()

    def time(self, limit: float) -> None:
        """Give the child a turn, which it has been stopped until and is again afterwards; nothing where it is gone."""
        if self.is_gone:
            return
        (self.child.folder / TIMED).unlink(missing_ok=True)  # of the turn before
        self.signal(signal.SIGCONT)
        self.go_on()
        if not self.wait_for(TIMED, limit):
            self.end("Stopped while it was timed: its time was over.")
        elif not self.is_gone:
            self.stop()

    def end(self, fate: str = "") -> None:
        if self.process is None:
            return
        if not self.is_gone:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.fate = self.fate or fate
        self.signal(signal.SIGCONT)  # what it leaves behind ends by itself, but not while it is stopped
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def result(self) -> tuple[str, list[str], str]:
        assert self.process is not None
        fate = self.fate or f"The process ended with code {self.process.returncode}."
        return self.child.case, self.child.rows.read_text().splitlines(), fate


def _wave(
    script: str,
    arguments: Sequence[str],
    wave: Sequence[_Running],
    case_seconds: float,
    deadline: float,
    cwd: Path,
    lanes: Sequence[Mapping[str, str]],
    turns: int,
) -> Iterator[tuple[str, list[str], str]]:
    if time.monotonic() + 10 > deadline:
        for running in wave:
            yield running.child.case, [], "Not run: the time for the whole benchmark was over."
        return
    # Children share the cores; each starting a pool of compilers as large as the machine would be slower.
    threads = max(2, (os.cpu_count() or 1) // len(wave))
    shared = {"TORCHINDUCTOR_COMPILE_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), **os.environ}
    try:
        for running in wave:
            child = running.child
            command = [sys.executable, script, "--child", child.case, "--child-folder", str(child.folder), *arguments]
            running.start(command, cwd, {**shared, **lanes[running.lane]})
        limit = min(time.monotonic() + case_seconds, deadline)
        late = [running for running in wave if not running.wait_for(READY, limit)]
        for running in late:  # before anybody is timed
            running.end(f"Not ready after {case_seconds:.0f} s, or the whole time was over.")
            yield running.result()
        for running in wave:
            if not running.is_gone:
                running.stop()
        ended: queue.SimpleQueue[_Running] = queue.SimpleQueue()

        def time_lane(lane: int) -> None:
            mine = [running for running in wave if running.lane == lane and running not in late]
            try:
                for _ in range(turns):
                    for running in mine:
                        running.time(min(time.monotonic() + case_seconds, deadline))
            finally:
                for running in mine:
                    ended.put(running)

        waiting = []
        with ThreadPoolExecutor(len(lanes)) as pool:
            try:
                for lane in range(len(lanes)):
                    pool.submit(time_lane, lane)
                for _ in range(len(wave) - len(late)):
                    running = ended.get()
                    if running.is_gone:
                        yield running.result()
                    else:
                        waiting.append(running)
            except BaseException:
                for running in wave:
                    running.end()
                raise
        for running in waiting:
            running.signal(signal.SIGCONT)
            running.go_on()
        for running in waiting:
            running.wait_for_end(min(time.monotonic() + case_seconds, deadline))
            running.end("Stopped after it was timed: the time for the whole benchmark was over.")
            yield running.result()
    finally:
        for running in wave:
            running.end()
