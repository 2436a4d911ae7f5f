"""The session on screen: which file it is, whether it changed, opening and saving off the GUI thread."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QCoreApplication, QEventLoop, QObject, Signal

from app.session import Session, SessionError, open_session, save_session
from compiler.report import Report
from views.jobs import Job
from views.message_bar import Message

Layouts = Callable[[], dict[str, bytes]]  # encodes the layouts made so far; may run off the GUI thread


class FileDialogs(Protocol):
    """Who asks for a place to save to."""

    def save_file(self, suggestion: str) -> str:
        """A path, or "" for none."""

    def unsaved(self, name: str) -> str:
        """One of "save", "discard", "cancel"."""


class SessionControl(QObject):
    """Holds the report shown and the file it came from."""

    opened = Signal(object)  # Session
    saved = Signal(object)  # Path
    message = Signal(object)
    changed = Signal()  # the path, the report or whether it is saved
    open_failed = Signal(str)

    def __init__(self, dialogs: FileDialogs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dialogs = dialogs
        self._opening: Job | None = None
        self._saving: Job | None = None
        self._state = 0  # counts changes of the report
        self.report: Report | None = None
        self.path: Path | None = None
        self.is_modified = False

    @property
    def name(self) -> str:
        """What the title says: the file's name, else the source."""
        if self.path is not None:
            return self.path.name
        return self.report.source if self.report is not None else ""

    def set_report(self, report: Report, path: Path | None, *, modified: bool) -> None:
        """Another report is shown."""
        self.report = report
        self.path = path
        self.is_modified = modified
        self._state += 1
        self.changed.emit()

    def touch(self) -> None:
        """Something was added to the report that a file does not have yet."""
        self.is_modified = True
        self._state += 1
        self.changed.emit()

    def open(self, path: Path) -> None:
        """Read a session; ``opened`` follows, or a message that says what is wrong. The latest wish wins."""
        if self._opening is not None:
            self._opening.cancel()
        job = Job(lambda cancelled: open_session(path), self)
        job.done.connect(self._opened)
        job.failed.connect(lambda error: self._failed(path, error))
        self._opening = job.start()

    def save(self, layouts: Layouts) -> None:
        """Save to the session's file, asking for one where there is none; ``saved`` follows, or a message."""
        if self.path is not None:
            self._write(self.path, layouts)
        else:
            self.save_as(layouts)

    def save_as(self, layouts: Layouts) -> None:
        """Ask for a place and save there."""
        if self.report is None:
            return
        chosen = self._dialogs.save_file(f"{suggested_name(self.report)}.fscope")
        if chosen:
            self._write(Path(chosen), layouts)

    @property
    def is_saving(self) -> bool:
        """Whether a file is being written."""
        return self._saving is not None

    def may_leave(self, layouts: Layouts) -> bool:
        """Ask about unsaved changes; False where the user stays, or where saving failed."""
        self._wait()
        if self.report is None or not self.is_modified:
            return True
        answer = self._dialogs.unsaved(self.name)
        if answer == "save":
            self.save(layouts)
            self._wait()
        return answer == "discard" or (answer == "save" and not self.is_modified)

    def _wait(self) -> None:
        """Until the file is written, with the window still painting: what is shown must not go before."""
        while self._saving is not None:
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents, 20)

    def _write(self, path: Path, layouts: Layouts) -> None:
        report = self.report
        if report is None or self._saving is not None:
            return
        state = self._state
        job = Job(lambda cancelled: save_session(path, report, layouts()), self)
        job.done.connect(lambda _: self._written(path, state))
        job.failed.connect(self._not_written)
        self._saving = job.start()

    def _written(self, path: Path, state: int) -> None:
        self._saving = None
        self.path = path
        self.is_modified = self._state != state  # what came meanwhile may not be in the file
        self.changed.emit()
        self.saved.emit(path)

    def _not_written(self, error: Exception) -> None:
        self._saving = None
        if not isinstance(error, SessionError):
            error = SessionError(f"The session cannot be saved: {type(error).__name__}: {error}.")
        self.message.emit(Message("error", error.message, error.hint))

    def _opened(self, session: Session) -> None:
        self._opening = None
        self.opened.emit(session)

    def _failed(self, path: Path, error: Exception) -> None:
        self._opening = None
        if isinstance(error, SessionError):
            self.message.emit(Message("error", error.message, error.hint))
        else:
            text = f"{path.name} cannot be opened: {type(error).__name__}."
            self.message.emit(Message("error", text, "It may be damaged; compile its source again.", str(error)))
        self.open_failed.emit(str(path))


def suggested_name(report: Report) -> str:
    """A file name for a report: "gpt2-h100"."""
    stem = report.source.removeprefix("example:").split("?")[0]
    stem = Path(stem.split(":")[0]).stem if "." in stem else stem
    return re.sub(r"[^\w.-]+", "_", f"{stem}-{report.target.name}")
