"""Cards: large buttons with a title, a description and a tag, in a grid that takes as many columns as fit."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.widgets.basic import label

_HEIGHT, _HEAD = 102, 22


class Card(QPushButton):
    """A button the size of a card."""

    def __init__(self, title: str, text: str, tag: str, icon_name: str, theme: Theme) -> None:
        super().__init__()
        self.setProperty("role", "card")
        self.setAccessibleName(f"{title}. {text}")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._icon_name = icon_name
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 11, 14, 11)
        column.setSpacing(5)
        row = QWidget()
        # with and without a tag: texts of neighbours begin beside each other
        fitted(row, lambda: row.setFixedHeight(px(_HEAD)))
        head = QHBoxLayout(row)
        head.setContentsMargins(0, 0, 0, 0)
        head.setSpacing(8)
        self._sign = QLabel()
        head.addWidget(self._sign)
        self.title_label = label(title, "strong")
        head.addWidget(self.title_label)
        head.addStretch()
        self.tag = label(tag, "chip")
        self.tag.setVisible(bool(tag))
        head.addWidget(self.tag)
        column.addWidget(row)
        self.text_label = label(text, "muted", wrap=True)
        self.text_label.setAlignment(Qt.AlignmentFlag.AlignTop)
        column.addWidget(self.text_label, 1)
        for child in self.findChildren(QWidget):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw the icon in the theme's accent."""
        self._sign.setPixmap(pixmap(self._icon_name, theme.accent, 18))

    def set_texts(self, title: str, text: str, tag: str) -> None:
        """Show other texts."""
        self.title_label.setText(title)
        self.text_label.setText(text)
        self.tag.setText(tag)
        self.tag.setVisible(bool(tag))
        self.setAccessibleName(f"{title}. {text} {tag}".strip())

    def sizeHint(self) -> QSize:
        """A fixed height; the grid decides the width."""
        return QSize(px(250), px(_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """Narrow enough for one column in a small window."""
        return QSize(px(180), px(_HEIGHT))


class CardGrid(QWidget):
    """Cards in equal columns."""

    def __init__(self, name: str, column_width: int = 262) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._column_width = column_width
        self._cards: list[Card] = []
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(10)

    @property
    def cards(self) -> list[Card]:
        """The cards in order."""
        return list(self._cards)

    def set_cards(self, cards: list[Card]) -> None:
        """Show these cards instead of those before."""
        for card in self._cards:
            card.setParent(None)
            card.deleteLater()
        self._cards = cards
        self._columns = 0
        self._arrange(self.rect())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More width, more columns."""
        super().resizeEvent(event)
        self._arrange(self.rect())

    def _arrange(self, area: QRect) -> None:
        columns = max(1, (area.width() + 10) // px(self._column_width))
        if columns == self._columns:
            return
        for column in range(self._columns):
            self._grid.setColumnStretch(column, 0)
        self._columns = columns
        for column in range(columns):
            self._grid.setColumnStretch(column, 1)
        for index, card in enumerate(self._cards):
            self._grid.addWidget(card, index // columns, index % columns)
