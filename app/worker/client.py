"""The app's end of the protocol: starts the worker process, sends commands, reports events, survives its death.

Qt-free. One thread a process reads events; a second keeps the end of its stderr.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from app.worker.ended import work_text
from app.worker.protocol import (
    CheckNumerics,
    Command,
    Compile,
    Compiled,
    Event,
    Failed,
    NumericsChecked,
    Ready,
    RunState,
    StageStarted,
    StartRun,
    Verified,
    Verify,
    WorkerDied,
    decode_event,
    read_frame,
    write_frame,
)

_NOT_STARTED = 127  # as a shell has it
_TAIL_LINES = 60
_STDERR_GRACE_S = 0.3  # a grandchild may hold stderr open after the worker is gone


def main_script() -> Path:
    """The app's ``main.py``: beside this package, in a checkout and installed alike."""
    return Path(__file__).parents[2] / "main.py"


def local_command() -> list[str]:
    """The command line of a worker on this machine, with this Python."""
    return [sys.executable, str(main_script()), "worker"]


class WorkerClient:
    """A worker process that is there when it is needed.

    ``on_event`` is called on a reader thread, one event at a time, and never after ``close`` has returned. A process
    that dies on its own is replaced at once if it had come up, else on the next ``send``.
    """

    def __init__(self, on_event: Callable[[Event], None], command: list[str] | None = None) -> None:
        self._on_event = on_event
        self._command = command if command is not None else local_command()
        # Re-entrant: a callback may send or cancel.
        self._lock = threading.RLock()
        self._process: _Process | None = None
        self._closed = False
        self.ready: Ready | None = None

    def start(self) -> None:
        """Start the process if there is none. Returns at once; Ready comes when torch is imported."""
        with self._lock:
            if self._process is None and not self._closed:
                self._spawn(after=None)

    def send(self, command: Command) -> None:
        """Send a command, starting a process first where there is none."""
        with self._lock:
            self.start()
            if self._process is not None:
                self._process.send(command)

    def cancel(self) -> None:
        """Kill the process with everything it started, and start another. WorkerDied(cancelled=True) follows."""
        with self._lock:
            old = self._process
            if old is None:
                return
            old.cancelled = True
            old.kill()
            self._spawn(after=old)

    def close(self) -> None:
        """End the process. No event arrives after this."""
        with self._lock:
            self._closed = True
            old, self._process = self._process, None
            if old is not None:
                old.kill()

    def _spawn(self, after: _Process | None) -> None:
        self.ready = None
        self._process = _Process(self._command, self._deliver, after)
        self._process.start()

    def _deliver(self, process: _Process, event: Event) -> None:
        """Called on the reader thread of ``process``."""
        with self._lock:
            if self._closed:
                return
            if process is not self._process:
                # Replaced by cancel: the one thing still to be said of it is that it is gone.
                if isinstance(event, WorkerDied):
                    self._on_event(event)
                return
            if isinstance(event, Ready):
                self.ready = event
            if isinstance(event, WorkerDied):
                had_come_up = self.ready is not None
                self._process, self.ready = None, None
                if had_come_up:
                    self._spawn(after=None)
            self._on_event(event)


class _Process:
    """One worker process with its threads. ``cancelled`` says that its death is wanted."""

    def __init__(self, command: list[str], deliver: Callable[[_Process, Event], None], after: _Process | None) -> None:
        self._command = command
        self._deliver = deliver
        self._after = after
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._popen: subprocess.Popen[bytes] | None = None
        self._busy = 0
        self._source = self._doing = ""
        self.cancelled = False
        self.finished = threading.Event()

    def start(self) -> None:
        fault = ""
        try:
            self._popen = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in the terminal is for the app; and one signal ends the whole group
            )
        except OSError as error:
            fault = f"{self._command[0]} cannot be started: {error.strerror}"
        threading.Thread(target=self._read, args=(fault,), name="worker-events", daemon=True).start()

    def send(self, command: Command) -> None:
        match command:
            case Compile(id=number, source=source):
                self._busy, self._source, self._doing = number, source, work_text(source)
            case StartRun(id=number):
                self._busy, self._doing = number, "ran the model"
            case Verify(id=number, source=source) | CheckNumerics(id=number, source=source):
                self._busy, self._doing = number, f"checked the numbers of {source}"
        # A dead process is reported by its reader thread, not here.
        with contextlib.suppress(OSError):
            if self._popen is not None:
                assert self._popen.stdin is not None
                write_frame(self._popen.stdin, command)

    def kill(self) -> None:
        if self._popen is None or self._popen.poll() is not None:
            return
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)  # compilers that it started go with it
        else:
            self._popen.kill()

    def _read(self, fault: str) -> None:
        try:
            if self._after is not None:
                self._after.finished.wait()  # the old process's death is told before the new one's first word
            exit_code = _NOT_STARTED
            if self._popen is not None:
                fault, exit_code = self._read_events(self._popen)
            tail = fault or "".join(self._tail)
            doing = self._doing if self._busy else ""
            self._deliver(self, WorkerDied(self._busy, exit_code, tail, self.cancelled, doing))
        finally:
            self.finished.set()

    def _read_events(self, popen: subprocess.Popen[bytes]) -> tuple[str, int]:
        """Deliver events until the process ends. Returns what went wrong in the protocol and the exit code."""
        assert popen.stdout is not None
        assert popen.stderr is not None
        stderr = threading.Thread(target=self._keep_tail, args=(popen.stderr,), name="worker-stderr", daemon=True)
        stderr.start()
        fault = ""
        try:
            while (payload := read_frame(popen.stdout)) is not None:
                event = decode_event(payload)
                self._note(event)
                self._deliver(self, event)
        except (ValueError, OSError, msgspec.MsgspecError) as error:
            fault = f"the worker did not speak the protocol: {error}"
            self.kill()
        exit_code = popen.wait()
        stderr.join(_STDERR_GRACE_S)
        for stream in (popen.stdin, popen.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        return fault, exit_code

    def _note(self, event: Event) -> None:
        match event:
            case StageStarted() if event.id == self._busy:
                self._doing = work_text(self._source, event.stage, event.region)
            case Compiled() | Failed() | Verified() | NumericsChecked() | RunState(state="stopped") if (
                event.id == self._busy
            ):
                self._busy = 0

    def _keep_tail(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._tail.append(line.decode("utf-8", errors="replace"))
