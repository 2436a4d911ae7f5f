"""The Refusals tab: every pair that was kept apart, by rule, the costliest first; a click shows both in the graph."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QHeaderView, QLineEdit, QTreeView, QVBoxLayout, QWidget

from app.filters import Kept
from compiler.report import Report
from views.look import format as fmt
from views.look.theme import Theme
from views.refusals.model import BYTES, RefusalsModel
from views.tables.table_menu import add_table_menu
from views.widgets.basic import as_panel, label

_PAIR, _BYTES, _REGION = 420, 100, 120  # pixels of the columns; the reason takes the rest
_OPENED = 8  # a rule with at most so many pairs shows them at once


class RefusalsPanel(QWidget):
    """Filter box over the tree."""

    pair_chosen = Signal(str, str, str)  # region, and its two nodes
    node_hovered = Signal(str, str)  # region, the first node of the pair under the mouse

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: Report | None = None
        self._filled: Report | None = None
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 6, 4)
        column.setSpacing(6)
        head = QHBoxLayout()
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter by node, op, rule, reason")
        self.filter.setAccessibleName("Filter refusals")
        self.filter.setClearButtonEnabled(True)
        self.filter.setMaximumWidth(420)
        head.addWidget(self.filter, 1)
        self._told = label("", "muted")
        head.addWidget(self._told)
        head.addStretch()
        column.addLayout(head)
        self.model = RefusalsModel(self)
        self.tree = QTreeView()
        self.tree.setAccessibleName("Refusals")
        self.tree.setModel(self.model)
        self.tree.setUniformRowHeights(True)
        self.tree.setAlternatingRowColors(False)
        self.tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.tree.setSortingEnabled(True)
        header = self.tree.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        self.tree.sortByColumn(BYTES, Qt.SortOrder.DescendingOrder)
        add_table_menu(self.tree, self.model.csv_text)
        column.addWidget(self.tree, 1)
        self.tree.setMouseTracking(True)
        self.tree.entered.connect(self._entered)
        self.filter.textChanged.connect(self._filter)
        self.model.modelReset.connect(self._arranged)
        self.tree.selectionModel().currentRowChanged.connect(self._chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The columns share the new room."""
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        """The reason gets what the pairs leave, so that there is nothing to scroll to."""
        room = self.tree.viewport().width()
        pair = min(_PAIR, max(room * 2 // 5, 200))
        region = 0 if self.tree.isColumnHidden(3) else _REGION
        for section, width in enumerate((pair, _BYTES, max(room - pair - _BYTES - region, 160))):
            self.tree.setColumnWidth(section, width)

    def set_theme(self, theme: Theme) -> None:
        """The stylesheet colours everything here."""

    def set_report(self, report: Report) -> None:
        """Show another report's refusals."""
        self._report = report
        if self.isVisible():
            self._fill()

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """Show what the filters leave."""
        self.model.set_kept(kept)

    def showEvent(self, event: QShowEvent) -> None:
        """Make the rows when they are first seen."""
        super().showEvent(event)
        self._fill()

    @property
    def count(self) -> int:
        """Refusals of the report."""
        return sum(len(region.refusals) for region in self._report.regions) if self._report is not None else 0

    def _fill(self) -> None:
        report = self._report
        if report is not None and report is not self._filled:
            self._filled = report
            self.tree.setColumnHidden(3, len(report.regions) < 2)
            self._share_room()
            self.model.set_report(report)

    def _filter(self, text: str) -> None:
        self.model.set_filter(text)

    def _arranged(self) -> None:
        rules = self.model.rules
        for row, rule in enumerate(rules):
            # closed where there are many, so that every rule is in sight
            opened = bool(self.filter.text()) or len(rule.pairs) <= _OPENED or len(rules) == 1
            self.tree.setExpanded(self.model.index(row, 0), opened)
        shown = sum(len(rule.pairs) for rule in self.model.rules)
        if not self.model.count:
            self._told.setText("Nothing was kept apart.")
        else:
            of_all = "" if shown == self.model.count else f" of {fmt.count(self.model.count)}"
            self._told.setText(f"{fmt.count(shown)}{of_all} pairs of neighbours are in different kernels")

    def _entered(self, index: QModelIndex) -> None:
        pair = self.model.pair(index)
        self.node_hovered.emit(pair.region if pair else "", pair.refusal.a if pair else "")

    def _chosen(self, current: QModelIndex, previous: QModelIndex) -> None:
        pair = self.model.pair(current)
        if pair is not None:
            self.pair_chosen.emit(pair.region, pair.refusal.a, pair.refusal.b)
