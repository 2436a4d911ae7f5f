"""Percentiles and speedups, a row a mode."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from views.run_record import MODE_TITLES, Row

Index = QModelIndex | QPersistentModelIndex
COLUMNS = ("Mode", "CPU p50", "p90", "p99", "GPU p50", "p90", "p99", "Speedup")
_WIDTHS = (104, 62, 50, 50, 62, 50, 50, 60)
_SPEEDUP_TIP = "Against eager: the longer of CPU and GPU median of eager, over the same of this mode"


class RunTableModel(QAbstractTableModel):
    """The rows of a RunRecord, in microseconds."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def set_rows(self, rows: list[Row]) -> None:
        """Show other figures."""
        if [row.mode for row in rows] != [row.mode for row in self._rows]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        self._rows = rows
        if rows:
            self.dataChanged.emit(self.index(0, 1), self.index(len(rows) - 1, len(COLUMNS) - 1))

    def rowCount(self, parent: Index | None = None) -> int:
        """Modes with figures."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles; figures are right-aligned."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if role == Qt.ItemDataRole.ToolTipRole:
            return _SPEEDUP_TIP if COLUMNS[section] == "Speedup" else "Microseconds"
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts."""
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.iterations:,} iterations"
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if column == 0:
            return MODE_TITLES.get(row.mode, row.mode)
        if column == len(COLUMNS) - 1:
            return "–" if row.speedup is None else f"{row.speedup:.2f}x"
        value = (*row.cpu, *row.gpu)[column - 1]
        return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


class RunTable(QTableView):
    """The table with widths that fit its figures, so that the plot beside it gets the rest."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures = RunTableModel(self)
        self.setModel(self.figures)
        self.setAccessibleName("Percentiles in microseconds and speedups by mode")
        self.setShowGrid(False)
        self.setProperty("role", "figures")
        self.setFixedWidth(sum(_WIDTHS) + 4)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setDefaultSectionSize(26)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setMinimumSectionSize(40)
        for section, width in enumerate(_WIDTHS):
            self.setColumnWidth(section, width)


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
