"""Pieces of edges as line segments: S-curves with vertical ends, sampled all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def _weights(steps: int) -> tuple[Floats, Floats]:
    """How far along x and y an S-curve is at each of ``steps`` + 1 samples (a cubic with vertical tangents)."""
    t = np.linspace(0.0, 1.0, steps + 1, dtype=np.float32)
    across = 3 * t**2 - 2 * t**3
    down = 1.5 * t * (1 - t) ** 2 + 1.5 * t**2 * (1 - t) + t**3
    return across, down


def segments(pieces: Floats, steps: int) -> Floats:
    """Segments (n, 4) of the pieces (p, 4); straight pieces stay single segments."""
    straight = np.abs(pieces[:, 2] - pieces[:, 0]) < 0.5
    if steps <= 1 or straight.all():
        return pieces
    curved = pieces[~straight]
    across, down = _weights(steps)
    x = curved[:, 0:1] + (curved[:, 2:3] - curved[:, 0:1]) * across
    y = curved[:, 1:2] + (curved[:, 3:4] - curved[:, 1:2]) * down
    parts = np.stack([x[:, :-1], y[:, :-1], x[:, 1:], y[:, 1:]], axis=2).reshape(-1, 4)
    return np.concatenate([pieces[straight], parts])


def distances(pieces: Floats, x: float, y: float) -> Floats:
    """How far a point is from each of some pieces (p, 4)."""
    steps = 12
    across, down = _weights(steps)
    xs = pieces[:, 0:1] + (pieces[:, 2:3] - pieces[:, 0:1]) * across
    ys = pieces[:, 1:2] + (pieces[:, 3:4] - pieces[:, 1:2]) * down
    ax, ay, bx, by = xs[:, :-1], ys[:, :-1], xs[:, 1:], ys[:, 1:]
    dx, dy = bx - ax, by - ay
    length = np.maximum(dx * dx + dy * dy, 1e-6)
    along = np.clip(((x - ax) * dx + (y - ay) * dy) / length, 0.0, 1.0)
    nearest: Floats = np.hypot(ax + along * dx - x, ay + along * dy - y).min(axis=1)
    return nearest
