"""What a panel shows is made off the GUI thread, and not before somebody looks at the panel."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QWidget

from views.background.jobs import Job


class WhenSeen(QObject):
    """Holds the latest request of one panel, until that is shown."""

    made = Signal(object)  # what the request made, told in the GUI thread

    def __init__(self, panel: QWidget) -> None:
        super().__init__(panel)
        self._due: Callable[[], object] | None = None
        self._job: Job | None = None
        panel.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The panel comes into sight."""
        if event.type() == QEvent.Type.Show:
            self._begin()
        return super().eventFilter(watched, event)

    def request(self, make: Callable[[], object]) -> None:
        """Make something else; what was asked for before is not told any more."""
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self._due = make
        panel = self.parent()
        if isinstance(panel, QWidget) and panel.isVisible():
            self._begin()

    def _begin(self) -> None:
        due, self._due = self._due, None
        if due is None:
            return
        self._job = Job(lambda cancelled: due(), self)
        self._job.done.connect(self._done)
        self._job.failed.connect(self._failed)
        self._job.start()

    def _done(self, made: object) -> None:
        self._job = None
        self.made.emit(made)

    def _failed(self, fault: Exception) -> None:
        self._job = None
        raise fault  # a fault of ours: told like any other of the GUI thread's
