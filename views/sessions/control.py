"""The open reports: which file each is, whether it changed; opening and saving off the GUI thread."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QCoreApplication, QEventLoop, QObject, Signal

from app.session import Session, SessionError, open_session, save_session
from compiler.report import Report
from views.background.jobs import Job, uncollected
from views.sessions.documents import Document, Layouts
from views.window.message_bar import Message


class FileDialogs(Protocol):
    """Who asks for a place to save to."""

    def save_file(self, suggestion: str) -> str:
        """A path, or "" for none."""

    def unsaved(self, name: str) -> str:
        """One of "save", "discard", "cancel"."""


class SessionControl(QObject):
    """Holds the open documents and which of them is shown."""

    opened = Signal(object)  # Session
    saved = Signal(object)  # Path
    message = Signal(object)
    changed = Signal()  # the path, the report or whether it is saved
    open_failed = Signal(str)

    def __init__(
        self, dialogs: FileDialogs, layouts_now: Callable[[], Layouts], parent: QObject | None = None
    ) -> None:
        """``layouts_now`` gives the layouts of the report shown, as far as they are made."""
        super().__init__(parent)
        self._dialogs = dialogs
        self._layouts_now = layouts_now
        self._opening: Job | None = None
        self._saving: Job | None = None
        self.documents: list[Document] = []
        self.current: Document | None = None

    @property
    def report(self) -> Report | None:
        """The report shown."""
        return self.current.report if self.current is not None else None

    @property
    def path(self) -> Path | None:
        """The file of the report shown."""
        return self.current.path if self.current is not None else None

    @property
    def is_modified(self) -> bool:
        """Whether the report shown has something that its file lacks."""
        return self.current is not None and self.current.is_modified

    @property
    def name(self) -> str:
        """What the title says: the file's name, else the source."""
        return self.current.name if self.current is not None else ""

    def set_report(self, report: Report, path: Path | None, layouts: Layouts, *, modified: bool) -> Document:
        """Show a report, in the place of the document that it is anew, else as one more."""
        self._leave()
        made = Document(report, path, modified, layouts)
        places = [i for i, document in enumerate(self.documents) if document.is_replaced_by(report, path)]
        if places:
            self.documents[places[0]] = made
        else:
            self.documents.append(made)
        self.current = made
        self.changed.emit()
        return made

    def show_document(self, document: Document) -> None:
        """Another open document is shown."""
        self._leave()
        self.current = document
        self.changed.emit()

    def _leave(self) -> None:
        """Keep the layouts of what is shown, before something else is."""
        if self.current is not None:
            self.current.layouts = self._layouts_now()

    def close_document(self, document: Document) -> bool:
        """Ask about its unsaved changes, and forget it; False where the user keeps it."""
        if not self._may_lose(document):
            return False
        self.documents.remove(document)
        if document is self.current:
            self.current = None
        self.changed.emit()
        return True

    def discard_changes(self) -> None:
        """Nothing need be asked about any more."""
        for document in self.documents:
            document.is_modified = False

    def touch(self, report: Report) -> None:
        """Something was added to a report that its file does not have yet."""
        for document in self.documents:
            if document.report is report:
                document.is_modified = True
                document.state += 1
                document.indexes = document.meter = None  # they hold times
        self.changed.emit()

    def open(self, path: Path) -> None:
        """Read a session; ``opened`` follows, or a message that says what is wrong. The latest wish wins.

        One that is open already is read again, unless the user keeps what its file does not have yet.
        """
        path = Path(os.path.abspath(path))  # one file, one tab, however it is named
        if not all(self._may_lose(document) for document in self.documents if document.path == path):
            return
        if self._opening is not None:
            self._opening.cancel()
        job = Job(lambda cancelled: _read(path), self)
        job.done.connect(self._opened)
        job.failed.connect(lambda error: self._failed(path, error))
        self._opening = job.start()

    def save(self) -> None:
        """Save to the session's file, asking for one where there is none; ``saved`` follows, or a message."""
        if self.current is not None:
            self._save(self.current)

    def save_as(self) -> None:
        """Ask for a place and save there."""
        if self.current is not None:
            self._save_as(self.current)

    @property
    def is_opening(self) -> bool:
        """Whether a file is being read."""
        return self._opening is not None

    @property
    def is_saving(self) -> bool:
        """Whether a file is being written."""
        return self._saving is not None

    def may_leave(self) -> bool:
        """Ask about unsaved changes of every document; False where the user stays, or where saving failed."""
        return all(self._may_lose(document) for document in self.documents)

    def _may_lose(self, document: Document) -> bool:
        self._wait()
        if not document.is_modified:
            return True
        answer = self._dialogs.unsaved(document.name)
        if answer == "save":
            self._save(document)
            self._wait()
        return answer == "discard" or (answer == "save" and not document.is_modified)

    def _wait(self) -> None:
        """Until the file is written, with the window still painting: what is shown must not go before."""
        while self._saving is not None:
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents, 20)

    def _save(self, document: Document) -> None:
        if document.path is not None:
            self._write(document, document.path)
        else:
            self._save_as(document)

    def _save_as(self, document: Document) -> None:
        chosen = self._dialogs.save_file(f"{suggested_name(document.report)}.fscope")
        if chosen:
            self._write(document, Path(chosen))

    def _write(self, document: Document, path: Path) -> None:
        if self._saving is not None:
            return
        state, report = document.state, document.report
        layouts = self._layouts_now() if document is self.current else document.layouts
        job = Job(lambda cancelled: save_session(path, report, layouts()), self)
        job.done.connect(lambda _: self._written(document, path, state))
        job.failed.connect(self._not_written)
        self._saving = job.start()

    def _written(self, document: Document, path: Path, state: int) -> None:
        self._saving = None
        document.path = path
        document.is_modified = document.state != state  # what came meanwhile may not be in the file
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


def _read(path: Path) -> Session:
    with uncollected():
        session = open_session(path)
        session.prepare()
        return session


def suggested_name(report: Report) -> str:
    """A file name for a report: "gpt2-h100"."""
    stem = report.source.removeprefix("example:").split("?")[0]
    stem = Path(stem.split(":")[0]).stem if "." in stem else stem
    return re.sub(r"[^\w.-]+", "_", f"{stem}-{report.target.name}")
