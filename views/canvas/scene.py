"""What the canvas draws, as arrays: geometry, classes for colours, texts, and who is connected to whom."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.layout import GraphLayout, NodeStyle
from app.layout.labels import TITLE_HEIGHT, dtype_text, node_subtitle, node_title, shape_text
from app.overlays import Overlay
from compiler.report import ExternCall, Group, Node, NodeKind, Region
from views.canvas import curves
from views.canvas.block_index import BlockIndex, Window
from views.refusals.index import RefusalIndex
from views.selection.index import group_colors

# Classes of node colours; grouped nodes have GROUPED + their group's colour number.
PLAIN, INPUT, PARAMETER, EXTERN, OUTPUT, GROUPED = range(6)

# Inks of overlays: RAMP + level, CATEGORY + number.
RAMP, CATEGORY = 1 << 16, 1 << 17

NOTHING = -1


@dataclass(frozen=True)
class Hit:
    """What is at a point: at most one of the indices is set, the innermost thing first."""

    node: int = NOTHING
    stub: int = NOTHING
    edge: int = NOTHING  # one that leaves a group or extern call for another
    group: int = NOTHING


class Scene:
    """A region and its layout, ready for drawing and asking. Never changes once made."""

    def __init__(self, region: Region, layout: GraphLayout) -> None:
        self.region = region
        self.groups: dict[str, Group] = {group.name: group for group in region.groups}
        self.calls: dict[str, ExternCall] = {call.name: call for call in region.extern_calls}
        self.call_of_node = {name: call for call in region.extern_calls for name in call.nodes}
        self.nodes: list[Node] = region.nodes
        self.index = {name: i for i, name in enumerate(layout.names)}
        self.titles = [node_title(node) for node in region.nodes]
        self.subtitles = [node_subtitle(node) for node in region.nodes]
        self._read_layout(layout)

    def _read_layout(self, layout: GraphLayout) -> None:
        self.layout = layout
        self.group_index = {name: i for i, name in enumerate(layout.group_names)}
        self.node_rect = layout.node_rect
        self.group_rect = layout.group_rect
        self.pieces = layout.pieces
        self.group_color = self._group_colors()
        self.node_class = self._node_classes()  # how nodes are drawn
        self.node_ink = self.node_class  # in what colours; another one where an overlay is on
        self.bounds = layout.bounds
        self.node_blocks = self._node_blocks()
        self.group_blocks = BlockIndex.of_rects(layout.group_rect)
        self.stub_blocks = BlockIndex.of_rects(layout.stub_rect)
        self.title_blocks = self._title_blocks()
        x0, y0, x1, y1 = layout.pieces.T
        self.piece_blocks = BlockIndex(np.minimum(x0, x1), y0, np.maximum(x0, x1), y1)
        self.outgoing = _Adjacency(layout.edges[:, 0], len(layout.names))
        self.incoming = _Adjacency(layout.edges[:, 1], len(layout.names))
        self.piece_inside = self._pieces_inside()
        self.piece_ends = self._piece_ends()

    def _node_blocks(self) -> BlockIndex:
        return BlockIndex.of_rects(self.layout.node_rect)

    def _title_blocks(self) -> BlockIndex:
        rects = self.layout.group_rect.copy()
        rects[:, 3] = TITLE_HEIGHT
        return BlockIndex.of_rects(rects)

    @property
    def opens_boxes(self) -> bool:
        """Whether boxes open and close."""
        return False

    def box_of(self, node: int) -> int:
        """The closed box that hides a node, or NOTHING."""
        return NOTHING

    def boxes_of(self, nodes: Iterable[int]) -> list[int]:
        """The closed boxes that some nodes are hidden in."""
        return []

    def box_named(self, nodes: frozenset[str]) -> int:
        """The outermost box of a module that has exactly these nodes, or NOTHING."""
        return NOTHING

    def _group_colors(self) -> NDArray[np.int32]:
        """A colour number per box, -1 for extern calls. Groups that share a kernel share the colour."""
        numbers = group_colors(list(self.groups.values()))
        colors = np.full(len(self.layout.group_names), NOTHING, np.int32)
        for i, name in enumerate(self.layout.group_names):
            colors[i] = numbers.get(name, NOTHING)
        return colors

    def _unit_classes(self) -> NDArray[np.int32]:
        """Of each node, that of the fusion group it is in."""
        classes = np.full(len(self.nodes), PLAIN, np.int32)
        grouped = self.layout.node_group >= 0
        color = self.group_color[self.layout.node_group[grouped]]
        classes[grouped] = np.where(color >= 0, GROUPED + color, PLAIN)
        return classes

    def _node_classes(self) -> NDArray[np.int32]:
        classes = self._unit_classes()
        style = self.layout.node_style
        classes[style == NodeStyle.EXTERN] = EXTERN
        classes[style == NodeStyle.OUTPUT] = OUTPUT
        parameter = np.array([node.op in ("parameter", "buffer", "get_attr") for node in self.nodes], bool)
        classes[style == NodeStyle.PILL] = INPUT
        classes[(style == NodeStyle.PILL) & parameter] = PARAMETER
        return classes

    def _pieces_inside(self) -> NDArray[np.bool_]:
        """Which pieces belong to values that stay inside a group (registers), all others go through memory."""
        edges, group = self.layout.edges, self.layout.node_group
        inside = np.zeros(len(self.pieces), bool)
        if len(edges):
            same = (group[edges[:, 0]] >= 0) & (group[edges[:, 0]] == group[edges[:, 1]])
            counts = np.diff(self.layout.edge_start)
            inside[self.layout.edge_pieces[np.repeat(same, counts)]] = True
            inside[self.layout.edge_pieces[np.repeat(~same, counts)]] = False
        return inside

    def _piece_ends(self) -> NDArray[np.bool_]:
        """Which pieces are the last of an edge and so end at its consumer."""
        ends = np.zeros(len(self.pieces), bool)
        start = self.layout.edge_start
        drawn = np.diff(start) > 0
        ends[self.layout.edge_pieces[start[1:][drawn] - 1]] = True
        return ends

    def with_layout(self, layout: GraphLayout) -> Scene:
        """The same region laid out otherwise; what does not depend on the layout is not read again."""
        made = copy(self)
        made.__dict__.pop("_edges_of_piece", None)
        made._read_layout(layout)
        return made

    def with_overlay(self, overlay: Overlay | None) -> Scene:
        """The same graph in the overlay's colours, or in its own for None."""
        made = copy(self)
        made.group_color = made._group_colors()
        made.node_ink = made.node_class
        if overlay is not None:
            made._lay_over(overlay)
        return made

    def _lay_over(self, overlay: Overlay) -> None:
        boxes = [overlay.units.get(name, NOTHING) for name in self.layout.group_names]
        if overlay.is_ramp:
            self.group_color = np.array([RAMP + level if level >= 0 else NOTHING for level in boxes], np.int32)
        else:
            self.group_color = np.full(len(boxes), NOTHING, np.int32)
        self.node_ink = np.where(self.node_class >= GROUPED, PLAIN, self.node_class).astype(np.int32)
        if overlay.is_ramp:
            inside = np.flatnonzero(self.layout.node_group >= 0)
            shade = self.group_color[self.layout.node_group[inside]]
            self.node_ink[inside[shade >= 0]] = shade[shade >= 0]
            for name, level in overlay.units.items():
                for node in self.calls[name].nodes if name in self.calls else ():
                    self.node_ink[self.index[node]] = RAMP + level
        for node, number in overlay.nodes.items():
            self.node_ink[self.index[node]] = CATEGORY + number

    def start_x(self) -> float:
        """The middle of the topmost nodes, which is where reading starts."""
        rect = self.node_rect
        if not len(rect):
            return 0.0
        first = rect[np.argsort(rect[:, 1], kind="stable")[:8]]
        return float(np.median(first[:, 0] + first[:, 2] / 2))

    def hit(self, x: float, y: float, slack: float) -> Hit:
        """What is at a scene point; ``slack`` pixels around small things count too."""
        layout = self.layout
        window = (x - slack, y - slack, x + slack, y + slack)
        node = smallest(layout.node_rect, self.node_blocks.touching(window))
        if node >= 0:
            return Hit(node=node)
        stub = smallest(layout.stub_rect, self.stub_blocks.touching(window))
        if stub >= 0:
            return Hit(stub=stub)
        edge = self._edge_at(x, y, slack)
        if edge >= 0:
            return Hit(edge=edge)
        return Hit(group=smallest(layout.group_rect, self.group_blocks.touching((x, y, x, y))))

    def has_text_in(self, window: Window) -> bool:
        """Whether a node, a stub or a box's title is in a part of the scene; there are edges almost everywhere."""
        blocks = (self.node_blocks, self.stub_blocks, self.title_blocks)
        return any(len(block.touching(window)) for block in blocks)

    def _edge_at(self, x: float, y: float, slack: float) -> int:
        """The edge between two units that passes nearest to a point, at most twice ``slack`` away, or NOTHING."""
        reach = 2.0 * slack
        near = self.piece_blocks.touching((x - reach, y - reach, x + reach, y + reach))
        near = near[~self.piece_inside[near]]
        if not len(near):
            return NOTHING
        distances = curves.distances(self.pieces[near], x, y)
        for piece in near[np.argsort(distances, kind="stable")][: int((distances <= reach).sum())]:
            for edge in self._edges_of_piece.of(int(piece)):
                if self.joins_units(int(edge)):
                    return int(edge)
        return NOTHING

    def joins_units(self, edge: int) -> bool:
        """Whether an edge leaves one group or extern call for another."""
        producer, consumer = (self.unit_of.get(self.layout.names[end], "") for end in self.layout.edges[edge])
        return bool(producer and consumer and producer != consumer)

    def ends(self, edge: int) -> tuple[str, str]:
        """The producer and the consumer of an edge."""
        producer, consumer = self.layout.edges[edge]
        return self.layout.names[producer], self.layout.names[consumer]

    @cached_property
    def unit_of(self) -> dict[str, str]:
        """Node -> the group or extern call that computes it; of several, one that does not compute it again."""
        found: dict[str, str] = {}
        for group in self.groups.values():
            again = set(group.recomputed)
            found.update({node: group.name for node in group.nodes if node not in again or node not in found})
        found.update({name: call.name for name, call in self.call_of_node.items()})
        return found

    @cached_property
    def refusals(self) -> RefusalIndex:
        """Why units are apart."""
        return RefusalIndex(self.region, self.unit_of)

    @cached_property
    def _edges_of_piece(self) -> _Adjacency:
        """Edges by the pieces that they are made of; edges of one value share pieces."""
        counts = np.diff(self.layout.edge_start)
        owners = np.repeat(np.arange(len(counts)), counts)
        return _Adjacency(self.layout.edge_pieces, len(self.pieces), owners)

    def edges_of(self, node: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the edges into and out of a node."""
        return self.incoming.of(node), self.outgoing.of(node)

    def producers(self, node: int) -> list[int]:
        """Nodes that a node reads, in argument order."""
        return [self.index[name] for name in self.nodes[node].inputs if name in self.index]

    def consumers(self, node: int) -> list[int]:
        """Nodes that read a node, in the graph's order."""
        return sorted({int(consumer) for consumer in self.layout.edges[self.outgoing.of(node), 1]})

    def prepare(self) -> None:
        """Make now what the first key would wait for, as on another thread before the scene is shown."""
        assert self.reads is not None

    @cached_property
    def reads(self) -> list[list[int]]:
        """What each node reads."""
        index = self.index
        return [[index[name] for name in node.inputs if name in index] for node in self.nodes]

    def pieces_of(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices of the pieces of some edges, each once."""
        return np.unique(self.piece_uses(edges))

    def piece_uses(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices of the pieces of some edges; one that several of them share comes as often."""
        start, used = self.layout.edge_start.astype(np.int64), self.layout.edge_pieces
        first, counts = start[edges], start[edges + 1] - start[edges]
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        return used[np.repeat(first, counts) + within].astype(np.int64)

    def members(self, group: int) -> NDArray[np.int64]:
        """Nodes drawn in a box."""
        return np.flatnonzero(self.layout.node_group == group)

    def find(self, text: str) -> tuple[list[int], list[int]]:
        """Nodes and boxes whose name or op holds ``text``, whatever the case."""
        wanted = text.strip().lower()
        if not wanted:
            return [], []
        nodes = [i for i, text in enumerate(self._searched) if wanted in text]
        boxes = [i for i, name in enumerate(self.layout.group_names) if wanted in name.lower()]
        return nodes, boxes

    @cached_property
    def _searched(self) -> list[str]:
        return [f"{node.name}\n{node.op}".lower() for node in self.nodes]

    def locate(self, name: str) -> tuple[float, float, float, float] | None:
        """The rectangle of a node, a group or an extern call; None for an unknown name."""
        if name in self.index:
            return _as_tuple(self.node_rect[self.index[name]])
        if name in self.group_index:
            return _as_tuple(self.group_rect[self.group_index[name]])
        call = self.calls.get(name)
        if call is not None and call.nodes and call.nodes[0] in self.index:
            return _as_tuple(self.node_rect[self.index[call.nodes[0]]])
        return None

    def rects_of(self, names: Iterable[str]) -> NDArray[np.float32]:
        """The rectangles (n, 4) of some nodes, groups and extern calls; unknown names have none."""
        found, others = [], []
        for name in names:
            if (node := self.index.get(name)) is not None:
                found.append(node)
            elif (rect := self.locate(name)) is not None:
                others.append(rect)
        return np.concatenate([self.node_rect[found], np.array(others, np.float32).reshape(-1, 4)])

    def edge_label(self, node: int) -> str:
        """What an edge carries: shape and dtype of a node's first output."""
        outputs = self.nodes[node].outputs
        return f"{shape_text(outputs[0])} {dtype_text(outputs[0].dtype)}" if outputs else ""

    def badge(self, node: int) -> str:
        """The library that an extern call goes through, by its op's namespace."""
        namespace = self.nodes[node].op.split(".")[0]
        return "ATen" if namespace == "aten" else namespace

    def is_leaf(self, node: int) -> bool:
        """Whether a node is an input of the region."""
        return self.nodes[node].kind is not NodeKind.CALL


class _Adjacency:
    """Edges by one of their ends."""

    def __init__(self, ends: NDArray[np.int32], count: int, values: NDArray[np.int64] | None = None) -> None:
        order = np.argsort(ends, kind="stable")
        self._order = order if values is None else values[order]
        self._start = np.searchsorted(ends[order], np.arange(count + 1))

    def of(self, node: int) -> NDArray[np.int64]:
        return self._order[self._start[node] : self._start[node + 1]]


def smallest(rects: NDArray[np.float32], found: NDArray[np.int64]) -> int:
    """The smallest of some rectangles, or NOTHING."""
    return int(found[np.argmin(rects[found, 2] * rects[found, 3])]) if len(found) else NOTHING


def _as_tuple(row: NDArray[np.float32]) -> tuple[float, float, float, float]:
    return (float(row[0]), float(row[1]), float(row[2]), float(row[3]))
