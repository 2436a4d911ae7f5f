"""What a panel needs at its first use, made beforehand: imports, and the enums of painting."""

from __future__ import annotations

import importlib

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

_LATER = ("numpy.ma", "views.find.palette")  # the first median, Ctrl+K


def import_the_rest() -> None:
    """Import them, on any thread."""
    for name in _LATER:
        importlib.import_module(name)


def paint_once() -> None:
    """In the GUI thread while nobody waits: the first fillRect makes enums of two hundred members, over a frame long.

    Not on another thread, for two that make the same enum at once would each have their own.
    """
    image = QImage(2, 2, QImage.Format.Format_ARGB32_Premultiplied)
    with QPainter(image) as painter:
        painter.fillRect(QRectF(0.0, 0.0, 1.0, 1.0), QColor(0, 0, 0))
