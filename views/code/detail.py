"""A text that belongs to a message: read-only, without line numbers, as tall as its lines up to a limit."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QSizePolicy, QWidget

from views.code.code_view import CodeView
from views.look.theme import Theme

_MOST_LINES = 11
_GUTTER = 8  # pixels left of the text
_AROUND = 8 + 15  # pixels of height beside the lines: margins, and a scroll bar for long ones


class Detail(CodeView):
    """Selecting, copying and searching as in code."""

    def __init__(self, text: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setAccessibleName("Details")
        self.set_code(text.rstrip(), "text")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)

    def sizeHint(self) -> QSize:
        """Its lines, up to a limit; fewer where there is no room."""
        return QSize(400, min(self.line_count, _MOST_LINES) * self.line_rect(1).height() + _AROUND)

    def gutter_width(self) -> int:
        """No room for numbers."""
        return _GUTTER
