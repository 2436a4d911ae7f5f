"""The live plot: CPU time to submit and GPU time per iteration, painted as they come; every iteration can be asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QPolygonF,
    QWheelEvent,
)

from views import format as fmt
from views.charts.chart import BOTTOM, LEFT, Chart, draw_axes, draw_legend, draw_tip
from views.charts.scale import Scale
from views.run_facets import Curve, Facet, facets
from views.run_record import RunRecord, mode_title
from views.theme import Theme, mix

_HEAD = 24.0  # titles and keys above the plots
_NEAR = 9.0  # pixels around an outlier's mark that count as on it
_LEAST_SPAN = 20
_STANDS_OUT = 5.0  # pixels above the median from which an outlier is marked


@dataclass(frozen=True)
class Picked:
    """An iteration, with its figures in microseconds."""

    mode: str
    number: int
    cpu_us: float
    gpu_us: float
    warmup: bool


class RunPlot(Chart):
    """Wheel zooms, dragging pans, a double click follows the run again; a click picks an iteration."""

    picked = Signal(object)  # Picked

    def __init__(self, theme: Theme) -> None:
        super().__init__("CPU time to submit against GPU time per iteration", theme)
        self._record = RunRecord()
        self._modes: list[str] = []
        self._layout = "order"
        self._log = False
        self._view: tuple[int, int] | None = None
        self._facets: list[Facet] = []
        self._boxes: list[tuple[QRectF, Scale, Scale]] = []
        self._pick: tuple[str, int] | None = None
        self._mouse: QPointF | None = None
        self._press: tuple[QPointF, tuple[int, int]] | None = None
        self._dragged = False

    @property
    def facets(self) -> list[Facet]:
        """What is plotted."""
        return self._facets

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        self._refresh()

    def set_log(self, on: bool) -> None:
        """Logarithmic times, for modes that are far apart."""
        self._log = on
        self.update()

    def set_layout(self, layout: str) -> None:
        """One of LAYOUTS."""
        self._layout, self._view = layout, None
        self._refresh()

    def show_record(self, record: RunRecord, modes: list[str]) -> None:
        """Draw ``record``, of these modes where the layout tells them apart."""
        if record is not self._record:
            self._pick = self._view = None
        self._record, self._modes = record, modes
        self._refresh()

    def jump(self, mode: str, number: int) -> None:
        """Bring the ``number``-th iteration of a mode into sight, and pick it."""
        at = self._record.run_number(mode, number) if self._layout == "order" else number
        if at is None:
            return
        self._pick = (mode, number)
        if self._view is None or not self._view[0] + 5 <= at < self._view[1] - 5:
            self._view = (max(at - 60, 0), at + 60)
        self._refresh()
        self._tell()

    def follow(self) -> None:
        """Show the latest iterations again."""
        self._view = None
        self._refresh()

    def _refresh(self) -> None:
        self._facets = facets(self._record, self._modes, self._layout, self.theme, self._view)
        self.update()

    # Painting

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        """Facets beside each other on one time axis."""
        theme = self.theme
        self._boxes = []
        shown = [facet for facet in self._facets if facet.curves and facet.span[1] > facet.span[0]]
        if not shown:
            painter.setPen(theme.muted)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, "Start to see iterations as they come.")
            return
        low, high = self._range(shown)
        gap = 18.0
        width = (area.width() - LEFT - 8 - gap * (len(shown) - 1)) / len(shown)
        for number, facet in enumerate(shown):
            box = QRectF(area.left() + LEFT + number * (width + gap), area.top() + _HEAD + 4, width, 0)
            box.setBottom(area.bottom() - BOTTOM)
            first, end = self._view or facet.span
            x = Scale(first, max(end, first + _LEAST_SPAN if self._view else first + 100), box.left(), box.right())
            y = Scale(low, high, box.bottom(), box.top(), self._log)
            titles = ("iteration" if number == len(shown) - 1 else " ", "µs" if number == 0 else "")
            self._paint_head(painter, facet, box)
            self._paint_shades(painter, facet, box, x)
            draw_axes(painter, theme, box, x, y, titles)
            painter.save()
            painter.setClipRect(box.adjusted(-1, -5, 5, 1))
            for curve in facet.curves:
                _paint_curve(painter, curve, box, x, y)
            for curve in facet.curves:
                self._paint_outliers(painter, curve, box, x, y)
            self._paint_pick(painter, facet, box, x, y)
            painter.restore()
            self._boxes.append((box, x, y))
        self._paint_tip(painter, area, shown)

    def _range(self, shown: list[Facet]) -> tuple[float, float]:
        """The time axis that all facets share; what lies far above it is marked at its top."""
        parts = [self._seen(curve) for facet in shown for curve in facet.curves]
        values = np.concatenate([part for part in parts if len(part)] or [np.ones(1)])
        usual = max((float(np.quantile(part, 0.985)) for part in parts if len(part)), default=1.0)
        top = min(float(values.max()) * 1.08, usual * 1.5)
        if self._log:
            return max(float(values.min()) * 0.8, 0.1), max(top * 1.3, 0.2)
        return 0.0, _round_up(max(top, 1e-3))

    def _seen(self, curve: Curve) -> np.ndarray:
        if self._view is None:
            return curve.values
        return curve.values[max(self._view[0] - curve.first, 0) : max(self._view[1] - curve.first, 0)]

    def _paint_head(self, painter: QPainter, facet: Facet, box: QRectF) -> None:
        theme = self.theme
        left, top = box.left(), box.top() - _HEAD - 1
        if facet.title:
            font = theme.ui_font(9.5)
            font.setWeight(QFont.Weight.DemiBold)
            painter.setFont(font)
            if facet.color is not None:
                painter.setBrush(facet.color)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.drawRoundedRect(QRectF(left, top + 3.5, 9, 9), 2.5, 2.5)
                left += 15
            painter.setPen(theme.text)
            painter.drawText(QRectF(left, top, box.right() - left, 16), Qt.AlignmentFlag.AlignVCenter, facet.title)
            left += QFontMetricsF(font).horizontalAdvance(facet.title) + 18
        else:
            draw_legend(painter, theme, left, top, [(curve.title, curve.color) for curve in facet.curves])
        if facet.color is not None and left + 90 < box.right():  # overlaid modes have their colours in the table
            draw_legend(painter, theme, left, top, [(curve.figure, curve.color) for curve in facet.curves])

    def _paint_shades(self, painter: QPainter, facet: Facet, box: QRectF, x: Scale) -> None:
        theme = self.theme
        painter.save()
        painter.setClipRect(box)
        painter.setFont(theme.ui_font(8.5))
        metrics = QFontMetricsF(painter.font())
        for start, end in facet.shades:
            left, right = x.px(start), x.px(end)
            painter.fillRect(QRectF(left, box.top(), max(right - left, 1.0), box.height()), _shade(theme))
            if right - left > metrics.horizontalAdvance("warm-up") + 6:
                painter.setPen(theme.warning)
                painter.drawText(QPointF(left + 3, box.bottom() - 5), "warm-up")
        free = box.left() - 1
        for start, name in facet.marks:
            left = x.px(start)
            painter.setPen(QPen(theme.border, 1.0, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(left, box.top()), QPointF(left, box.bottom()))
            if left >= free:
                painter.setPen(theme.muted)
                painter.drawText(QPointF(left + 4, box.top() + 12), name)
                free = left + metrics.horizontalAdvance(name) + 12
        painter.restore()

    def _paint_outliers(self, painter: QPainter, curve: Curve, box: QRectF, x: Scale, y: Scale) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.danger)
        usual = y.px(float(np.median(curve.values))) if curve.outliers else 0.0
        for position in curve.outliers:
            at, value = x.px(curve.first + position), float(curve.values[position])
            if box.left() <= at <= box.right() + 1 and usual - y.px(value) > _STANDS_OUT:
                painter.drawPath(_mark(at, y.px(value), value > y.high, box.top()))

    def _paint_pick(self, painter: QPainter, facet: Facet, box: QRectF, x: Scale, y: Scale) -> None:
        at = self._position_in(facet)
        if at is None:
            return
        painter.setPen(QPen(self.theme.selection, 1.2))
        painter.drawLine(QPointF(x.px(at), box.top()), QPointF(x.px(at), box.bottom()))
        for curve in facet.curves:
            if 0 <= at - curve.first < len(curve.values) and curve.mode in ("", self._pick[0] if self._pick else ""):
                painter.setBrush(curve.color)
                value = min(float(curve.values[at - curve.first]), y.high)
                painter.drawEllipse(QPointF(x.px(at), y.px(value)), 4, 4)

    def _position_in(self, facet: Facet) -> int | None:
        """Where the picked iteration is in a facet's numbering."""
        if self._pick is None:
            return None
        if self._layout == "order":
            return self._record.run_number(*self._pick)
        return self._pick[1] if any(curve.mode == self._pick[0] for curve in facet.curves) else None

    def _paint_tip(self, painter: QPainter, area: QRectF, shown: list[Facet]) -> None:
        if self._mouse is None or self._press is not None:
            return
        for (box, x, _), facet in zip(self._boxes, shown, strict=True):
            if not box.contains(self._mouse):
                continue
            number = round(x.value(self._mouse.x()))
            painter.setPen(QPen(self.theme.muted, 1.0, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x.px(number), box.top()), QPointF(x.px(number), box.bottom()))
            lines = [
                f"{curve.figure if not curve.mode or facet.color else curve.title}  "
                f"{fmt.microseconds(float(curve.values[number - curve.first]))}"
                for curve in facet.curves
                if 0 <= number - curve.first < len(curve.values)
            ]
            place = self._record.place(number) if self._layout == "order" else None
            head = f"iteration {number:,}"
            if place is not None:
                head = f"{mode_title(place[0])}, {'warm-up ' if place[2] else ''}iteration {place[1]:,}"
            if lines:
                draw_tip(painter, self.theme, area, self._mouse.x(), self._mouse.y(), [head, *lines])

    # Asking

    def _hit(self, at: QPointF) -> tuple[str, int] | None:
        """(mode, number in the mode) of the outlier near a point, else of the iteration below it."""
        shown = [facet for facet in self._facets if facet.curves and facet.span[1] > facet.span[0]]
        for (box, x, y), facet in zip(self._boxes, shown, strict=False):
            if not box.adjusted(-4, -8, 6, 4).contains(at):
                continue
            best: tuple[float, Curve, int] | None = None
            for curve in facet.curves:
                for position in curve.outliers:
                    top = max(y.px(float(curve.values[position])), box.top())
                    away = abs(x.px(curve.first + position) - at.x()) + abs(top - at.y()) / 2
                    if away <= _NEAR and (best is None or away < best[0]):
                        best = (away, curve, position)
            if best is None:
                number = round(x.value(at.x()))
                for curve in facet.curves:
                    if 0 <= number - curve.first < len(curve.values):
                        away = abs(y.px(float(curve.values[number - curve.first])) - at.y())
                        if best is None or away < best[0]:
                            best = (away, curve, number - curve.first)
            if best is None:
                return None
            _, curve, position = best
            if curve.mode:
                return curve.mode, curve.first + position
            place = self._record.place(curve.first + position)
            return place[:2] if place is not None else None
        return None

    def _tell(self) -> None:
        if self._pick is None:
            return
        series = self._record.series(self._pick[0])
        at = self._pick[1] - series.first
        if 0 <= at < len(series.cpu):
            found = Picked(*self._pick, float(series.cpu[at]), float(series.gpu[at]), bool(series.warm[at]))
            self.picked.emit(found)

    def _span(self) -> tuple[int, int]:
        spans = [facet.span for facet in self._facets if facet.curves]
        return self._view or (min((s for s, _ in spans), default=0), max((e for _, e in spans), default=1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to pan, or to click."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._press, self._dragged = (event.position(), self._span()), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, or show the iteration below the mouse."""
        self._mouse = event.position()
        if self._press is not None and self._boxes:
            start, (first, end) = self._press
            moved = start.x() - event.position().x()
            if abs(moved) > 4 or self._dragged:
                self._dragged = True
                by = round(moved * (end - first) / max(self._boxes[0][0].width(), 1.0))
                self._view = (first + by, end + by)
                self._refresh()
                return
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click without a drag picks."""
        clicked = self._press is not None and not self._dragged
        self._press = None
        found = self._hit(event.position()) if clicked else None
        if found is not None:
            self._pick = found
            self._tell()
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Follow the run again."""
        self.follow()

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom about the mouse."""
        box = next((b for b in self._boxes if b[0].left() <= event.position().x() <= b[0].right()), None)
        if box is None:
            return
        first, end = self._span()
        middle = box[1].value(event.position().x())
        factor = 0.8 ** (event.angleDelta().y() / 120.0)
        low, high = middle - (middle - first) * factor, middle + (end - middle) * factor
        if high - low >= _LEAST_SPAN:
            self._view = (max(round(low), 0), round(high))
            self._refresh()
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right walk from iteration to iteration; Home follows the run."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if event.key() == Qt.Key.Key_Home:
            self.follow()
        elif step is not None and self._pick is not None:
            self.jump(self._pick[0], max(self._pick[1] + step, 0))
        else:
            super().keyPressEvent(event)


def _paint_curve(painter: QPainter, curve: Curve, box: QRectF, x: Scale, y: Scale) -> None:
    """The values in sight; where there are more than pixels, the lowest and highest of each pixel."""
    start = max(int(x.low) - 1 - curve.first, 0)
    values = curve.values[start : max(int(x.high) + 2 - curve.first, 0)]
    if not len(values):
        return
    numbers = np.arange(len(values)) + curve.first + start
    columns = max(int(box.width() / 2), 1)  # two pixels are enough to see what varies
    if len(values) > 2 * columns:
        edges = np.linspace(0, len(values), columns + 1).astype(int)[:-1]
        values = np.stack([np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)], 1).ravel()
        numbers = np.repeat(numbers[edges], 2)
    clipped = np.clip(values, y.low if y.log else None, y.high * 1.2)
    points = [QPointF(x.px(float(n)), y.px(float(v))) for n, v in zip(numbers, clipped, strict=True)]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if len(points) * 6 < columns:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(curve.color)
        for point in points:
            painter.drawEllipse(point, 2.2, 2.2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
    dense = len(points) > columns / 4  # smoothing thousands of strokes is slow, and shows nothing more
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, not dense)
    painter.setPen(QPen(curve.color, 1.0 if dense else 1.4))
    painter.drawPolyline(QPolygonF(points))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _mark(x: float, y: float, above: bool, top: float) -> QPainterPath:
    """An outlier's sign: a dot, or an arrow at the top where it lies above the axis."""
    path = QPainterPath()
    if above:
        path.moveTo(x - 5, top + 6)
        path.lineTo(x + 5, top + 6)
        path.lineTo(x, top - 3)
        path.closeSubpath()
    else:
        path.addEllipse(QPointF(x, y), 2.8, 2.8)
    return path


def _shade(theme: Theme) -> QColor:
    return mix(theme.surface, theme.warning, 0.16)


def _round_up(value: float) -> float:
    """The next round number, so that the axis does not tremble while samples come."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value))
