"""The graph canvas: hover, select, search and keyboard over a region's graph."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QHelpEvent, QImage, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.layout import GraphLayout
from app.overlays import Overlay
from compiler.report import Region
from views.canvas import export, tips
from views.canvas.camera import Camera, fitted, opening
from views.canvas.highlights import Highlights
from views.canvas.motion import GLIDE_MS
from views.canvas.scene import NOTHING, Hit, Scene
from views.canvas.view import CanvasView
from views.theme import Theme

_KEY_PAN = 90.0  # view pixels
_READABLE = 0.65  # scale below which going to a node also zooms in
_NEAR = 1.0


class GraphCanvas(CanvasView):
    """Shows one region's graph.

    Signals carry names of the report: FX nodes, groups and extern calls.
    """

    node_clicked = Signal(str)
    group_clicked = Signal(str)
    hovered = Signal(str)  # a node's name, or "" when the mouse left it
    edge_clicked = Signal(str, str)  # producer and consumer, of two units
    background_clicked = Signal()

    def __init__(self, parent: QWidget | None = None, theme: Theme | None = None) -> None:
        super().__init__(parent, theme)
        self._matches: list[str] = []
        self._match = NOTHING
        self.setAccessibleName("Graph")
        self.setAccessibleDescription("No graph is loaded.")

    def set_region(self, region: Region, layout: GraphLayout) -> None:
        """Shows a region. The first view is the whole graph if it is readable then, else its top."""
        self._marks = Highlights()
        self._matches, self._match = [], NOTHING
        self._motion.stop()
        self._show_scene(Scene(region, layout))
        self._opened = False
        self._open_view()
        kinds = f"{len(region.groups):,} fusion groups, {len(region.extern_calls):,} extern calls"
        self.setAccessibleName(f"Graph of {region.name}")
        self.setAccessibleDescription(f"{len(region.nodes):,} nodes, {kinds}. Arrow keys follow edges.")

    def set_overlay(self, overlay: Overlay | None) -> None:
        """Colours the graph by something else; None is by the compiler's decisions."""
        if self._scene is not None:
            self._show_scene(self._scene.with_overlay(overlay))

    def clear(self) -> None:
        """Shows no graph."""
        self._marks = Highlights()
        self._matches = []
        self._show_scene(None)

    def select_nodes(self, names: set[str]) -> None:
        """Highlights nodes, and the edges of a single one; unknown names are ignored."""
        if self._scene is None:
            return
        index = self._scene.index
        nodes = sorted(index[name] for name in names if name in index)
        self._marks = self._marks.selecting(nodes)
        if len(nodes) == 1:
            self._say(tips.spoken(self._scene, nodes[0]))
        self.viewport().update()

    def hint_nodes(self, names: Iterable[str]) -> None:
        """Outlines nodes that the mouse is over in another view; unknown names are ignored."""
        if self._scene is None:
            return
        index = self._scene.index
        hinted = tuple(sorted(index[name] for name in names if name in index))
        if hinted != self._marks.hinted:
            self._marks = self._marks.hinting(hinted)
            self.viewport().update()

    def select_group(self, name: str) -> None:
        """Highlights a group, or an extern call; an unknown or empty name selects nothing."""
        scene = self._scene
        if scene is None:
            return
        if name in scene.group_index:
            self._marks = self._marks.selecting_group(scene.group_index[name])
            self._say(name)
        else:
            call, group = scene.calls.get(name), scene.groups.get(name)
            members = call.nodes if call is not None else group.nodes if group is not None else []
            self._marks = self._marks.selecting(sorted(scene.index[node] for node in members if node in scene.index))
        self.viewport().update()

    def center_on(self, name: str) -> None:
        """Glides to a node, group or extern call, and zooms in if it would be unreadable. Unknown names do nothing."""
        rect = self._scene.locate(name) if self._scene is not None else None
        if rect is None:
            return
        left, top, width, height = rect
        whole = fitted(rect, self._width, self._height)
        scale = self._camera.scale if self._camera.scale >= _READABLE else _NEAR
        goal = Camera().centred(left + width / 2, top + height / 2, self._width, self._height, min(scale, whole.scale))
        self._glide(goal, GLIDE_MS)

    def center_on_all(self, names: Iterable[str]) -> None:
        """Glides to where all of some nodes or groups are in sight, no nearer than they are read well."""
        rects = [rect for name in names if self._scene is not None and (rect := self._scene.locate(name))]
        if not rects:
            return
        left, top = min(rect[0] for rect in rects), min(rect[1] for rect in rects)
        right, bottom = max(rect[0] + rect[2] for rect in rects), max(rect[1] + rect[3] for rect in rects)
        whole = fitted((left, top, right - left, bottom - top), self._width, self._height)
        scale = min(whole.scale, self._camera.scale if self._camera.scale >= _READABLE else _NEAR)
        middle = (left + right) / 2, (top + bottom) / 2
        self._glide(Camera().centred(*middle, self._width, self._height, scale), GLIDE_MS)

    def set_search(self, text: str) -> list[str]:
        """Marks what holds ``text`` in its name or op, dims the rest, and returns the names from top to bottom."""
        if self._scene is None:
            return []
        nodes, boxes = self._scene.find(text)
        found = [(float(self._scene.node_rect[i, 1]), self._scene.layout.names[i]) for i in nodes]
        found += [(float(self._scene.group_rect[i, 1]), self._scene.layout.group_names[i]) for i in boxes]
        found.sort(key=lambda match: match[0])
        self._matches, self._match = [name for _, name in found], NOTHING
        self._marks = self._marks.matching(nodes, boxes, bool(text.strip()))
        self.viewport().update()
        return list(self._matches)

    def next_match(self, step: int = 1) -> str:
        """Goes to the next match (or the one before, with -1), around the end; returns its name, "" for none."""
        if not self._matches or self._scene is None:
            return ""
        first = self._match == NOTHING
        self._match = (0 if step > 0 else len(self._matches) - 1) if first else self._match + step
        self._match %= len(self._matches)
        name = self._matches[self._match]
        self._marks = self._marks.at_match(self._scene.index.get(name, NOTHING))
        self.center_on(name)
        self.viewport().update()
        return name

    def view_position(self, name: str) -> QPoint:
        """The middle of a node, group or extern call in viewport pixels. Raises KeyError for an unknown name."""
        rect = self._scene.locate(name) if self._scene is not None else None
        if rect is None:
            raise KeyError(name)
        x, y = self._camera.to_view(rect[0] + rect[2] / 2, rect[1] + rect[3] / 2)
        return QPoint(round(x), round(y))

    def render_image(self, size: QSize) -> QImage:
        """The present view (the first one if the canvas was never shown) at another size, with highlights."""
        camera, view = self._camera, self._view_size()
        if self._scene is not None and not self._opened:
            camera, view = opening(self._scene.bounds, self._scene.start_x(), size.width(), size.height()), size
        return export.image(self._painter, self._palette, self._marks, camera, view, size)

    def to_svg(self, path: str | Path) -> None:
        """Writes the whole graph as SVG. Raises OSError if the file cannot be written."""
        export.svg(self._painter, Path(path))

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = self._tip(self._hit(QPointF(event.pos())))
            QToolTip.showText(event.globalPos(), text, self.viewport())
            return True
        return super().viewportEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Zooms to what is under the cursor."""
        hit = self._hit(event.position())
        if self._scene is None:
            return
        if hit.node >= 0:
            self.center_on(self._scene.layout.names[hit.node])
        elif hit.group >= 0:
            rect = self._scene.locate(self._scene.layout.group_names[hit.group])
            if rect is not None:
                self._glide(fitted(rect, self._width, self._height), GLIDE_MS)

    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(NOTHING)
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shift = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        steps = {
            Qt.Key.Key_Left: (1, 0), Qt.Key.Key_Right: (-1, 0), Qt.Key.Key_Up: (0, 1), Qt.Key.Key_Down: (0, -1),
        }  # fmt: skip
        if event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier):
            super().keyPressEvent(event)
        elif key in steps and shift:
            self._pan(steps[Qt.Key(key)][0] * _KEY_PAN, steps[Qt.Key(key)][1] * _KEY_PAN)
        elif key in steps:
            self._walk(Qt.Key(key))
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            step = self._height * (0.85 if key == Qt.Key.Key_PageUp else -0.85)
            self._glide_by(0, step)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_in()
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.zoom_out()
        elif key == Qt.Key.Key_0:
            self.actual_size()
        elif key == Qt.Key.Key_F:
            self.fit()
        elif key == Qt.Key.Key_Home:
            self.go_home()
        elif key == Qt.Key.Key_Escape:
            self._choose_at(Hit())
        else:
            super().keyPressEvent(event)  # the window knows more keys: "/", Ctrl+F, ...

    def _hit(self, at: QPointF) -> Hit:
        if self._scene is None:
            return Hit()
        return self._scene.hit(*self._camera.to_scene(at.x(), at.y()), 2.0 / self._camera.scale)

    def _clicked(self, at: QPointF) -> None:
        self._choose_at(self._hit(at))

    def _choose_at(self, hit: Hit) -> None:
        scene = self._scene
        if scene is None:
            return
        if hit.stub >= 0:
            peer = int(scene.layout.stub_peer[hit.stub])
            name = scene.layout.names[peer if peer >= 0 else int(scene.layout.stub_owner[hit.stub])]
            self._choose(name)
            self.center_on(name)
        elif hit.node >= 0:
            self._choose(scene.layout.names[hit.node])
        elif hit.edge >= 0:
            ends = scene.ends(hit.edge)
            self.select_nodes(set(ends))
            self.edge_clicked.emit(*ends)
        elif hit.group >= 0:
            self.select_group(scene.layout.group_names[hit.group])
            self.group_clicked.emit(scene.layout.group_names[hit.group])
        else:
            self._marks = self._marks.selecting([])
            self.viewport().update()
            self.background_clicked.emit()

    def _choose(self, name: str) -> None:
        self.select_nodes({name})
        self.node_clicked.emit(name)

    def _pointed(self, at: QPointF) -> None:
        hit = self._hit(at)
        self._set_hovered(hit.node, hit.edge)
        busy = hit != Hit()
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if busy else Qt.CursorShape.ArrowCursor)

    def _set_hovered(self, node: int, edge: int = NOTHING) -> None:
        if (node, edge) == (self._marks.hovered, self._marks.edge):
            return
        if node != self._marks.hovered:
            self.hovered.emit(self._scene.layout.names[node] if self._scene is not None and node >= 0 else "")
        self._marks = self._marks.hovering(node, edge)
        self.viewport().update()

    def _tip(self, hit: Hit) -> str:
        scene = self._scene
        if scene is None:
            return ""
        if hit.node >= 0:
            return tips.node_tip(scene, hit.node)
        if hit.stub >= 0:
            return tips.stub_tip(scene, hit.stub)
        if hit.edge >= 0:
            return tips.edge_tip(scene, hit.edge)
        return tips.group_tip(scene, scene.layout.group_names[hit.group]) if hit.group >= 0 else ""

    def _walk(self, key: Qt.Key) -> None:
        """Moves the selection: down to a consumer, up to a producer, sideways to the neighbour in the row."""
        scene = self._scene
        if scene is None or not len(scene.nodes):
            return
        current = self._marks.node
        if current < 0:
            x, y = self._camera.to_scene(self._width / 2, self._height / 2)
            middle = scene.node_rect[:, :2] + scene.node_rect[:, 2:] / 2
            target = int(np.argmin(np.hypot(middle[:, 0] - x, middle[:, 1] - y)))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            near = scene.producers(current) if key == Qt.Key.Key_Up else scene.consumers(current)
            target = near[0] if near else NOTHING
        else:
            target = scene.beside(current, 1 if key == Qt.Key.Key_Right else -1)
        if target >= 0:
            self._choose(scene.layout.names[target])
            self._show_node(target)

    def _show_node(self, node: int) -> None:
        """Glides only if the node is not well inside the view."""
        assert self._scene is not None
        left, top, width, height = (float(v) for v in self._scene.node_rect[node])
        view = self.view_bounds()
        margin = 0.08 * view.height()
        inner = view.adjusted(margin, margin, -margin, -margin)
        if self._camera.scale < _READABLE or not inner.contains(QRectF(left, top, width, height)):
            self.center_on(self._scene.layout.names[node])

    def _say(self, text: str) -> None:
        """Tells screen readers what is selected."""
        self.setAccessibleDescription(text)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))
