"""Cases in child processes, several at a time until they are ready to be timed, then timed one after another.

Compiling takes the CPU for long and times nothing, so children do it side by side. A child that is ready says so and
waits; while one is timed all others wait. What disturbs a search for the fastest configuration, another search or
eager's own run, waits for a lock that all children share.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY = "ready"


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

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody else searches for configurations or runs eager meanwhile."""
        with (self.folder.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def search_quietly(self) -> None:
        """Let both compilers' searches for the fastest configuration wait for a quiet GPU."""
        import compiler.region

        compiler.region.tune = self._quietly(compiler.region.tune)
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
) -> Iterator[tuple[str, list[str], str]]:
    """Each case with the lines that its child wrote and what became of the child.

    ``workers`` children prepare side by side. A child has ``case_seconds`` to be ready and as many to be timed; the
    whole ends after ``budget_seconds``.
    """
    deadline = time.monotonic() + budget_seconds
    with tempfile.TemporaryDirectory() as name:
        for first in range(0, len(cases), workers):
            wave = [Child(case, Path(name) / case) for case in cases[first : first + workers]]
            yield from _wave(script, arguments, wave, case_seconds, deadline, cwd)


def _wave(
    script: str, arguments: Sequence[str], wave: Sequence[Child], case_seconds: float, deadline: float, cwd: Path
) -> Iterator[tuple[str, list[str], str]]:
    if time.monotonic() + 10 > deadline:
        for child in wave:
            yield child.case, [], "Not run: the time for the whole benchmark was over."
        return
    # Children share the cores; each starting a pool of compilers as large as the machine would be slower.
    threads = max(2, (os.cpu_count() or 1) // len(wave))
    environment = {"TORCHINDUCTOR_COMPILE_THREADS": str(threads), **os.environ}
    running: list[tuple[Child, subprocess.Popen[str]]] = []
    for child in wave:
        child.folder.mkdir()
        child.rows.touch()
        command = [sys.executable, script, "--child", child.case, "--child-folder", str(child.folder), *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=cwd, env=environment, text=True)
        running.append((child, process))
    try:
        limit = min(time.monotonic() + case_seconds, deadline)
        while time.monotonic() < limit and not all(_is_settled(child, process) for child, process in running):
            time.sleep(0.1)
        late = [(child, process) for child, process in running if not _is_settled(child, process)]
        for _, process in late:  # before anybody is timed
            _end(process)
        for child, process in running:
            if (child, process) in late:
                fate = f"Not ready after {case_seconds:.0f} s, or the whole time was over."
            else:
                fate = _time(process, min(time.monotonic() + case_seconds, deadline))
            yield child.case, child.rows.read_text().splitlines(), fate
    finally:
        for _, process in running:
            _end(process)


def _is_settled(child: Child, process: subprocess.Popen[str]) -> bool:
    """Whether the child is ready or gone."""
    return (child.folder / READY).exists() or process.poll() is not None


def _time(process: subprocess.Popen[str], limit: float) -> str:
    """Give the child its turn; what became of it."""
    with contextlib.suppress(BrokenPipeError):
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    try:
        return f"The process ended with code {process.wait(max(limit - time.monotonic(), 1))}."
    except subprocess.TimeoutExpired:
        _end(process)
        return "Stopped while it was timed: its time was over."


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
