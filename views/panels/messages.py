"""The panel of what was told to the user: the latest first, details on request."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from views.code.detail import Detail
from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import as_panel, label, push_button
from views.widgets.empty import Empty
from views.window.message_bar import Message

_NONE = "No messages yet. What the window tells of compilations, files and runs is kept here."
_MOST = 200


class MessagesPanel(QScrollArea):
    """Messages below one another: a sign, a sentence, what to do, and a way to what is known beyond."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Messages")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._theme = theme
        self._entries: list[_Entry] = []  # the latest first
        page = QWidget()
        as_panel(page)
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(14, 10, 14, 10)
        self._column.setSpacing(10)
        self._empty = Empty("info", theme, _NONE)
        self._column.addWidget(self._empty, 1)
        self._column.addStretch()
        self.setWidget(page)

    @property
    def count(self) -> int:
        """How many messages there are."""
        return len(self._entries)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._empty.set_theme(theme)
        for entry in self._entries:
            entry.set_theme(theme)

    def add(self, message: Message) -> None:
        """Put a message above the others; of very many the oldest one goes."""
        self._empty.hide()
        entry = _Entry(message, self._theme)
        self._entries.insert(0, entry)
        self._column.insertWidget(0, entry)
        for old in self._entries[_MOST:]:
            self._column.removeWidget(old)
            old.hide()
            old.deleteLater()
        del self._entries[_MOST:]


class _Entry(QWidget):
    def __init__(self, message: Message, theme: Theme) -> None:
        super().__init__()
        self._message = message
        self._detail: Detail | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        self._sign = label()
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        self._texts = QVBoxLayout()
        self._texts.setSpacing(2)
        self._texts.addWidget(label(message.text, wrap=True, selectable=True))
        if message.hint:
            self._texts.addWidget(label(message.hint, "muted", wrap=True, selectable=True))
        if message.detail:
            self._more = push_button("Details", self._toggle, "link", "Show or hide details of the message")
            self._texts.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        row.addLayout(self._texts, 1)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        colors = {"error": theme.danger, "warning": theme.warning, "success": theme.success}
        level = self._message.level
        self._sign.setPixmap(pixmap(level, colors.get(level, theme.accent), 16))
        if self._detail is not None:
            self._detail.set_theme(theme)

    def _toggle(self) -> None:
        if self._detail is None:
            self._detail = Detail(self._message.detail, self._theme)
            self._texts.addWidget(self._detail)
            self._detail.show()
        else:
            self._detail.setVisible(self._detail.isHidden())
        self._more.setText("Details" if self._detail.isHidden() else "Hide details")
