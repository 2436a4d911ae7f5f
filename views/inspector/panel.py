"""The inspector: what is selected, why it is as it is, and the kernel that computes it."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSplitter, QVBoxLayout, QWidget

from compiler.report import ExternCall, Group, Kernel
from views.background.turns import in_a_turn
from views.code.kernel import KernelPanel
from views.inspector.page_area import PageArea
from views.inspector.pinned import comparison_page, pin_title
from views.inspector.sections import Page, in_order, node_page, nodes_page, overview_page, pair_page, unit_page
from views.look import format as fmt
from views.look.theme import Theme
from views.selection.index import RegionIndex
from views.selection.selection import Selection
from views.tables.units_table import swatch, unit_color
from views.widgets.basic import ElidedLabel, as_panel, icon_button, label, recolor
from views.widgets.tab_order import follow, tab_stops

_NEXT_FRAME_MS = 12  # a selection is painted first, its facts with the frame after
_HEAD_BUTTONS, _HEAD_NAME = 150, 140  # pixels of the head that buttons take, and that a name wants at most
_PIN = "Pin what is selected, to compare the next with it (P)"


class Inspector(QWidget):
    """Follows the selection; every click in it is a wish to select, told by signals."""

    node_chosen = Signal(str)
    unit_chosen = Signal(str)
    lines_chosen = Signal(str, int)  # kernel, line
    line_hovered = Signal(str, int)  # kernel, line, 0 for none
    back_requested = Signal()
    forward_requested = Signal()
    pin_requested = Signal()
    hovered = Signal(str)  # a node or unit named in the facts, "" for none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        as_panel(self)
        self._theme = theme
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_NEXT_FRAME_MS)
        self._later.timeout.connect(lambda: in_a_turn(self, self._turn))
        self._is_due = False  # some of the page is still to be made
        self._made: Page | None = None  # of what is selected; None while it is still to be made
        self._index: RegionIndex | None = None
        self._selection = Selection()
        self._pinned: tuple[RegionIndex, Selection] | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        head = QHBoxLayout()
        head.setContentsMargins(14, 10, 8, 8)
        head.setSpacing(5)
        self._swatch = QLabel()
        head.addWidget(self._swatch)
        self.title = ElidedLabel("", "strong")
        head.addWidget(self.title)
        self._chip = label("", "chip")
        head.addWidget(self._chip)
        head.addStretch()
        self._pin = icon_button("pin", _PIN, self._pin_clicked, theme)
        self._pin.setCheckable(True)
        head.addWidget(self._pin)
        self._back = icon_button("back", "Back in the selection history", self.back_requested.emit, theme)
        self._forward = icon_button("forward", "Forward in the selection history", self.forward_requested.emit, theme)
        head.addWidget(self._back)
        head.addWidget(self._forward)
        column.addLayout(head)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setObjectName("inspector")
        self.splitter.setChildrenCollapsible(False)
        self._area = PageArea("Facts of the selection")
        self.kernel_panel = KernelPanel(theme)
        self.kernel_panel.line_clicked.connect(self.lines_chosen)
        self.kernel_panel.line_hovered.connect(self.line_hovered)
        self.kernel_panel.more_room_wanted.connect(self._give_room)
        self.splitter.addWidget(self._area)
        self.splitter.addWidget(self.kernel_panel)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setStretchFactor(1, 1)
        column.addWidget(self.splitter, 1)
        self.set_history(False, False)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.kernel_panel.set_theme(theme)
        recolor(self, theme)
        self.show_selection(self._selection)

    def set_region(self, index: RegionIndex | None) -> None:
        """Inspect another region."""
        self._index = index
        self._selection = Selection()

    def set_history(self, can_go_back: bool, can_go_forward: bool) -> None:
        """Which of Back and Forward lead anywhere."""
        self._back.setEnabled(can_go_back)
        self._forward.setEnabled(can_go_forward)

    def set_pinned(self, pinned: tuple[RegionIndex, Selection] | None) -> None:
        """What everything is compared with, and the look-ups of its region; None for nothing."""
        self._pinned = pinned
        title = pin_title(pinned[1]) if pinned is not None else ""
        tip = f"Unpin {title} (P)" if title else _PIN
        self._pin.setToolTip(tip)
        self._pin.setAccessibleName(tip)
        self.show_selection(self._selection)

    def _pin_clicked(self) -> None:
        self._pin.setChecked(self._pinned is not None)  # the model decides
        self.pin_requested.emit()

    @property
    def page(self) -> QWidget | None:
        """The facts of what is selected."""
        self.make_all()
        return self._area.page

    @property
    def entry(self) -> QWidget:
        """Where the keyboard comes in: the code, or the facts where there is none."""
        return self._area if self.kernel_panel.isHidden() else self.kernel_panel.code

    def make_all(self) -> None:
        """Make what is left of the facts at once."""
        while self._is_due:
            self._turn()

    def show_selection(self, selection: Selection) -> None:
        """Show what is selected."""
        self._selection = selection
        index = self._index
        if index is None:
            return
        unit = index.units.get(selection.unit)
        node = index.nodes.get(selection.node)
        kernel = index.kernel_of(selection.unit)
        self._swatch.setVisible(unit is not None)
        if unit is not None:
            color = unit_color(unit.name, index, self._theme)
            self._swatch.setPixmap(swatch(self._theme, color, isinstance(unit, ExternCall)))
        if node is not None:
            self._head(node.name, f"op in {unit.name}" if unit is not None else node.kind.value)
        elif unit is not None:
            self._head(unit.name, f"{unit.kind.value} group" if isinstance(unit, Group) else "extern call")
        elif self._is_pair(index, selection):
            self._head(" → ".join(in_order(index, selection.nodes)), "kept apart")
        elif selection.nodes:
            self._head(fmt.plural(len(selection.nodes), "node"), f"in {index.region.name}")
        else:
            self._head(index.region.name, f"{index.region.kind} region" if index.region.kind else "")
        self._pin.setChecked(self._pinned is not None)
        self._pin.setEnabled(self._pinned is not None or not selection.is_empty)
        self._show_kernel(kernel, selection, unit)
        self._made = None
        self._is_due = True
        self._later.start()

    def _is_pair(self, index: RegionIndex, selection: Selection) -> bool:
        """Whether two nodes of different units are selected."""
        return len(selection.nodes) == 2 and len({index.unit_of(name) for name in selection.nodes} - {""}) == 2

    def _turn(self) -> None:
        """The facts in turns of their own: with the rest of a selection they would take more than a frame."""
        if not self._is_due:
            return  # somebody could not wait
        self._later.stop()
        if self._made is None:
            self._make_page()
        else:
            self._made.go_on()
        self._is_due = self._made is not None and self._made.has_more
        if self._is_due:
            in_a_turn(self, self._turn)
        elif self._area.page is not None:
            follow(self._area, tab_stops(self._area.page))

    def _make_page(self) -> None:
        index, selection = self._index, self._selection
        if index is None:
            return
        unit, node = index.units.get(selection.unit), index.nodes.get(selection.node)
        if node is not None:
            page = node_page(index, node, unit, self._theme)
        elif unit is not None:
            page = unit_page(index, unit, selection.nodes, self._theme)
        elif self._is_pair(index, selection):
            page = pair_page(index, selection.nodes, self._theme)
        elif selection.nodes:
            page = nodes_page(index, selection.nodes, self._theme)
        else:
            page = overview_page(index)
        if self._pinned is not None and self._pinned[1] != selection and not selection.is_empty:
            comparison_page(page, *self._pinned, index, selection)
        page.hovered.connect(self.hovered)
        page.node_chosen.connect(self.node_chosen)
        page.unit_chosen.connect(self.unit_chosen)
        self._area.show_page(page)
        self._made = page

    def _give_room(self) -> None:
        """Most of the height for the kernel's levels."""
        height = self.splitter.height()
        self.splitter.setSizes([height // 4, height - height // 4])

    def _head(self, title: str, chip: str) -> None:
        self.title.setText(title)
        self._chip.setText(chip)
        self._share_head()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The name goes before what it is."""
        super().resizeEvent(event)
        self._share_head()

    def _share_head(self) -> None:
        """Show what is selected, and beside its name what it is where there is room for both."""
        name = self.title.fontMetrics().horizontalAdvance(self.title.text())
        room = self.width() - _HEAD_BUTTONS - min(name, _HEAD_NAME)
        self._chip.setVisible(bool(self._chip.text()) and self._chip.sizeHint().width() <= room)

    def _show_kernel(self, kernel: Kernel | None, selection: Selection, unit: Group | ExternCall | None) -> None:
        index = self._index
        self.kernel_panel.setVisible(kernel is not None)  # else the facts have all the room, and say why
        if kernel is not None and index is not None:
            whole = isinstance(unit, Group) and selection.nodes == frozenset(unit.nodes)
            lines = [] if whole else index.node_lines(kernel, selection.nodes)
            self.kernel_panel.show_kernel(kernel, [selection.line] if selection.line else lines)
        else:
            self.kernel_panel.show_nothing()
