"""A sortable table of plain rows, with copying and CSV."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from views.look.sizes import fitted, px
from views.tables.cells import RecordCells
from views.tables.record_model import Column, Record, RecordModel, Swatch
from views.tables.sort_header import SortHeader
from views.tables.table_menu import add_table_menu, csv_text
from views.tables.widths import LEAST, shared_widths

HEADER_PAD = 5  # pixels beside a title, as in the stylesheet
__all__ = ["Column", "DataTable", "Record", "Swatch"]


class DataTable(QTableView):
    """Rows can be chosen, copied, and saved as CSV from the context menu."""

    chosen = Signal(str)  # a record's target, by a click or Enter
    hovered = Signal(str)  # the target of the row under the mouse, "" for none
    moved = Signal(str)  # a record's target, whenever the user comes to its row

    def __init__(
        self, name: str, columns: list[Column], parent: QWidget | None = None, *, swatch_column: int = -1
    ) -> None:
        super().__init__(parent)
        self.records = RecordModel(columns, self)
        self._current = ""  # target of the row that is marked
        self._hovered = ""
        self._is_quiet = False
        self._empty = ""
        self.setModel(self.records)
        self._cells = RecordCells(self, self.records, swatch_column)
        self.setMouseTracking(True)
        self.setAccessibleName(name)
        self.setHorizontalHeader(SortHeader(self, HEADER_PAD))
        self.setSortingEnabled(True)
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.verticalHeader().setVisible(False)
        fitted(self, lambda: self.verticalHeader().setDefaultSectionSize(px(26)))
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setMinimumSectionSize(LEAST)
        self._is_sharing = False
        self._is_arranged = False  # the user has given a column a width: they are the user's from now on
        header.sectionResized.connect(self._resized)
        self.share_room()
        self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        add_table_menu(self, self.csv_text)
        self.clicked.connect(self._tell)
        self.activated.connect(self._tell)
        self.selectionModel().currentRowChanged.connect(self._moved)

    def set_records(self, records: list[Record], text_of: Callable[[Record], str] | None = None) -> None:
        """Show other rows, sorted and filtered as before. ``text_of`` is what the filter looks in, else the texts."""
        self._is_quiet = True
        self.records.set_records(records, text_of)
        self._is_quiet = False
        self.share_room()
        self.show_target(self._current)

    def set_filter(self, text: str) -> None:
        """Show only rows that hold every word of ``text``."""
        self._is_quiet = True
        self.records.set_filter(text)
        self._is_quiet = False
        self.show_target(self._current)

    @property
    def empty_text(self) -> str:
        """What is said where there are no rows."""
        return self._empty

    def set_empty_text(self, text: str) -> None:
        """What stands in place of rows where there are none."""
        self._empty = text
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The columns share the new room."""
        super().resizeEvent(event)
        self.share_room()

    def show_columns(self, shown: dict[int, bool]) -> None:
        """Show columns that have figures, and hide those that would be all dashes."""
        changed = [section for section, on in shown.items() if self.isColumnHidden(section) == on]
        for section in changed:
            self.setColumnHidden(section, not shown[section])
        if changed:
            self.share_room()

    def share_room(self) -> None:
        """Give the columns in sight their widths, unless the user has."""
        if self._is_arranged:
            return
        header, columns = self.horizontalHeader(), self.records.columns
        order = [header.logicalIndex(place) for place in range(len(columns))]
        order = [section for section in order if not self.isColumnHidden(section)]
        metrics = self.fontMetrics()
        needs = [self._cells.width_of(section, metrics) for section in order]
        widths = shared_widths([columns[section] for section in order], self.viewport().width(), needs)
        self._is_sharing = True
        for section, width in zip(order, widths, strict=True):
            self.setColumnWidth(section, width)
        self._is_sharing = False

    def _resized(self, section: int, before: int, after: int) -> None:
        last = self.horizontalHeader().logicalIndex(len(self.records.columns) - 1)
        if not self._is_sharing and before and after and section != last:  # the last one stretches by itself
            self._is_arranged = True

    def paintEvent(self, event: QPaintEvent) -> None:
        """The rows, or why there are none."""
        super().paintEvent(event)
        if self.records.shown or not self._empty:
            return
        with QPainter(self.viewport()) as painter:
            painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
            flags = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap
            painter.drawText(self.viewport().rect().adjusted(5, 8, -5, -5), flags, self._empty)

    def show_target(self, target: str) -> None:
        """Mark the row with this target, without a signal; none where no row has it."""
        self._is_quiet = True
        self._current = target
        row = self.records.row_of(target) if target else -1
        if row >= 0:
            flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
            index = self.records.index(row, 0)
            self.selectionModel().setCurrentIndex(index, flags)
            self.scrollTo(index)
        else:
            self.selectionModel().clear()
        self._is_quiet = False

    def csv_text(self) -> str:
        """The rows as they are sorted and filtered, with plain values."""
        header = [column.title for column in self.records.columns]
        return csv_text(header, (record.values for record in self.records.shown))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The row below the mouse is lit."""
        super().mouseMoveEvent(event)
        self._hover(self.indexAt(event.position().toPoint()).row())

    def leaveEvent(self, event: QEvent) -> None:
        """No row is."""
        super().leaveEvent(event)
        self._hover(-1)

    def _hover(self, row: int) -> None:
        self._cells.hover(row)
        target = self.records.shown[row].target if row >= 0 else ""
        if target != self._hovered:
            self._hovered = target
            self.hovered.emit(target)

    def _moved(self, current: QModelIndex, previous: QModelIndex) -> None:
        if current.isValid() and not self._is_quiet:
            self._current = self.records.shown[current.row()].target
            if self._current:
                self.moved.emit(self._current)

    def _tell(self, index: QModelIndex) -> None:
        target = self.records.shown[index.row()].target if index.isValid() else ""
        if target:
            self.chosen.emit(target)
