"""The marked part of the canvas: the scene that is shown, and what is selected, found, kept and pinned in it."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
from PySide6.QtCore import QSize
from PySide6.QtGui import QFocusEvent, QImage
from PySide6.QtWidgets import QWidget

from app.layout import GraphLayout
from app.layout.nested import NestedLayout
from app.overlays import Overlay
from compiler.report import Region
from views.canvas import export, traversal
from views.canvas.camera import Camera, opening
from views.canvas.highlights import Highlights
from views.canvas.module_scene import ModuleScene
from views.canvas.scene import NOTHING, Scene
from views.canvas.traversal import Spot
from views.canvas.view import READABLE, CanvasView
from views.canvas.voice import Voice
from views.look.theme import Theme


class MarkedView(CanvasView):
    """Shows one region's graph with marks, which are set by names of the report, and tells screen readers of them."""

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
        self._marks = marks.selecting(nodes, scene.boxes_of(nodes)).hovering(NOTHING)
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

    @property
    def spot(self) -> Spot:
        """The one selected node or box."""
        if self._marks.group >= 0:
            return Spot(box=self._marks.group)
        if self._marks.node >= 0 and self._scene is not None:
            return traversal.spot_of(self._scene, self._marks.node)
        return Spot()

    def select_nodes(self, names: AbstractSet[str]) -> None:
        """Highlights nodes, and the edges of a single one; unknown names are ignored."""
        if self._scene is None:
            return
        index = self._scene.index
        nodes = sorted(index[name] for name in names if name in index)
        box = self._scene.box_named(frozenset(names)) if len(nodes) > 1 else NOTHING
        if box >= 0:
            self._mark_box(box)
            return
        self._marks = self._marks.selecting(nodes, self._scene.boxes_of(nodes))
        self.voice.tell()
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
            self._marks = self._marks.selecting(nodes, scene.boxes_of(nodes))
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

    def go_to_kept(self) -> None:
        """Glides to what the filters leave, or to the first of it where that is far apart, unless some is in sight."""
        scene, kept = self._scene, self._marks.kept
        if scene is None or kept is None or not len(kept):
            return
        rects = scene.node_rect[kept]
        ends = rects[:, :2] + rects[:, 2:]
        left, top, right, bottom = self.view_bounds().getCoords()
        if self._is_readable and ((rects[:, :2] >= (left, top)) & (ends <= (right, bottom))).all(axis=1).any():
            return
        corner = rects[:, :2].min(axis=0)
        whole = self._fitted((*corner.tolist(), *(ends.max(axis=0) - corner).tolist()))
        if whole.scale >= READABLE * self._text_scale:
            self.center_on_all(scene.layout.names[node] for node in kept)
        else:
            self.center_on(scene.layout.names[kept[rects[:, 1].argmin()]])

    def pin_nodes(self, names: Iterable[str]) -> None:
        """Marks nodes that stay marked while the selection walks on."""
        if self._scene is not None:
            index = self._scene.index
            self._marks = self._marks.pinning(sorted(index[name] for name in names if name in index))
            self.viewport().update()

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

    def focusInEvent(self, event: QFocusEvent) -> None:
        """What is selected has the focus then."""
        super().focusInEvent(event)
        self.voice.tell_focus()

    def _mark_box(self, group: int) -> None:
        assert self._scene is not None
        self._marks = self._marks.selecting_group(group)
        self.voice.tell()
        self.viewport().update()


def make_scene(region: Region, layout: GraphLayout) -> Scene:
    """What a layout is drawn as."""
    return ModuleScene(region, layout) if isinstance(layout, NestedLayout) else Scene(region, layout)
