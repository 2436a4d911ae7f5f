"""A panel of sentences, one below another: what was told to the user."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import as_panel, label
from views.window.message_bar import Message


class ListPanel(QScrollArea):
    """Entries below one another: a sign, a sentence, a second line."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._theme = theme
        self._entries: list[tuple[str, str, str]] = []
        self._empty = ""
        self._fill()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._fill()

    def set_entries(self, entries: list[tuple[str, str, str]], empty: str) -> None:
        """Show (level, sentence, second line) entries, or ``empty`` where there are none."""
        self._entries = entries
        self._empty = empty
        self._fill()

    def _fill(self) -> None:
        page = QWidget()
        as_panel(page)
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 10, 14, 10)
        column.setSpacing(10)
        colors = {"error": self._theme.danger, "warning": self._theme.warning, "success": self._theme.success}
        for level, text, second in self._entries:
            row = QHBoxLayout()
            row.setSpacing(10)
            sign = label()
            sign.setPixmap(pixmap(level, colors.get(level, self._theme.accent), 16))
            row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
            texts = QVBoxLayout()
            texts.setSpacing(2)
            texts.addWidget(label(text, wrap=True, selectable=True))
            if second:
                texts.addWidget(label(second, "muted", wrap=True, selectable=True))
            row.addLayout(texts, 1)
            column.addLayout(row)
        if not self._entries:
            column.addWidget(label(self._empty, "muted", wrap=True))
        column.addStretch()
        self.setWidget(page)


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def message_entry(message: Message) -> tuple[str, str, str]:
    """A message as an entry of a ListPanel."""
    return message.level, message.text, _lines(message.hint, message.detail)
