"""The session on screen: which file it is, whether it changed, opening and saving off the GUI thread."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from app.session import Session, SessionError, open_session, save_session
from compiler.report import Report
from views.jobs import Job
from views.message_bar import Message


class FileDialogs(Protocol):
    """Who asks for a place to save to."""

    def save_file(self, suggestion: str) -> str:
        """A path, or "" for none."""

    def unsaved(self, name: str) -> str:
        """One of "save", "discard", "cancel"."""


class SessionControl(QObject):
    """Holds the report shown and the file it came from."""

    opened = Signal(object)  # Session
    message = Signal(object)
    changed = Signal()  # the path, the report or whether it is saved
    open_failed = Signal(str)

    def __init__(self, dialogs: FileDialogs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dialogs = dialogs
        self._opening: Job | None = None
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
        self.changed.emit()

    def touch(self) -> None:
        """Something was added to the report that a file does not have yet."""
        self.is_modified = True
        self.changed.emit()

    def open(self, path: Path) -> None:
        """Read a session; ``opened`` follows, or a message that says what is wrong. The latest wish wins."""
        if self._opening is not None:
            self._opening.cancel()
        job = Job(lambda cancelled: open_session(path), self)
        job.done.connect(self._opened)
        job.failed.connect(lambda error: self._failed(path, error))
        self._opening = job.start()

    def save(self, layouts: dict[str, bytes]) -> bool:
        """Save to the session's file, asking for one where there is none. False where it was not saved."""
        return self._write(self.path, layouts) if self.path is not None else self.save_as(layouts)

    def save_as(self, layouts: dict[str, bytes]) -> bool:
        """Ask for a place and save there."""
        if self.report is None:
            return False
        chosen = self._dialogs.save_file(f"{suggested_name(self.report)}.fscope")
        return self._write(Path(chosen), layouts) if chosen else False

    def may_leave(self, layouts: dict[str, bytes]) -> bool:
        """Ask about unsaved changes; False where the user stays."""
        if self.report is None or not self.is_modified:
            return True
        answer = self._dialogs.unsaved(self.name)
        return answer == "discard" or (answer == "save" and self.save(layouts))

    def _write(self, path: Path, layouts: dict[str, bytes]) -> bool:
        assert self.report is not None
        try:
            save_session(path, self.report, layouts)
        except SessionError as error:
            self.message.emit(Message("error", error.message, error.hint))
            return False
        self.path = path
        self.is_modified = False
        self.changed.emit()
        return True

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
