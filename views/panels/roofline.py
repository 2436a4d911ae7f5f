"""The roofline of the target with the region's units, and where the time beyond the roof goes."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.roofline import Point
from compiler.report import Target
from views.background.when_seen import WhenSeen
from views.charts.roofline_chart import Cloud, RooflineChart, cloud
from views.look import format as fmt
from views.look.sizes import px
from views.look.theme import Theme
from views.selection.hidden_note import hidden_text
from views.selection.index import RegionIndex
from views.tables.data_table import Column, DataTable, Record
from views.widgets.basic import as_panel, label
from views.widgets.empty import Empty

_ROOF, _SHARE = 2, 3  # columns
_TABLE, _WIDE_TABLE = 352, 520  # pixels of the table in a narrow panel, and in a wide one


@dataclass(frozen=True)
class _Made:
    cloud: Cloud
    target: Target
    text: str
    points: list[Point]
    records: list[Record]


class RooflinePanel(QWidget):
    """Plot on the left, the units that waste most on the right."""

    unit_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 8, 4)
        column.setSpacing(4)
        self._facts = label("", "muted", wrap=True, selectable=True)
        column.addWidget(self._facts)
        self._units = QWidget()
        row = QHBoxLayout(self._units)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        self.chart = RooflineChart(theme)
        self.chart.unit_chosen.connect(self.unit_chosen)
        row.addWidget(self.chart, 1)
        self.table = DataTable(
            "Units by wasted time",
            [
                Column("Unit", 124, is_name=True), Column("Time", 74, True),
                Column("Roof", 74, True, "Estimated least time"),
                Column("Of roof", 60, True, "Share of what the roof allows that is reached"),
            ],
        )  # fmt: skip
        self.table.chosen.connect(self.unit_chosen)
        row.addWidget(self.table)
        column.addWidget(self._units, 1)
        self._empty = Empty("roofline", theme)
        column.addWidget(self._empty, 1)
        self._empty.hide()
        self._content = WhenSeen(self)
        self._content.made.connect(self._show)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A wide panel has room for whole names."""
        super().resizeEvent(event)
        self.table.setFixedWidth(max(px(_TABLE), min(px(_WIDE_TABLE), self.width() * 3 // 10)))

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.chart.set_theme(theme)
        self._empty.set_theme(theme)

    def set_region(self, index: RegionIndex) -> None:
        """Another region."""
        self._content.request(lambda: _make(index))

    def _show(self, made: _Made) -> None:
        found = bool(made.cloud.points)
        self.chart.set_cloud(made.cloud, made.target)
        self._units.setVisible(found)
        self._facts.setText(made.text)
        self._facts.setVisible(found)
        self._empty.set_text(made.text)
        self._empty.setVisible(not found)
        measured = any(point.time.measured for point in made.points)
        self.table.show_columns({_ROOF: measured, _SHARE: measured})  # else every time is its roof
        self.table.set_records(made.records)

    def show_unit(self, unit: str) -> None:
        """Mark a unit."""
        self.chart.show_unit(unit)


def _make(index: RegionIndex) -> _Made:
    found = [point for point in index.points.values() if index.shows_unit(point.unit)]
    target = index.report.target
    records = [_record(p) for p in sorted(found, key=lambda p: (-p.wasted_us, -p.time.us))]
    text = f"The bandwidth and rates of {target.title} are not known, so there are no roofs."
    if target.bandwidth_gbs:
        text = facts_text(found, target.title)
    if index.kept is not None:
        hidden = hidden_text(len(index.points) - len(found), len(index.points), "unit")
        text = f"{hidden} {text}" if found or not index.points else hidden
    return _Made(cloud(found, index.group_colors), target, text, found, records)


def facts_text(points: list[Point], gpu: str) -> str:
    """What the plot adds up to."""
    if not points:
        return "Nothing in this region moves bytes or computes."
    measured = [point for point in points if point.time.measured]
    roof = sum(point.roof_us for point in points)
    if not measured:
        return (
            f"Nothing was measured: every unit lies on the roof of {gpu} by definition (hollow), "
            f"{fmt.microseconds(roof)} in all (estimated)."
        )
    total = sum(point.time.us for point in measured)
    least = sum(point.roof_us for point in measured)
    hollow = len(points) - len(measured)
    rest = f" {fmt.plural(hollow, 'unit')} without a measured time are hollow." if hollow else ""
    return (
        f"Filled: {fmt.plural(len(measured), 'unit')} measured, {fmt.microseconds(total)} in all; bandwidth and rate "
        f"of {gpu} would allow {fmt.microseconds(least)} (estimated). A larger dot takes longer.{rest}"
    )


def _record(point: Point) -> Record:
    mark = "" if point.time.measured else "~"
    share = fmt.share(point.share_of_roof) if point.time.measured else "–"
    return Record(
        (point.unit, f"{mark}{fmt.microseconds(point.time.us)}", fmt.microseconds(point.roof_us), share),
        (point.unit, point.time.us, point.roof_us, point.share_of_roof if point.time.measured else None),
        point.unit,
        "\n".join((point.unit, f"{fmt.microseconds(point.wasted_us)} beyond the roof")),
    )
