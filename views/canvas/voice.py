"""What screen readers are told of the graph: a list with the selected node or box as its item, which has the focus.

A graph has up to tens of thousands of nodes, of which only the selected one is an object of its own. Each selection
makes another object: readers pass over the focus of one that they have read already. An item of a tree would be a cell
of a table to readers on Linux, and they would ask for its row.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from weakref import ref

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QAccessible, QAccessibleEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget
from shiboken6 import isValid

from views.canvas import tips
from views.canvas.module_scene import ModuleScene
from views.canvas.traversal import Spot

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from views.canvas.marked_view import MarkedView

_NOT_LOADED = "No graph is loaded."


class Voice:
    """Tells of one canvas. ``item`` is the object that stands for what is selected."""

    def __init__(self, canvas: MarkedView) -> None:
        _install()
        self._canvas = canvas
        self._item: _Item | None = None
        self._known = _known_to_qt()
        canvas.setAccessibleName("Graph")
        canvas.setAccessibleDescription(_NOT_LOADED)

    def tell(self) -> None:
        """Something else is shown or selected."""
        self._forget()
        canvas, scene = self._canvas, self._canvas.scene
        canvas.setAccessibleName(f"Graph of {scene.region.name}" if scene is not None else "Graph")
        canvas.setAccessibleDescription(self._text())
        if not QAccessible.isActive():
            return
        item = self.item()
        if item is None:
            QAccessible.updateAccessibility(QAccessibleEvent(canvas, QAccessible.Event.DescriptionChanged))
            return
        QAccessible.updateAccessibility(QAccessibleEvent(item, QAccessible.Event.Selection))
        if canvas.hasFocus():
            self.tell_focus()

    def tell_focus(self) -> None:
        """The keyboard has come to the graph, or what it is at there is another."""
        if QAccessible.isActive() and (item := self.item()) is not None:
            QAccessible.updateAccessibility(QAccessibleEvent(item, QAccessible.Event.Focus))

    def item(self) -> _Item | None:
        """The object for the one node or box that is selected."""
        if self._item is None and not (spot := self._canvas.spot).is_empty:
            self._item = _Item(self._canvas, spot, self._text())
            QAccessible.registerAccessibleInterface(self._item)
            self._known.add(self._item)
        return self._item

    def _forget(self) -> None:
        if self._item is not None:
            item, self._item = self._item, None
            QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(item))
            self._known.remove(item)

    def _text(self) -> str:
        scene, marks = self._canvas.scene, self._canvas.marks
        if scene is None:
            return _NOT_LOADED
        if marks.node >= 0:
            return tips.spoken(scene, marks.node)  # also where a closed box hides it
        if marks.group >= 0:
            return tips.spoken_box(scene, marks.group)
        if marks.nodes:
            return f"{len(marks.nodes):,} nodes"
        region = scene.region
        kinds = f"{len(region.groups):,} fusion groups, {len(region.extern_calls):,} extern calls"
        return f"{len(region.nodes):,} nodes, {kinds}. Arrow keys follow edges."


class _Item(QAccessibleInterface):
    """A node or a box."""

    def __init__(self, canvas: MarkedView, spot: Spot, text: str) -> None:
        super().__init__()
        self._find = ref(canvas)
        self._spot = spot
        self._name, _, self._description = text.partition(", ")

    def isValid(self) -> bool:
        return self._canvas is not None

    @property
    def _canvas(self) -> MarkedView | None:
        """None once it is gone, or shows nothing."""
        canvas = self._find()
        return canvas if canvas is not None and isValid(canvas) and canvas.scene is not None else None

    def object(self) -> QObject | None:
        return None

    def parent(self) -> QAccessibleInterface | None:
        canvas = self._canvas
        return QAccessible.queryAccessibleInterface(canvas) if canvas is not None else None

    def child(self, index: int) -> QAccessibleInterface | None:
        return None

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        return None

    def text(self, kind: QAccessible.Text) -> str:
        texts = {QAccessible.Text.Name: self._name, QAccessible.Text.Description: self._description}
        return texts.get(kind, "")

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Names are the report's."""

    def rect(self) -> QRect:
        """On the screen."""
        canvas, spot = self._canvas, self._spot
        if canvas is None or canvas.scene is None:
            return QRect()
        rects = canvas.scene.group_rect[spot.box] if spot.box >= 0 else canvas.scene.node_rect[spot.node]
        left, top, width, height = (float(v) for v in rects)
        to_view, viewport = canvas.camera.to_view, canvas.viewport()
        place = QRectF(QPointF(*to_view(left, top)), QPointF(*to_view(left + width, top + height)))
        return place.toRect().translated(viewport.mapToGlobal(viewport.rect().topLeft()))

    def role(self) -> QAccessible.Role:
        return QAccessible.Role.ListItem

    def state(self) -> QAccessible.State:
        """Selected, focused with the canvas; a box of a hierarchy is expanded or collapsed."""
        state = QAccessible.State()
        canvas = self._canvas
        if canvas is None:
            state.invalid = 1
            return state
        state.selectable = state.selected = state.focusable = 1
        state.focused = int(canvas.hasFocus())
        scene = canvas.scene
        if isinstance(scene, ModuleScene) and self._spot.box >= 0:
            is_closed = bool(scene.is_closed[self._spot.box])
            state.expandable, state.collapsed, state.expanded = 1, int(is_closed), int(not is_closed)
        return state


class _List(QAccessibleWidget):
    """The canvas, whose widgets (overview, legend) come before the item."""

    def __init__(self, canvas: MarkedView) -> None:
        super().__init__(canvas, QAccessible.Role.List)

    def childCount(self) -> int:
        return super().childCount() + (self._item is not None)

    def child(self, index: int) -> QAccessibleInterface | None:
        return self._item if index == super().childCount() else super().child(index)

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return super().childCount() if child is self._item and child is not None else super().indexOfChild(child)

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        item = self._item
        return item if item is not None and item.rect().contains(x, y) else super().childAt(x, y)

    def focusChild(self) -> QAccessibleInterface | None:
        return (self._item if self.widget().hasFocus() else None) or super().focusChild()

    @property
    def _item(self) -> _Item | None:
        canvas: MarkedView = self.widget()
        return canvas.voice.item()


@cache
def _known_to_qt() -> set[QAccessibleInterface]:
    """What Qt has a pointer to: no item must go before it is taken from Qt, and no list before Qt does, at the end too.

    They hold their canvas weakly, for Qt never tells that it has let one go.
    """
    return set()


@cache
def _install() -> None:
    """Once a process; Qt keeps the function for good."""
    from views.canvas.marked_view import MarkedView

    known = _known_to_qt()

    def list_of(key: str, widget: QObject) -> _List | None:
        if not isinstance(widget, MarkedView):
            return None
        made = _List(widget)
        known.add(made)
        return made

    QAccessible.installFactory(list_of)
