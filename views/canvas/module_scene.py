"""The scene of a graph in boxes that open and close, modules or fusion groups, with edges that bundle tensors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from app.layout.graph_layout import GraphLayout
from app.layout.labels import TITLE_HEIGHT
from app.layout.nested import Box, NestedLayout
from app.overlays import Overlay
from compiler.report import Node, NodeKind
from views.canvas.block_index import BlockIndex
from views.canvas.scene import CATEGORY, GROUPED, NOTHING, PLAIN, RAMP, Scene
from views.selection.index import group_colors

_COLORS = 997  # numbers that module types are spread over; the palette repeats its own


class ModuleScene(Scene):
    """Nodes have the colours of their fusion groups; modules are coloured by their type."""

    def _read_layout(self, layout: GraphLayout) -> None:
        assert isinstance(layout, NestedLayout)
        self.nested = layout
        super()._read_layout(layout)
        self.is_closed = np.array([not box.is_open for box in layout.boxes], bool)
        self.depth = np.array([box.depth for box in layout.boxes], np.int32)
        counts = np.diff(layout.edge_start)
        weights = np.repeat(layout.edge_values, counts)
        self.piece_weight = np.bincount(layout.edge_pieces, weights, minlength=len(layout.pieces)).astype(np.int32)

    def with_layout(self, layout: GraphLayout) -> ModuleScene:
        made = super().with_layout(layout)
        assert isinstance(made, ModuleScene)
        return made

    @property
    def opens_boxes(self) -> bool:
        return True

    @property
    def boxes(self) -> tuple[Box, ...]:
        """What the groups are."""
        return self.nested.boxes

    def _node_blocks(self) -> BlockIndex:
        rects = self.layout.node_rect.copy()
        rects[~self.nested.shown] = np.inf  # nothing touches them
        return BlockIndex.of_rects(rects)

    def _title_blocks(self) -> BlockIndex:
        rects = self.layout.group_rect.copy()
        is_open = np.array([box.is_open for box in self.boxes], bool)
        rects[is_open, 3] = TITLE_HEIGHT  # a closed box is nothing but its title
        return BlockIndex.of_rects(rects)

    def _group_colors(self) -> NDArray[np.int32]:
        return np.array([self._box_color(box) for box in self.boxes], np.int32)

    def _box_color(self, box: Box) -> int:
        """A fusion group has its own colour, a module that of its type."""
        if box.key in self.calls:
            return NOTHING
        number = self._group_numbers.get(box.key)
        return crc32((box.type_name or box.title).encode()) % _COLORS if number is None else number

    @cached_property
    def _group_numbers(self) -> dict[str, int]:
        return group_colors(list(self.groups.values()))

    def _node_classes(self) -> NDArray[np.int32]:
        return self._classes

    @cached_property
    def _classes(self) -> NDArray[np.int32]:
        return super()._node_classes()

    def _unit_classes(self) -> NDArray[np.int32]:
        classes = np.full(len(self.nodes), PLAIN, np.int32)
        for group in self.groups.values():
            classes[[self.index[name] for name in group.nodes]] = GROUPED + self._group_numbers[group.name]
        return classes

    def _lay_over(self, overlay: Overlay) -> None:
        """Nodes take the colour of their unit; a closed box that of the strongest inside."""
        self.node_ink = np.where(self.node_class >= GROUPED, PLAIN, self.node_class).astype(np.int32)
        self.group_color = np.full(len(self.boxes), NOTHING, np.int32)
        level = np.full(len(self.nodes), NOTHING, np.int32)
        for unit, strength in overlay.units.items():
            members = self.groups[unit].nodes if unit in self.groups else self.calls[unit].nodes
            level[[self.index[name] for name in members]] = strength
        computed = level >= 0
        self.node_ink[computed] = RAMP + level[computed]
        for name, number in overlay.nodes.items():
            self.node_ink[self.index[name]] = CATEGORY + number
        if overlay.is_ramp:
            for number in np.flatnonzero(self.is_closed):
                strongest = int(level[list(self.boxes[number].members)].max(initial=NOTHING))
                if strongest >= 0:
                    self.group_color[number] = RAMP + strongest

    def edges_of(self, node: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the edges into and out of a node, or of the closed box around it."""
        return super().edges_of(int(self.nested.stand_in[node]))

    def consumers(self, node: int) -> list[int]:
        return self._readers[node]

    @cached_property
    def _readers(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for consumer in range(len(self.nodes)):
            for producer in self.producers(consumer):
                found[producer].append(consumer)
        return found

    def joins_units(self, edge: int) -> bool:
        return True

    def box_of(self, node: int) -> int:
        """The closed box that a node is hidden in, or NOTHING."""
        box = int(self.layout.node_group[node])
        return NOTHING if self.nested.shown[node] or box < 0 or not self.is_closed[box] else box

    def boxes_of(self, nodes: Iterable[int]) -> list[int]:
        return sorted({box for node in nodes if (box := self.box_of(node)) >= 0})

    def box_named(self, nodes: frozenset[str]) -> int:
        """The outermost box of exactly these nodes, or NOTHING."""
        wanted = {self.index[name] for name in nodes if name in self.index}
        for number, box in enumerate(self.boxes):
            if len(box.members) == len(wanted) and wanted.issuperset(box.members):
                return number
        return NOTHING

    def members(self, group: int) -> NDArray[np.int64]:
        """Nodes in a box, shown or hidden."""
        return np.array(self.boxes[group].members, np.int64)

    def values_of(self, edge: int) -> list[Node]:
        """The nodes whose tensors a bundled edge carries."""
        first, last = self.layout.edges[edge]
        above = set(np.flatnonzero(self.nested.stand_in == first).tolist())
        below = np.flatnonzero(self.nested.stand_in == last).tolist()
        found = dict.fromkeys(p for node in below for p in self.producers(node) if p in above)
        return [self.nodes[node] for node in found]

    def find(self, text: str) -> tuple[list[int], list[int]]:
        """Nodes and boxes whose name, op or type holds ``text``; closed boxes that hide such a node."""
        wanted = text.strip().lower()
        if not wanted:
            return [], []
        nodes, _ = super().find(text)
        named = [i for i, box in enumerate(self.boxes) if wanted in f"{box.key}\n{box.title}\n{box.type_name}".lower()]
        return nodes, sorted({*named, *self.boxes_of(nodes)})

    def locate(self, name: str) -> tuple[float, float, float, float] | None:
        """The rectangle of a node (of the closed box around it), a box, or all nodes of a fusion group."""
        found = super().locate(name)
        if found is None and name in self.groups:
            rects = self.layout.node_rect[[self.index[node] for node in self.groups[name].nodes]]
            low, high = rects[:, :2].min(axis=0), (rects[:, :2] + rects[:, 2:]).max(axis=0)
            return (float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))
        return found

    def is_leaf(self, node: int) -> bool:
        return self.nodes[node].kind is not NodeKind.CALL
