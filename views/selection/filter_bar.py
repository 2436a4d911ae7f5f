"""The row of chips below the toolbar: one for each filter, each with a way out. There while something is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolBar, QToolButton, QWidget

from views.look.icons import icon
from views.look.theme import Theme
from views.widgets.basic import ElidedLabel, label, push_button

if TYPE_CHECKING:
    from app.filters import Filter
    from views.selection.filters import FilterStack


class FilterBar(QFrame):
    """Chips from left to right; Delete or a click takes one away."""

    removed = Signal(object)  # Filter
    add_wanted = Signal()
    cleared = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._filters: tuple[Filter, ...] = ()
        self.setProperty("role", "filters")
        self.setAccessibleName("Filters")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 3, 8, 3)
        row.setSpacing(6)
        row.addWidget(label("Showing", "muted"))
        self._chips = QHBoxLayout()
        self._chips.setSpacing(6)
        row.addLayout(self._chips)
        self._count = ElidedLabel("", "muted")
        row.addWidget(self._count, 1)
        row.addWidget(push_button("Add", self.add_wanted.emit, "link", "Add a filter (Ctrl+Shift+F)"))
        row.addSpacing(8)
        row.addWidget(push_button("Clear", self.cleared.emit, "link", "Show everything (Ctrl+Shift+X)"))

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.set_filters(self._filters, self._count.text())

    @property
    def chips(self) -> list[QToolButton]:
        """The buttons in order."""
        widgets = (self._chips.itemAt(place).widget() for place in range(self._chips.count()))
        return [widget for widget in widgets if isinstance(widget, QToolButton)]

    def set_filters(self, filters: tuple[Filter, ...], count: str) -> None:
        """Show these, and in words what they leave."""
        self._filters = filters
        for old in self.chips:
            self._chips.removeWidget(old)
            old.hide()
            old.deleteLater()
        for one in filters:
            self._chips.addWidget(self._chip(one))
        self._count.setText(count)

    def _chip(self, one: Filter) -> QToolButton:
        chip = QToolButton(self)
        chip.setProperty("role", "chip")
        chip.setText(one.title)
        chip.setIcon(icon("close", self._theme.muted))
        chip.setIconSize(QSize(10, 10))
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        chip.setAccessibleName(f"Remove the filter {one.title}")
        chip.setToolTip(f"Remove the filter {one.title}")
        chip.clicked.connect(lambda: self.removed.emit(one))
        return chip


class FilterRow(QToolBar):
    """The chips in a row of their own across the window, for they hold in every panel."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("Filters", parent)
        self._stack: FilterStack | None = None
        self._wanted = False
        self.bar = FilterBar(theme)
        self.setObjectName("filters")
        self.setMovable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.addWidget(self.bar)
        self.hide()

    def follow(self, stack: FilterStack) -> None:
        """Show the filters of ``stack``."""
        self._stack = stack
        self.bar.removed.connect(stack.remove)
        self.bar.cleared.connect(stack.clear)
        stack.changed.connect(self._show)

    def show_while_needed(self, on: bool) -> None:
        """Whether there is a report on screen to filter."""
        self._wanted = on
        self._show()

    def _show(self) -> None:
        filters = self._stack.filters if self._stack is not None else ()
        self.bar.set_filters(filters, self._stack.sentence() if self._stack is not None else "")
        self.setVisible(self._wanted and bool(filters))
