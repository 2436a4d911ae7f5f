"""The graph canvas: what the mouse and the keys do over a region's graph."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QToolTip

from app.cones import between, downstream, upstream
from views.background.turns import in_a_turn
from views.canvas import tips, traversal
from views.canvas.marked_view import MarkedView
from views.canvas.module_boxes import mark_rect
from views.canvas.module_scene import ModuleScene
from views.canvas.scene import NOTHING, Hit
from views.canvas.traversal import Spot

_KEY_PAN = 90.0  # view pixels

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


class GraphCanvas(MarkedView):
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

    def _show_reached(self, reach: Callable[[list[list[int]], list[int]], set[int]]) -> None:
        """Shows what is reached from the selected nodes, and tells the others."""
        scene, marks = self._scene, self._marks
        if scene is None:
            return
        start = list(marks.nodes) or ([int(n) for n in scene.members(marks.group)] if marks.group >= 0 else [])
        found = sorted(reach(scene.reads, start)) if start else []
        if found:
            self._marks = marks.showing(found).selecting(found, scene.boxes_of(found))
            self.voice.tell()
            self.viewport().update()
            names = frozenset(scene.layout.names[node] for node in found)
            in_a_turn(self, lambda: self.nodes_clicked.emit(names))  # there may be ten thousand: this is seen first

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
        if scene is not None and node >= 0 and scene.box_of(node) >= 0:
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
