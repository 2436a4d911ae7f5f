"""A timeline of traces: one band a trace, one row a lane, all on one time axis. Fast with many thousand events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QWheelEvent,
)

from compiler.report import Trace, TraceEvent
from views.canvas.primitives import ShapeBuffer
from views.charts.chart import Chart, draw_tip
from views.charts.scale import Scale, in_unit, time_unit
from views.look import format as fmt
from views.look.theme import Theme, mix, soft

ROW, HEAD, GAP, AXIS = 22.0, 22.0, 10.0, 22.0
_NAMES = 76.0  # room for the lanes' names
_TEXT_FROM = 34.0  # pixels of a box from which a name that fits is written into it
_PART_FROM = 84.0  # pixels of a box from which the beginning of a longer name says something
_SINGLE_FROM = 3.0  # pixels of a box from which it is drawn by itself
_ROUND_FROM = 8.0  # pixels of a box from which its corners are round
_ZOOM = 1.25
CPU_LANE = "cpu"
Times = NDArray[np.float64]


@dataclass(frozen=True)
class Lane:
    """Events of one lane by start, as arrays; ``events`` are their positions in the trace."""

    name: str
    events: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    color: NDArray[np.int64]  # index into the colours that were found
    units: NDArray[np.object_]  # "region/unit" of each event


@dataclass(frozen=True)
class Band:
    """One trace: a title, a sentence, its lanes."""

    title: str
    note: str
    trace: Trace
    lanes: list[Lane]
    offset: float = 0.0  # microsecond of the trace that stands at the left

    @property
    def height(self) -> float:
        """Pixels it takes."""
        return HEAD + ROW * len(self.lanes) + GAP


def busy_share(trace: Trace) -> float:
    """The share (0..1) of the time from the first event on in which the GPU works on at least one thing."""
    work = sorted((e.start_us, e.start_us + e.duration_us) for e in trace.events if e.lane != CPU_LANE)
    busy, reached = 0.0, 0.0
    for start, end in work:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    span = trace.span_us - first_launch(trace)
    return busy / span if span > 0 else 0.0


def first_launch(trace: Trace) -> float:
    """Microseconds until the first event. Much of it is the profiler's own start, so bands begin there."""
    return min((event.start_us for event in trace.events), default=0.0)


def lanes_of(trace: Trace, number_of: Callable[[TraceEvent], int], offset: float = 0.0) -> list[Lane]:
    """The lanes of a trace, the CPU first, then streams by their first event; ``number_of`` numbers colours.

    Times are counted from ``offset`` on.
    """
    places: dict[str, list[int]] = {}
    for place, event in enumerate(trace.events):
        places.setdefault(event.lane, []).append(place)
    start = np.array([event.start_us for event in trace.events], np.float64) - offset
    end = start + np.array([event.duration_us for event in trace.events], np.float64)
    color = np.array([number_of(event) for event in trace.events], np.int64)
    units = np.array([event.unit for event in trace.events], object)
    made = []
    for name, inside in sorted(places.items(), key=lambda item: (item[0] != CPU_LANE, item[1][0])):
        found = np.array(inside)
        chosen = found[np.argsort(start[found], kind="stable")]
        title = "CPU" if name == CPU_LANE else name
        made.append(Lane(title, chosen, start[chosen], end[chosen], color[chosen], units[chosen]))
    return made


class Gantt(Chart):
    """Wheel zooms about the mouse, dragging pans, a double click fits; hovering tells, a click chooses."""

    event_chosen = Signal(object)  # TraceEvent
    unit_hovered = Signal(str)  # "region/unit" of the event under the mouse, "" for none

    def __init__(self, theme: Theme) -> None:
        super().__init__("Timeline of CPU launches and GPU kernels", theme)
        self._bands: list[Band] = []
        self._colors: list[QColor] = []
        self._view = (0.0, 1.0)
        self._whole = (0.0, 1.0)
        self._unit = ""
        self._rects = ShapeBuffer(QRectF)
        self._mouse: QPointF | None = None
        self._press: tuple[QPointF, tuple[float, float]] | None = None
        self._dragged = False

    @property
    def view(self) -> tuple[float, float]:
        """First and last microsecond in sight."""
        return self._view

    @property
    def bands(self) -> list[Band]:
        """What is shown."""
        return self._bands

    def set_bands(self, bands: list[Band], colors: list[QColor]) -> None:
        """Show other traces; lanes' colour numbers index ``colors``."""
        spans = [band.trace.span_us - band.offset for band in bands]
        whole = (0.0, max([*spans, 1.0]) * 1.01)
        if whole != self._whole:
            self._view = self._whole = whole
        self._bands, self._colors = bands, colors
        self._take_height()
        self.redraw()

    def set_theme(self, theme: Theme) -> None:
        """Other colours, and other heights where texts are larger."""
        super().set_theme(theme)
        self._take_height()

    def _take_height(self) -> None:
        self.setMinimumHeight(round((sum(band.height for band in self._bands) + AXIS) * self.enlarged))

    def show_unit(self, unit: str) -> None:
        """Mark the events of a unit, "region/name"; "" marks none."""
        self._unit = unit
        self.update()

    def fit(self) -> None:
        """Show everything."""
        self._look(self._whole)

    def sizeHint(self) -> QSize:
        """All bands."""
        return QSize(500, self.minimumHeight())

    def position_of(self, band: int, event: int) -> QPointF:
        """The middle of an event's box, for tests and tips. Raises KeyError where the lane does not hold it."""
        top = sum(b.height for b in self._bands[:band]) + HEAD
        x = self._scale(self.area())
        for row, lane in enumerate(self._bands[band].lanes):
            found = np.flatnonzero(lane.events == event)
            if len(found):
                middle = (lane.start[found[0]] + lane.end[found[0]]) / 2
                return QPointF(x.px(float(middle)), top + ROW * (row + 0.5))
        raise KeyError(event)

    # Painting

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """Bands from the top, the time axis below them."""
        if not self._bands:
            painter.setPen(self.theme.muted)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, "No iteration was traced.")
            return
        x = self._scale(area)
        self._paint_axis(painter, x, area, self._axis_top(area))
        top = area.top()
        for band in self._bands:
            self._paint_band(painter, band, x, top, area)
            top += band.height

    def paint_marks(self, painter: QPainter, area: QRectF) -> None:
        """Frames around the events of the unit that is selected."""
        if not self._unit:
            return
        x, top = self._scale(area), area.top()
        for band in self._bands:
            for row, lane in enumerate(band.lanes):
                box = QRectF(x.start, top + HEAD + ROW * row, x.end - x.start, ROW)
                painter.save()
                painter.setClipRect(box)
                self._paint_chosen(painter, lane, x, box)
                painter.restore()
            top += band.height

    def _paint_chosen(self, painter: QPainter, lane: Lane, x: Scale, box: QRectF) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self.theme.selection, 2.0))
        for i in np.flatnonzero(lane.units == self._unit):
            left, right = x.px(float(lane.start[i])), x.px(float(lane.end[i]))
            if right - left < _SINGLE_FROM:  # small boxes too
                painter.fillRect(QRectF(left - 1, box.top() + 1, 3, ROW - 2), self.theme.selection)
            else:
                painter.drawRoundedRect(QRectF(left, box.top() + 3, right - left - 0.8, ROW - 6), 2.5, 2.5)

    def _scale(self, area: QRectF) -> Scale:
        return Scale(*self._view, area.left() + _NAMES, max(area.right() - 10, area.left() + _NAMES + 10))

    def _paint_axis(self, painter: QPainter, x: Scale, area: QRectF, bottom: float) -> None:
        """Lines at round times through the lanes of all bands, and these times below ``bottom``."""
        for value in x.ticks(90.0):
            at = round(x.px(value)) + 0.5
            painter.setPen(QPen(mix(self.theme.surface, self.theme.muted, 0.16), 1.0))
            top = area.top() + HEAD
            for band in self._bands:  # not through the sentences above them
                painter.drawLine(QPointF(at, top), QPointF(at, top + ROW * len(band.lanes)))
                top += band.height
        self._paint_times(painter, x, area.right(), bottom)

    def _paint_times(self, painter: QPainter, x: Scale, right: float, top: float) -> None:
        painter.setFont(self.theme.ui_font(8.5))
        painter.setPen(self.theme.muted)
        ticks = x.ticks(90.0)
        size, unit = time_unit(x.high)
        for value, plain in zip(ticks, in_unit(ticks, size), strict=True):
            text = f"{plain} {unit}" if value else "0"
            left = min(x.px(value) - 50, right - 52 - painter.fontMetrics().horizontalAdvance(text) / 2)
            painter.drawText(QRectF(left, top + 2, 100, 16), Qt.AlignmentFlag.AlignHCenter, text)

    def _paint_axis_in_sight(self, painter: QPainter, area: QRectF) -> None:
        """The times once more at the lower edge of what is in sight, where the axis is scrolled out of it."""
        edge = self.visibleRegion().boundingRect().bottom() + 1
        if self._bands and edge < self._axis_top(area) + AXIS - 2:
            strip = QRectF(area.left(), edge - AXIS, area.width(), AXIS)
            painter.fillRect(strip, self.theme.surface)
            painter.setPen(QPen(self.theme.border, 1.0))
            painter.drawLine(QPointF(area.left() + _NAMES, strip.top()), QPointF(area.right() - 10, strip.top()))
            self._paint_times(painter, self._scale(area), area.right(), strip.top())

    def _axis_top(self, area: QRectF) -> float:
        return area.top() + sum(band.height for band in self._bands) - GAP / 2

    def _paint_band(self, painter: QPainter, band: Band, x: Scale, top: float, area: QRectF) -> None:
        theme = self.theme
        strong = theme.ui_font(9.5)
        strong.setWeight(QFont.Weight.DemiBold)
        painter.setFont(strong)
        painter.setPen(theme.text)
        painter.drawText(QRectF(area.left(), top, area.width(), HEAD), Qt.AlignmentFlag.AlignVCenter, band.title)
        left = QFontMetricsF(strong).horizontalAdvance(band.title) + 12
        painter.setFont(theme.ui_font(9.0))
        painter.setPen(theme.muted)
        room = QRectF(area.left() + left, top, area.width() - left, HEAD)
        note = painter.fontMetrics().elidedText(band.note, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, note)
        for row, lane in enumerate(band.lanes):
            box = QRectF(x.start, top + HEAD + ROW * row, x.end - x.start, ROW)
            painter.setPen(theme.muted)
            painter.setFont(theme.ui_font(8.5))
            name = QRectF(area.left(), box.top(), _NAMES - 8, ROW)
            painter.drawText(name, Qt.AlignmentFlag.AlignVCenter, lane.name)
            painter.fillRect(box.adjusted(0, 2, 0, -2), mix(theme.surface, theme.muted, 0.07))
            painter.save()
            painter.setClipRect(box)
            self._paint_lane(painter, band.trace, lane, x, box)
            painter.restore()

    def _paint_lane(self, painter: QPainter, trace: Trace, lane: Lane, x: Scale, box: QRectF) -> None:
        first = int(np.searchsorted(lane.start, self._view[0])) - 1
        seen = np.arange(max(first, 0), int(np.searchsorted(lane.start, self._view[1])))
        if not len(seen):
            return
        left = x.pixels(lane.start[seen])
        width = x.pixels(lane.end[seen]) - left
        small = width < _SINGLE_FROM
        self._paint_small(painter, lane.color[seen[small]], left[small], width[small], box)
        painter.setFont(self.theme.ui_font(8.0))
        metrics = painter.fontMetrics()
        places = np.flatnonzero(~small)
        # what lies outside is only a long box in the direction of the edge
        shown_left = np.maximum(left[places], box.left() - 8)
        shown_width = np.minimum(left[places] + width[places], box.right() + 8) - shown_left
        boxes = np.stack(np.broadcast_arrays(shown_left, box.top() + 3, np.maximum(shown_width - 0.8, 1), ROW - 6), 1)
        colors = lane.color[seen[places]]
        for color in np.unique(colors):
            ink = self._colors[int(color)]
            painter.setPen(QPen(ink, 0.8))
            painter.setBrush(soft(ink, self.theme))
            mine = boxes[colors == color]
            narrow = mine[:, 2] <= _ROUND_FROM
            painter.drawRects(self._rects.fill(mine[narrow]))
            for rect in self._rects.fill(mine[~narrow]):
                painter.drawRoundedRect(rect, 2.5, 2.5)
        painter.setPen(self.theme.text)
        for i in np.flatnonzero(shown_width > _TEXT_FROM):
            shown = QRectF(*boxes[i].tolist()).intersected(box)
            if shown.width() > _TEXT_FROM:
                name = trace.events[int(lane.events[seen[places[i]]])].name
                text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(shown.width() - 8))
                if text != name and shown.width() < _PART_FROM:
                    continue
                painter.drawText(shown.adjusted(4, 0, -2, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_small(
        self, painter: QPainter, colors: NDArray[np.int64], left: Times, width: Times, box: QRectF
    ) -> None:
        """Events narrower than a box can be; what falls into one pixel is drawn once, as wide as the widest of it."""
        painter.setPen(Qt.PenStyle.NoPen)
        for color in np.unique(colors):
            mine = colors == color
            columns, places = np.unique(np.floor(left[mine]), return_index=True)
            widths = np.maximum(np.maximum.reduceat(width[mine], places), 1.0)
            painter.setBrush(self._colors[int(color)])
            rows = np.stack(np.broadcast_arrays(columns, box.top() + 3, widths, ROW - 6), axis=1)
            painter.drawRects(self._rects.fill(rows))

    def paint_hover(self, painter: QPainter, area: QRectF) -> None:
        """The event below the mouse, with the line between launch and kernel."""
        self._paint_axis_in_sight(painter, area)
        if self._mouse is None or self._dragged:
            return
        found = self.event_at(self._mouse)
        if found is None:
            return
        band, place = found
        event = self._bands[band].trace.events[place]
        self._paint_link(painter, band, event, place)
        lines = [
            event.name if len(event.name) < 70 else f"{event.name[:67]}…",
            f"{fmt.microseconds(event.duration_us)} from {fmt.microseconds(event.start_us)}",
        ]
        if event.unit:
            lines.append(event.unit.replace("/", "  ·  ") + ("" if event.exact else "  (inferred)"))
        draw_tip(painter, self.theme, area, self._mouse.x(), self._mouse.y() + 30, lines)

    def _paint_link(self, painter: QPainter, band: int, event: TraceEvent, place: int) -> None:
        """From a launch to its kernel, or the reverse."""
        events = self._bands[band].trace.events
        pairs = [(event.launch, place)] if 0 <= event.launch < len(events) else []
        if event.lane == CPU_LANE:
            pairs = [(place, i) for i, other in enumerate(events) if other.launch == place][:1]
        painter.setPen(QPen(self.theme.selection, 1.4))
        for launch, kernel in pairs:
            painter.drawLine(self.position_of(band, launch), self.position_of(band, kernel))

    # Asking and moving

    def event_at(self, at: QPointF) -> tuple[int, int] | None:
        """(band, position in its trace) of the event at a point, or of one within two pixels."""
        x, top = self._scale(self.area()), 0.0
        for number, band in enumerate(self._bands):
            row = int((at.y() - top - HEAD) // ROW)
            if 0 <= row < len(band.lanes) and at.y() >= top + HEAD and at.x() >= x.start:
                lane, when = band.lanes[row], x.value(at.x())
                slack = 2 * (self._view[1] - self._view[0]) / (x.end - x.start)
                near = int(np.searchsorted(lane.start, when, side="right")) - 1
                for place in (near, near + 1):
                    if 0 <= place < len(lane.start) and lane.start[place] - slack <= when <= lane.end[place] + slack:
                        return number, int(lane.events[place])
                return None
            top += band.height
        return None

    def _look(self, view: tuple[float, float]) -> None:
        low, high = view
        span = min(max(high - low, 0.5), self._whole[1] - self._whole[0])
        low = min(max(low, self._whole[0]), self._whole[1] - span)
        self._view = (low, low + span)
        self.redraw()

    def _zoom(self, factor: float, px: float) -> None:
        low, high = self._view
        middle = self._scale(self.area()).value(px)
        self._look((middle - (middle - low) / factor, middle + (high - middle) / factor))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom about the mouse; with Shift, or sideways, pan."""
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier or (angle.x() and not angle.y()):
            by = (angle.y() or angle.x()) / 120.0 * (self._view[1] - self._view[0]) * 0.1
            self._look((self._view[0] - by, self._view[1] - by))
        else:
            self._zoom(_ZOOM ** (angle.y() / 120.0), self.place(event).x())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to pan, or to click."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._press, self._dragged = (self.place(event), self._view), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, or tell what is below the mouse."""
        self._mouse = self.place(event)
        if self._press is not None:
            start, (low, high) = self._press
            moved = start.x() - self.place(event).x()
            if abs(moved) > 4 or self._dragged:
                self._dragged = True
                x = self._scale(self.area())
                by = moved * (high - low) / (x.end - x.start)
                self._look((low + by, high + by))
        found = self.event_at(self.place(event))
        self.setCursor(Qt.CursorShape.PointingHandCursor if found else Qt.CursorShape.ArrowCursor)
        self.unit_hovered.emit(self._bands[found[0]].trace.events[found[1]].unit if found else "")
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click without a drag chooses."""
        clicked = self._press is not None and not self._dragged
        self._press, self._dragged = None, False
        found = self.event_at(self.place(event)) if clicked else None
        if found is not None:
            self.event_chosen.emit(self._bands[found[0]].trace.events[found[1]])

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Everything again."""
        self.fit()

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.unit_hovered.emit("")
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Plus and minus zoom, arrows pan, Home fits."""
        span = self._view[1] - self._view[0]
        steps = {Qt.Key.Key_Left: -0.1, Qt.Key.Key_Right: 0.1}
        key = Qt.Key(event.key())
        if key in steps:
            self._look((self._view[0] + steps[key] * span, self._view[1] + steps[key] * span))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._zoom(_ZOOM, self.area().width() / 2)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self._zoom(1 / _ZOOM, self.area().width() / 2)
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_F):
            self.fit()
        else:
            super().keyPressEvent(event)
