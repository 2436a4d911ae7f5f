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


class MessagesPanel(QScrollArea):
    """Messages below one another: a sign, a sentence, what to do, and a way to what is known beyond."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Messages")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._theme = theme
        self._messages: list[Message] = []
        self._fill()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._fill()

    def set_messages(self, messages: list[Message]) -> None:
        """Show these."""
        self._messages = messages
        self._fill()

    def _fill(self) -> None:
        page = QWidget()
        as_panel(page)
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 10, 14, 10)
        column.setSpacing(10)
        for message in self._messages:
            column.addWidget(_Entry(message, self._theme))
        if self._messages:
            column.addStretch()
        else:
            column.addWidget(Empty("info", self._theme, _NONE))
        self.setWidget(page)


class _Entry(QWidget):
    def __init__(self, message: Message, theme: Theme) -> None:
        super().__init__()
        self._message, self._theme = message, theme
        self._detail: Detail | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        sign = label()
        colors = {"error": theme.danger, "warning": theme.warning, "success": theme.success}
        sign.setPixmap(pixmap(message.level, colors.get(message.level, theme.accent), 16))
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        self._texts = QVBoxLayout()
        self._texts.setSpacing(2)
        self._texts.addWidget(label(message.text, wrap=True, selectable=True))
        if message.hint:
            self._texts.addWidget(label(message.hint, "muted", wrap=True, selectable=True))
        if message.detail:
            self._more = push_button("Details", self._toggle, "link", "Show or hide details of the message")
            self._texts.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        row.addLayout(self._texts, 1)

    def _toggle(self) -> None:
        if self._detail is None:
            self._detail = Detail(self._message.detail, self._theme)
            self._texts.addWidget(self._detail)
        else:
            self._detail.setVisible(self._detail.isHidden())
        self._more.setText("Details" if self._detail.isHidden() else "Hide details")
