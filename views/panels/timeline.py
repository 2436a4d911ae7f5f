"""One iteration of each traced mode: CPU launches above, GPU kernels below, before and after capture on one axis."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.filters import Kept
from compiler.report import Report, Trace, TraceEvent
from views.background.when_seen import WhenSeen
from views.charts.gantt import CPU_LANE, Band, Gantt, busy_share, first_launch, lanes_of
from views.look import format as fmt
from views.look.theme import GROUP_COLORS, Theme, mix
from views.run.modes import in_order, mode_title
from views.selection.index import group_colors
from views.widgets.basic import as_panel, label
from views.widgets.empty import Empty

_NONE = (
    "No iteration was traced. On a machine with a GPU, a run traces one iteration of each mode when it ends: CPU "
    "launches above, GPU kernels below."
)
_HONEST = (
    "{where}Each begins at its first launch. Tracing slows what it watches: kernel times are the GPU's own, the gaps "
    "between them wider than untraced."
)


class TimelinePanel(QWidget):
    """The traces of a report, stacked."""

    unit_chosen = Signal(str, str)  # region, unit

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 6, 4)
        column.setSpacing(8)
        self._empty = Empty("timeline", theme, _NONE)
        column.addWidget(self._empty)
        self._note = label("", "muted", wrap=True)
        column.addWidget(self._note)
        self._note.hide()
        self.gantt = Gantt(theme)
        self.gantt.event_chosen.connect(self._chosen)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setAccessibleName("Timeline, scrolled")
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidget(self.gantt)
        self._scroll.verticalScrollBar().valueChanged.connect(self.gantt.update)  # its axis stays in sight
        column.addWidget(self._scroll, 1)
        self._scroll.hide()
        self._content = WhenSeen(self)
        self._content.made.connect(self._show)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._empty.set_theme(theme)
        self.gantt.set_theme(theme)
        self.gantt.set_bands(self.gantt.bands, _colors(theme))

    def set_report(self, report: Report, kept: dict[str, Kept] | None = None) -> None:
        """Show the traces of another report; work that the filters do not leave is faint."""
        self._content.request(lambda: bands_of(report, kept))

    def show_unit(self, region: str, unit: str) -> None:
        """Mark the launches and kernels of a unit."""
        self.gantt.show_unit(f"{region}/{unit}" if unit else "")

    def _show(self, bands: list[Band]) -> None:
        for part in (self._scroll, self._note):
            part.setVisible(bool(bands))
        gpus = {band.trace.gpu for band in bands}
        self._note.setText(_HONEST.format(where=f"Traced on {gpus.pop()}. " if len(gpus) == 1 else ""))
        self._empty.setVisible(not bands)
        self.gantt.set_bands(bands, _colors(self._theme))
        self.gantt.setAccessibleDescription(" ".join(f"{band.title}: {band.note}" for band in bands))

    def _chosen(self, event: TraceEvent) -> None:
        region, _, unit = event.unit.partition("/")
        if unit:
            self.unit_chosen.emit(region, unit)


def _colors(theme: Theme) -> list[QColor]:
    """What the lanes' colour numbers stand for: launches, work of no group, groups, then what the filters hide."""
    return [theme.cpu_curve, theme.extern_border, *theme.group_colors, mix(theme.surface, theme.muted, 0.16)]


def bands_of(report: Report, kept: dict[str, Kept] | None = None) -> list[Band]:
    """The traces of a report, eager's first."""
    numbers = {
        f"{region.name}/{group}": 2 + number % GROUP_COLORS
        for region in report.regions
        for group, number in group_colors(region.groups).items()
    }

    def number_of(event: TraceEvent) -> int:
        region, _, unit = event.unit.partition("/")
        if kept is not None and (region not in kept or unit not in kept[region].units):
            return 2 + GROUP_COLORS
        return 0 if event.lane == CPU_LANE else numbers.get(event.unit, 1)

    order = {mode: place for place, mode in enumerate(in_order(trace.mode for trace in report.traces))}

    def band(trace: Trace) -> Band:
        offset = first_launch(trace)
        lanes = lanes_of(trace, number_of, offset)
        where = f" on {trace.gpu}" if len(gpus) > 1 else ""  # else said once, above them
        return Band(f"{mode_title(trace.mode)}{where}", trace_sentence(trace), trace, lanes, offset)

    gpus = {trace.gpu for trace in report.traces}
    return [band(trace) for trace in sorted(report.traces, key=lambda trace: order[trace.mode])]


def trace_sentence(trace: Trace) -> str:
    """What the picture shows, in figures."""
    launches = [event for event in trace.events if event.lane == CPU_LANE]
    work = len(trace.events) - len(launches)
    submit = sum(event.duration_us for event in launches)
    idle = max(0.0, 1.0 - busy_share(trace))
    count = fmt.plural(len(launches), "launch", "launches")
    return (
        f"{fmt.microseconds(trace.span_us - first_launch(trace))}, the GPU idles {idle:.0%}: {count} "
        f"({fmt.microseconds(submit)} of CPU) for {fmt.plural(work, 'GPU operation')}."
    )
