"""Where the canvas looks: a scale and the scene point at the view's left top corner, as a plain value."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_SCALE, MOST_SCALE = 0.002, 6.0

Bounds = tuple[float, float, float, float]  # left, top, width, height


@dataclass(frozen=True)
class Camera:
    """Scene pixels times ``scale`` are view pixels; (``x``, ``y``) is the scene point at the view's left top corner."""

    x: float = 0.0
    y: float = 0.0
    scale: float = 1.0

    def to_view(self, x: float, y: float) -> tuple[float, float]:
        """A scene point in view pixels."""
        return ((x - self.x) * self.scale, (y - self.y) * self.scale)

    def to_scene(self, x: float, y: float) -> tuple[float, float]:
        """A view point in scene pixels."""
        return (self.x + x / self.scale, self.y + y / self.scale)

    def panned(self, dx: float, dy: float) -> Camera:
        """Moved so that the scene follows a drag of (dx, dy) view pixels."""
        return Camera(self.x - dx / self.scale, self.y - dy / self.scale, self.scale)

    def zoomed(self, factor: float, x: float, y: float) -> Camera:
        """Zoomed with the scene point under the view point (x, y) staying there."""
        scale = min(max(self.scale * factor, LEAST_SCALE), MOST_SCALE)
        scene_x, scene_y = self.to_scene(x, y)
        return Camera(scene_x - x / scale, scene_y - y / scale, scale)

    def centred(self, x: float, y: float, width: float, height: float, scale: float | None = None) -> Camera:
        """Looking at scene point (x, y) in the middle of a view of the given size."""
        scale = self.scale if scale is None else scale
        return Camera(x - width / 2 / scale, y - height / 2 / scale, scale)

    def between(self, other: Camera, share: float) -> Camera:
        """The camera ``share`` (0..1) of the way to another.

        Scales go in equal factors and the point that both cameras see at the same view point stays there, so that an
        animated zoom about the cursor never slips.
        """
        if share >= 1.0:
            return other
        scale = math.exp(math.log(self.scale) * (1 - share) + math.log(other.scale) * share)
        if abs(other.scale / self.scale - 1) < 1e-6:
            return Camera(self.x + (other.x - self.x) * share, self.y + (other.y - self.y) * share, scale)
        # Visible extents move linearly in 1/scale; interpolating the corner by it keeps the fixed point fixed.
        progress = (1 / self.scale - 1 / scale) / (1 / self.scale - 1 / other.scale)
        return Camera(self.x + (other.x - self.x) * progress, self.y + (other.y - self.y) * progress, scale)


def fitted(bounds: Bounds, width: float, height: float, margin: float = 32.0, zoom: float = 1.0) -> Camera:
    """The camera that shows all of ``bounds`` in the middle of a view, with texts little larger than the window's.

    ``zoom``: the scale at which texts are as large as the window's.
    """
    left, top, box_width, box_height = bounds
    free_width, free_height = max(width - 2 * margin, 1.0), max(height - 2 * margin, 1.0)
    scale = min(free_width / max(box_width, 1.0), free_height / max(box_height, 1.0), 1.25 * zoom)
    scale = max(scale, LEAST_SCALE)
    return Camera().centred(left + box_width / 2, top + box_height / 2, width, height, scale)


def opening(
    bounds: Bounds, middle: float, width: float, height: float, margin: float = 32.0, zoom: float = 1.0
) -> Camera:
    """The first view of a graph: all of it where it stays readable, else its top at a readable scale.

    ``middle`` is the x of the first nodes, ``zoom`` the scale at which texts are as large as the window's.
    """
    whole = fitted(bounds, width, height, margin, zoom)
    if whole.scale >= 0.4 * zoom:
        return whole
    scale = 0.9 * zoom
    return Camera(middle - width / 2 / scale, bounds[1] - margin / scale, scale)
