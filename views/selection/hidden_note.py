"""A panel's line on what the filters hide in it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from views.look import format as fmt
from views.widgets.basic import add_copy


class HiddenNote(QLabel):
    """One sentence, there only while it has something to say."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", "filtered")
        self.setWordWrap(True)
        self.setAccessibleName("What the filters hide here")
        add_copy(self, self.text)
        self.tell("")

    def tell(self, sentence: str) -> None:
        """Say this; "" is nothing."""
        self.setText(sentence)
        self.setVisible(bool(sentence))


def hidden_text(hidden: int, every: int, thing: str, done: str = "hidden") -> str:
    """ "12 of 40 groups are hidden by the filters." """
    verb = "is" if every == 1 else "are"
    return f"{hidden:,} of {fmt.plural(every, thing)} {verb} {done} by the filters."
