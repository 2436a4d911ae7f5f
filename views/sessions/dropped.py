"""Files dropped on the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget


class DroppedFiles(QObject):
    """Tells the first file of what is dropped anywhere on a window."""

    dropped = Signal(str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Accept what has files, and tell the first."""
        if isinstance(event, QDragEnterEvent) and event.mimeData().hasUrls():
            event.acceptProposedAction()
            return True
        if isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
            urls = [url for url in event.mimeData().urls() if url.isLocalFile()]
            if urls:
                event.acceptProposedAction()
                self.dropped.emit(urls[0].toLocalFile())
            return True
        return super().eventFilter(watched, event)
