"""The nodes of a captured CUDA Graph, drawn from left to right; kinds by shape, the critical path strong."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app.layout.topology import TopologyLayout
from compiler.report import GraphNode, GraphNodeKind
from views.canvas.camera import Camera, fitted
from views.canvas.motion import GLIDE_MS
from views.canvas.view import CanvasView
from views.charts.chart import save_svg
from views.look import format as fmt
from views.look.theme import Theme, mix
from views.widgets.picture_menu import picture_menu

_TEXT_FROM, _SMALL_FROM = 0.32, 0.55  # scales
_READABLE = 0.7
_KINDS = {
    GraphNodeKind.KERNEL: "Kernel",
    GraphNodeKind.MEMCPY: "Copy",
    GraphNodeKind.MEMSET: "Fill",
    GraphNodeKind.HOST: "Host function",
    GraphNodeKind.CHILD_GRAPH: "Child graph",
    GraphNodeKind.EVENT_RECORD: "Record event",
    GraphNodeKind.EVENT_WAIT: "Wait for event",
    GraphNodeKind.CONDITIONAL: "Conditional",
    GraphNodeKind.MEM_ALLOC: "Allocate",
    GraphNodeKind.MEM_FREE: "Free",
    GraphNodeKind.EMPTY: "Empty",
    GraphNodeKind.OTHER: "Other",
}


def kind_title(kind: GraphNodeKind) -> str:
    """A node's kind as people read it."""
    return _KINDS[kind]


def short_name(node: GraphNode) -> str:
    """A kernel's name without namespaces, templates and parameters; other nodes by what they do."""
    if node.kind is not GraphNodeKind.KERNEL:
        return kind_title(node.kind)
    if node.unit:
        return node.unit
    name = node.name.split("(")[0].split("<")[0]
    return name.split("::")[-1].removeprefix("void ").strip() or node.name


@dataclass(frozen=True, eq=False)
class TopologyScene:
    """A graph and its layout, with what the view looks up."""

    nodes: list[GraphNode]
    layout: TopologyLayout
    colors: dict[str, QColor]  # "region/unit" -> the unit's colour
    place: dict[int, int] = field(default_factory=dict)

    @cached_property
    def critical(self) -> NDArray[np.bool_]:
        """The nodes to draw strong; none where every one is: a graph without branches would be all red."""
        found = np.array([node.critical for node in self.nodes], bool)
        return found & (not found.all())

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Of everything drawn."""
        return self.layout.bounds

    def start_x(self) -> float:
        """Where reading starts."""
        return self.layout.bounds[0]


class TopologyView(CanvasView):
    """Pans and zooms like the graph canvas."""

    node_chosen = Signal(int)  # position in the list of nodes
    node_hovered = Signal(int)  # the same, -1 for none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, theme)
        self._chosen = -1
        self._units: frozenset[str] = frozenset()
        self._hovered = -1
        self.setAccessibleName("Nodes of the CUDA Graph")

    def set_scene(self, scene: TopologyScene | None) -> None:
        """Show another graph; the first view is as tall as fits and begins at its left end."""
        self._chosen = self._hovered = -1
        self._motion.stop()
        self._show_scene(scene)  # type: ignore[arg-type]
        self._opened = False
        self._open_view()

    @property
    def chosen(self) -> int:
        """Position of the node in focus, -1 for none."""
        return self._chosen

    def choose(self, place: int, *, reveal: bool = True) -> None:
        """Put a node in focus, and into sight."""
        self._chosen = place
        if reveal and place >= 0 and self._scene is not None:
            self._go_to(place)
        self.viewport().update()

    def show_units(self, units: frozenset[str]) -> None:
        """Mark the nodes of these units, "region/unit", and go to the first where none is in focus."""
        self._units = units
        scene = self._scene
        if scene is not None and units:
            found = [i for i, node in enumerate(scene.nodes) if f"{node.region}/{node.unit}" in units and node.unit]
            if found and self._chosen not in found:
                self._chosen = found[0]
                self._go_to(found[0])
        self.viewport().update()

    def rect_in_view(self, place: int) -> QRectF:
        """A node's box in viewport pixels."""
        left, top, width, height = self._scene.layout.node_rect[place]
        x, y = self._camera.to_view(left, top)
        return QRectF(x, y, width * self._camera.scale, height * self._camera.scale)

    def _show_scene(self, scene: TopologyScene | None) -> None:  # type: ignore[override]
        self._scene = scene
        self.scene_changed.emit()
        self.viewport().update()

    def _opening(self, scene: TopologyScene) -> Camera:  # type: ignore[override]
        left, top, _, height = scene.bounds
        whole = fitted(scene.bounds, self._width, self._height, margin=20.0, zoom=self._palette.theme.zoom)
        if whole.scale >= _TEXT_FROM:
            return whole
        scale = min(max(self._height / (height + 40.0), _SMALL_FROM), 1.0) * self._palette.theme.zoom
        middle = top + height / 2
        if (height + 40.0) * scale > self._height:  # the first node may be far from the middle of a tall graph
            first = scene.layout.node_rect[scene.layout.node_rect[:, 0].argmin()]
            middle = float(first[1] + first[3] / 2)
        return Camera(left - 20 / scale, middle - self._height / 2 / scale, scale)

    def _go_to(self, place: int) -> None:
        left, top, width, height = (float(v) for v in self._scene.layout.node_rect[place])
        if self.view_bounds().contains(QRectF(left, top, width, height)) and self._camera.scale >= _SMALL_FROM:
            return
        scale = max(self._camera.scale, _READABLE * self._palette.theme.zoom)
        self._glide(Camera().centred(left + width / 2, top + height / 2, self._width, self._height, scale), GLIDE_MS)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Edges, then nodes, as far as they are in sight."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), self._palette.theme.window)
            self._paint_in_sight(painter)

    def _paint_in_sight(self, painter: QPainter) -> None:
        scene, theme = self._scene, self._palette.theme
        if scene is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(self._camera.scale, self._camera.scale)
        painter.translate(-self._camera.x, -self._camera.y)
        seen = self.view_bounds()
        self._paint_edges(painter, scene, seen, theme)
        rect = scene.layout.node_rect
        inside = (
            (rect[:, 0] < seen.right()) & (rect[:, 0] + rect[:, 2] > seen.left())
            & (rect[:, 1] < seen.bottom()) & (rect[:, 1] + rect[:, 3] > seen.top())
        )  # fmt: skip
        for place in np.flatnonzero(inside):
            self._paint_node(painter, scene, int(place), theme)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy and save what is in sight."""
        picture_menu(self, self.viewport().grab, self.save).exec(event.globalPos())

    def save(self, path: Path) -> None:
        """Write what is in sight as SVG, or as PNG where ``path`` does not end in ``.svg``.

        Raises:
            OSError: the file cannot be written.
        """
        if path.suffix.lower() == ".svg":
            size, ground = self.viewport().size(), self._palette.theme.window
            save_svg(path, size, ground, self.accessibleName(), lambda painter, area: self._paint_in_sight(painter))
        elif not self.viewport().grab().save(str(path), "PNG"):
            raise OSError(f"{path} cannot be written.")

    def _paint_edges(self, painter: QPainter, scene: TopologyScene, seen: QRectF, theme: Theme) -> None:
        layout = scene.layout
        critical = scene.critical
        pieces, edges = layout.pieces, layout.edges
        if not len(pieces):
            return
        shown = (np.maximum(pieces[:, 0], pieces[:, 2]) >= seen.left()) & (
            np.minimum(pieces[:, 0], pieces[:, 2]) <= seen.right()
        )
        strong = critical[edges[layout.edge_of, 0]] & critical[edges[layout.edge_of, 1]]
        near = np.zeros(len(pieces), bool)
        if self._chosen >= 0:
            near = (edges[layout.edge_of] == self._chosen).any(axis=1)
        for chosen, color, width in (
            (shown & ~strong & ~near, theme.edge, 1.2),
            (shown & strong & ~near, mix(theme.danger, theme.surface, 0.15), 2.6),
            (shown & near, theme.edge_highlight, 2.6),
        ):
            path = QPainterPath()
            for x0, y0, x1, y1 in pieces[chosen]:
                path.moveTo(x0, y0)
                middle = (x0 + x1) / 2
                path.cubicTo(middle, y0, middle, y1, x1, y1)
            if not path.isEmpty():
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(color, max(width, 0.8 / self._camera.scale)))
                painter.drawPath(path)

    def _paint_node(self, painter: QPainter, scene: TopologyScene, place: int, theme: Theme) -> None:
        node = scene.nodes[place]
        box = QRectF(*(float(v) for v in scene.layout.node_rect[place]))
        color = node_color(node, scene.colors, theme)
        marked = bool(node.unit) and f"{node.region}/{node.unit}" in self._units
        if place == self._chosen or marked:
            pen = QPen(theme.selection, 2.6 if place == self._chosen else 2.0)
        elif scene.critical[place]:
            pen = QPen(mix(theme.danger, theme.surface, 0.15), 1.8)
        else:
            pen = QPen(mix(color, theme.surface, 0.25), 1.2)
        fill = mix(theme.surface, color, 0.22 if place == self._hovered else 0.12)
        painter.setPen(pen)
        painter.setBrush(fill)
        painter.drawPath(outline(node.kind, box))
        if node.kind in (GraphNodeKind.CHILD_GRAPH, GraphNodeKind.CONDITIONAL):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(outline(node.kind, box.adjusted(3, 3, -3, -3)))
        if self._camera.scale < _TEXT_FROM:
            painter.fillRect(box.adjusted(4, 4, -4, -4), mix(theme.surface, color, 0.5))
            return
        self._paint_texts(painter, node, box, color, theme)

    def _paint_texts(self, painter: QPainter, node: GraphNode, box: QRectF, color: QColor, theme: Theme) -> None:
        small = box.height() < 30
        inner = box.adjusted(14 if not small else 8, 4 if not small else 0, -10 if not small else -8, 0)
        if not small:
            painter.fillRect(QRectF(box.left() + 6, box.top() + 9, 3, box.height() - 18), color)
        title = theme.ui_font()
        title.setPixelSize(11 if small else 12)
        title.setWeight(QFont.Weight.Normal if small else QFont.Weight.DemiBold)
        painter.setFont(title)
        painter.setPen(theme.muted if small else theme.text)
        name = painter.fontMetrics().elidedText(short_name(node), Qt.TextElideMode.ElideMiddle, int(inner.width()))
        line = inner if small else QRectF(inner.left(), inner.top(), inner.width(), 18)
        side = Qt.AlignmentFlag.AlignHCenter if small else Qt.AlignmentFlag.AlignLeft
        painter.drawText(line, side | Qt.AlignmentFlag.AlignVCenter, name)
        if small or self._camera.scale < _SMALL_FROM:
            return
        plain = theme.ui_font()
        plain.setPixelSize(11)
        painter.setFont(plain)
        painter.setPen(theme.muted)
        second = QRectF(inner.left(), inner.top() + 18, inner.width(), 17)
        time = fmt.microseconds(node.measured_us) if node.measured_us is not None else ""
        left = _detail(node)
        painter.drawText(second, Qt.AlignmentFlag.AlignVCenter, left)
        if time:
            painter.setPen(theme.text)
            painter.drawText(second, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, time)

    # Asking

    def place_at(self, at: QPointF) -> int:
        """The node at a view point, or -1."""
        if self._scene is None:
            return -1
        x, y = self._camera.to_scene(at.x(), at.y())
        rect = self._scene.layout.node_rect
        found = np.flatnonzero(
            (rect[:, 0] <= x) & (x <= rect[:, 0] + rect[:, 2]) & (rect[:, 1] <= y) & (y <= rect[:, 1] + rect[:, 3])
        )
        return int(found[0]) if len(found) else -1

    def _clicked(self, at: QPointF, keys: Qt.KeyboardModifier) -> None:
        self._chosen = self.place_at(at)
        self.node_chosen.emit(self._chosen)
        self.viewport().update()

    def _pointed(self, at: QPointF) -> None:
        place = self.place_at(at)
        shape = Qt.CursorShape.PointingHandCursor if place >= 0 else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)
        if place != self._hovered:
            self._hovered = place
            self.node_hovered.emit(place)
            where = self.viewport().mapToGlobal(at.toPoint())
            QToolTip.showText(where, self._tip(place), self.viewport())
            self.viewport().update()

    def _tip(self, place: int) -> str:
        if place < 0:
            return ""
        node = self._scene.nodes[place]
        name = node.name if len(node.name) < 120 else f"{node.name[:117]}…"
        lines = [f"{kind_title(node.kind)}: {name}"]
        if node.kind is GraphNodeKind.KERNEL and node.grid:
            lines.append(f"{_times(node.grid)} blocks of {_times(node.block)} threads")
        if node.measured_us is not None:
            lines.append(f"{fmt.microseconds(node.measured_us)} (measured)")
        return "\n".join(lines)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Everything."""
        self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right follow dependencies; F fits."""
        scene, key = self._scene, event.key()
        if key == Qt.Key.Key_F:
            self.fit()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_in()
        elif key == Qt.Key.Key_Minus:
            self.zoom_out()
        elif scene is not None and key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            edges, forward = scene.layout.edges, key == Qt.Key.Key_Right
            near = edges[edges[:, 0 if forward else 1] == self._chosen][:, 1 if forward else 0]
            target = int(near[0]) if len(near) else (0 if self._chosen < 0 and scene.nodes else -1)
            if target >= 0:
                self.choose(target)
                self.node_chosen.emit(target)
        else:
            super().keyPressEvent(event)


def node_color(node: GraphNode, units: dict[str, QColor], theme: Theme) -> QColor:
    """Its unit's colour for a kernel, one of its kind for anything else."""
    if node.kind is GraphNodeKind.KERNEL:
        return units.get(f"{node.region}/{node.unit}", theme.extern_border)
    if node.kind in (GraphNodeKind.MEMCPY, GraphNodeKind.MEMSET):
        return theme.accent
    if node.kind in (GraphNodeKind.MEM_ALLOC, GraphNodeKind.MEM_FREE):
        return theme.success
    if node.kind in (GraphNodeKind.HOST, GraphNodeKind.CONDITIONAL):
        return theme.warning
    return theme.muted


def outline(kind: GraphNodeKind, box: QRectF) -> QPainterPath:
    """The shape of a kind: kernels are round, copies and fills lean, events are pills, host functions have points."""
    path = QPainterPath()
    if kind in (GraphNodeKind.MEMCPY, GraphNodeKind.MEMSET):
        lean = 9.0
        path.moveTo(box.left() + lean, box.top())
        for x, y in (
            (box.right(), box.top()), (box.right() - lean, box.bottom()), (box.left(), box.bottom()),
        ):  # fmt: skip
            path.lineTo(x, y)
        path.closeSubpath()
    elif kind in (GraphNodeKind.EVENT_RECORD, GraphNodeKind.EVENT_WAIT, GraphNodeKind.EMPTY):
        path.addRoundedRect(box, box.height() / 2, box.height() / 2)
    elif kind in (GraphNodeKind.HOST, GraphNodeKind.CONDITIONAL):
        point, middle = 12.0, box.center().y()
        path.moveTo(box.left(), middle)
        for x, y in (
            (box.left() + point, box.top()), (box.right() - point, box.top()), (box.right(), middle),
            (box.right() - point, box.bottom()), (box.left() + point, box.bottom()),
        ):  # fmt: skip
            path.lineTo(x, y)
        path.closeSubpath()
    elif kind in (GraphNodeKind.MEM_ALLOC, GraphNodeKind.MEM_FREE):
        path.addRect(box)
    else:
        path.addRoundedRect(box, 7, 7)
    return path


def _detail(node: GraphNode) -> str:
    if node.kind is GraphNodeKind.KERNEL and node.grid:
        return f"{_times(node.grid)} × {_times(node.block)}"
    return fmt.size(node.bytes) if node.bytes else ""


def _times(sizes: list[int]) -> str:
    """A grid or block without the ones at its end: "4×72"."""
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(map(str, kept))
