"""Files dropped on the window, and several of them opened one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget


class DroppedFiles(QObject):
    """Tells the files that are dropped anywhere on a window."""

    dropped = Signal(object)  # their paths

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Accept what has files, and tell them."""
        if isinstance(event, QDragEnterEvent) and event.mimeData().hasUrls():
            event.acceptProposedAction()
            return True
        if isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
            paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
            if paths:
                event.acceptProposedAction()
                self.dropped.emit(paths)
            return True
        return super().eventFilter(watched, event)


class OpenInTurn(QObject):
    """Opens each of several files once the one before is shown, or could not be: the window does one at a time."""

    def __init__(self, open_path: Callable[[str], object], is_opening: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._open_path = open_path
        self._is_opening = is_opening
        self._waiting: list[str] = []
        self.are_several = False  # until the last of them is shown

    def open(self, paths: Sequence[str]) -> None:
        """Open these, after those that wait already."""
        self._waiting += paths
        self.are_several = self.are_several or len(self._waiting) > 1
        self._next()

    def go_on(self) -> None:
        """What was being opened may have come to its end."""
        if self._waiting or self.are_several:
            QTimer.singleShot(0, self, self._next)

    def stop(self) -> None:
        """Open none of those that wait."""
        self._waiting.clear()

    def _next(self) -> None:
        while self._waiting and not self._is_opening():
            self._open_path(self._waiting.pop(0))
        if not self._waiting and not self._is_opening():
            self.are_several = False
