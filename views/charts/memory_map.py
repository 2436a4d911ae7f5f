"""Memory over the schedule: live bytes above; below, each storage as a row and the buffers that live in it in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPainterPath, QPen, QPolygonF

from compiler.report import BufferPlan, Memory
from views import format as fmt
from views.charts.chart import LEFT, Chart, draw_axes, draw_tip
from views.charts.scale import Scale
from views.theme import Theme, mix

_LIVE_SHARE = 0.42  # of the height
_LEAST_ROW = 3.0
_HEAD = 26.0


@dataclass(frozen=True)
class Storage:
    """One allocation and the buffers that use it one after another."""

    bytes: int
    buffers: list[BufferPlan]


def live_bytes(memory: Memory) -> list[int]:
    """Bytes live at each step: every buffer from its first use to its last, both included."""
    if not memory.buffers:
        return []
    changes = [0] * (max(buffer.last_use for buffer in memory.buffers) + 2)
    for buffer in memory.buffers:
        changes[buffer.first_use] += buffer.bytes
        changes[buffer.last_use + 1] -= buffer.bytes
    live: list[int] = []
    total = 0
    for change in changes[:-1]:
        total += change
        live.append(total)
    return live


def storages(memory: Memory) -> list[Storage]:
    """The allocations that hold anything, the largest first; a buffer that reuses another's storage shares its row."""
    home: dict[str, Storage] = {}
    made: list[Storage] = []
    for buffer in sorted((b for b in memory.buffers if b.bytes), key=lambda buffer: buffer.first_use):
        storage = home.get(buffer.reuses)
        if storage is None:
            storage = Storage(buffer.bytes, [])
            made.append(storage)
        storage.buffers.append(buffer)
        home[buffer.name] = storage
    return sorted(made, key=lambda storage: -storage.bytes)


def live_at(memory: Memory, step: int) -> list[BufferPlan]:
    """Buffers that live at a step, the largest first."""
    found = [buffer for buffer in memory.buffers if buffer.first_use <= step <= buffer.last_use]
    return sorted(found, key=lambda buffer: -buffer.bytes)


class MemoryMap(Chart):
    """Hovering a buffer tells its kernels, a click chooses it."""

    node_chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("Memory over the schedule", theme)
        self._memory = Memory()
        self._live: list[int] = []
        self._storages: list[Storage] = []
        self._color: Callable[[BufferPlan], QColor] = lambda buffer: theme.gpu_curve
        self._describe: Callable[[BufferPlan], list[str]] = lambda buffer: []
        self._step_name: Callable[[int], str] = lambda step: ""
        self._nodes: frozenset[str] = frozenset()
        self._mouse: QPointF | None = None
        self._fills: dict[int, QColor] = {}
        self.setMinimumHeight(120)

    def set_memory(
        self,
        memory: Memory,
        color: Callable[[BufferPlan], QColor],
        describe: Callable[[BufferPlan], list[str]],
        step_name: Callable[[int], str],
    ) -> None:
        """Show another plan; the functions say a buffer's colour, the lines of its tip, and what a step runs."""
        self._memory, self._live, self._storages = memory, live_bytes(memory), storages(memory)
        self._color, self._describe, self._step_name = color, describe, step_name
        self.update()

    def show_nodes(self, nodes: frozenset[str]) -> None:
        """Mark the buffers of these FX nodes."""
        self._nodes = nodes
        self.update()

    def buffer_box(self, name: str) -> QRectF:
        """Where a buffer is drawn. Raises KeyError for an unknown one."""
        return next(box for buffer, box in self._boxes(QRectF(self.rect())) if buffer.name == name)

    def _areas(self, area: QRectF) -> tuple[QRectF, QRectF]:
        height = (area.height() - _HEAD - 28) * _LIVE_SHARE
        left, width = area.left() + LEFT + 10, area.width() - LEFT - 20
        top = QRectF(left, area.top() + _HEAD, width, height)
        return top, QRectF(left, top.bottom() + 8, width, area.bottom() - top.bottom() - 28)

    def _x(self, box: QRectF) -> Scale:
        return Scale(0.0, float(max(len(self._live), 1)), box.left(), box.right())

    def _boxes(self, area: QRectF) -> list[tuple[BufferPlan, QRectF]]:
        _, box = self._areas(area)
        x = self._x(box)
        count, total = len(self._storages), sum(storage.bytes for storage in self._storages)
        if not total:
            return []
        least = min(_LEAST_ROW, box.height() / count)
        spare = max(box.height() - least * count, 0.0)
        made, top = [], box.top()
        for storage in self._storages:
            height = least + spare * storage.bytes / total
            for buffer in storage.buffers:
                left, right = x.px(buffer.first_use), x.px(buffer.last_use + 1)
                inner = height * max(buffer.bytes / storage.bytes, 0.25)
                gap = 0.7 if height > 2 else 0.0
                made.append((buffer, QRectF(left, top, max(right - left - 0.7, 1.0), max(inner - gap, 1.0))))
            top += height
        return made

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        """The curve, then the map."""
        if not self._live:
            return
        theme = self.theme
        box, map_box = self._areas(area)
        x = self._x(box)
        peak = max(self._live)
        unit, name = _unit(peak)
        y = Scale(0.0, peak / unit * 1.12, box.bottom(), box.top())
        draw_axes(painter, theme, box, x, y, ("", name))
        self._paint_live(painter, box, x, y, unit)
        boxes = self._boxes(area)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for buffer, rect in boxes:
            painter.fillRect(rect, self._fill(buffer))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_reuse(painter, boxes)
        self._paint_names(painter, boxes)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for buffer, rect in boxes:
            if buffer.node in self._nodes:
                painter.setPen(QPen(theme.selection, 2.0))
                painter.drawRect(rect.adjusted(-1, -1, 1, 1))
        painter.setFont(theme.ui_font(8.5))
        painter.setPen(theme.muted)
        title = QRectF(map_box.left() - 60, map_box.top(), 52, 16)
        painter.drawText(title, Qt.AlignmentFlag.AlignRight, "storages")
        for value in x.ticks(66.0):
            where = QRectF(x.px(value) - 30, map_box.bottom() + 4, 60, 15)
            painter.drawText(where, Qt.AlignmentFlag.AlignHCenter, f"{value:g}")
        where = QRectF(map_box.left() - 60, map_box.bottom() + 4, 52, 15)
        painter.drawText(where, Qt.AlignmentFlag.AlignRight, "step")
        self._paint_tip(painter, area, box, map_box, x)

    def _fill(self, buffer: BufferPlan) -> QColor:
        color = self._color(buffer)
        key = color.rgb()
        if key not in self._fills:
            self._fills[key] = mix(self.theme.surface, color, 0.62)
        return self._fills[key]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._fills = {}
        super().set_theme(theme)

    def _paint_live(self, painter: QPainter, box: QRectF, x: Scale, y: Scale, unit: float) -> None:
        theme = self.theme
        points = [QPointF(x.px(0), y.px(0))]
        # where there are more steps than pixels, the highest of each pixel
        stride = max(1, int(2 * len(self._live) / max(box.width(), 1.0)))
        for step in range(0, len(self._live), stride):
            value, end = max(self._live[step : step + stride]), min(step + stride, len(self._live))
            points += [QPointF(x.px(at), y.px(value / unit)) for at in (step, end)]
        points.append(QPointF(x.px(len(self._live)), y.px(0)))
        fill = QColor(theme.gpu_curve)
        fill.setAlphaF(0.2)
        painter.setBrush(fill)
        painter.setPen(QPen(theme.gpu_curve, 1.0))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)  # slow with many corners, and all are square
        painter.drawPolygon(QPolygonF(points))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        step = self._live.index(max(self._live))
        left, right = x.px(step), x.px(step + 1)
        painter.fillRect(QRectF(left, box.top(), max(right - left, 1.5), box.height()), _faint(theme.selection))
        text = f"peak {fmt.size(max(self._live))}"
        painter.setFont(theme.ui_font(8.5))
        width = painter.fontMetrics().horizontalAdvance(text) + 4
        at = left - width - 4 if right + width + 8 > box.right() else right + 4
        painter.setPen(theme.selection)
        painter.drawText(QRectF(at, box.top() - 18, width, 16), Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_reuse(self, painter: QPainter, boxes: list[tuple[BufferPlan, QRectF]]) -> None:
        """From the end of a buffer to the one that takes its storage over."""
        by_name = {buffer.name: rect for buffer, rect in boxes}
        color = mix(self.theme.text, self.theme.surface, 0.3)
        for buffer, rect in boxes:
            before = by_name.get(buffer.reuses)
            if before is None or rect.height() < 4:
                continue
            y = rect.top() + min(rect.height(), before.height()) / 2
            painter.setPen(QPen(color, 1.0))
            if rect.left() - before.right() > 3:
                painter.drawLine(QPointF(before.right(), y), QPointF(rect.left() - 1, y))
            head = QPainterPath(QPointF(rect.left() + 3.5, y))
            size = min(3.0, rect.height() / 2)
            head.lineTo(rect.left() - 1.5, y - size)
            head.lineTo(rect.left() - 1.5, y + size)
            head.closeSubpath()
            painter.fillPath(head, color)

    def _paint_names(self, painter: QPainter, boxes: list[tuple[BufferPlan, QRectF]]) -> None:
        painter.setFont(self.theme.ui_font(8.0))
        painter.setPen(self.theme.text)
        metrics = painter.fontMetrics()
        for buffer, rect in boxes:
            if rect.height() >= 12 and rect.width() >= 40:
                text = metrics.elidedText(buffer.node, Qt.TextElideMode.ElideRight, int(rect.width() - 12))
                painter.drawText(rect.adjusted(8, 0, -2, 0), Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_tip(self, painter: QPainter, area: QRectF, box: QRectF, map_box: QRectF, x: Scale) -> None:
        if self._mouse is None:
            return
        lines: list[str] = []
        found = self._buffer_at(self._mouse)
        if found is not None:
            lines = self._describe(found)
        elif box.contains(self._mouse):
            step = min(max(int(x.value(self._mouse.x())), 0), len(self._live) - 1)
            live = live_at(self._memory, step)
            lines = [f"Step {step}: {self._step_name(step)}", f"{fmt.size(self._live[step])} live"]
            lines += [f"{buffer.node}  {fmt.size(buffer.bytes)}" for buffer in live[:4]]
            lines += [f"and {len(live) - 4} more"] if len(live) > 4 else []
            painter.setPen(QPen(self.theme.muted, 1.0, Qt.PenStyle.DotLine))
            at = x.px(step + 0.5)
            painter.drawLine(QPointF(at, box.top()), QPointF(at, map_box.bottom()))
        draw_tip(painter, self.theme, area, self._mouse.x(), self._mouse.y(), lines)

    def _buffer_at(self, at: QPointF) -> BufferPlan | None:
        near = [(b, r) for b, r in self._boxes(QRectF(self.rect())) if r.adjusted(-1, -1, 1, 1).contains(at)]
        return min(near, key=lambda pair: pair[1].width() * pair[1].height())[0] if near else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The buffer or step below the mouse."""
        self._mouse = event.position()
        pointing = self._buffer_at(self._mouse) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if pointing else Qt.CursorShape.ArrowCursor)
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a buffer."""
        found = self._buffer_at(event.position())
        if found is not None and event.button() == Qt.MouseButton.LeftButton:
            self.node_chosen.emit(found.node)

    def leaveEvent(self, event: object) -> None:
        """No tip without a mouse."""
        self._mouse = None
        self.update()


def _unit(peak: float) -> tuple[float, str]:
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if peak >= size:
            return size, name
    return 1.0, "B"


def _faint(color: QColor) -> QColor:
    made = QColor(color)
    made.setAlphaF(0.28)
    return made
