"""The model's source with the time that each of its lines costs on the GPU."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.filters import Kept
from app.source_heat import Heat, LineHeat, source_heat
from compiler.report import Report
from views.background.jobs import Job
from views.code.code_view import CodeView
from views.look import format as fmt
from views.look.contrast import legible
from views.look.theme import Theme, mix
from views.selection.selection import Selection
from views.widgets.basic import Choice, ElidedLabel, as_panel
from views.widgets.segments import Segments

_HEAT_WIDTH = 92


class HeatView(CodeView):
    """Code whose gutter also holds a bar and a time for each line."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._heat: dict[int, LineHeat] = {}
        self._figure = "time"
        self._hottest = 0.0
        super().__init__(theme, parent)

    def set_heat(self, heat: dict[int, LineHeat]) -> None:
        """Times by line (1-based)."""
        self._heat = heat
        self._compare()

    def show_figure(self, figure: str) -> None:
        """Heat by "time" or by "bytes"."""
        self._figure = figure
        self._compare()

    def heat_of(self, line: LineHeat) -> tuple[float, str]:
        """A line's figure, and as a text; what is estimated is marked ~."""
        if self._figure == "bytes":
            return line.bytes, fmt.size(round(line.bytes))
        mark = "~" if line.estimated_us > line.measured_us else ""
        rounded = round(line.us, 2)
        return line.us, f"{mark}{fmt.microseconds(rounded)}" if rounded else "<0.01 µs"

    def gutter_width(self) -> int:
        """Line numbers, and the times left of them."""
        return super().gutter_width() + _HEAT_WIDTH

    def paint_gutter(self, painter: QPainter, number: int, area: QRect) -> None:
        """The number, then a bar and a time over the free room on its left."""
        super().paint_gutter(painter, number, area)
        heat = self._heat.get(number + 1)
        figure, text = self.heat_of(heat) if heat is not None else (0.0, "")
        if figure <= 0:
            return
        theme, share = self._theme, figure / self._hottest
        bar = QRectF(4, area.top() + 1, max((_HEAT_WIDTH - 6) * share, 2.0), area.height() - 2)
        color = mix(theme.surface, theme.cpu_curve, 0.16 + 0.42 * share)
        painter.fillRect(bar, color)
        painter.setPen(legible(theme.text, color))
        painter.setFont(theme.ui_font(8.5))
        where = QRectF(8, area.top(), _HEAT_WIDTH - 10, area.height())
        painter.drawText(where, Qt.AlignmentFlag.AlignVCenter, text)
        painter.setFont(self.font())

    def _compare(self) -> None:
        self._hottest = max((self.heat_of(line)[0] for line in self._heat.values()), default=0.0)
        self.viewport().update()


class SourcePanel(QWidget):
    """A click on a line selects its FX nodes; what is selected marks its lines."""

    nodes_chosen = Signal(str, object)  # region, frozenset of FX nodes
    nodes_hovered = Signal(object)  # frozenset of FX nodes of the region shown

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: Report | None = None
        self._heat: Heat | None = None
        self._job: Job | None = None
        self._kept: dict[str, Kept] | None = None
        self._region = ""
        self._selection = Selection()
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 8, 0)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(10)
        self.files = Choice("Source file")
        self.files.setMinimumWidth(180)
        self.files.activated.connect(lambda _: self._show_file())
        row.addWidget(self.files)
        self.figure = Segments({"time": "Time", "bytes": "Bytes"}, "Heat of each line by")
        self.figure.chosen.connect(self._figure_chosen)
        row.addWidget(self.figure)
        self._note = ElidedLabel("", "muted", is_sentence=True)
        row.addWidget(self._note, 1)
        column.addLayout(row)
        self.code = HeatView(theme)
        self.code.setAccessibleName("Model source")
        self.code.line_clicked.connect(self._clicked)
        self.code.line_hovered.connect(self._hovered)
        column.addWidget(self.code, 1)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.code.set_theme(theme)

    def set_report(self, report: Report) -> None:
        """Another report; its heat is made when the panel is seen, off the GUI thread."""
        self._report, self._heat = report, None
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self.files.clear()
        for name in report.sources:
            self.files.addItem(name, name)
        self._note.setText("" if report.sources else "The report has no source of the model.")
        self.code.set_code("", "python")
        self.code.set_heat({})
        if self.isVisible():
            self._fill()

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """Time and nodes of what the filters leave."""
        if kept is self._kept:
            return
        self._kept, self._heat = kept, None
        if self._job is not None:
            self._job.cancel()
            self._job = None
        if self.isVisible():
            self._fill()

    def set_region(self, region: str) -> None:
        """Clicks select nodes of this region."""
        self._region = region

    def show_selection(self, selection: Selection) -> None:
        """Mark the lines that the selected nodes come from."""
        self._selection = selection
        self._mark()

    def show_line(self, file: str, line: int) -> None:
        """Bring a line of a file into sight, marked."""
        position = self.files.findData(file)
        if position >= 0:
            self.files.setCurrentIndex(position)
            self._show_file()
            self.code.mark_lines([line])

    def show_hint(self, nodes: frozenset[str]) -> None:
        """Mark lightly the lines that these nodes of the region shown come from."""
        wanted = {(self._region, node) for node in nodes}
        self.code.hint_lines([n for n, line in sorted(self.heat.items()) if not wanted.isdisjoint(line.nodes)])

    def showEvent(self, event: QShowEvent) -> None:
        """Make what was set while hidden."""
        super().showEvent(event)
        self._fill()

    @property
    def heat(self) -> dict[int, LineHeat]:
        """The heat of the file shown."""
        return (self._heat or {}).get(str(self.files.currentData()), {})

    def _fill(self) -> None:
        report, kept = self._report, self._kept
        if report is None or self._heat is not None or self._job is not None:
            return
        self._show_file()
        self._job = Job(lambda cancelled: source_heat(report, kept), self)
        self._job.done.connect(self._made)
        self._job.start()

    def _made(self, heat: Heat) -> None:
        self._job = None
        self._heat = heat
        hottest = max(heat, key=lambda file: sum(line.us for line in heat[file].values()), default="")
        position = self.files.findData(hottest)
        if position >= 0 and position != self.files.currentIndex():
            self.files.setCurrentIndex(position)
            self._show_file()
        self.code.set_heat(self.heat)
        if self.heat and not self.code.marked_lines:
            self.code.reveal_line(max(self.heat, key=lambda line: self.heat[line].us))
        self._tell()
        self._mark()

    def _figure_chosen(self, figure: str) -> None:
        self.code.show_figure(figure)
        self._tell()

    def _tell(self) -> None:
        lines = [line for lines in (self._heat or {}).values() for line in lines.values()]
        if not lines:
            return
        left = "" if self._kept is None else " of what the filters leave"
        if self.figure.value == "bytes":
            self._note.setText(f"Memory traffic{left} (estimated), a kernel's split over its ops.")
        else:
            kind = "Measured GPU time" if sum(line.measured_us for line in lines) else "Estimated time (~)"
            self._note.setText(f"{kind}{left}, a kernel's split over its ops.")
            self._note.setAccessibleDescription("A kernel's time is split over its ops by the bytes that each moves.")

    def _show_file(self) -> None:
        if self._report is not None and self.files.currentData() is not None:
            self.code.set_code(self._report.sources[self.files.currentData()], "python")
            self.code.set_heat(self.heat)
            self._mark()

    def _mark(self) -> None:
        if not self._selection.nodes:
            return
        wanted = {(self._selection.region, node) for node in self._selection.nodes}
        self.code.mark_lines([n for n, line in sorted(self.heat.items()) if not wanted.isdisjoint(line.nodes)])

    def _hovered(self, line: int) -> None:
        found = self.heat.get(line)
        nodes = (node for name, node in found.nodes if name == self._region) if found is not None else ()
        self.nodes_hovered.emit(frozenset(nodes))

    def _clicked(self, line: int) -> None:
        found = self.heat.get(line)
        if found is None:
            return
        region = self._region if any(name == self._region for name, _ in found.nodes) else found.nodes[0][0]
        self.nodes_chosen.emit(region, frozenset(node for name, node in found.nodes if name == region))
