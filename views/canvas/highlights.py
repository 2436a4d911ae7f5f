"""What is marked on top of the graph: hovered, selected, found. A plain value; each change makes a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter

from views.canvas.camera import Camera
from views.canvas.painting import Indices, ScenePainter, among
from views.canvas.scene import NOTHING


@dataclass(frozen=True)
class Highlights:
    """Indices of marked nodes and boxes."""

    hovered: int = NOTHING
    edge: int = NOTHING  # under the mouse
    hinted: tuple[int, ...] = ()  # what the mouse is over in another view
    nodes: tuple[int, ...] = ()
    boxes: tuple[int, ...] = ()  # closed ones that hide selected nodes
    group: int = NOTHING
    cone: tuple[int, ...] = ()  # what the selection depends on, or what depends on it; the rest is dimmed
    found: tuple[int, ...] = ()
    found_groups: tuple[int, ...] = ()
    searching: bool = False
    kept: Indices | None = field(default=None, compare=False)  # what the filters leave; None is everything
    pinned: tuple[int, ...] = ()
    current: int = NOTHING  # the match that was gone to

    @property
    def node(self) -> int:
        """The one selected node, or NOTHING."""
        return self.nodes[0] if len(self.nodes) == 1 else NOTHING

    def hovering(self, node: int, edge: int = NOTHING) -> Highlights:
        """With another node or edge under the mouse."""
        return replace(self, hovered=node, edge=edge)

    def hinting(self, nodes: Sequence[int]) -> Highlights:
        """With other nodes under the mouse in another view."""
        return replace(self, hinted=tuple(nodes))

    def selecting(self, nodes: Sequence[int], boxes: Sequence[int] = ()) -> Highlights:
        """With nodes selected and no group. ``boxes`` are closed ones that hide some of them."""
        kept = self.cone if set(nodes) <= set(self.cone) else ()
        return replace(self, nodes=tuple(nodes), boxes=tuple(boxes), group=NOTHING, cone=kept)

    def selecting_group(self, group: int) -> Highlights:
        """With a box selected and no nodes."""
        return replace(self, nodes=(), boxes=(), group=group, cone=())

    def showing(self, cone: Sequence[int]) -> Highlights:
        """With a cone or path shown; none for an empty one."""
        return replace(self, cone=tuple(cone))

    def matching(self, nodes: Sequence[int], groups: Sequence[int], searching: bool) -> Highlights:
        """With other search matches."""
        return replace(self, found=tuple(nodes), found_groups=tuple(groups), searching=searching, current=NOTHING)

    def keeping(self, nodes: Indices | None) -> Highlights:
        """With what the filters leave; None for everything."""
        return replace(self, kept=nodes)

    def pinning(self, nodes: Sequence[int]) -> Highlights:
        """With nodes that stay marked while the selection walks."""
        return replace(self, pinned=tuple(nodes))

    def at_match(self, node: int) -> Highlights:
        """With another match gone to."""
        return replace(self, current=node)

    def paint(self, painter: QPainter, scene: ScenePainter, camera: Camera, size: QSize) -> None:
        """Draws everything marked that is visible."""
        palette = scene.palette
        x, y = camera.to_scene(0, 0)
        window = (x, y, x + size.width() / camera.scale, y + size.height() / camera.scale)
        seen = scene.scene.node_blocks.touching(window)
        if self.kept is not None:
            painter.fillRect(QRectF(0, 0, size.width(), size.height()), palette.dim)
            scene.paint_again(painter, camera, among(seen, self.kept))
        if self.searching:
            painter.fillRect(QRectF(0, 0, size.width(), size.height()), palette.dim)
            found = among(seen, self.found)
            scene.paint_again(painter, camera, found)
            scene.paint_outlines(painter, camera, found, palette.match, 1.8)
            boxes = scene.scene.group_blocks.touching(window)
            for group in among(boxes, self.found_groups):
                scene.paint_group_outline(painter, camera, int(group), palette.match)
        if self.cone and not self.searching:
            painter.fillRect(QRectF(0, 0, size.width(), size.height()), palette.dim)
            scene.paint_cone(painter, camera, self.cone, window, palette.selection)
        for box in self.boxes:
            scene.paint_group_outline(painter, camera, box, palette.selection)
        if self.pinned:
            pinned = among(seen, self.pinned)
            scene.paint_outlines(painter, camera, pinned, palette.theme.accent, 3.0)
        if self.group >= 0:
            scene.paint_group_outline(painter, camera, self.group, palette.selection)
        if self.node >= 0:
            scene.paint_highlight(painter, camera, self.node, palette.selection)
        if self.nodes:
            chosen = among(seen, self.nodes)
            scene.paint_outlines(painter, camera, chosen, palette.selection, 2.6)
        if self.current >= 0:
            scene.paint_outlines(painter, camera, np.array([self.current]), palette.selection, 2.6)
        if self.hinted:
            hinted = among(seen, self.hinted)
            scene.paint_outlines(painter, camera, hinted, palette.highlight, 2.0)
        if self.edge >= 0:
            scene.paint_edge(painter, camera, self.edge, palette.highlight)
        if self.hovered >= 0 and self.hovered != self.node:
            scene.paint_highlight(painter, camera, self.hovered, palette.highlight)
            scene.paint_outlines(painter, camera, np.array([self.hovered]), palette.highlight, 2.0)
