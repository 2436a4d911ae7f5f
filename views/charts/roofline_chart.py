"""The roofline plot: FLOPs for each byte against FLOPs a second, the target's roofs, and every unit under them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPaintEngine, QPainter, QPen, QPixmap

from app.roofline import Point
from compiler.report import Target
from views.charts.chart import BOTTOM, LEFT, Chart, draw_axes, draw_tip
from views.charts.scale import Scale, in_unit
from views.look import format as fmt
from views.look.theme import GROUP_COLORS, Theme

_NO_WORK = 0.02  # FLOPs a byte at which what only moves data is drawn
_NEAR = 8.0  # pixels
_ALONG = (0.35, 0.5, 0.65, 0.2, 0.8)  # shares of the sloping roof where its figure may stand, as they are wanted
_NAMED = 34.0  # pixels around a flat roof, whose name is there
_RATES = (  # from, size, unit; 1,000 T is as usual as 1 P
    (1e19, 1e18, "E"), (1e16, 1e15, "P"), (1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e3, 1e3, "k"),
    (0.0, 1.0, ""),
)  # fmt: skip


@dataclass(frozen=True)
class Cloud:
    """The units of a region as arrays, those with a measured time last: they are painted over the others."""

    points: list[Point]
    intensity: NDArray[np.float64]  # FLOPs a byte, at least _NO_WORK
    rate: NDArray[np.float64]  # FLOPs a second
    radius: NDArray[np.float64]  # pixels
    measured: NDArray[np.bool_]
    colors: NDArray[np.int64]  # an index into the theme's group colours; -1 is an extern call's


def cloud(points: list[Point], colors: dict[str, int]) -> Cloud:
    """``colors`` are numbers by unit; a unit that it does not have is an extern call."""
    ordered = sorted(points, key=lambda point: point.time.measured)
    us = np.array([point.time.us for point in ordered], np.float64)
    intensity = np.array([point.intensity for point in ordered], np.float64)
    # of what only moves data, the bytes a second as if each byte were a little work
    work = np.array(
        [point.bytes * _NO_WORK if point.intensity < _NO_WORK else float(point.flops) for point in ordered], np.float64
    )
    longest = float(us.max()) if len(us) and us.max() > 0 else 1.0
    return Cloud(
        ordered,
        np.maximum(intensity, _NO_WORK),
        np.maximum(work / np.maximum(us, 1e-3) * 1e6, 1.0),
        4.0 + us / longest * 5.0,
        np.array([point.time.measured for point in ordered], bool),
        np.array([colors[p.unit] % GROUP_COLORS if p.unit in colors else -1 for p in ordered], np.int64),
    )


class RooflineChart(Chart):
    """Measured units are filled, estimated ones hollow and on the roof by definition. A click chooses a unit."""

    unit_chosen = Signal(str)
    unit_hovered = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("Roofline", theme)
        self._cloud = cloud([], {})
        self._target: Target | None = None
        self._chosen = ""
        self._mouse: QPointF | None = None
        self._dots: dict[tuple[int, bool, int], QPixmap] = {}

    def set_cloud(self, found: Cloud, target: Target) -> None:
        """Show the units of a region under the roofs of ``target``."""
        self._cloud, self._target = found, target
        self.redraw()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._dots = {}
        super().set_theme(theme)

    def show_unit(self, unit: str) -> None:
        """Mark a unit."""
        self._chosen = unit
        self.update()

    def position_of(self, unit: str) -> QPointF:
        """Where a unit is drawn. Raises ValueError for an unknown one."""
        place = [point.unit for point in self._cloud.points].index(unit)
        x, y = self._places(self.area())
        return QPointF(float(x[place]), float(y[place]))

    def _box(self, area: QRectF) -> QRectF:
        return QRectF(area.left() + LEFT + 8, area.top() + 26, area.width() - LEFT - 20, area.height() - 26 - BOTTOM)

    def _places(self, area: QRectF) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self._target is not None
        x, y = self._make_scales(self._target, self._box(area))
        return x.pixels(self._cloud.intensity), y.pixels(self._cloud.rate)

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """Axes, roofs, points."""
        target = self._target
        if target is None or not self._cloud.points:
            return
        theme = self.theme
        box = self._box(area)
        x, y = self._make_scales(target, box)
        draw_axes(painter, theme, box, x, y, ("FLOPs for each byte", "FLOP/s"), y_texts=_rate_texts)
        self._paint_roofs(painter, target, box, x, y)
        left, top = self._places(area)
        size = np.round(self._cloud.radius * 2).astype(int)  # in half pixels, so that few dots differ
        kinds = np.stack([self._cloud.colors, self._cloud.measured, size], axis=1)
        # many units share a place, a colour and a size: one dot shows them all
        _, first = np.unique(np.column_stack([kinds, np.round(left), np.round(top)]), axis=0, return_index=True)
        in_svg = painter.device() is not None and painter.paintEngine().type() == QPaintEngine.Type.SVG
        for place in np.sort(first):
            color, measured, radius = int(kinds[place, 0]), bool(kinds[place, 1]), int(kinds[place, 2])
            at = QPointF(float(left[place]), float(top[place]))
            if in_svg:
                self._paint_dot(painter, at, color, measured, radius / 2)
            else:
                dot = self._dot(color, measured, radius, painter.device().devicePixelRatioF())
                painter.drawPixmap(at - QPointF(radius / 2 + 2, radius / 2 + 2), dot)
        self._paint_names(painter, target, box, x, y)
        self._paint_bandwidth(painter, target, box, x, y)

    def _dot(self, color: int, measured: bool, radius: int, ratio: float) -> QPixmap:
        key = (color, measured, radius)
        found = self._dots.get(key)
        if found is None or found.devicePixelRatio() != ratio:
            side = radius + 4.0
            found = QPixmap(round(side * ratio), round(side * ratio))
            found.setDevicePixelRatio(ratio)
            found.fill(Qt.GlobalColor.transparent)
            with QPainter(found) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                self._paint_dot(painter, QPointF(side / 2, side / 2), color, measured, radius / 2)
            self._dots[key] = found
        return found

    def _paint_dot(self, painter: QPainter, at: QPointF, number: int, measured: bool, radius: float) -> None:
        theme = self.theme
        color = theme.extern_border if number < 0 else theme.group_colors[number]
        fill = QColor(color)
        fill.setAlphaF(0.85)
        painter.setPen(QPen(theme.surface, 1.0) if measured else QPen(color, 1.4))
        painter.setBrush(fill if measured else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(at, radius, radius)

    def paint_marks(self, painter: QPainter, area: QRectF) -> None:
        """A ring around the unit that is selected."""
        place = next((i for i, point in enumerate(self._cloud.points) if point.unit == self._chosen), -1)
        if place >= 0 and self._target is not None:
            x, y = self._places(area)
            radius = float(self._cloud.radius[place]) + 1.5
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.theme.selection, 2.4))
            painter.drawEllipse(QPointF(float(x[place]), float(y[place])), radius, radius)

    def paint_hover(self, painter: QPainter, area: QRectF) -> None:
        """The facts of the unit near the mouse."""
        point = self._nearest(self._mouse) if self._mouse is not None else None
        if point is not None and self._mouse is not None:
            draw_tip(painter, self.theme, area, self._mouse.x(), self._mouse.y(), point_lines(point))

    def _make_scales(self, target: Target, box: QRectF) -> tuple[Scale, Scale]:
        found = self._cloud
        ridge = target.tflops_fp16 * 1e3 / target.bandwidth_gbs
        low = min(float(found.intensity.min()), 0.1) / 1.6
        high = max(float(found.intensity.max()), ridge) * 2.5
        floor = min(float(found.rate.min()), target.bandwidth_gbs * 1e9 * low) / 1.6
        ceiling = max(target.tflops_fp16 * 1e12 * 2.6, float(found.rate.max()) * 1.6)
        return (
            Scale(low, high, box.left(), box.right(), log=True),
            Scale(floor, ceiling, box.bottom(), box.top(), log=True),
        )

    def _paint_roofs(self, painter: QPainter, target: Target, box: QRectF, x: Scale, y: Scale) -> None:
        theme = self.theme
        bandwidth = target.bandwidth_gbs * 1e9
        painter.save()
        painter.setClipRect(box)
        ridge = target.tflops_fp16 * 1e12 / bandwidth
        painter.setPen(QPen(theme.text, 1.6))
        start = QPointF(x.px(x.low), y.px(bandwidth * x.low))
        painter.drawLine(start, QPointF(x.px(ridge), y.px(bandwidth * ridge)))
        for number, (tflops, _) in enumerate(_roofs(target)):
            at = y.px(tflops * 1e12)
            painter.setPen(QPen(theme.text if number == 0 else theme.muted, 1.6 if number == 0 else 1.2))
            painter.drawLine(QPointF(x.px(tflops * 1e12 / bandwidth), at), QPointF(box.right(), at))
        painter.restore()

    def _paint_names(self, painter: QPainter, target: Target, box: QRectF, x: Scale, y: Scale) -> None:
        """Each flat roof's rate left of where it begins, where no unit can be; else above its right end."""
        painter.setFont(self.theme.ui_font(8.5))
        painter.setPen(self.theme.muted)
        for tflops, name in _roofs(target):
            text = f"{tflops:,.0f} TFLOP/s {name}"
            width = painter.fontMetrics().horizontalAdvance(text)
            begin, at = x.px(tflops / target.bandwidth_gbs * 1e3), y.px(tflops * 1e12)
            right = begin - 6 if begin - 10 - width > box.left() else box.right() - 4
            self._paint_name(painter, QRectF(right - width, at - 16, width, 15), text)

    def _paint_bandwidth(self, painter: QPainter, target: Target, box: QRectF, x: Scale, y: Scale) -> None:
        """Its figure along the sloping roof, above it, where no unit can be; and away from those on it."""
        bandwidth = target.bandwidth_gbs * 1e9
        ridge = target.tflops_fp16 * 1e12 / bandwidth
        start, end = QPointF(x.px(x.low), y.px(bandwidth * x.low)), QPointF(x.px(ridge), y.px(bandwidth * ridge))
        text = f"{target.bandwidth_gbs / 1e3:.2f} TB/s"
        half = painter.fontMetrics().horizontalAdvance(text) / 2 + 3
        left, top = x.pixels(self._cloud.intensity), y.pixels(self._cloud.rate)

        def clear(share: float) -> float:
            """Pixels to the nearest unit, as far as they matter."""
            middle = start + (end - start) * share
            away = float((np.hypot(left - middle.x(), top - middle.y() + 10) - self._cloud.radius).min())
            named = any(abs(y.px(tflops * 1e12) - middle.y()) < _NAMED for tflops, _ in _roofs(target))
            return min(away, half) - (half if named else 0.0)

        painter.save()
        painter.setClipRect(box)
        painter.translate(start + (end - start) * max(_ALONG, key=clear))
        painter.rotate(math.degrees(math.atan2(end.y() - start.y(), end.x() - start.x())))
        self._paint_name(painter, QRectF(-half, -19, 2 * half, 15), text)
        painter.restore()

    def _paint_name(self, painter: QPainter, where: QRectF, text: str) -> None:
        """A text that no line of the grid runs through."""
        ground = QColor(self.theme.surface)
        ground.setAlphaF(0.86)
        painter.fillRect(where.adjusted(-2, 1, 2, -1), ground)
        painter.setPen(self.theme.muted)
        painter.drawText(where, Qt.AlignmentFlag.AlignCenter, text)

    def _nearest(self, at: QPointF) -> Point | None:
        if self._target is None or not self._cloud.points:
            return None
        x, y = self._places(self.area())
        away = np.abs(x - at.x()) + np.abs(y - at.y())
        best = int(away.argmin())
        return self._cloud.points[best] if away[best] <= _NEAR * 1.6 else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The unit near the mouse."""
        self._mouse = self.place(event)
        found = self._nearest(self._mouse)
        self.setCursor(Qt.CursorShape.PointingHandCursor if found else Qt.CursorShape.ArrowCursor)
        self.unit_hovered.emit(found.unit if found is not None else "")
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a unit."""
        found = self._nearest(self.place(event))
        if found is not None and event.button() == Qt.MouseButton.LeftButton:
            self.unit_chosen.emit(found.unit)

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.unit_hovered.emit("")
        self.update()


def _roofs(target: Target) -> list[tuple[float, str]]:
    """(TFLOP/s, name) of the flat roofs that are known, the highest first."""
    found = [(target.tflops_fp16, "half precision"), (target.tflops_fp32, "float32")]
    return [(tflops, name) for tflops, name in found if tflops > 0]


def point_lines(point: Point) -> list[str]:
    """A unit's facts on the plot."""
    lines = [point.unit, f"{fmt.microseconds(point.time.us)} ({point.time.kind}, {point.time.origin})"]
    lines.append(f"roof {fmt.microseconds(point.roof_us)}, {point.bound}-bound")
    lines.append(f"{fmt.size(point.bytes)}, {fmt.flops(point.flops)}, {point.intensity:.3g} FLOP/B")
    if point.time.measured:
        lines.append(f"{fmt.share(point.share_of_roof)} of the roof, {fmt.microseconds(point.wasted_us)} beyond it")
    return lines


def _rate_texts(values: Sequence[float]) -> list[str]:
    found = [next(one for one in _RATES if value >= one[0] * 0.999) for value in values]
    plain = [in_unit([value], size)[0] for value, (_, size, _) in zip(values, found, strict=True)]
    return [f"{text} {unit}".strip() for text, (_, _, unit) in zip(plain, found, strict=True)]
