"""The table of what the schedule launches: groups and extern calls, sortable, with a filter box."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.unit_errors import error_text
from compiler.report import ExternCall, Group
from views.background.jobs import Job
from views.look import format as fmt
from views.look.theme import Theme
from views.selection.index import RegionIndex, Unit
from views.tables.data_table import Column, DataTable, Record, Swatch
from views.tables.table_menu import csv_text
from views.widgets.basic import as_panel
from views.widgets.text_line import TextLine

_COLUMNS = [
    Column("#", 30, True, "Position in the schedule", is_muted=True),
    Column("Name", 124, least=124, is_name=True),
    Column("Time", 76, True, "Measured time where there is one; else estimated for the target and marked ~", least=66),
    Column(
        "Wasted", 72, True,
        "Measured time beyond what the target's bandwidth and rate would allow (the roof is an estimate)",
        least=66,
    ),
    Column("Error", 64, True, "||value - float64|| / ||float64|| of what the unit writes least exactly"),
    Column("Bytes", 76, True, "Memory traffic (estimated)"),
    Column("FLOPs", 92, True, "Floating-point operations (estimated)"),
    Column("Kind", 80, is_muted=True),
]  # fmt: skip
_NAME, _WASTED, _ERROR = 1, 3, 4
_LEADING = {"time": 2, "wasted": _WASTED, "error": _ERROR, "bytes": 5}  # overlay -> column
_CSV = ("order", "name", "kind", "kernel", "time_us", "measured", "wasted_us", "bytes", "flops", "error", "eager_error")
_AT_ONCE = 400  # rows that are made within a frame; more are made off the GUI thread

_NONE = "There is no group and no extern call."
_NONE_SUCH = "No group or extern call has all of these words."
_ALL_HIDDEN = "The filters hide every group and extern call."


class UnitsPanel(QWidget):
    """Filter box over the table."""

    unit_chosen = Signal(str)
    unit_hovered = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._index: RegionIndex | None = None
        self._by_waste = False
        self._leading: int | None = None  # the column that the graph's colours put first
        self._job: Job | None = None
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 4)
        column.setSpacing(8)
        self.filter = TextLine()
        self.filter.setPlaceholderText("Filter by name, op, kind, reason")
        self.filter.setAccessibleName("Filter groups and extern calls")
        self.filter.setClearButtonEnabled(True)
        column.addWidget(self.filter)
        self.table = _UnitsDataTable("Groups and extern calls", _COLUMNS, swatch_column=_NAME)
        self.filter.textChanged.connect(self._explain_none)
        self._explain_none()
        self.table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.table.show_columns({_ERROR: False, _WASTED: False})
        column.addWidget(self.table, 1)
        self.filter.textChanged.connect(self.table.set_filter)
        self.table.moved.connect(self.unit_chosen)
        self.table.hovered.connect(self.unit_hovered)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._fill()

    def set_region(self, index: RegionIndex | None) -> None:
        """Show the units of another region; where they were measured, those first that waste most."""
        self._index = index
        self._explain_none()
        measured = index is not None and _is_measured(index)
        self._fill()
        if measured != self._by_waste:
            self._by_waste = measured
            self._sort_as_usual()

    def csv_text(self) -> str:
        """The rows as they are sorted and filtered, with plain figures."""
        return self.table.csv_text()

    def lead_with(self, overlay: str) -> None:
        """The figure that the graph is coloured by comes first after the name, and sorts the table."""
        header = self.table.horizontalHeader()
        for place in range(len(_COLUMNS)):  # as they were, then the one that leads
            header.moveSection(header.visualIndex(place), place)
        column = _LEADING.get(overlay)
        if column is not None and not self.table.isColumnHidden(column):
            header.moveSection(header.visualIndex(column), _NAME + 1)
            self.table.sortByColumn(column, Qt.SortOrder.DescendingOrder)
        elif header.sortIndicatorSection() == self._leading:
            self._sort_as_usual()
        self._leading = column
        self.table.share_room()

    def _sort_as_usual(self) -> None:
        """What wastes most comes first; in launch order where nothing was measured."""
        order = Qt.SortOrder.DescendingOrder if self._by_waste else Qt.SortOrder.AscendingOrder
        self.table.sortByColumn(_WASTED if self._by_waste else 0, order)

    def show_unit(self, name: str) -> None:
        """Make ``name`` the current row, without the signal."""
        self.table.show_target(name)

    def _explain_none(self) -> None:
        """What an empty table says: who left nothing."""
        filtered = self._index is not None and self._index.kept is not None
        none = _ALL_HIDDEN if filtered else _NONE
        self.table.set_empty_text(_NONE_SUCH if self.filter.text().strip() else none)

    def _fill(self) -> None:
        index, theme = self._index, self._theme
        if self._job is not None:
            self._job.cancel()
            self._job = None
        if index is None:
            self.table.set_records([])
            return
        self.table.index_shown = index
        self.table.show_columns({_ERROR: bool(index.errors), _WASTED: _is_measured(index)})
        if len(index.schedule) <= _AT_ONCE:
            self._show(index, _records(index, theme))
            return
        if self.table.records.shown and self.table.records.shown[0].target not in index.units:
            self.table.set_records([])  # of another region
        self._job = Job(lambda cancelled: _records(index, theme), self)
        self._job.done.connect(lambda records: self._show(index, records))
        self._job.start()

    def _show(self, index: RegionIndex, records: list[Record]) -> None:
        self._job = None
        self.table.set_records(records, lambda record: _text(index.units[record.target], index))


class _UnitsDataTable(DataTable):
    """Its CSV has figures that the table has no room for."""

    index_shown: RegionIndex | None = None

    def csv_text(self) -> str:
        index = self.index_shown
        return csv_text(_CSV, _csv_rows(self.records.shown, index) if index is not None else ())


def _csv_rows(records: list[Record], index: RegionIndex) -> Iterator[tuple[object, ...]]:
    for record in records:
        unit = index.units[record.target]
        point = index.points.get(unit.name)
        kernel = unit.kernel if isinstance(unit, Group) else unit.op
        _, _, time_us, wasted_us, *_ = record.values
        measured = point is not None and point.time.measured
        check = index.errors.get(unit.name)
        errors = (check.error, check.eager_error) if check is not None else (None, None)
        figures = (time_us, measured, wasted_us, unit.estimated_bytes, unit.estimated_flops, *errors)
        yield (unit.order, unit.name, record.values[-1], kernel, *figures)


def _is_measured(index: RegionIndex) -> bool:
    return any(point.time.measured for point in index.points.values())


def _records(index: RegionIndex, theme: Theme) -> list[Record]:
    return [_record(unit, index, theme) for unit in index.schedule if index.shows_unit(unit.name)]


def _record(unit: Unit, index: RegionIndex, theme: Theme) -> Record:
    kind = unit.kind.value if isinstance(unit, Group) else "extern"
    point = index.points.get(unit.name)
    measured = point is not None and point.time.measured
    time_us = point.time.us if point is not None else None
    wasted_us = point.wasted_us if point is not None and measured else None
    bytes_, flops = unit.estimated_bytes, unit.estimated_flops
    check = index.errors.get(unit.name)
    return Record(
        (
            str(unit.order),
            unit.name,
            "–" if time_us is None else f"{'' if measured else '~'}{fmt.microseconds(time_us)}",
            "–" if wasted_us is None else fmt.microseconds(round(wasted_us, 2)),
            "–" if check is None else error_text(check.error),
            fmt.size(bytes_) if bytes_ else "–",
            fmt.flops(flops) if flops else "–",
            kind,
        ),
        (unit.order, unit.name, time_us, wasted_us, check.error if check else None, bytes_, flops, kind),
        unit.name,
        unit.reason if isinstance(unit, Group) else unit.detail,
        swatch=Swatch(unit_color(unit.name, index, theme), isinstance(unit, ExternCall)),
    )


def _text(unit: Unit, index: RegionIndex) -> str:
    """Everything that the filter looks in."""
    kind = unit.kind.value if isinstance(unit, Group) else "extern"
    kernel = index.kernel_of(unit.name)
    ops = (index.nodes[node].op for node in unit.nodes if node in index.nodes)
    reason = unit.reason if isinstance(unit, Group) else f"{unit.reason.value} {unit.detail} {unit.op}"
    return " ".join((unit.name, kind, *unit.nodes, *ops, reason, kernel.name if kernel else ""))


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
