"""The roofline plot: FLOPs for each byte against FLOPs a second, the target's roofs, and every unit under them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPen

from app.roofline import Point
from compiler.report import Target
from views import format as fmt
from views.charts.chart import BOTTOM, LEFT, Chart, draw_axes, draw_tip
from views.charts.scale import Scale
from views.theme import Theme

_NO_WORK = 0.02  # FLOPs a byte at which what only moves data is drawn
_NEAR = 8.0  # pixels


class RooflineChart(Chart):
    """Measured units are filled, estimated ones hollow and on the roof by definition. A click chooses a unit."""

    unit_chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("Roofline", theme)
        self._points: list[Point] = []
        self._target: Target | None = None
        self._color: Callable[[str], QColor] = lambda unit: theme.accent
        self._chosen = ""
        self._mouse: QPointF | None = None
        self._scales: tuple[Scale, Scale] | None = None

    def set_points(self, points: list[Point], target: Target, color: Callable[[str], QColor]) -> None:
        """Show the units of a region; ``color`` is a unit's."""
        self._points, self._target, self._color = points, target, color
        self.update()

    def show_unit(self, unit: str) -> None:
        """Mark a unit."""
        self._chosen = unit
        self.update()

    def position_of(self, unit: str) -> QPointF:
        """Where a unit is drawn, once painted. Raises KeyError for an unknown one."""
        for point in self._points:
            if point.unit == unit and self._scales is not None:
                return self._at(point, *self._scales)
        raise KeyError(unit)

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        """Axes, roofs, points."""
        target = self._target
        if target is None or not self._points:
            return
        theme = self.theme
        box = QRectF(area.left() + LEFT + 8, area.top() + 26, area.width() - LEFT - 20, area.height() - 26 - BOTTOM)
        x, y = self._make_scales(target, box)
        self._scales = (x, y)
        draw_axes(painter, theme, box, x, y, ("FLOPs for each byte", "FLOP/s"), y_text=_rate_text)
        self._paint_roofs(painter, target, box, x, y)
        longest = max(point.time.us for point in self._points) or 1.0
        for point in sorted(self._points, key=lambda point: point.time.measured):
            at = self._at(point, x, y)
            color = self._color(point.unit)
            radius = 4.0 + point.time.us / longest * 5.0
            if point.time.measured:
                painter.setPen(QPen(theme.surface, 1.0))
                fill = QColor(color)
                fill.setAlphaF(0.85)
                painter.setBrush(fill)
            else:
                painter.setPen(QPen(color, 1.4))
                painter.setBrush(Qt.BrushStyle.NoBrush)
            if point.unit == self._chosen:
                painter.setPen(QPen(theme.selection, 2.4))
            painter.drawEllipse(at, radius, radius)
        self._paint_tip(painter, area)

    def _make_scales(self, target: Target, box: QRectF) -> tuple[Scale, Scale]:
        intensities = [max(point.intensity, _NO_WORK) for point in self._points]
        ridge = target.tflops_fp16 * 1e3 / target.bandwidth_gbs
        low, high = min([*intensities, 0.1]) / 1.6, max([*intensities, ridge]) * 2.5
        rates = [self._rate(point) for point in self._points]
        floor = min([*rates, target.bandwidth_gbs * 1e9 * low]) / 1.6
        return (
            Scale(low, high, box.left(), box.right(), log=True),
            Scale(floor, target.tflops_fp16 * 1e12 * 4.0, box.bottom(), box.top(), log=True),
        )

    def _paint_roofs(self, painter: QPainter, target: Target, box: QRectF, x: Scale, y: Scale) -> None:
        theme = self.theme
        bandwidth = target.bandwidth_gbs * 1e9
        painter.save()
        painter.setClipRect(box)
        roofs = [(target.tflops_fp16, "half precision, tensor cores"), (target.tflops_fp32, "float32")]
        ridge = roofs[0][0] * 1e12 / bandwidth
        painter.setPen(QPen(theme.text, 1.6))
        start = QPointF(x.px(x.low), y.px(bandwidth * x.low))
        painter.drawLine(start, QPointF(x.px(ridge), y.px(bandwidth * ridge)))
        painter.setFont(theme.ui_font(8.5))
        for number, (tflops, name) in enumerate(roofs):
            if tflops <= 0:
                continue
            from_x = x.px(tflops * 1e12 / bandwidth)
            at = y.px(tflops * 1e12)
            painter.setPen(QPen(theme.text if number == 0 else theme.muted, 1.6 if number == 0 else 1.2))
            painter.drawLine(QPointF(from_x, at), QPointF(box.right(), at))
            painter.setPen(theme.muted)
            where = QRectF(box.right() - 320, at - 17, 314, 15)
            painter.drawText(where, Qt.AlignmentFlag.AlignRight, f"{tflops:,.0f} TFLOP/s {name}")
        painter.setPen(theme.muted)
        text = f"{target.bandwidth_gbs / 1e3:.2f} TB/s"
        place = start.x() + 40
        painter.drawText(QPointF(place + 8, y.px(bandwidth * x.value(place)) + 14), text)
        painter.restore()

    def _rate(self, point: Point) -> float:
        """FLOPs a second; of what only moves data, the bytes a second as if each byte were a little work."""
        work = point.bytes * _NO_WORK if point.intensity < _NO_WORK else float(point.flops)
        return max(work / max(point.time.us, 1e-3) * 1e6, 1.0)

    def _at(self, point: Point, x: Scale, y: Scale) -> QPointF:
        return QPointF(x.px(max(point.intensity, _NO_WORK)), y.px(self._rate(point)))

    def _nearest(self, at: QPointF) -> Point | None:
        if self._scales is None:
            return None
        away = [((self._at(p, *self._scales) - at).manhattanLength(), i) for i, p in enumerate(self._points)]
        best = min(away, default=(1e9, -1))
        return self._points[best[1]] if best[0] <= _NEAR * 1.6 else None

    def _paint_tip(self, painter: QPainter, area: QRectF) -> None:
        if self._mouse is None:
            return
        point = self._nearest(self._mouse)
        if point is not None:
            draw_tip(painter, self.theme, area, self._mouse.x(), self._mouse.y(), point_lines(point))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The unit near the mouse."""
        self._mouse = event.position()
        pointing = self._nearest(self._mouse) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if pointing else Qt.CursorShape.ArrowCursor)
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a unit."""
        found = self._nearest(event.position())
        if found is not None and event.button() == Qt.MouseButton.LeftButton:
            self.unit_chosen.emit(found.unit)

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.update()


def point_lines(point: Point) -> list[str]:
    """A unit's facts on the plot."""
    kind = "measured" if point.time.measured else "estimated"
    lines = [point.unit, f"{fmt.microseconds(point.time.us)} ({kind}, {point.time.origin})"]
    lines.append(f"roof {fmt.microseconds(point.roof_us)}, {point.bound}-bound")
    lines.append(f"{fmt.size(point.bytes)}, {fmt.flops(point.flops)}, {point.intensity:.3g} FLOP/B")
    if point.time.measured:
        lines.append(f"{point.share_of_roof:.0%} of the roof, {fmt.microseconds(point.wasted_us)} beyond it")
    return lines


def _rate_text(value: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.999:
            return f"{value / size:g} {unit}"
    return f"{value:g}"

