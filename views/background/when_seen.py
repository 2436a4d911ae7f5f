"""What a panel shows is made off the GUI thread, and not before somebody looks at the panel."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from views.background.jobs import Job


class WhenSeen(QObject):
    """Holds the latest request of one panel; the panel calls ``seen`` in its showEvent."""

    made = Signal(object)  # what the request made, told in the GUI thread

    def __init__(self, panel: QWidget) -> None:
        super().__init__(panel)
        self._due: Callable[[], object] | None = None
        self._job: Job | None = None

    def request(self, make: Callable[[], object]) -> None:
        """Make something else; what was asked for before is not told any more."""
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self._due = make
        panel = self.parent()
        if isinstance(panel, QWidget) and panel.isVisible():
            self.seen()

    def seen(self) -> None:
        """The panel is in sight: begin what is due."""
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
