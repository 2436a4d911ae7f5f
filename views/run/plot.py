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
    QWheelEvent,
)

from views.charts.chart import BOTTOM, LEFT, Chart, draw_axes, draw_legend, draw_tip
from views.charts.scale import Scale, time_axis
from views.charts.shapes import polygon
from views.look import format as fmt
from views.look.theme import Theme, mix
from views.run.facets import Curve, Facet, facets
from views.run.modes import mode_title
from views.run.record import RunRecord, Times

_HEAD = 24.0  # titles and keys above the plots
_NAMES = 15.0  # more where modes follow one another, or each has its own plot
_NEAR = 9.0  # pixels around an outlier's mark that count as on it
_BESIDE = 10.0  # pixels beside a plot into which a name may reach
_GAP, _LEAST_NAME = 5.0, 40.0  # pixels between two names, and of one that is cut
_OVER = 5.0  # pixels above a plot in which a curve that leaves it still is seen
_LEAST_SPAN = 20
_ENOUGH = 2000
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
        self._shown: list[Facet] = []  # the facets that hold anything
        self._limits = (0.0, 1.0)  # of the time axis, in microseconds
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
        self._refresh()

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
        self._shown = [facet for facet in self._facets if facet.curves and facet.span[1] > facet.span[0]]
        self._limits = self._range(self._shown) if self._shown else (0.0, 1.0)
        self.redraw()

    def _boxes(self, area: QRectF) -> list[tuple[QRectF, Scale, Scale]]:
        """Where each facet is, with its axes."""
        gap, made = 18.0, []
        low, high = self._limits
        width = (area.width() - LEFT - 8 - gap * (len(self._shown) - 1)) / max(len(self._shown), 1)
        for number, facet in enumerate(self._shown):
            box = QRectF(area.left() + LEFT + number * (width + gap), area.top() + self._head + 4, width, 0)
            box.setBottom(area.bottom() - BOTTOM)
            first, end = self._view or facet.span
            end = max(end, first + _LEAST_SPAN if self._view else first + 100)
            x = Scale(first, end, box.left(), box.right(), whole=True)
            made.append((box, x, Scale(low, high, box.bottom(), box.top(), self._log)))
        return made

    @property
    def _head(self) -> float:
        """Pixels above the plots: titles and keys, and the names of what begins at marks."""
        return _HEAD + (_NAMES if any(facet.marks or facet.color for facet in self._shown) else 0.0)

    # Painting

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """Facets beside each other on one time axis."""
        theme = self.theme
        if not self._shown:
            painter.setPen(theme.muted)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, "Start to see iterations as they come.")
            return
        unit, texts = time_axis(self._limits[1], log=self._log)
        for number, (facet, (box, x, y)) in enumerate(zip(self._shown, self._boxes(area), strict=True)):
            titles = ("iteration" if number == len(self._shown) - 1 else " ", unit if number == 0 else "")
            self._paint_head(painter, facet, box, area.right(), is_first=number == 0)
            self._paint_shades(painter, facet, box, x)
            draw_axes(painter, theme, box, x, y, titles, y_texts=texts)
            painter.save()
            painter.setClipRect(box.adjusted(-1, -_OVER, 5, 1))
            for curve in facet.curves:
                _paint_curve(painter, curve, box, x, y)
            self._paint_outliers(painter, facet, box, x, y)
            painter.restore()
            self._paint_names(painter, facet, box, x)

    def paint_marks(self, painter: QPainter, area: QRectF) -> None:
        """The iteration that was picked."""
        for facet, (box, x, y) in zip(self._shown, self._boxes(area), strict=True):
            painter.save()
            painter.setClipRect(box.adjusted(-1, -_OVER, 5, 1))
            self._paint_pick(painter, facet, box, x, y)
            painter.restore()

    def _range(self, shown: list[Facet]) -> tuple[float, float]:
        """The time axis that all facets share; what lies far above it is marked at its top."""
        parts = [self._seen(curve) for facet in shown for curve in facet.curves]
        parts = [part for part in parts if len(part)] or [np.ones(1)]
        usual = max(float(np.quantile(_some(part), 0.985)) for part in parts)
        top = min(max(float(part.max()) for part in parts) * 1.08, usual * 1.5)
        if self._log:
            return max(min(float(part.min()) for part in parts) * 0.8, 0.1), max(top * 1.3, 0.2)
        return 0.0, _round_up(max(top, 1e-3))

    def _seen(self, curve: Curve) -> np.ndarray:
        if self._view is None:
            return curve.values
        return curve.values[max(self._view[0] - curve.first, 0) : max(self._view[1] - curve.first, 0)]

    def _paint_head(self, painter: QPainter, facet: Facet, box: QRectF, right: float, *, is_first: bool) -> None:
        """The figure's or mode's name; the curves' keys stand once above all of them."""
        theme = self.theme
        top = box.top() - self._head - 1
        if is_first and (facet.color is not None or not facet.title):
            keys = [(curve.title, curve.color) for curve in facet.curves]
            draw_legend(painter, theme, box.left(), right, top, keys)
        if not facet.title:
            return
        left = box.left()
        font = theme.ui_font(9.5)
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        if facet.color is not None:
            top += _NAMES
            painter.setBrush(facet.color)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(QRectF(left, top + 3.5, 9, 9), 2.5, 2.5)
            left += 15
        painter.setPen(theme.text)
        # where a mode's name does not fit, its colour stands for it: the table beside has the names
        width = QFontMetricsF(font).horizontalAdvance(facet.title)
        if facet.color is None or width <= box.right() - left:
            painter.drawText(QRectF(left, top, width + 2, 16), Qt.AlignmentFlag.AlignVCenter, facet.title)

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
        painter.setPen(QPen(theme.border, 1.0, Qt.PenStyle.DotLine))
        for start, _ in facet.marks:
            left = x.px(start)
            painter.drawLine(QPointF(left, box.top()), QPointF(left, box.bottom()))
        painter.restore()

    def _paint_names(self, painter: QPainter, facet: Facet, box: QRectF, x: Scale) -> None:
        """What begins at each mark, above the curves: a spike would strike a name through."""
        painter.setFont(self.theme.ui_font(8.5))
        painter.setPen(self.theme.muted)
        metrics = QFontMetricsF(painter.font())
        free = box.left() - 1
        ends = [*(x.px(start) for start, _ in facet.marks[1:]), box.right() + _BESIDE + _GAP]
        for (start, name), end in zip(facet.marks, ends, strict=False):
            left = x.px(start)
            if box.right() > left >= free:
                room = end - _GAP - left  # the next one's name is as good as this one's end, but for a stump
                room = min(room if room >= _LEAST_NAME else box.right(), box.right() + _BESIDE - left)
                shown = metrics.elidedText(name, Qt.TextElideMode.ElideRight, room)
                painter.drawText(QPointF(left, box.top() - 7), shown)
                free = left + metrics.horizontalAdvance(shown) + _GAP

    def _paint_outliers(self, painter: QPainter, facet: Facet, box: QRectF, x: Scale, y: Scale) -> None:
        """Dots, or arrows at the top where they lie above the axis; what would cover each other is marked once."""
        marked = [curve for curve in facet.curves if curve.outliers]
        if not marked:
            return
        places, values, usual = [], [], []
        for curve in marked:
            positions = np.array(curve.outliers)
            places.append(curve.first + positions)
            values.append(curve.values[positions])
            usual.append(np.full(len(positions), float(np.median(_some(curve.values)))))
        value = np.concatenate(values)
        at, height = x.pixels(np.concatenate(places)), y.pixels(value)
        seen = (box.left() <= at) & (at <= box.right() + 1) & (y.pixels(np.concatenate(usual)) - height > _STANDS_OUT)
        above = seen & (value > y.high)
        color = self.theme.danger
        painter.setPen(QPen(color, 5.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPoints(polygon(*_apart(at[seen & ~above], height[seen & ~above])))
        arrows = QPainterPath()
        for left in np.unique(np.round(at[above] / 3)) * 3:
            arrows.moveTo(left - 5, box.top() + 6)
            arrows.lineTo(left + 5, box.top() + 6)
            arrows.lineTo(left, box.top() - 3)
            arrows.closeSubpath()
        arrows.setFillRule(Qt.FillRule.WindingFill)
        if not arrows.isEmpty():
            painter.fillPath(arrows, color)

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

    def paint_hover(self, painter: QPainter, area: QRectF) -> None:
        """The figures of the iteration below the mouse."""
        if self._mouse is None or self._press is not None:
            return
        for (box, x, _), facet in zip(self._boxes(area), self._shown, strict=True):
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
        for (box, x, y), facet in zip(self._boxes(self.area()), self._shown, strict=True):
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
            self._press, self._dragged = (self.place(event), self._span()), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, or show the iteration below the mouse."""
        self._mouse = self.place(event)
        if self._press is not None and self._shown:
            start, (first, end) = self._press
            moved = start.x() - self.place(event).x()
            if abs(moved) > 4 or self._dragged:
                self._dragged = True
                by = round(moved * (end - first) / max(self._boxes(self.area())[0][0].width(), 1.0))
                self._view = (first + by, end + by)
                self._refresh()
                return
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click without a drag picks."""
        clicked = self._press is not None and not self._dragged
        self._press = None
        found = self._hit(self.place(event)) if clicked else None
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
        boxes = self._boxes(self.area())
        box = next((b for b in boxes if b[0].left() <= self.place(event).x() <= b[0].right()), None)
        if box is None:
            return
        first, end = self._span()
        middle = box[1].value(self.place(event).x())
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
    clipped = np.clip(values, y.low if y.log else None, y.value(box.top() - _OVER))  # a file's painter does not clip
    points = polygon(x.pixels(numbers), y.pixels(clipped))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if len(points) * 6 < columns:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(curve.color)
        for point in points.toList():
            painter.drawEllipse(point, 2.2, 2.2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
    dense = len(points) > columns / 4  # smoothing thousands of strokes is slow, and shows nothing more
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, not dense)
    painter.setPen(QPen(curve.color, 1.0 if dense else 1.4))
    painter.drawPolyline(points)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _apart(x: Times, y: Times) -> tuple[Times, Times]:
    """Points without those that fall on another's place, to three pixels."""
    places = np.round(x / 3) * 65536 + np.round(y / 3)
    _, first = np.unique(places, return_index=True)
    return x[first], y[first]


def _some(values: Times) -> Times:
    """Enough of many values to tell where most of them lie."""
    return values[:: max(1, len(values) // _ENOUGH)]


def _shade(theme: Theme) -> QColor:
    return mix(theme.surface, theme.warning, 0.16)


def _round_up(value: float) -> float:
    """The next round number, so that the axis does not tremble while samples come."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value))
