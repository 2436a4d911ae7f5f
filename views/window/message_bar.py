"""Messages above the content that do not block: one sentence, what to do next, details on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import Paragraph, icon_button, push_button, recolor

if TYPE_CHECKING:
    from views.code.detail import Detail

_ICONS = {"error": "error", "warning": "warning", "info": "info", "success": "success"}
_MAX_SHOWN = 3
_SHOW, _HIDE = "Details", "Hide details"


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
        """Other colours, of the messages shown too."""
        self._theme = theme
        for row in self._shown:
            row.set_theme(theme)

    def post(self, message: Message) -> None:
        """Show a message; the same text twice is shown once."""
        for row in [row for row in self._shown if row.message.text == message.text]:
            self._dismiss(row)
        while len(self._shown) >= _MAX_SHOWN:
            self._dismiss(self._shown[0])
        row = _MessageRow(message, self._theme, self._dismiss)
        self._shown.append(row)
        self._column.addWidget(row)
        self._column.setContentsMargins(10, 8, 10, 8)
        self.setVisible(True)
        self.history.append(message)
        self.posted.emit(message)

    def dismiss(self, message: Message) -> None:
        """What it tells of is over."""
        for row in [row for row in self._shown if row.message is message]:
            self._dismiss(row)

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
        self._theme = theme
        self._detail: Detail | None = None  # made when it is asked for: the window opens without views of code
        self.setProperty("role", "message")
        self.setProperty("level", message.level)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 5, 8, 5)
        self._column.setSpacing(4)
        row = QHBoxLayout()
        row.setSpacing(10)
        self._sign = QLabel()
        self._sign.setContentsMargins(0, 6, 0, 0)  # beside the first line of text
        self._sign.setAccessibleName(message.level)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setContentsMargins(0, 7, 0, 7)
        texts.setSpacing(2)
        texts.addWidget(Paragraph(message.text, "strong"))
        if message.hint:
            texts.addWidget(Paragraph(message.hint))
        row.addLayout(texts, 1)
        buttons: list[QWidget] = []
        if message.action and message.on_action:
            buttons.append(push_button(message.action, message.on_action))
        if message.detail:
            self._details = push_button(_SHOW, self._toggle, tip="Show details of the message")
            buttons.append(self._details)
        close = icon_button("close", "Dismiss message", lambda: dismiss(self), theme)
        close.setIconSize(QSize(14, 14))
        for button in (*buttons, close):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        self._column.addLayout(row)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        colors = {"error": theme.danger, "warning": theme.warning, "success": theme.success}
        self._sign.setPixmap(pixmap(_ICONS[self.message.level], colors.get(self.message.level, theme.accent), 18))
        recolor(self, theme)
        if self._detail is not None:
            self._detail.set_theme(theme)

    def _toggle(self) -> None:
        if self._detail is None:
            self._show_detail()
        else:
            well = self._detail.parentWidget()
            well.setVisible(well.isHidden())
            self._details.setText(_SHOW if well.isHidden() else _HIDE)

    def _show_detail(self) -> None:
        from views.code.detail import Detail

        well = QFrame()
        well.setProperty("role", "well")
        inside = QHBoxLayout(well)
        inside.setContentsMargins(3, 3, 3, 3)
        self._detail = Detail(self.message.detail, self._theme)
        inside.addWidget(self._detail)
        self._column.addWidget(well)
        self._column.addSpacing(3)
        self._details.setText(_HIDE)
