"""A line of text to type into, which leaves files that are dropped on it to the window."""

from __future__ import annotations

from PySide6.QtGui import QDragEnterEvent
from PySide6.QtWidgets import QLineEdit


class TextLine(QLineEdit):
    """Takes dropped text, as every line does; a file's address is not what is meant to be typed."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files go to who opens them."""
        if event.mimeData().hasUrls():
            event.ignore()
        else:
            super().dragEnterEvent(event)
