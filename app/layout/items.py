"""What one level of the layout arranges, and what comes of it: items, the links between them, coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Link(NamedTuple):
    """An edge between two items; offsets are from an item's centre. ``in_offset`` None: wherever there is room."""

    source: int
    target: int
    out_offset: float = 0.0
    in_offset: float | None = None


@dataclass
class Items:
    """The boxes to arrange. ``low`` ones sit at the bottom of their row, near their consumers.

    ``head`` is the width of a box's top side, where edges without a fixed port arrive. ``aside`` boxes never keep
    their producer's column: they only say where a value goes.
    """

    width: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    low: list[bool] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    aside: list[bool] = field(default_factory=list)

    def add(
        self,
        width: float,
        height: float,
        rank: int,
        low: bool = False,
        head: float | None = None,
        aside: bool = False,
    ) -> int:
        """Appends an item and returns its index."""
        self.width.append(width)
        self.height.append(height)
        self.rank.append(rank)
        self.low.append(low)
        self.aside.append(aside)
        self.head.append(width if head is None else head)
        return len(self.rank) - 1


@dataclass(frozen=True)
class Spacing:
    """Least distances between boxes, in pixels at scale 1."""

    across: float
    down: float


@dataclass(frozen=True)
class Arrangement:
    """Centres and tops of the items, the pieces of all edges, and each link's pieces from source to target."""

    x: list[float]
    top: list[float]
    pieces: NDArray[np.float64]  # (pieces, 4)
    link_pieces: list[list[int]]
