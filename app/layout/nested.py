"""What a nested drawing is: a layout whose groups are boxes in boxes, each open or closed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.layout.graph_layout import GraphLayout, IntArray


@dataclass(frozen=True)
class Box:
    """What a box on screen stands for. ``count`` is the number of modules in a stack, 1 for a module; with
    ``is_single`` it shows one of them for all."""

    key: str
    title: str
    type_name: str
    depth: int
    is_open: bool
    count: int
    members: tuple[int, ...]  # FX nodes, as indices
    is_single: bool = False


@dataclass(frozen=True, eq=False)
class NestedLayout(GraphLayout):
    """A layout whose groups are modules or fusion groups.

    - ``boxes``: parallel to ``group_rect``; outer ones come first.
    - ``shown`` (n,): nodes drawn themselves. The others have the rectangle of the closed box around them.
    - ``stand_in`` (n,): the node that an edge of a node is listed under: itself, or one for all in the same box.
    - ``edge_values`` (e,): how many FX edges an edge bundles.
    """

    boxes: tuple[Box, ...] = ()
    shown: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    stand_in: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    edge_values: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
