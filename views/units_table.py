"""The table of what the schedule launches: groups and extern calls, sortable, with a filter box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLineEdit, QTableView, QVBoxLayout, QWidget

from compiler.report import ExternCall, Group
from views import format as fmt
from views.index import RegionIndex, Unit
from views.sorting import SourceSorted, sort_rows
from views.table_menu import add_table_menu, csv_text
from views.theme import Theme
from views.widgets import as_panel

Index = QModelIndex | QPersistentModelIndex
COLUMNS = ("#", "Name", "Time", "Wasted", "Bytes", "FLOPs", "Kind")
WASTED = COLUMNS.index("Wasted")
NAME_ROLE = Qt.ItemDataRole.UserRole + 1
_WIDTHS = (30, 108, 76, 72, 76, 92, 80)
_TIPS = {
    "#": "Position in the schedule",
    "Bytes": "Memory traffic (estimated)",
    "FLOPs": "Floating-point operations (estimated)",
    "Time": "Measured time where there is one; else estimated for the target and marked ~",
    "Wasted": "Measured time beyond what the target's bandwidth and rate would allow (the roof is an estimate)",
}


@dataclass(frozen=True)
class Row:
    """One unit as the table shows it."""

    unit: Unit
    kind: str
    time_us: float | None
    measured: bool
    wasted_us: float | None
    text: str  # everything the filter looks in


class UnitsModel(QAbstractTableModel):
    """The rows of one region, in launch order until they are sorted."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._index: RegionIndex | None = None
        self._rows: list[Row] = []

    def set_theme(self, theme: Theme) -> None:
        """Other colours for the swatches."""
        self._theme = theme
        if self._rows:
            last = self.index(len(self._rows) - 1, 1)
            self.dataChanged.emit(self.index(0, 1), last, [Qt.ItemDataRole.DecorationRole])

    def set_region(self, index: RegionIndex | None) -> None:
        """Show another region."""
        self.beginResetModel()
        self._rows = [_row(unit, index) for unit in index.schedule] if index else []
        self._index = index
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        """Units of the region."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Column titles, with what they mean as tool tip."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _TIPS.get(COLUMNS[section])
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, sort keys, swatches."""
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(row, column)
        if role == NAME_ROLE:
            return row.unit.name
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.DecorationRole and column == 1:
            return self._swatch(row.unit)
        if role == Qt.ItemDataRole.ForegroundRole and COLUMNS[column] in ("#", "Kind"):
            return self._theme.muted
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.unit.reason if isinstance(row.unit, Group) else row.unit.detail
        return None

    def _swatch(self, unit: Unit) -> QPixmap | None:
        if self._index is None:
            return None
        return swatch(self._theme, unit_color(unit.name, self._index, self._theme), isinstance(unit, ExternCall))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the rows; what has no time comes last in a falling order."""
        if column >= 0:
            sort_rows(self, self._rows, lambda row: _key(row, column), order)

    def plain_row(self, row: int) -> tuple[Any, ...]:
        """A row's figures without units."""
        found = self._rows[row]
        unit = found.unit
        kernel = unit.kernel if isinstance(unit, Group) else unit.op
        figures = (found.time_us, found.measured, found.wasted_us, unit.estimated_bytes, unit.estimated_flops)
        return (unit.order, unit.name, found.kind, kernel, *figures)

    def row_of(self, name: str) -> int:
        """The row of the unit called ``name``, or -1."""
        return next((i for i, row in enumerate(self._rows) if row.unit.name == name), -1)

    def matches(self, row: int, text: str) -> bool:
        """Whether every word of ``text`` is in the row's texts."""
        return all(word in self._rows[row].text for word in text.lower().split())


class _Filter(SourceSorted):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._text = ""

    def set_text(self, text: str) -> None:
        self._text = text
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        model = self.sourceModel()
        return not self._text or (isinstance(model, UnitsModel) and model.matches(source_row, self._text))


class UnitsPanel(QWidget):
    """Filter box over the table."""

    unit_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 6, 4)
        column.setSpacing(8)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter by name, op, kind, reason")
        self.filter.setAccessibleName("Filter groups and extern calls")
        self.filter.setClearButtonEnabled(True)
        column.addWidget(self.filter)
        self.model = UnitsModel(theme, self)
        self._proxy = _Filter(self)
        self._proxy.setSourceModel(self.model)
        self.table = QTableView()
        self.table.setAccessibleName("Groups and extern calls")
        self.table.setModel(self._proxy)
        self.table.setSortingEnabled(True)
        self.table.setShowGrid(False)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.table.verticalHeader().setVisible(False)
        self.table.verticalHeader().setDefaultSectionSize(26)
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        header.setMinimumSectionSize(36)
        for section, width in enumerate(_WIDTHS):
            self.table.setColumnWidth(section, width)
        self._by_waste = False
        self.table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        add_table_menu(self.table, self.csv_text)
        column.addWidget(self.table, 1)
        self.filter.textChanged.connect(self._proxy.set_text)
        self.table.selectionModel().currentRowChanged.connect(self._chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """As many whole columns as fit are in sight; the name takes what is left over."""
        super().resizeEvent(event)
        room = self.table.viewport().width()
        taken = _WIDTHS[0] + _WIDTHS[2]
        for width in _WIDTHS[3:]:
            if taken + width + _WIDTHS[1] > room:
                break
            taken += width
        self.table.setColumnWidth(1, max(_WIDTHS[1], room - taken))

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.model.set_theme(theme)

    def set_region(self, index: RegionIndex | None) -> None:
        """Show the units of another region; where they were measured, those first that waste most."""
        self.model.set_region(index)
        measured = index is not None and any(point.time.measured for point in index.points.values())
        if measured != self._by_waste:
            self._by_waste = measured
            order = Qt.SortOrder.DescendingOrder if measured else Qt.SortOrder.AscendingOrder
            self.table.sortByColumn(WASTED if measured else 0, order)
        else:
            self._proxy.sort_again()

    def csv_text(self) -> str:
        """The rows as they are sorted and filtered, with plain figures."""
        header = ("order", "name", "kind", "kernel", "time_us", "measured", "wasted_us", "bytes", "flops")
        shown = (self._proxy.mapToSource(self._proxy.index(row, 0)).row() for row in range(self._proxy.rowCount()))
        return csv_text(header, (self.model.plain_row(row) for row in shown))

    def show_unit(self, name: str) -> None:
        """Make ``name`` the current row, without the signal."""
        selection = self.table.selectionModel()
        selection.currentRowChanged.disconnect(self._chosen)
        row = self.model.row_of(name)
        index = self._proxy.mapFromSource(self.model.index(row, 0)) if row >= 0 else QModelIndex()
        if index.isValid():
            flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
            selection.setCurrentIndex(index, flags)
            self.table.scrollTo(index)
        else:
            selection.clear()
        selection.currentRowChanged.connect(self._chosen)

    def _chosen(self, current: QModelIndex, previous: QModelIndex) -> None:
        if current.isValid():
            self.unit_chosen.emit(current.data(NAME_ROLE))


def _row(unit: Unit, index: RegionIndex) -> Row:
    kind = unit.kind.value if isinstance(unit, Group) else "extern"
    kernel = index.kernel_of(unit.name)
    point = index.points.get(unit.name)
    measured = point is not None and point.time.measured
    time_us = point.time.us if point is not None else None
    wasted_us = point.wasted_us if point is not None and measured else None
    ops = " ".join(index.nodes[node].op for node in unit.nodes if node in index.nodes)
    reason = unit.reason if isinstance(unit, Group) else f"{unit.reason.value} {unit.detail} {unit.op}"
    text = " ".join((unit.name, kind, *unit.nodes, ops, reason, kernel.name if kernel else "")).lower()
    return Row(unit, kind, time_us, measured, wasted_us, text)


def _text(row: Row, column: int) -> str:
    unit = row.unit
    match COLUMNS[column]:
        case "#":
            return str(unit.order)
        case "Name":
            return unit.name
        case "Kind":
            return row.kind
        case "Bytes":
            return fmt.size(unit.estimated_bytes) if unit.estimated_bytes else "–"
        case "FLOPs":
            return fmt.flops(unit.estimated_flops) if unit.estimated_flops else "–"
        case "Wasted":
            return "–" if row.wasted_us is None else fmt.microseconds(round(row.wasted_us, 2))
    if row.time_us is None:
        return "–"
    return f"{'' if row.measured else '~'}{fmt.microseconds(row.time_us)}"


def _key(row: Row, column: int) -> Any:
    unit = row.unit
    keys = (
        unit.order,
        unit.name,
        -1.0 if row.time_us is None else row.time_us,
        -1.0 if row.wasted_us is None else row.wasted_us,
        unit.estimated_bytes,
        unit.estimated_flops,
        row.kind,
    )
    return keys[column]


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if COLUMNS[column] in ("Name", "Kind") else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


def unit_color(name: str, index: RegionIndex, theme: Theme) -> QColor:
    """The colour that a unit has in every view; extern calls are grey."""
    number = index.group_colors.get(name)
    return theme.extern_border if number is None else theme.group_colors[number % len(theme.group_colors)]


def swatch(theme: Theme, color: QColor, hollow: bool) -> QPixmap:
    """A small square of a unit's colour, twelve logical pixels wide."""
    image = QPixmap(24, 24)
    image.setDevicePixelRatio(2.0)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(color)
    painter.setBrush(theme.extern_fill if hollow else color)
    painter.drawRoundedRect(QRect(1, 1, 10, 10), 3, 3)
    painter.end()
    return image
