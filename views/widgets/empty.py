"""What stands in the middle of a panel that has nothing to show: a sign, why it is empty, perhaps what to do."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.sizes import fitted, px
from views.look.theme import Theme, mix
from views.widgets.basic import as_panel, label

_SIGN, _WIDTH = 26, 460  # pixels of the sign, and of the sentence's lines at most


class Empty(QWidget):
    """A sign, a sentence, and buttons below it."""

    def __init__(self, icon_name: str, theme: Theme, text: str = "") -> None:
        super().__init__()
        self._icon_name = icon_name
        as_panel(self)
        column = QVBoxLayout(self)
        column.setSpacing(10)
        column.addStretch(2)
        self._sign = label()
        self._sign.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(self._sign)
        self._sentence = label(text, "muted", wrap=True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        fitted(self, lambda: self._sentence.setMaximumWidth(px(_WIDTH)))
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(self._sentence, 100)
        middle.addStretch(1)
        column.addLayout(middle)
        self._buttons = QHBoxLayout()
        self._buttons.addStretch(1)
        self._buttons.addStretch(1)
        column.addLayout(self._buttons)
        column.addStretch(3)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._sign.setPixmap(pixmap(self._icon_name, mix(theme.muted, theme.surface, 0.25), _SIGN))

    def text(self) -> str:
        """The sentence."""
        return self._sentence.text()

    def set_text(self, text: str) -> None:
        """Another sentence."""
        self._sentence.setText(text)

    def add_button(self, button: QPushButton) -> None:
        """One more thing to do."""
        self._buttons.insertWidget(self._buttons.count() - 1, button)
