"""Messages above the content that do not block: one sentence, what to do next, details on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import icon_button, label, push_button

_ICONS = {"error": "error", "warning": "warning", "info": "info", "success": "success"}
_MAX_SHOWN = 3


@dataclass(frozen=True)
class Message:
    """One thing to tell. ``level`` is "error", "warning", "info" or "success"."""

    level: str
    text: str
    hint: str = ""
    detail: str = ""
    action: str = ""  # text of a button
    on_action: Callable[[], None] | None = None


class MessageBar(QWidget):
    """The latest messages, each until dismissed. ``posted`` lets the Messages tab keep them all."""

    posted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._shown: list[_MessageRow] = []
        self.history: list[Message] = []  # everything posted, dismissed or not
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setVisible(False)

    def set_theme(self, theme: Theme) -> None:
        """Colours for the messages to come."""
        self._theme = theme

    def post(self, message: Message) -> None:
        """Show a message; the same text twice is shown once."""
        for row in [row for row in self._shown if row.message.text == message.text]:
            self._dismiss(row)
        while len(self._shown) >= _MAX_SHOWN:
            self._dismiss(self._shown[0])
        row = _MessageRow(message, self._theme, self._dismiss)
        self._shown.append(row)
        self._column.addWidget(row)
        self._column.setContentsMargins(10, 8, 10, 2)
        self.setVisible(True)
        self.history.append(message)
        self.posted.emit(message)

    def clear(self) -> None:
        """Dismiss every message."""
        for row in list(self._shown):
            self._dismiss(row)

    @property
    def messages(self) -> list[Message]:
        """What is shown now."""
        return [row.message for row in self._shown]

    def _dismiss(self, row: _MessageRow) -> None:
        self._shown.remove(row)
        self._column.removeWidget(row)
        row.setParent(None)
        row.deleteLater()
        self.setVisible(bool(self._shown))


class _MessageRow(QFrame):
    def __init__(self, message: Message, theme: Theme, dismiss: Callable[[_MessageRow], None]) -> None:
        super().__init__()
        self.message = message
        self.setProperty("role", "message")
        self.setProperty("level", message.level)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 8)
        row = QHBoxLayout()
        row.setSpacing(10)
        sign = QLabel()
        sign.setPixmap(pixmap(_ICONS[message.level], self._color(theme), 18))
        sign.setAccessibleName(message.level)
        row.addWidget(sign)
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(label(message.text, "strong", wrap=True, selectable=True))
        if message.hint:
            texts.addWidget(label(message.hint, wrap=True, selectable=True))
        row.addLayout(texts, 1)
        if message.action and message.on_action:
            on_action = message.on_action
            row.addWidget(push_button(message.action, on_action))
        if message.detail:
            row.addWidget(push_button("Details", self._toggle, tip="Show details of the message"))
        close = icon_button("close", "Dismiss message", lambda: dismiss(self), theme)
        close.setIconSize(QSize(14, 14))
        row.addWidget(close)
        column.addLayout(row)
        self._detail = QPlainTextEdit(message.detail)
        self._detail.setReadOnly(True)
        self._detail.setFont(theme.mono_font(9))
        self._detail.setFixedHeight(170)
        self._detail.setAccessibleName("Details")
        self._detail.setVisible(False)
        column.addWidget(self._detail)

    def _color(self, theme: Theme) -> QColor:
        return {"error": theme.danger, "warning": theme.warning, "success": theme.success}.get(
            self.message.level, theme.accent
        )

    def _toggle(self) -> None:
        self._detail.setVisible(not self._detail.isVisible())
