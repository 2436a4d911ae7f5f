"""A question that blocks, dressed like the rest of the window: a sign, what is asked, and the answers as buttons."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6 import QtWidgets
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.widgets.basic import label, push_button

_WIDTH = 400  # pixels of the text


@dataclass(frozen=True)
class Answer:
    """A button: what it is called, and whether Enter presses it, or what goes first."""

    key: str
    text: str
    is_default: bool = False


class Question(QtWidgets.QDialog):
    """``answer`` is the key of the button that was pressed, "" for none."""

    def __init__(
        self, parent: QWidget, title: str, text: str, answers: list[Answer], ask: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.answer = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 22, 24, 18)
        column.setSpacing(20)
        row = QHBoxLayout()
        row.setSpacing(14)
        sign = QLabel()
        sign.setPixmap(pixmap("info" if ask is not None else "warning", parent.palette().highlight().color(), 28))
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setSpacing(6)
        texts.addWidget(label(title, "title"))
        told = label(text, "muted", wrap=True)
        told.setMinimumWidth(_WIDTH)
        texts.addWidget(told)
        if ask is not None:
            texts.addSpacing(4)
            texts.addWidget(ask)
        row.addLayout(texts, 1)
        column.addLayout(row)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addStretch()
        for one in answers:
            button = push_button(one.text, lambda key=one.key: self._take(key), "primary" if one.is_default else "")
            button.setAutoDefault(one.is_default)
            button.setDefault(one.is_default)
            foot.addWidget(button)
        column.addLayout(foot)
        (ask or next(b for b in self.findChildren(QtWidgets.QPushButton) if b.isDefault())).setFocus()

    def _take(self, key: str) -> None:
        self.answer = key
        self.accept()


def tell(parent: QWidget, title: str, text: str) -> None:
    """Something that went wrong, for the user to take note of."""
    Question(parent, title, text, [Answer("", "Close", is_default=True)]).exec()
