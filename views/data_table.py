"""A sortable table of plain rows, with copying and CSV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from views.sorting import SourceSorted, sort_rows
from views.table_menu import add_table_menu, csv_text

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Column:
    """A column: its title, its width in pixels, whether it holds figures, what it means."""

    title: str
    width: int
    is_figure: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Record:
    """A row: the texts shown, the values that sort and are written to CSV, and what is told when it is chosen."""

    texts: tuple[str, ...]
    values: tuple[Any, ...]
    target: str = ""
    tip: str = ""
    color: QColor | None = None  # of the first column's text


class RecordModel(QAbstractTableModel):
    """Records under columns."""

    def __init__(self, columns: list[Column], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.columns = columns
        self.records: list[Record] = []

    def set_records(self, records: list[Record]) -> None:
        """Show other records."""
        self.beginResetModel()
        self.records = records
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the records; what has no value comes last in a falling order."""
        if column >= 0:
            sort_rows(self, self.records, lambda record: _key(record.values[column]), order)

    def rowCount(self, parent: Index | None = None) -> int:
        """One row a record."""
        return 0 if parent is not None and parent.isValid() else len(self.records)

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles and what they mean."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip or None
        return _side(column) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts and sort keys."""
        if not index.isValid():
            return None
        record, column = self.records[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return record.texts[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return record.tip or record.texts[column]
        if role == Qt.ItemDataRole.ForegroundRole:
            return record.color if column == 0 else None
        return _side(self.columns[column]) if role == Qt.ItemDataRole.TextAlignmentRole else None


class _Filter(SourceSorted):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._words: list[str] = []

    def set_text(self, text: str) -> None:
        self._words = text.lower().split()
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        model = self.sourceModel()
        if not self._words or not isinstance(model, RecordModel):
            return True
        text = " ".join(model.records[source_row].texts).lower()
        return all(word in text for word in self._words)


class DataTable(QTableView):
    """Rows can be chosen, copied, and saved as CSV from the context menu."""

    chosen = Signal(str)  # a record's target

    def __init__(self, name: str, columns: list[Column], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.records = RecordModel(columns, self)
        self._sorter = _Filter(self)
        self._sorter.setSourceModel(self.records)
        self.setModel(self._sorter)
        self.setAccessibleName(name)
        self.setSortingEnabled(True)
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setDefaultSectionSize(25)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setMinimumSectionSize(36)
        for section, column in enumerate(columns):
            self.setColumnWidth(section, column.width)
        self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        add_table_menu(self, self.csv_text)
        self.clicked.connect(self._tell)
        self.activated.connect(self._tell)

    def set_records(self, records: list[Record]) -> None:
        """Show other rows, sorted as before."""
        self.records.set_records(list(records))
        self._sorter.sort_again()

    def set_filter(self, text: str) -> None:
        """Show only rows that hold every word of ``text``."""
        self._sorter.set_text(text)

    def csv_text(self) -> str:
        """The rows as they are sorted and filtered, with plain values."""
        rows = (self._sorter.mapToSource(self._sorter.index(row, 0)).row() for row in range(self._sorter.rowCount()))
        header = [column.title for column in self.records.columns]
        return csv_text(header, (self.records.records[row].values for row in rows))

    def _tell(self, index: QModelIndex) -> None:
        target = self.records.records[self._sorter.mapToSource(index).row()].target if index.isValid() else ""
        if target:
            self.chosen.emit(target)


def _key(value: Any) -> tuple[int, Any]:
    """Numbers before texts; what is missing before both."""
    return (0, 0) if value is None else (1, value) if isinstance(value, int | float) else (2, str(value))


def _side(column: Column) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column.is_figure else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
