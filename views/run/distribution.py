"""How iteration times are distributed: a histogram of each mode, of CPU and GPU time, percentiles marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QMouseEvent, QPainter, QPen

from app.statistics import common_bins, percentiles, shares
from views.charts.chart import BOTTOM, Chart, draw_axes, draw_tip
from views.charts.scale import Scale, time_axis
from views.charts.shapes import polygon, steps
from views.look import format as fmt
from views.look.theme import Theme
from views.run.facets import CPU_LABEL, GPU_LABEL, mode_color
from views.run.modes import mode_title
from views.run.record import RunRecord, Times

_BINS = 60
_HEAD = 39.0  # what is plotted, and the figures' names
_NAMES = 17.0  # of these the figures' names
_GAP = 26.0  # pixels between the two
_WHAT = "Share of each mode's peak; p50 solid, p90 and p99 dotted"


@dataclass(frozen=True)
class Histogram:
    """One mode's share of iterations in each bin, and beyond the last."""

    mode: str
    shares: Times
    beyond: float
    marks: tuple[float, float, float]  # p50, p90, p99


@dataclass(frozen=True)
class Panel:
    """The histograms of one figure on common bins."""

    title: str
    edges: Times
    histograms: list[Histogram]


class DistributionPlot(Chart):
    """CPU time on the left, GPU time on the right."""

    def __init__(self, theme: Theme) -> None:
        super().__init__("Distribution of iteration times", theme)
        self._log = False
        self._panels: list[Panel] = []
        self._record = RunRecord()
        self._modes: list[str] = []
        self._mouse: QPointF | None = None

    @property
    def panels(self) -> list[Panel]:
        """What is plotted."""
        return self._panels

    def set_log(self, on: bool) -> None:
        """Logarithmic times, for modes that are far apart."""
        self._log = on
        self.show_record(self._record, self._modes)

    def show_record(self, record: RunRecord, modes: list[str]) -> None:
        """Draw the recorded iterations of these modes."""
        self._record, self._modes = record, modes
        recorded = {mode: record.series(mode).recorded for mode in modes}
        recorded = {mode: pair for mode, pair in recorded.items() if len(pair[0])}
        self._panels = []
        for number, title in enumerate((CPU_LABEL, GPU_LABEL)):
            values = {mode: pair[number] for mode, pair in recorded.items()}
            edges = common_bins(list(values.values()), _BINS, log=self._log)
            histograms = [
                Histogram(mode, *shares(times, edges), percentiles(times)) for mode, times in values.items()
            ]
            self._panels.append(Panel(title, edges, histograms))
        self.redraw()

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """Both panels."""
        if not any(panel.histograms for panel in self._panels):
            painter.setPen(self.theme.muted)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, "Nothing was recorded of the modes that are on.")
            return
        painter.setFont(self.theme.ui_font(8.5))
        painter.setPen(self.theme.muted)
        what = painter.fontMetrics().elidedText(_WHAT, Qt.TextElideMode.ElideRight, int(area.width() - 24))
        painter.drawText(QRectF(area.left() + 12, area.top() + 2, area.width() - 12, 16), 0, what)
        for panel, box in zip(self._panels, self._boxes(area), strict=True):
            self._paint_panel(painter, panel, box)

    def paint_hover(self, painter: QPainter, area: QRectF) -> None:
        """The shares of the bin below the mouse."""
        if self._mouse is None:
            return
        for panel, box in zip(self._panels, self._boxes(area), strict=False):
            if panel.histograms and box.contains(self._mouse):
                lines = self._lines(panel, self._x(panel, box))
                draw_tip(painter, self.theme, box, self._mouse.x(), self._mouse.y(), lines)

    def _boxes(self, area: QRectF) -> list[QRectF]:
        width = (area.width() - 24 - _GAP) / 2
        left, height = area.left() + 12, area.height() - _HEAD - 4 - BOTTOM
        return [QRectF(left + number * (width + _GAP), area.top() + _HEAD + 4, width, height) for number in (0, 1)]

    def _x(self, panel: Panel, box: QRectF) -> Scale:
        return Scale(float(panel.edges[0]), float(panel.edges[-1]), box.left(), box.right(), self._log)

    def _paint_panel(self, painter: QPainter, panel: Panel, box: QRectF) -> None:
        theme, edges = self.theme, panel.edges
        x = self._x(panel, box)
        y = Scale(0.0, 1.12, box.bottom(), box.top())  # each mode by its own peak: a narrow one must not hide the rest
        font = theme.ui_font(9.5)
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(theme.text)
        head = QRectF(box.left(), box.top() - _NAMES - 3, box.width() + _GAP - 4, 16)
        painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, panel.title)
        longest = max(float(one.edges[-1]) for one in self._panels)  # both panels in one unit
        unit, texts = time_axis(longest, log=self._log)
        draw_axes(painter, theme, box, x, y, (unit, ""), x_texts=texts, has_grid=False)
        painter.save()
        painter.setClipRect(box.adjusted(0, -8, 1, 0))
        for histogram in panel.histograms:
            _paint_histogram(painter, histogram, edges, mode_color(histogram.mode, theme), x, y)
        painter.restore()
        self._paint_beyond(painter, panel, box)

    def _paint_beyond(self, painter: QPainter, panel: Panel, box: QRectF) -> None:
        """How much lies to the right of the axis."""
        beyond = max((h.beyond for h in panel.histograms), default=0.0)
        if beyond > 0.0005:
            painter.setFont(self.theme.ui_font(8.5))
            painter.setPen(self.theme.muted)
            text = f"up to {beyond:.1%} beyond →"
            width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 4
            if width < box.width() - 150:  # beside the title
                painter.drawText(QRectF(box.right() - width, box.top() - _NAMES - 2, width, 16), 0, text)

    def _lines(self, panel: Panel, x: Scale) -> list[str]:
        assert self._mouse is not None
        at = x.value(self._mouse.x())
        place = int(np.clip(np.searchsorted(panel.edges, at) - 1, 0, _BINS - 1))
        low, high = (fmt.microseconds(float(panel.edges[i])) for i in (place, place + 1))
        lines = [f"{low} to {high}"]
        for histogram in panel.histograms:
            if histogram.shares[place]:
                lines.append(f"{mode_title(histogram.mode)}: {histogram.shares[place]:.1%}")
        return lines

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The bin below the mouse."""
        self._mouse = self.place(event)
        self.update()

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.update()


def _paint_histogram(painter: QPainter, histogram: Histogram, edges: Times, color: QColor, x: Scale, y: Scale) -> None:
    peak = float(histogram.shares.max()) or 1.0
    at, heights = steps(edges, histogram.shares / peak)
    floor = y.px(0.0)
    outline = polygon(
        np.concatenate([[x.px(float(edges[0]))], x.pixels(at), [x.px(float(edges[-1]))]]),
        np.concatenate([[floor], y.pixels(heights), [floor]]),
    )
    fill = QColor(color)
    fill.setAlphaF(0.22)
    painter.setBrush(fill)
    painter.setPen(QPen(color, 1.4))
    painter.drawPolygon(outline)
    for name, value, reach in zip(("p50", "p90", "p99"), histogram.marks, (1.0, 0.55, 0.3), strict=True):
        style = Qt.PenStyle.SolidLine if name == "p50" else Qt.PenStyle.DotLine
        painter.setPen(QPen(color, 1.2, style))
        at = x.px(value)
        painter.drawLine(QPointF(at, y.px(0.0)), QPointF(at, y.px(reach * 1.06)))
