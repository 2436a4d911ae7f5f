"""Layouts of a region in boxes, by its modules or by its fusion groups, in any folding.

Every box is laid out alone, once for all that look the same, and drawn as a block of arrays that its surroundings take
over whole. So opening or closing one computes only what is around it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from app.layout.box_block import BOX, SHOWN, STAND_IN, Block, by_node, closed_block, open_block
from app.layout.box_edges import collect_edges
from app.layout.box_shape import STUB, Lines, Shape, lay_out_box, title_width
from app.layout.folding import Folding
from app.layout.graph_layout import IntArray, NodeStyle
from app.layout.labels import node_size, node_title
from app.layout.memory import paused_collector
from app.layout.module_tree import ModuleTree, build_module_tree
from app.layout.nested import Box, NestedLayout
from app.layout.ranks import Cancelled, poll
from app.layout.recent import Recent
from app.layout.series import Parts
from compiler.report import NodeKind, Region

_CARD_HEIGHT, _SHEETS = 46.0, 8.0  # of a closed box; what the sheets of a stack add
_FEW = 40  # boxes and nodes that are shown at first
_KEPT_BYTES = 64 << 20  # of shapes that boxes had before
_LINE_BYTES = 160  # of a line as a tuple of numbers


class ModuleLayouts:
    """Lays out one region in any folding. Shapes of boxes are kept, and the blocks of the last layout."""

    def __init__(
        self,
        region: Region,
        cancelled: Cancelled | None = None,
        build: Callable[[Region, Cancelled | None], ModuleTree] = build_module_tree,
    ) -> None:
        """``build`` makes the tree. Raises LayoutCancelled."""
        self.region = region
        with paused_collector():
            self.tree = build(region, cancelled)
        extern = {name for call in region.extern_calls for name in call.nodes}
        self.styles = [_style(node.kind, node.name in extern) for node in region.nodes]
        poll(cancelled)
        self.sizes = [node_size(node, style) for node, style in zip(region.nodes, self.styles, strict=True)]
        self.names = tuple(node.name for node in region.nodes)
        self.number_of = {container.key: number for number, container in enumerate(self.tree.containers)}
        self._depth = [-1]
        for container in self.tree.containers[1:]:
            self._depth.append(self._depth[container.parent] + 1)
        self._by_looks: Recent[object, Shape] = Recent(_KEPT_BYTES)
        self._by_children: Recent[object, tuple[Shape, IntArray]] = Recent(_KEPT_BYTES)
        self._cards: dict[tuple[float, float], Shape] = {}
        self._parts: Parts = {}
        self._last: tuple[Folding, dict[int, Block]] = (Folding(), {})

    def first_folding(self) -> Folding:
        """Outer boxes open, the small ones first, as long as few things are shown; stacks are closed."""
        containers = self.tree.containers
        opened: set[str] = set()
        shown, level = len(containers[0].children), [0]
        while level:
            inside = [~child for number in level for child in containers[number].children if child < 0]
            more: list[int] = []
            for number in sorted(inside, key=lambda number: len(containers[number].children)):
                if not containers[number].is_stack and shown + len(containers[number].children) <= _FEW:
                    shown += len(containers[number].children)
                    more.append(number)
            opened |= {containers[number].key for number in more}
            level = more
        return Folding(frozenset(opened))

    def revealing(self, folding: Folding, node: int) -> Folding:
        """The folding with everything around a node open."""
        keys = {self.tree.containers[number].key for number in self.tree.ancestors(node)[:-1]}
        return Folding(folding.opened | keys, folding.single - keys)

    def all_open(self, *, single: bool) -> Folding:
        """Every box open; stacks by one of their modules if ``single``."""
        stacks = frozenset(box.key for box in self.tree.containers if box.is_stack) if single else frozenset()
        return Folding(frozenset(self.number_of), stacks)

    def lay_out(self, folding: Folding, cancelled: Cancelled | None = None) -> NestedLayout:
        """Coordinates in a folding. Raises LayoutCancelled."""
        poll(cancelled)
        with paused_collector():
            before, known = self._last
            changed = self._around(before, folding)
            blocks = {number: block for number, block in known.items() if number not in changed}
            whole = self._block(0, folding, blocks, cancelled)
            self._last = folding, blocks  # one assignment: another thread may be making another layout
            poll(cancelled)
            return self._layout(whole)

    def _around(self, before: Folding, after: Folding) -> set[int]:
        """The boxes that are not drawn as before, and all around them."""
        found: set[int] = set()
        for key in after.differs(before):
            number = self.number_of.get(key, -1)
            while number >= 0 and number not in found:
                found.add(number)
                number = self.tree.containers[number].parent
        return found

    def _layout(self, whole: Block) -> NestedLayout:
        nodes, node_rect = by_node(whole, len(self.names))
        edges = collect_edges(self.tree, whole, nodes)
        stub_rect = np.empty((len(whole.stub_at), 4), np.float32)
        stub_rect[:, :2], stub_rect[:, 2:] = whole.stub_at, STUB
        return NestedLayout(
            names=self.names,
            group_names=tuple(box.key for box in whole.boxes),
            stub_labels=whole.stub_labels,
            node_rect=node_rect,
            node_style=np.array(self.styles, np.uint8),
            node_group=nodes[:, BOX].copy(),
            group_rect=whole.box_rect.astype(np.float32),
            pieces=whole.pieces.astype(np.float32),
            edges=edges.ends,
            edge_start=edges.start,
            edge_pieces=edges.pieces,
            edge_cut=edges.cut,
            stub_rect=stub_rect,
            stub_owner=whole.stub_ends[:, 0].copy(),
            stub_peer=whole.stub_ends[:, 1].copy(),
            boxes=whole.boxes,
            shown=nodes[:, SHOWN].astype(bool),
            stand_in=nodes[:, STAND_IN].copy(),
            edge_values=edges.values,
        )

    def _block(self, number: int, folding: Folding, blocks: dict[int, Block], cancelled: Cancelled | None) -> Block:
        """A box and everything in it, taken from ``blocks`` or added there."""
        known = blocks.get(number)
        if known is None:
            container = self.tree.containers[number]
            is_open = number == 0 or container.key in folding.opened
            known = self._opened(number, folding, blocks, cancelled) if is_open else self._closed(number)
            blocks[number] = known
        return known

    def _closed(self, number: int) -> Block:
        container = self.tree.containers[number]
        width = title_width(container.title, container.type_name) + 24
        stack = _SHEETS if container.is_stack else 0.0
        shape = self._cards.setdefault((width, stack), Shape(width + stack, _CARD_HEIGHT + stack))
        return closed_block(self._box(number, shape), shape)

    def _opened(self, number: int, folding: Folding, blocks: dict[int, Block], cancelled: Cancelled | None) -> Block:
        poll(cancelled)
        container = self.tree.containers[number]
        single = container.is_stack and container.key in folding.single
        chosen = container.children[:1] if single else container.children
        inside = [self._block(~child, folding, blocks, cancelled) for child in chosen if child < 0]
        shape, numbers = self._shape(number, single, [block.shape for block in inside], cancelled)
        box = self._box(number, shape) if number else None
        return open_block(self.tree, number, box, shape, numbers, inside, self._label)

    def _shape(
        self, number: int, single: bool, inside: list[Shape], cancelled: Cancelled | None
    ) -> tuple[Shape, IntArray]:
        """What a box around some shapes looks like, and which of its lines each line of the container is."""
        same = (number, single, *inside)
        if (seen := self._by_children.get(same)) is not None:
            return seen
        container = self.tree.containers[number]
        shapes = iter(inside)
        children = tuple(
            self.sizes[child] if child >= 0 else next(shapes)
            for child in (container.children[:1] if single else container.children)
        )
        lines, numbers = Lines.of(container.lines, children, single)
        title = title_width(container.title, container.type_name) if number else 0.0
        looks = (children, lines, title, single)
        shape = self._by_looks.get(looks)
        if shape is None:
            shape = lay_out_box(children, lines, title, bool(number), single, self._parts, cancelled)
            size = shape.pieces.nbytes + shape.used.nbytes + _LINE_BYTES * (len(shape.cut) + len(children))
            self._by_looks.put(looks, shape, size)
        self._by_children.put(same, (shape, numbers), numbers.nbytes + 8 * len(same) + _LINE_BYTES)
        return shape, numbers

    def _box(self, number: int, shape: Shape) -> Box:
        container = self.tree.containers[number]
        return Box(
            container.key,
            container.title,
            container.type_name,
            self._depth[number],
            shape.is_open,
            len(container.children) if container.is_stack else 1,
            tuple(container.members),
            shape.is_single,
        )

    def _label(self, node: int) -> str:
        found = self.region.nodes[node]
        return found.name if found.kind is not NodeKind.CALL else node_title(found)


def _style(kind: NodeKind, is_extern: bool) -> NodeStyle:
    if kind is NodeKind.OUTPUT:
        return NodeStyle.OUTPUT
    if kind is not NodeKind.CALL:
        return NodeStyle.PILL
    return NodeStyle.EXTERN if is_extern else NodeStyle.OP
