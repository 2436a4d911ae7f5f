"""Logs of torch opened in the window: read in a process of their own, for a large one takes seconds."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.session import SessionError, open_session
from app.worker.client import main_script
from compiler.report import Report
from views.background.jobs import Job
from views.window.message_bar import Message

_STEP_S = 0.05  # how long a cancelled import goes on at most


def is_trace(path: Path) -> bool:
    """Whether a path is opened as a log: a folder, or a file that is named as one."""
    return path.is_dir() or path.suffix == ".log"


class TraceImport(QObject):
    """Reads one log at a time; the latest wish wins."""

    read = Signal(object)  # Report
    message = Signal(object)  # Message

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._job: Job | None = None

    @property
    def is_reading(self) -> bool:
        """Whether a log is being read."""
        return self._job is not None

    def open(self, path: Path) -> None:
        """Read the log; ``read`` follows, or a message that says what is wrong."""
        if self._job is not None:
            self._job.cancel()
        job = Job(lambda cancelled: report_of(path, cancelled), self)
        job.done.connect(self._done)
        job.failed.connect(lambda error: self._failed(path, error))
        self._job = job.start()

    def _done(self, report: Report | None) -> None:
        self._job = None
        if report is not None:
            self.read.emit(report)

    def _failed(self, path: Path, error: Exception) -> None:
        self._job = None
        hint = getattr(error, "hint", "")
        self.message.emit(Message("error", getattr(error, "message", f"{path.name} cannot be read: {error}."), hint))


def report_of(path: Path, cancelled: Callable[[], bool]) -> Report | None:
    """What ``main.py import`` makes of ``path``; None where it was cancelled.

    Raises:
        SessionError: it refuses, in its own sentence.
    """
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder, "trace.fscope")
        command = [sys.executable, str(main_script()), "import", str(path), "-o", str(session)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            if cancelled():
                process.kill()
                process.communicate()
                return None
            time.sleep(_STEP_S)
        _, errors = process.communicate()
        if process.returncode:
            lines = errors.strip().splitlines() or [f"{path.name} cannot be read."]
            raise SessionError(lines[-1].removeprefix("fusescope: "))
        return open_session(session).report
