"""Memory over the schedule: live bytes above; below, each storage as a row and the buffers that live in it in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPainterPath, QPen

from app.memory_plan import PlanRows, live_at, live_bytes, plan_rows
from compiler.report import BufferPlan, Memory
from views.canvas.primitives import ShapeBuffer
from views.charts.chart import LEFT, Chart, draw_axes, draw_tip
from views.charts.scale import Scale, tick_texts
from views.charts.shapes import polygon, steps
from views.look import format as fmt
from views.look.theme import GROUP_COLORS, Theme, mix, soft

_LIVE_SHARE = 0.42  # of the height
_LEAST_ROW = 3.0
_HEAD = 26.0
_ARROW_FROM = 5.0  # pixels of height and width of a box from which its arrow can be seen
Boxes = NDArray[np.float64]  # left, top, width, height of each buffer


@dataclass(frozen=True)
class MemoryView:
    """A plan made ready to be drawn, on any thread."""

    memory: Memory
    live: NDArray[np.int64]
    rows: PlanRows
    colors: NDArray[np.int64]  # of each buffer, an index into the theme's group colours; -1 is an extern call's


def memory_view(memory: Memory, color_of: Callable[[str], int]) -> MemoryView:
    """``color_of`` gives the colour's number of an FX node."""
    rows = plan_rows(memory)
    numbers = np.array([color_of(node) for node in rows.nodes], np.int64)
    return MemoryView(memory, live_bytes(memory), rows, np.where(numbers < 0, -1, numbers % GROUP_COLORS))


class MemoryMap(Chart):
    """Hovering a buffer tells its kernels and draws its life on the curve, a click chooses it."""

    node_chosen = Signal(str)
    node_hovered = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("Memory over the schedule", theme)
        self._view = memory_view(Memory(), lambda node: -1)
        self._describe: Callable[[BufferPlan], list[str]] = lambda buffer: []
        self._step_name: Callable[[int], str] = lambda step: ""
        self._nodes: frozenset[str] = frozenset()
        self._mouse: QPointF | None = None
        self._laid_out: tuple[QRectF, Boxes] | None = None
        self._rects = ShapeBuffer(QRectF)
        self._lines = ShapeBuffer(QLineF)
        self.setMinimumHeight(120)

    def set_view(
        self, view: MemoryView, describe: Callable[[BufferPlan], list[str]], step_name: Callable[[int], str]
    ) -> None:
        """Show another plan; the functions say the lines of a buffer's tip, and what a step runs."""
        self._view, self._describe, self._step_name = view, describe, step_name
        self._laid_out = None
        self.redraw()

    def show_nodes(self, nodes: frozenset[str]) -> None:
        """Mark the buffers of these FX nodes."""
        self._nodes = nodes
        self.update()

    def buffer_box(self, name: str) -> QRectF:
        """Where a buffer is drawn. Raises ValueError for an unknown one."""
        place = [buffer.name for buffer in self._view.rows.buffers].index(name)
        return QRectF(*self._boxes(self.area())[place].tolist())

    def _areas(self, area: QRectF) -> tuple[QRectF, QRectF]:
        height = (area.height() - _HEAD - 28) * _LIVE_SHARE
        left, width = area.left() + LEFT + 10, area.width() - LEFT - 20
        top = QRectF(left, area.top() + _HEAD, width, height)
        return top, QRectF(left, top.bottom() + 8, width, area.bottom() - top.bottom() - 28)

    def _x(self, box: QRectF) -> Scale:
        return Scale(0.0, float(max(len(self._view.live), 1)), box.left(), box.right(), whole=True)

    def _boxes(self, area: QRectF) -> Boxes:
        if self._laid_out is None or self._laid_out[0] != area:
            self._laid_out = (area, self._make_boxes(area))
        return self._laid_out[1]

    def _make_boxes(self, area: QRectF) -> Boxes:
        rows = self._view.rows
        count = len(rows.storage_bytes)
        if not count:
            return np.zeros((0, 4))
        _, box = self._areas(area)
        x = self._x(box)
        least = min(_LEAST_ROW, box.height() / count / 2)  # half of the room at least goes by size
        spare = max(box.height() - least * count, 0.0)
        heights = least + spare * rows.storage_bytes / rows.storage_bytes.sum()
        tops = box.top() + np.concatenate([[0.0], np.cumsum(heights)[:-1]])
        left, right = x.pixels(rows.start), x.pixels(rows.end)
        height = heights[rows.row]
        inner = height * np.maximum(rows.share, 0.25) - np.where(height > 2, 0.7, 0.0)
        made: Boxes = np.stack(
            [left, tops[rows.row], np.maximum(right - left - 0.7, 1.0), np.maximum(inner, 1.0)], axis=1
        )
        return made

    # Painting

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """The curve, then the map."""
        live = self._view.live
        if not len(live):
            return
        theme = self.theme
        box, map_box = self._areas(area)
        x = self._x(box)
        unit, name = _unit(float(live.max()))
        y = Scale(0.0, float(live.max()) / unit * 1.12, box.bottom(), box.top())
        draw_axes(painter, theme, box, x, y, ("", name))
        self._paint_live(painter, box, map_box, x, y, unit)
        boxes = self._boxes(area)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        for number in np.unique(self._view.colors):
            painter.setBrush(self._fill(int(number)))
            painter.drawRects(self._rects.fill(boxes[self._view.colors == number]))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_reuse(painter, boxes)
        self._paint_names(painter, boxes)
        painter.setFont(theme.ui_font(8.5))
        painter.setPen(theme.muted)
        title = QRectF(map_box.left() - 60, map_box.top(), 52, 16)
        painter.drawText(title, Qt.AlignmentFlag.AlignRight, "storages")
        ticks = [value for value in x.ticks(66.0) if value < len(live)]  # what ends there is no step
        for value, text in zip(ticks, tick_texts(ticks), strict=True):
            where = QRectF(x.px(value) - 30, map_box.bottom() + 4, 60, 15)
            painter.drawText(where, Qt.AlignmentFlag.AlignHCenter, text)
        where = QRectF(map_box.left() - 60, map_box.bottom() + 4, 52, 15)
        painter.drawText(where, Qt.AlignmentFlag.AlignRight, "step")

    def _fill(self, number: int) -> QColor:
        theme = self.theme
        return soft(theme.extern_border if number < 0 else theme.group_colors[number], theme)

    def _paint_live(self, painter: QPainter, box: QRectF, map_box: QRectF, x: Scale, y: Scale, unit: float) -> None:
        theme, live = self.theme, self._view.live
        # where there are more steps than pixels, the highest of each pixel
        stride = max(1, int(2 * len(live) / max(box.width(), 1.0)))
        starts = np.arange(0, len(live), stride)
        edges, heights = steps(np.append(starts, len(live)).astype(float), np.maximum.reduceat(live, starts) / unit)
        corners = x.pixels(edges), y.pixels(heights)
        left, top = corners[0][::2], corners[1][::2]
        columns = np.stack([left, top, corners[0][1::2] - left, box.bottom() - top], axis=1)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)  # slow with many corners, and all are square
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(mix(theme.surface, theme.gpu_curve, 0.2))
        painter.drawRects(self._rects.fill(columns))
        painter.setPen(QPen(theme.gpu_curve, 1.0))
        painter.drawPolyline(polygon(*corners))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        step = int(live.argmax())
        left, right = x.px(step), x.px(step + 1)
        peak = QRectF(left, box.top(), max(right - left, 1.5), map_box.bottom() - box.top())
        painter.fillRect(peak, _faint(theme.selection, 0.2))
        text = f"peak {fmt.size(int(live.max()))}"
        painter.setFont(theme.ui_font(8.5))
        width = painter.fontMetrics().horizontalAdvance(text) + 4
        at = left - width - 4 if right + width + 8 > box.right() else right + 4
        at = at if at >= box.left() else box.right() - width
        painter.setPen(theme.text)
        painter.drawText(QRectF(at, box.top() - 18, width, 16), Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_reuse(self, painter: QPainter, boxes: Boxes) -> None:
        """From the end of a buffer to the one that takes its storage over, where there is room to see it."""
        before = self._view.rows.before
        shown = np.flatnonzero((before >= 0) & (boxes[:, 3] >= _ARROW_FROM) & (boxes[:, 2] >= _ARROW_FROM))
        if not len(shown):
            return
        here, there = boxes[shown], boxes[before[shown]]
        y = here[:, 1] + np.minimum(here[:, 3], there[:, 3]) / 2
        ends = there[:, 0] + there[:, 2]
        color = mix(self.theme.text, self.theme.surface, 0.3)
        painter.setPen(QPen(color, 1.0))
        apart = here[:, 0] - ends > 3
        lines = np.stack([ends, y, here[:, 0] - 1, y], axis=1)[apart]
        painter.drawLines(self._lines.fill(lines))
        heads = QPainterPath()
        for left, middle, height in np.stack([here[:, 0], y, here[:, 3]], axis=1).tolist():
            size = min(3.0, height / 2)
            heads.moveTo(left + 3.5, middle)
            heads.lineTo(left - 1.5, middle - size)
            heads.lineTo(left - 1.5, middle + size)
            heads.closeSubpath()
        painter.fillPath(heads, color)

    def _paint_names(self, painter: QPainter, boxes: Boxes) -> None:
        painter.setFont(self.theme.ui_font(8.0))
        painter.setPen(self.theme.text)
        metrics = painter.fontMetrics()
        for place in np.flatnonzero((boxes[:, 3] >= 12) & (boxes[:, 2] >= 40)):
            rect = QRectF(*boxes[place].tolist())
            name = self._view.rows.buffers[int(place)].node
            text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(rect.width() - 12))
            painter.drawText(rect.adjusted(8, 0, -2, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def paint_marks(self, painter: QPainter, area: QRectF) -> None:
        """Frames around the buffers of what is selected."""
        if not self._nodes:
            return
        boxes = self._boxes(area)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self.theme.selection, 2.0))
        for place, node in enumerate(self._view.rows.nodes):
            if node in self._nodes:
                painter.drawRect(QRectF(*boxes[place].tolist()).adjusted(-1, -1, 1, 1))

    def paint_hover(self, painter: QPainter, area: QRectF) -> None:
        """The buffer or the step below the mouse: its tip, and its life on the curve."""
        if self._mouse is None or not len(self._view.live):
            return
        box, map_box = self._areas(area)
        x = self._x(box)
        lines: list[str] = []
        place = self._place_at(self._mouse)
        if place >= 0:
            buffer = self._view.rows.buffers[place]
            lines = self._describe(buffer)
            life = QRectF(x.px(buffer.first_use), box.top(), 0, box.height())
            life.setRight(max(x.px(buffer.last_use + 1), life.left() + 1.5))
            painter.fillRect(life, _faint(self.theme.text, 0.12))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.theme.text, 1.2))
            painter.drawRect(QRectF(*self._boxes(area)[place].tolist()))
        elif box.contains(self._mouse):
            step = min(max(int(x.value(self._mouse.x())), 0), len(self._view.live) - 1)
            live = live_at(self._view.memory, step)
            lines = [f"Step {step}: {self._step_name(step)}", f"{fmt.size(int(self._view.live[step]))} live"]
            lines += [f"{buffer.node}  {fmt.size(buffer.bytes)}" for buffer in live[:4]]
            lines += [f"and {len(live) - 4} more"] if len(live) > 4 else []
            painter.setPen(QPen(self.theme.muted, 1.0, Qt.PenStyle.DotLine))
            at = x.px(step + 0.5)
            painter.drawLine(QPointF(at, box.top()), QPointF(at, map_box.bottom()))
        draw_tip(painter, self.theme, area, self._mouse.x(), self._mouse.y(), lines)

    # Asking

    def _place_at(self, at: QPointF) -> int:
        """The buffer below a point, the smallest of several; -1 where there is none."""
        boxes = self._boxes(self.area())
        right, below = boxes[:, 0] + boxes[:, 2] + 1, boxes[:, 1] + boxes[:, 3] + 1
        over = (boxes[:, 0] - 1 <= at.x()) & (at.x() <= right) & (boxes[:, 1] - 1 <= at.y()) & (at.y() <= below)
        near = np.flatnonzero(over)
        return int(near[np.argmin(boxes[near, 2] * boxes[near, 3])]) if len(near) else -1

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The buffer or step below the mouse."""
        self._mouse = self.place(event)
        place = self._place_at(self._mouse)
        self.setCursor(Qt.CursorShape.PointingHandCursor if place >= 0 else Qt.CursorShape.ArrowCursor)
        self.node_hovered.emit(self._view.rows.buffers[place].node if place >= 0 else "")
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a buffer."""
        place = self._place_at(self.place(event))
        if place >= 0 and event.button() == Qt.MouseButton.LeftButton:
            self.node_chosen.emit(self._view.rows.buffers[place].node)

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.node_hovered.emit("")
        self.update()


def _unit(peak: float) -> tuple[float, str]:
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if peak >= size:
            return size, name
    return 1.0, "B"


def _faint(color: QColor, alpha: float) -> QColor:
    made = QColor(color)
    made.setAlphaF(alpha)
    return made
