"""Steps of the keyboard from one thing on the canvas to another: along edges, sideways, in and out of boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from views.canvas.module_scene import ModuleScene
from views.canvas.scene import NOTHING, Scene

_SAME_ROW = 90.0  # scene pixels


@dataclass(frozen=True)
class Spot:
    """A node, or a box; at most one is set."""

    node: int = NOTHING
    box: int = NOTHING

    @property
    def is_empty(self) -> bool:
        """Whether it is neither."""
        return self.node < 0 and self.box < 0


def spot_of(scene: Scene, node: int) -> Spot:
    """Where a node is: itself, or the closed box that hides it."""
    box = scene.box_of(node)
    return Spot(box=box) if box >= 0 else Spot(node=node)


def along(scene: Scene, spot: Spot, down: bool) -> Spot:
    """The first of what reads a node or box, or of what it reads; nothing at an end of the graph."""
    if spot.box >= 0:
        inside = {int(node) for node in scene.members(spot.box)}
        near = [n for node in sorted(inside) for n in _near(scene, node, down) if n not in inside]
    else:
        near = _near(scene, spot.node, down)
    return spot_of(scene, near[0]) if near else Spot()


def _near(scene: Scene, node: int, down: bool) -> list[int]:
    return scene.consumers(node) if down else scene.producers(node)


def beside(scene: Scene, spot: Spot, direction: int) -> Spot:
    """The nearest on about the same height to the right (direction 1) or left (-1)."""
    rects, spots = _stops(scene, spot.box)
    own = np.array(scene.group_rect[spot.box] if spot.box >= 0 else scene.node_rect[spot.node], np.float64)
    dx = (rects[:, 0] + rects[:, 2] / 2 - own[0] - own[2] / 2) * direction
    dy = np.abs(rects[:, 1] + rects[:, 3] / 2 - own[1] - own[3] / 2)
    candidates = np.flatnonzero((dx > 1.0) & (dy < max(_SAME_ROW, float(own[3]) / 2)))
    if not len(candidates):
        return Spot()
    return spots[int(candidates[np.argmin(dx[candidates] + 4.0 * dy[candidates])])]


def nearest(scene: Scene, x: float, y: float) -> Spot:
    """What is nearest to a scene point."""
    rects, spots = _stops(scene, NOTHING)
    if not spots:
        return Spot()
    middle = rects[:, :2] + rects[:, 2:] / 2
    return spots[int(np.argmin(np.hypot(middle[:, 0] - x, middle[:, 1] - y)))]


def ends(scene: Scene) -> tuple[Spot, Spot]:
    """The topmost and the lowest node or closed box."""
    rects, spots = _stops(scene, NOTHING)
    if not spots:
        return Spot(), Spot()
    return spots[int(np.argmin(rects[:, 1]))], spots[int(np.argmax(rects[:, 1] + rects[:, 3]))]


def inwards(scene: Scene, spot: Spot) -> Spot:
    """The topmost of what is drawn directly in a box."""
    if spot.box < 0:
        return Spot()
    rects, spots = _stops(scene, NOTHING)
    left, top, width, height = (float(v) for v in scene.group_rect[spot.box])
    x, y = rects[:, 0] + rects[:, 2] / 2, rects[:, 1] + rects[:, 3] / 2
    inside = np.flatnonzero((x > left) & (x < left + width) & (y > top) & (y < top + height))
    inside = [i for i in inside.tolist() if spots[i] != spot]
    return spots[min(inside, key=lambda i: (float(rects[i, 1]), float(rects[i, 0])))] if inside else Spot()


def outwards(scene: Scene, spot: Spot) -> Spot:
    """The box around a node or box."""
    if spot.node >= 0:
        return Spot(box=int(scene.layout.node_group[spot.node]))
    own = scene.group_rect[spot.box]
    x, y = float(own[0] + own[2] / 2), float(own[1] + own[3] / 2)
    around = [int(g) for g in scene.group_blocks.touching((x, y, x, y)) if scene.group_rect[g, 2] > own[2]]
    return Spot(box=min(around, key=lambda g: float(scene.group_rect[g, 2]), default=NOTHING))


def _stops(scene: Scene, box: int) -> tuple[NDArray[np.float64], list[Spot]]:
    """Everything that the arrows stop at: nodes, and boxes where nodes are hidden or boxes are walked over."""
    nodes = np.arange(len(scene.nodes))
    boxes = np.arange(len(scene.group_rect)) if box >= 0 else np.zeros(0, np.int64)
    if isinstance(scene, ModuleScene):
        nodes = nodes[scene.nested.shown]
        boxes = np.flatnonzero(scene.is_closed)
    elif box >= 0:
        nodes = nodes[:0]
    rects = np.concatenate([scene.node_rect[nodes], scene.group_rect[boxes]]).astype(np.float64)
    return rects, [*(Spot(node=int(n)) for n in nodes), *(Spot(box=int(b)) for b in boxes)]
