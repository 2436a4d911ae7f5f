"""Pages beside a rail that names them: every page is in sight at any size, in groups, one key away.

The rail has names where there is room for them, else icons in two columns; nothing is ever behind an arrow.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from views.look.icons import icon
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.widgets.basic import line, tab_comes_by

_WIDTH, _NARROW = 126, 76  # pixels of the rail with names, and with icons in two columns
_ROW, _GAP = 20, 5  # heights of a button's row, and of the line between groups
_NAMES_FROM = 840  # pixels of width from which pages and names both have room


class RailButton(QPushButton):
    """A page's icon and name, with a number at the right where the page has something to count."""

    def __init__(self, title: str, icon_name: str, theme: Theme) -> None:
        super().__init__(title)
        self.title = title
        self._icon_name = icon_name
        self._count = 0
        self._names = True
        self._theme = theme
        self.setCheckable(True)
        self.setProperty("role", "rail")
        self.setIconSize(QSize(14, 14))
        self.set_theme(theme)
        self.set_count(0)

    @property
    def count(self) -> int:
        """What is counted at the right; 0 shows nothing."""
        return self._count

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.setIcon(icon(self._icon_name, theme.muted, theme.accent))

    def set_count(self, count: int) -> None:
        """Another number."""
        self._count = count
        counted = f"{self.title} ({count:,})" if count else self.title
        self.setAccessibleName(counted)
        keys = self.property("keys")
        self.setToolTip(f"{counted} ({keys})" if keys else counted)
        self.update()

    def set_keys(self, keys: str) -> None:
        """The shortcut, for the tool tip."""
        self.setProperty("keys", keys)
        self.set_count(self._count)

    def show_name(self, on: bool) -> None:
        """Icon and name, or the icon alone."""
        if on == self._names:
            return
        self._names = on
        self.setText(self.title if on else "")
        self.setProperty("narrow", not on)
        self.style().unpolish(self)
        self.style().polish(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The button, and the count over its right end."""
        super().paintEvent(event)
        if not self._count or not self._names:
            return
        with QPainter(self) as painter:
            painter.setFont(self._theme.ui_font(8.0))
            painter.setPen(self._theme.muted)
            where = QRect(0, 0, self.width() - 7, self.height())
            text = f"{self._count:,}" if self._count < 10_000 else f"{self._count // 1000:,}k"
            painter.drawText(where, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)


class Rail(QFrame):
    """The buttons, in groups. Up and Down walk them; Tab comes by the one that is down."""

    chosen = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setProperty("role", "rail")
        self.setAccessibleName(name)
        self.buttons: list[RailButton] = []
        self._groups: list[list[RailButton]] = []
        self._lines: list[QFrame] = []
        self._corner: QWidget | None = None
        self._exclusive = QButtonGroup(self)
        self._exclusive.idToggled.connect(self._toggled)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(5, 4, 5, 2)
        self._grid.setHorizontalSpacing(2)
        self._grid.setVerticalSpacing(0)
        self._shape = (False, 0)
        self._room = QSize(10_000, 10_000)
        fitted(self, self._take_width)

    def add(self, button: RailButton, *, begins_group: bool) -> None:
        """A button below those that are there, of their last group or the first of another."""
        if begins_group and self._groups:
            self._lines.append(line())
            self._lines[-1].setParent(self)  # a widget shown with no parent is a window
        if begins_group or not self._groups:
            self._groups.append([])
        self._groups[-1].append(button)
        self._exclusive.addButton(button, len(self.buttons))
        self.buttons.append(button)
        self._shape = (False, 0)
        self.arrange(self._room)

    def set_corner(self, corner: QWidget) -> None:
        """Buttons for the whole, at the bottom."""
        self._corner = corner
        self._shape = (False, 0)
        self.arrange(self._room)

    def check(self, place: int) -> None:
        """Show a page's button as down, without the signal."""
        if 0 <= place < len(self.buttons):
            self.blockSignals(True)
            self.buttons[place].setChecked(True)
            self.blockSignals(False)
            tab_comes_by(self._exclusive)

    def arrange(self, room: QSize) -> None:
        """Take the shape that fits ``room``, the size of rail and pages together."""
        self._room = room
        foot = self._corner.sizeHint().height() if self._corner is not None else 0
        tall = len(self.buttons) * px(_ROW) + len(self._lines) * _GAP + foot + 6
        shape = (room.width() >= px(_NAMES_FROM) and room.height() >= tall, len(self.buttons))
        if shape == self._shape:
            return
        self._shape = shape
        while self._grid.count():
            self._grid.takeAt(0)
        for row in range(self._grid.rowCount()):
            self._grid.setRowStretch(row, 0)
        bottom = self._in_one_column() if shape[0] else self._in_two_columns()
        self._grid.setRowStretch(bottom, 1)
        if self._corner is not None:
            self._grid.addWidget(self._corner, bottom + 1, 0, 1, 2, Qt.AlignmentFlag.AlignLeft)
        self._take_width()

    def _take_width(self) -> None:
        self.setFixedWidth(px(_WIDTH if self._shape[0] else _NARROW))

    def _in_one_column(self) -> int:
        row = 0
        for place, group in enumerate(self._groups):
            if place:
                self._lines[place - 1].show()
                self._grid.addWidget(self._lines[place - 1], row, 0, 1, 2)
                self._grid.setRowMinimumHeight(row, _GAP)
                row += 1
            for button in group:
                button.show_name(True)
                self._grid.addWidget(button, row, 0, 1, 2)
                row += 1
        return row

    def _in_two_columns(self) -> int:
        for made in self._lines:
            made.hide()
        for row in range(self._grid.rowCount()):
            self._grid.setRowMinimumHeight(row, 0)
        for place, button in enumerate(self.buttons):
            button.show_name(False)
            self._grid.addWidget(button, place // 2, place % 2)
        return (len(self.buttons) + 1) // 2

    def _toggled(self, place: int, on: bool) -> None:
        if on:
            tab_comes_by(self._exclusive)
            self.chosen.emit(place)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the keyboard on to the button that is down (a focus proxy would move it out of Tab's order)."""
        down = self._exclusive.checkedButton()
        if down is not None:
            down.setFocus(event.reason())


class RailStack(QWidget):
    """The rail and the pages. One page is current."""

    current_changed = Signal(int)

    def __init__(self, name: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._is_arranging = False
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        self.rail = Rail(name)
        self._pages = QStackedWidget()
        # the rail gives way before a page does, which the layout alone would not do
        self._pages.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row.addWidget(self.rail)
        row.addWidget(self._pages, 1)
        self.rail.chosen.connect(self.setCurrentIndex)

    def add_page(self, page: QWidget, title: str, icon_name: str, *, begins_group: bool = False) -> None:
        """A page below those that are there, with its title and icon."""
        self._pages.addWidget(page)
        self.rail.add(RailButton(title, icon_name, self._theme), begins_group=begins_group)
        self.rail.check(self._pages.currentIndex())

    def set_rail_theme(self, theme: Theme) -> None:
        """Other colours of the rail."""
        self._theme = theme
        for button in self.rail.buttons:
            button.set_theme(theme)

    def count(self) -> int:
        """How many pages there are."""
        return self._pages.count()

    def page(self, place: int) -> Any:
        """The widget at a place; each has ``set_theme``."""
        return self._pages.widget(place)

    def title(self, place: int) -> str:
        """A page's name."""
        return self.rail.buttons[place].title

    def indexOf(self, page: QWidget) -> int:
        """A page's place, or -1."""
        return self._pages.indexOf(page)

    def set_count(self, page: QWidget, count: int) -> None:
        """Show a number beside a page's name."""
        self.rail.buttons[self.indexOf(page)].set_count(count)

    def currentIndex(self) -> int:
        """The place of the page shown."""
        return self._pages.currentIndex()

    def currentWidget(self) -> QWidget:
        """The page shown."""
        return self._pages.currentWidget()

    def setCurrentIndex(self, place: int) -> None:
        """Show the page at ``place``."""
        self.rail.check(place)
        if place != self._pages.currentIndex():
            self._pages.setCurrentIndex(place)
            self.current_changed.emit(place)

    def setCurrentWidget(self, page: QWidget) -> None:
        """Show a page."""
        self.setCurrentIndex(self.indexOf(page))

    def step(self, by: int) -> None:
        """The next page or, with -1, the one before, around the end."""
        self.setCurrentIndex((self.currentIndex() + by) % self.count())

    def minimumSizeHint(self) -> QSize:
        """The widest page's, beside a narrow rail."""
        return QSize(px(_NARROW) + self._pages.minimumSizeHint().width(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Names where there is room: once for all sizes that follow each other while docks are arranged."""
        super().resizeEvent(event)
        if not self._is_arranging:
            self._is_arranging = True
            QTimer.singleShot(0, self, self._arrange)

    def _arrange(self) -> None:
        self._is_arranging = False
        self.rail.arrange(self.size())
