"""The graph canvas: hover, select, search and keyboard over a region's graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QHelpEvent, QImage, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.cones import between, downstream, upstream
from app.layout import GraphLayout
from app.layout.nested import NestedLayout
from app.overlays import Overlay
from compiler.report import Region
from views.canvas import export, tips, traversal
from views.canvas.camera import Camera, opening
from views.canvas.highlights import Highlights
from views.canvas.module_boxes import mark_rect
from views.canvas.module_scene import ModuleScene
from views.canvas.scene import NOTHING, Hit, Scene
from views.canvas.traversal import Spot
from views.canvas.view import CanvasView
from views.canvas.voice import Voice
from views.look.theme import Theme

_KEY_PAN = 90.0  # view pixels
_READABLE = 0.65  # share of the window's size of texts below which going to a node also zooms in
_NEAR = 1.0


KEYS = (
    ("Arrows", "Along an edge, or to the neighbour in the row"),
    ("Enter, Backspace", "Into a box (a closed one opens), and out to the box around"),
    ("Space", "Open or close a box; with Shift all modules of a stack"),
    ("Home, End", "The first and the last node"),
    ("U, D", "All that the selection depends on, all that depends on it"),
    ("Shift+P", "The paths between two nodes; Ctrl+click selects a second one"),
    ("M", "Group by modules, or by fusion groups"),
    ("Ctrl+C", "Copy the name of what is selected"),
    ("[, ]", "Open, close all boxes"),
    ("+, -, 0, F", "Zoom, actual size, fit"),
)


class GraphCanvas(CanvasView):
    """Shows one region's graph.

    Signals carry names of the report: FX nodes, groups and extern calls.
    """

    node_clicked = Signal(str)
    group_clicked = Signal(str)
    hovered = Signal(str)  # a node's name, or "" when the mouse left it
    edge_clicked = Signal(str, str)  # producer and consumer, of two units
    nodes_clicked = Signal(object)  # frozenset of several nodes: a module, a cone, a pair
    reveal_requested = Signal(str)  # a node that closed boxes hide
    box_toggled = Signal(str, bool)  # a module's key, and whether all of a stack is meant
    background_clicked = Signal()
    menu_wanted = Signal(QPoint)  # where on the screen

    def __init__(self, parent: QWidget | None = None, theme: Theme | None = None) -> None:
        super().__init__(parent, theme)
        self._matches: list[str] = []
        self._match = NOTHING
        self.voice = Voice(self)

    def set_region(self, region: Region, layout: GraphLayout) -> None:
        """Shows a region. The first view is the whole graph if it is readable then, else its top."""
        self.set_scene(make_scene(region, layout))

    def set_scene(self, scene: Scene) -> None:
        """Shows another graph, from its first view."""
        self._marks = Highlights()
        self._matches, self._match = [], NOTHING
        self._motion.stop()
        self._show_scene(scene)
        self._opened = False
        self._open_view()
        self.voice.tell()

    def exchange_scene(self, scene: Scene, anchor: str = "") -> None:
        """Shows the same region laid out otherwise, with the same things marked.

        ``anchor`` is a node or box that stays where it is on screen; else the view stays.
        """
        before = self._scene
        if before is None:
            return
        camera = self._motion.goal or self._camera
        self._motion.stop()
        old = before.locate(anchor) if anchor else None
        marks, group = self._marks, before.layout.group_names[self._marks.group] if self._marks.group >= 0 else ""
        self._show_scene(scene)
        nodes = marks.nodes
        self._marks = marks.selecting(nodes, _boxes_of(scene, nodes)).hovering(NOTHING)
        if group in scene.group_index:
            self._marks = self._marks.selecting_group(scene.group_index[group])
        new = scene.locate(anchor) if anchor else None
        if old is not None and new is not None:
            # the left top corner, which is where a box is opened and closed
            x, y = camera.to_view(old[0], old[1])
            camera = Camera(new[0] - x / camera.scale, new[1] - y / camera.scale, camera.scale)
        self._apply_camera(camera, False)
        self.voice.tell()

    def set_overlay(self, overlay: Overlay | None) -> None:
        """Colours the graph by something else; None is by the compiler's decisions."""
        if self._scene is not None:
            self._show_scene(self._scene.with_overlay(overlay))

    def clear(self, why: str) -> None:
        """Shows no graph, but ``why`` there is none."""
        self._without_scene = why
        self._marks = Highlights()
        self._matches = []
        self._show_scene(None)
        self.voice.tell()

    def select_nodes(self, names: set[str]) -> None:
        """Highlights nodes, and the edges of a single one; unknown names are ignored."""
        if self._scene is None:
            return
        index = self._scene.index
        nodes = sorted(index[name] for name in names if name in index)
        box = self._scene.box_named(frozenset(names)) if isinstance(self._scene, ModuleScene) else NOTHING
        if len(nodes) > 1 and box >= 0:
            self._mark_box(box)
            return
        self._marks = self._marks.selecting(nodes, _boxes_of(self._scene, nodes))
        self.voice.tell()
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

    def keep_nodes(self, names: Iterable[str] | None) -> None:
        """Dims every node but these, as the filters say; None dims none."""
        if self._scene is not None:
            index = self._scene.index
            kept = None if names is None else np.array(sorted(index[n] for n in names if n in index), np.int64)
            self._marks = self._marks.keeping(kept)
            self.viewport().update()

    def pin_nodes(self, names: Iterable[str]) -> None:
        """Marks nodes that stay marked while the selection walks on."""
        if self._scene is not None:
            index = self._scene.index
            self._marks = self._marks.pinning(sorted(index[name] for name in names if name in index))
            self.viewport().update()

    def select_group(self, name: str) -> None:
        """Highlights a group, or an extern call; an unknown or empty name selects nothing."""
        scene = self._scene
        if scene is None:
            return
        if name in scene.group_index:
            self._mark_box(scene.group_index[name])
        else:
            call, group = scene.calls.get(name), scene.groups.get(name)
            members = call.nodes if call is not None else group.nodes if group is not None else []
            nodes = sorted(scene.index[node] for node in members if node in scene.index)
            self._marks = self._marks.selecting(nodes, _boxes_of(scene, nodes))
            self.voice.tell()
        self.viewport().update()

    @property
    def marks(self) -> Highlights:
        """What is marked."""
        return self._marks

    @property
    def selected(self) -> list[str]:
        """The names of the selected nodes, or of the selected box."""
        scene, marks = self._scene, self._marks
        if scene is None:
            return []
        if marks.group >= 0:
            return [scene.layout.group_names[marks.group]]
        return [scene.layout.names[node] for node in marks.nodes]

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By the mouse it is about what lies under that, by the keyboard about what is selected."""
        hit = self._hit(QPointF(event.pos())) if event.reason() == QContextMenuEvent.Reason.Mouse else Hit()
        if hit.node >= 0 and hit.node not in self._marks.nodes:
            self._choose_at(Hit(node=hit.node))
        elif hit.node < 0 and hit.group not in (NOTHING, self._marks.group):
            self._choose_box(hit.group)
        self.menu_wanted.emit(event.globalPos())

    def show_cone(self, down: bool) -> None:
        """Selects all that the selected nodes depend on, or (``down``) all that depends on them."""
        self._show_reached(lambda reads, nodes: (downstream if down else upstream)(reads, nodes))

    def show_path(self) -> None:
        """Selects what lies on any path between the two selected nodes."""
        self._show_reached(lambda reads, nodes: between(reads, *nodes) if len(nodes) == 2 else set())

    def center_on(self, name: str) -> None:
        """Glides to a node, group or extern call, and zooms in if it would be unreadable. Unknown names do nothing."""
        rect = self._scene.locate(name) if self._scene is not None else None
        if rect is None:
            return
        left, top, width, height = rect
        whole = self._fitted(rect)
        scale = self._camera.scale if self._is_readable else _NEAR * self._text_scale
        goal = Camera().centred(left + width / 2, top + height / 2, self._width, self._height, min(scale, whole.scale))
        self._jump(goal)

    def center_on_all(self, names: Iterable[str]) -> None:
        """Glides to where all of some nodes or groups are in sight, no nearer than they are read well."""
        if self._scene is None or not len(rects := self._scene.rects_of(names)):
            return
        left, top = rects[:, :2].min(axis=0).tolist()
        right, bottom = (rects[:, :2] + rects[:, 2:]).max(axis=0).tolist()
        whole = self._fitted((left, top, right - left, bottom - top))
        scale = min(whole.scale, self._camera.scale if self._is_readable else _NEAR * self._text_scale)
        middle = (left + right) / 2, (top + bottom) / 2
        self._jump(Camera().centred(*middle, self._width, self._height, scale))

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
            bounds, start, zoom = self._scene.bounds, self._scene.start_x(), self._text_scale
            camera, view = opening(bounds, start, size.width(), size.height(), zoom=zoom), size
        return export.image(self._painter, self._palette, self._marks, camera, view, size)

    def to_svg(self, path: str | Path) -> None:
        """Writes the whole graph as SVG. Raises OSError if the file cannot be written."""
        export.svg_writer(self._scene, self._palette.theme, Path(path))()

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
        elif hit.group >= 0 and self._scene.opens_boxes:
            self._toggle(hit.group, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        elif hit.group >= 0:
            rect = self._scene.locate(self._scene.layout.group_names[hit.group])
            if rect is not None:
                self._jump(self._fitted(rect))

    def focusInEvent(self, event: QFocusEvent) -> None:
        """What is selected has the focus then."""
        super().focusInEvent(event)
        self.voice.tell_focus()

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
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._go_to_end(key == Qt.Key.Key_End)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._go_in(shift)
        elif key == Qt.Key.Key_Backspace:
            self._go_out()
        elif key == Qt.Key.Key_Space and self._marks.group >= 0:
            self._toggle(self._marks.group, shift)
        elif key in (Qt.Key.Key_U, Qt.Key.Key_D):
            self.show_cone(key == Qt.Key.Key_D)
        elif key == Qt.Key.Key_P and shift:
            self.show_path()
        elif key == Qt.Key.Key_Escape:
            self._choose_at(Hit())
        else:
            super().keyPressEvent(event)  # the window knows more keys: "/", Ctrl+F, ...

    def _hit(self, at: QPointF) -> Hit:
        if self._scene is None:
            return Hit()
        return self._scene.hit(*self._camera.to_scene(at.x(), at.y()), 2.0 / self._camera.scale)

    def _clicked(self, at: QPointF, keys: Qt.KeyboardModifier) -> None:
        hit = self._hit(at)
        scene = self._scene
        if scene is not None and hit.group >= 0 and self._is_mark(hit.group, at):
            self._toggle(hit.group, bool(keys & Qt.KeyboardModifier.ShiftModifier))
        elif scene is not None and hit.node >= 0 and keys & Qt.KeyboardModifier.ControlModifier:
            chosen = set(self._marks.nodes) ^ {hit.node}
            names = frozenset(scene.layout.names[node] for node in chosen)
            self.select_nodes(set(names))
            self.nodes_clicked.emit(names)
        else:
            self._choose_at(hit)

    def _is_mark(self, group: int, at: QPointF) -> bool:
        scene = self._scene
        if not isinstance(scene, ModuleScene):
            return False
        mark = mark_rect(scene.boxes[group], QRectF(*(float(v) for v in scene.group_rect[group])))
        return mark.contains(QPointF(*self._camera.to_scene(at.x(), at.y())))

    def _toggle(self, group: int, whole_stack: bool) -> None:
        if self._scene is not None and self._scene.opens_boxes:
            self.box_toggled.emit(self._scene.layout.group_names[group], whole_stack)

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
            self._choose_box(hit.group)
        else:
            self._marks = self._marks.selecting([]).showing(())
            self.voice.tell()
            self.viewport().update()
            self.background_clicked.emit()

    def _choose(self, name: str) -> None:
        self.select_nodes({name})
        self.node_clicked.emit(name)

    def _choose_box(self, group: int) -> None:
        scene = self._scene
        assert scene is not None
        self._mark_box(group)
        name = scene.layout.group_names[group]
        if isinstance(scene, ModuleScene) and name not in scene.groups and name not in scene.calls:
            self.nodes_clicked.emit(frozenset(scene.layout.names[node] for node in scene.boxes[group].members))
        else:
            self.group_clicked.emit(name)

    def _mark_box(self, group: int) -> None:
        assert self._scene is not None
        self._marks = self._marks.selecting_group(group)
        self.voice.tell()
        self.viewport().update()

    def _show_reached(self, reach: Callable[[list[list[int]], list[int]], set[int]]) -> None:
        """Shows what is reached from the selected nodes, and tells the others."""
        scene, marks = self._scene, self._marks
        if scene is None:
            return
        start = list(marks.nodes) or ([int(n) for n in scene.members(marks.group)] if marks.group >= 0 else [])
        found = sorted(reach(scene.reads, start)) if start else []
        if found:
            self._marks = marks.showing(found).selecting(found, _boxes_of(scene, found))
            self.nodes_clicked.emit(frozenset(scene.layout.names[node] for node in found))
            self.voice.tell()
            self.viewport().update()

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
        scene, spot = self._scene, self.spot
        if scene is None or not len(scene.nodes):
            return
        if spot.is_empty:
            self._go(traversal.nearest(scene, *self._camera.to_scene(self._width / 2, self._height / 2)))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._go(traversal.along(scene, spot, key == Qt.Key.Key_Down))
        else:
            self._go(traversal.beside(scene, spot, 1 if key == Qt.Key.Key_Right else -1))

    def _go_to_end(self, last: bool) -> None:
        if self._scene is None:
            return
        self._go(traversal.ends(self._scene)[last])
        if not last:
            self.go_home()

    def _go_in(self, whole_stack: bool) -> None:
        """Opens the selected box, or what hides the selected node; goes to what is first in an open one."""
        scene, group, node = self._scene, self._marks.group, self._marks.node
        if isinstance(scene, ModuleScene) and node >= 0 and scene.box_of(node) >= 0:
            self.reveal_requested.emit(scene.layout.names[node])
        if scene is None or group < 0:
            return
        if isinstance(scene, ModuleScene) and scene.is_closed[group]:
            self._toggle(group, whole_stack)
        else:
            self._go(traversal.inwards(scene, self.spot))

    def _go_out(self) -> None:
        """Goes to the box around the selection."""
        if self._scene is not None and not self.spot.is_empty:
            self._go(traversal.outwards(self._scene, self.spot))

    @property
    def spot(self) -> Spot:
        """The one selected node or box."""
        if self._marks.group >= 0:
            return Spot(box=self._marks.group)
        if self._marks.node >= 0 and self._scene is not None:
            return traversal.spot_of(self._scene, self._marks.node)
        return Spot()

    def _go(self, spot: Spot) -> None:
        scene = self._scene
        if scene is None or spot.is_empty:
            return
        if spot.box >= 0:
            self._choose_box(spot.box)
            self._bring_into_view(scene.layout.group_names[spot.box], scene.group_rect[spot.box])
        else:
            self._choose(scene.layout.names[spot.node])
            self._bring_into_view(scene.layout.names[spot.node], scene.node_rect[spot.node])

    def _bring_into_view(self, name: str, rect: NDArray[np.float32]) -> None:
        """Glides only if something is not well inside the view."""
        left, top, width, height = (float(v) for v in rect)
        view = self.view_bounds()
        margin = 0.08 * view.height()
        inner = view.adjusted(margin, margin, -margin, -margin)
        if not self._is_readable or not inner.contains(QRectF(left, top, width, height)):
            self.center_on(name)

    @property
    def _is_readable(self) -> bool:
        return self._camera.scale >= _READABLE * self._text_scale

    def shows(self, names: Iterable[str]) -> bool:
        """Whether all of some nodes or boxes are in sight and large enough to read."""
        if self._scene is None or not self._is_readable:
            return False
        rects, (left, top, right, bottom) = self._scene.rects_of(names), self.view_bounds().getCoords()
        ends = rects[:, :2] + rects[:, 2:]
        return bool((rects[:, :2] >= (left, top)).all() and (ends <= (right, bottom)).all())


def make_scene(region: Region, layout: GraphLayout) -> Scene:
    """What a layout is drawn as."""
    return ModuleScene(region, layout) if isinstance(layout, NestedLayout) else Scene(region, layout)


def _boxes_of(scene: Scene, nodes: Iterable[int]) -> list[int]:
    return scene.boxes_of(list(nodes)) if isinstance(scene, ModuleScene) else []
