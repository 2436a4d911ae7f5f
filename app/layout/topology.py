"""Layout of a captured CUDA Graph: dependencies from left to right, branches above one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.layout.items import Items, Link, Spacing
from app.layout.layered import arrange
from app.layout.ranks import Cancelled, topological_order
from compiler.report import GraphNode, GraphNodeKind

_SPACING = Spacing(across=18.0, down=30.0)
_WIDE = (GraphNodeKind.KERNEL, GraphNodeKind.CHILD_GRAPH, GraphNodeKind.CONDITIONAL)


@dataclass(frozen=True, eq=False)
class TopologyLayout:
    """Left, top, width, height of each node (n, 4), and the stretches (p, 4) of each dependency as x0, y0, x1, y1.

    ``edges`` (e, 2) are positions in the list of nodes, producer first; edge i consists of ``pieces[edge_of == i]``.
    """

    node_rect: NDArray[np.float64]
    edges: NDArray[np.int64]
    pieces: NDArray[np.float64]
    edge_of: NDArray[np.int64]

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of all nodes; zeros for none."""
        if not len(self.node_rect):
            return (0.0, 0.0, 0.0, 0.0)
        low = self.node_rect[:, :2].min(axis=0)
        high = (self.node_rect[:, :2] + self.node_rect[:, 2:]).max(axis=0)
        return (float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))


def node_size(node: GraphNode) -> tuple[float, float]:
    """Width and height of a node's box: what does work is wide, what only orders it is small."""
    if node.kind in _WIDE:
        return 168.0, 44.0
    if node.kind in (GraphNodeKind.EVENT_RECORD, GraphNodeKind.EVENT_WAIT, GraphNodeKind.EMPTY):
        return 92.0, 26.0
    return 128.0, 44.0


def layout_topology(nodes: list[GraphNode], *, cancelled: Cancelled | None = None) -> TopologyLayout:
    """Coordinates of a graph's nodes and dependencies. Safe off the GUI thread.

    Dependencies on nodes that are not in the list, and those that would close a cycle, are left out.

    Raises:
        LayoutCancelled: ``cancelled`` returned True.
    """
    place = {node.id: i for i, node in enumerate(nodes)}
    pairs = [(place[d], i) for i, node in enumerate(nodes) for d in node.dependencies if d in place]
    successors: list[list[int]] = [[] for _ in nodes]
    for source, target in pairs:
        successors[source].append(target)
    order, back = topological_order(successors)
    edges = [pair for pair in pairs if pair not in back]
    rank = [0] * len(nodes)
    for item in order:
        for target in successors[item]:
            if (item, target) not in back:
                rank[target] = max(rank[target], rank[item] + 1)
    # the layered layout runs downwards: its widths are our heights
    items = Items()
    for node, row in zip(nodes, rank, strict=True):
        width, height = node_size(node)
        items.add(height, width, row)
    made = arrange(items, [Link(source, target) for source, target in edges], _SPACING, cancelled)
    rect = np.zeros((len(nodes), 4))
    for i, node in enumerate(nodes):
        width, height = node_size(node)
        rect[i] = (made.top[i], made.x[i] - height / 2, width, height)
    used = [(number, piece) for number, pieces in enumerate(made.link_pieces) for piece in pieces]
    pieces = made.pieces[[piece for _, piece in used]].reshape(-1, 4)[:, [1, 0, 3, 2]]
    return TopologyLayout(
        rect,
        np.array(edges, np.int64).reshape(-1, 2),
        pieces,
        np.array([number for number, _ in used], np.int64),
    )
