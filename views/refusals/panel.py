"""The Refusals tab: every pair that was kept apart, by rule, the costliest first; a click shows both in the graph."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from app.filters import Kept
from compiler.report import Report
from views.look import format as fmt
from views.look.sizes import px
from views.look.theme import Theme
from views.refusals.model import BYTES, RefusalsModel
from views.tables.sort_header import SortHeader
from views.tables.table_menu import add_table_menu
from views.widgets.basic import as_panel, label
from views.widgets.empty import Empty
from views.widgets.text_line import TextLine

_LEAST, _BYTES, _REGION = 200, 96, 220  # pixels: pairs and reasons at least, bytes, regions at most
_INDENT, _PAD = 46, 18  # before a pair, around every text
_LEAST_REGION = 70  # pixels, with its title
_ROW = 26  # pixels
_HEADER_PAD = 8  # pixels beside a title, as in the stylesheet
_WHY, _REGIONS = 2, 3  # columns
_NOTHING = "Nothing was kept apart: the compiler refused no fusion of neighbours."
_NO_MATCH = "No refusal is left by the words above and by the filters."
_OPENED = 8  # a rule with at most so many pairs shows them at once


class _Cells(QStyledItemDelegate):
    """A rule is written over the columns that it leaves empty; a pair that is cut keeps the ends of its names."""

    def __init__(self, tree: QTreeView) -> None:
        super().__init__(tree)
        self._tree = tree

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        if index.column() == 0:
            option.textElideMode = Qt.TextElideMode.ElideMiddle

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(super().sizeHint(option, index).width(), px(_ROW))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        if index.parent().isValid() or index.column() == BYTES:
            super().paint(painter, option, index)
            return
        own = QRect(option.rect)  # of a rule's title each cell paints the part that lies in it
        title = index.siblingAtColumn(0)
        option.rect.setLeft(self._tree.visualRect(title).left())
        option.rect.setRight(self._tree.header().sectionViewportPosition(BYTES) - 1)
        painter.save()
        painter.setClipRect(own, Qt.ClipOperation.IntersectClip)
        super().paint(painter, option, title)
        painter.restore()


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
        column.setContentsMargins(14, 8, 8, 4)
        column.setSpacing(6)
        head = QHBoxLayout()
        head.setSpacing(12)
        self.filter = TextLine()
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
        self.tree.setItemDelegate(_Cells(self.tree))
        self.tree.setAlternatingRowColors(False)
        self.tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.tree.setHeader(SortHeader(self.tree, _HEADER_PAD))
        self.tree.setSortingEnabled(True)
        header = self.tree.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        header.moveSection(BYTES, _WHY)  # a rule is written up to its bytes
        self.tree.sortByColumn(BYTES, Qt.SortOrder.DescendingOrder)
        add_table_menu(self.tree, self.model.csv_text)
        column.addWidget(self.tree, 1)
        self._empty = Empty("split", theme, _NOTHING)
        column.addWidget(self._empty, 1)
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
        """Pairs and reasons get what they need, or give way alike, so that there is nothing to scroll to."""
        metrics = self.tree.fontMetrics()
        needs = [metrics.horizontalAdvance(self.model.longest(column)) + _PAD for column in range(4)]
        region = min(max(needs[_REGIONS], px(_LEAST_REGION)), px(_REGION))
        bar = self.tree.verticalScrollBar().sizeHint().width()  # it may come after this
        room = self.tree.contentsRect().width() - bar - px(_BYTES) - region
        pair, why = max(needs[0] + _INDENT, _LEAST), max(needs[_WHY], _LEAST)
        if pair + why > room:
            pair = max(min(pair, room // 2), room - why, _LEAST * 4 // 5)
            why = max(room - pair, _LEAST * 4 // 5)
        for section, width in ((0, pair), (_WHY, why), (BYTES, px(_BYTES)), (_REGIONS, region)):
            self.tree.setColumnWidth(section, width)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._empty.set_theme(theme)

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
        self._share_room()
        every = self.model.count
        of_all = "" if shown == every else f" of {fmt.count(every)}"
        are = "pair of neighbours is" if every == 1 else "pairs of neighbours are"
        self._told.setText(f"{fmt.count(shown)}{of_all} {are} in different kernels" if every else "")
        self._empty.set_text(_NO_MATCH if every else _NOTHING)
        self._empty.setVisible(not shown)
        self.tree.setVisible(bool(shown))
        self.filter.setVisible(bool(every))

    def _entered(self, index: QModelIndex) -> None:
        pair = self.model.pair(index)
        self.node_hovered.emit(pair.region if pair else "", pair.refusal.a if pair else "")

    def _chosen(self, current: QModelIndex, previous: QModelIndex) -> None:
        pair = self.model.pair(current)
        if pair is not None:
            self.pair_chosen.emit(pair.region, pair.refusal.a, pair.refusal.b)
