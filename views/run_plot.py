"""The live plot: CPU time to submit against GPU time, per iteration."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QPen, QPixmap
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from views.run_record import MODE_TITLES, RunRecord
from views.theme import Theme, mix
from views.widgets import label

CPU_LABEL = "CPU time to submit"
GPU_LABEL = "GPU time"


class RunPlot(QWidget):
    """Two curves over the last iterations, a line where the mode changed, warm-up shaded. Imports pyqtgraph."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        import pyqtgraph

        self._pg = pyqtgraph
        self._theme = theme
        self._log = False
        self._marks: list[Any] = []
        self._drawn: tuple[object, ...] = ()
        self.setAccessibleName("CPU time to submit against GPU time per iteration")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        keys = QHBoxLayout()
        keys.setContentsMargins(54, 0, 0, 0)
        keys.setSpacing(6)
        self._keys = (QLabel(), QLabel())  # beside the plot, where they hide no curve
        for key, text in zip(self._keys, (CPU_LABEL, GPU_LABEL), strict=True):
            keys.addWidget(key)
            keys.addWidget(label(text, "muted"))
            keys.addSpacing(10)
        keys.addStretch()
        column.addLayout(keys)
        self.plot = pyqtgraph.PlotWidget(antialias=False)
        column.addWidget(self.plot)
        item = self.plot.getPlotItem()
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setMouseEnabled(x=False, y=False)
        item.setClipToView(True)
        item.getAxis("left").enableAutoSIPrefix(False)
        item.getAxis("bottom").enableAutoSIPrefix(False)
        self.cpu_curve = item.plot([], [], name=CPU_LABEL)
        self.gpu_curve = item.plot([], [], name=GPU_LABEL)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.plot.setBackground(theme.surface)
        item = self.plot.getPlotItem()
        for side, text, units in (("left", "time", "µs"), ("bottom", "iteration", "")):
            axis = item.getAxis(side)
            axis.setPen(self._pg.mkPen(theme.border))
            axis.setTextPen(self._pg.mkPen(theme.muted))
            axis.setStyle(tickFont=theme.ui_font(8.5), tickLength=4)
            axis.setLabel(f"{text} ({units})" if units else text, color=theme.muted.name(), **{"font-size": "8.5pt"})
        item.showGrid(y=True, alpha=0.12)
        self.cpu_curve.setPen(self._pg.mkPen(theme.cpu_curve, width=1.0))
        self.gpu_curve.setPen(self._pg.mkPen(theme.gpu_curve, width=1.0))
        for key, color in zip(self._keys, (theme.cpu_curve, theme.gpu_curve), strict=True):
            line = QPixmap(18, 3)
            line.fill(color)
            key.setPixmap(line)
        self._drawn = ()

    def set_log(self, on: bool) -> None:
        """Logarithmic times, for modes that are far apart."""
        self._log = on
        item = self.plot.getPlotItem()
        item.setLogMode(y=on)
        if on:
            item.enableAutoRange(y=True)
        self._drawn = ()

    def show_record(self, record: RunRecord) -> None:
        """Draw the window of ``record``."""
        cpu, gpu = record.window
        first = record.first
        numbers = list(range(first, first + len(cpu)))
        self.cpu_curve.setData(numbers, cpu)
        self.gpu_curve.setData(numbers, gpu)
        item = self.plot.getPlotItem()
        if cpu:
            item.setXRange(first, max(first + len(cpu), first + 100), padding=0)
            if not self._log:  # room above the curves for the names of the modes
                item.setYRange(0, 1.28 * max(max(cpu), max(gpu)), padding=0)
        self._mark(record)

    def _mark(self, record: RunRecord) -> None:
        segments = record.segments
        ends = [*(segment.start for segment in segments[1:]), record.total][: len(segments)]
        warm = tuple((s, e) for s, e in zip(segments, ends, strict=True) if s.warmup)
        drawn = (tuple(segments), warm)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        item = self.plot.getPlotItem()
        for mark in self._marks:
            item.removeItem(mark)
        self._marks = []
        for segment, end in warm:
            shade = self._pg.LinearRegionItem(
                (segment.start, end), movable=False, brush=mix(self._theme.surface, self._theme.warning, 0.16),
                pen=QPen(Qt.PenStyle.NoPen),
            )
            shade.setZValue(-10)
            self._marks.append(shade)
        for segment in segments:
            name = "warm-up" if segment.warmup else MODE_TITLES.get(segment.mode, segment.mode)
            self._marks.append(
                self._pg.InfiniteLine(
                    max(segment.start, record.first), pen=self._pg.mkPen(self._theme.muted, style=Qt.PenStyle.DotLine),
                    label=name, labelOpts={"position": 0.93, "color": self._theme.muted, "anchors": [(0, 0), (0, 0)]},
                )
            )
        for mark in self._marks:
            item.addItem(mark, ignoreBounds=True)
