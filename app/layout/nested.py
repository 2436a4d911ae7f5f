"""Layout of a region by its modules: boxes in boxes, each open or closed, edges bundled from box to box.

Every box is laid out alone, once for all that look the same, so opening or closing one computes only those around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from app.layout.graph_layout import FloatArray, GraphLayout, IntArray, NodeStyle
from app.layout.labels import SHAPE_PX, TITLE_HEIGHT, Size, node_size, node_title
from app.layout.layered import Items, Link, Spacing
from app.layout.memory import paused_collector
from app.layout.module_tree import Entry, Exit, Inner, ModuleTree, build_module_tree
from app.layout.ranks import Cancelled, poll, rank_items, topological_order
from app.layout.series import Parts, arrange_in_series
from compiler.report import NodeKind, Region

_SPACING = Spacing(across=22.0, down=30.0)
_PADDING = 16.0
_LONGEST = 12  # ranks that an edge may cross inside a box before it is cut to a stub
_STUB = Size(96.0, 18.0)
_CARD_HEIGHT, _SHEETS = 46.0, 8.0  # of a closed box; what the sheets of a stack add
_FEW = 40  # boxes and nodes that are shown at first


@dataclass(frozen=True)
class Folding:
    """Which boxes are open, by their keys. A stack in ``single`` shows one of its modules for all."""

    opened: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()

    def toggled(self, key: str, *, single: bool = False) -> Folding:
        """With a box closed if it is open, and else opened."""
        if key in self.opened:
            return Folding(self.opened - {key}, self.single - {key})
        return Folding(self.opened | {key}, self.single | {key} if single else self.single)


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
    """A layout whose groups are modules.

    - ``boxes``: parallel to ``group_rect``; outer ones come first.
    - ``shown`` (n,): nodes drawn themselves. The others have the rectangle of the closed box around them.
    - ``stand_in`` (n,): the node that an edge of a node is listed under: itself, or one for all in the same box.
    - ``edge_values`` (e,): how many FX edges an edge bundles.
    """

    boxes: tuple[Box, ...] = ()
    shown: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    stand_in: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    edge_values: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))


@dataclass(frozen=True, eq=False)
class _Shape:
    """A laid-out box, relative to its left top corner. Lines are lists of piece numbers."""

    width: float
    height: float
    is_open: bool = False
    is_single: bool = False  # a stack that shows one of its modules
    rects: FloatArray = field(default_factory=lambda: np.zeros((0, 4), np.float32))
    pieces: FloatArray = field(default_factory=lambda: np.zeros((0, 4), np.float32))
    in_ports: dict[int, float] = field(default_factory=dict)
    out_ports: dict[int, float] = field(default_factory=dict)
    inner: dict[Inner, list[int]] = field(default_factory=dict)
    entries: dict[Entry, list[int]] = field(default_factory=dict)
    exits: dict[Exit, list[int]] = field(default_factory=dict)
    cut: frozenset[Inner | Entry] = frozenset()
    stubs: tuple[tuple[float, float, int, int], ...] = ()  # left, top, producer (~i is input i), consumer
    children: tuple[_Shape | Size, ...] = ()


class ModuleLayouts:
    """Lays out one region in any folding. Shapes of boxes are kept: a change costs the boxes around it."""

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
        self.edges = np.array(
            [(p, c) for c, producers in enumerate(self.tree.inputs) for p in producers], np.int32
        ).reshape(-1, 2)
        self._known: dict[object, _Shape] = {}  # by looks; shapes are kept for good, so that their ids stay theirs
        self._parts: Parts = {}
        self._seen: dict[object, _Shape] = {}  # by box and children

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
            return _Assembly(self, folding, cancelled).run()

    def shape(self, number: int, folding: Folding, cancelled: Cancelled | None) -> _Shape:
        """A box and everything in it."""
        box = self.tree.containers[number]
        if number and box.key not in folding.opened:
            return self._card(number)
        poll(cancelled)
        single = box.is_stack and box.key in folding.single
        chosen = box.children[:1] if single else box.children
        children = tuple(
            self.sizes[child] if child >= 0 else self.shape(~child, folding, cancelled) for child in chosen
        )
        # Most boxes are as they were: their children are the very same shapes.
        same = (number, single, tuple(id(child) for child in children if isinstance(child, _Shape)))
        if (seen := self._seen.get(same)) is not None:
            return seen
        lines = _Lines.of(box.inner, box.entries, box.exits, children, single)
        title = title_width(box.title, box.type_name) if number else 0.0
        looks = tuple(child if isinstance(child, Size) else id(child) for child in children)
        key = (looks, lines, title, single)
        known = self._known.get(key)
        if known is None:
            made = _lay_out_box(children, lines, title, bool(number), self._parts, cancelled)
            known = self._known[key] = replace(made, is_single=single)
        self._seen[same] = known
        return known

    def _card(self, number: int) -> _Shape:
        box = self.tree.containers[number]
        width, stack = title_width(box.title, box.type_name) + 24, _SHEETS if box.is_stack else 0.0
        key = ("card", width, stack)
        return self._known.setdefault(key, _Shape(width + stack, _CARD_HEIGHT + stack))


@dataclass(frozen=True)
class _Lines:
    """The lines of a box for the children as they are: what leaves or enters a closed child is one line."""

    inner: tuple[Inner, ...]
    entries: tuple[Entry, ...]
    exits: tuple[Exit, ...]

    @classmethod
    def of(
        cls,
        inner: Iterable[Inner],
        entries: Iterable[Entry],
        exits: Iterable[Exit],
        children: tuple[_Shape | Size, ...],
        single: bool,
    ) -> _Lines:
        is_open = [isinstance(child, _Shape) and child.is_open for child in children]
        has_ways = [isinstance(child, _Shape) and child.is_open and not child.is_single for child in children]
        if single:
            entries, exits, inner = (e._replace(target=0) for e in entries), (e._replace(source=0) for e in exits), ()
        return cls(
            tuple(
                dict.fromkeys(
                    Inner(a, way if has_ways[a] else 0, b, port if is_open[b] else 0) for a, way, b, port in inner
                )
            ),
            tuple(dict.fromkeys(Entry(i, b, port if is_open[b] else 0) for i, b, port in entries)),
            tuple(dict.fromkeys(Exit(a, way if has_ways[a] else 0) for a, way in exits)),
        )


def title_width(title: str, type_name: str) -> float:
    """The width that a box's title wants."""
    text = len(title) * SHAPE_PX * 0.68 + (len(type_name) * SHAPE_PX * 0.62 + 10 if type_name != title else 0)
    return min(-(-(text + 58) // 8) * 8.0, 340.0)


def _style(kind: NodeKind, is_extern: bool) -> NodeStyle:
    if kind is NodeKind.OUTPUT:
        return NodeStyle.OUTPUT
    if kind is not NodeKind.CALL:
        return NodeStyle.PILL
    return NodeStyle.EXTERN if is_extern else NodeStyle.OP


def _lay_out_box(
    children: tuple[_Shape | Size, ...],
    lines: _Lines,
    title: float,
    framed: bool,
    parts: Parts,
    cancelled: Cancelled | None,
) -> _Shape:
    """Places children in rows between a row of input ports and a row of output ports."""
    count = len(children)
    successors: list[dict[int, None]] = [{} for _ in range(count)]
    for a, _, b, _ in lines.inner:
        successors[a].setdefault(b)
    order = [list(targets) for targets in successors]
    _, back = topological_order(order)
    if back:
        order = [[b for b in targets if (a, b) not in back] for a, targets in enumerate(order)]
    ranks, late = rank_items(order)
    items = Items()
    for child, rank, is_late in zip(children, ranks, late, strict=True):
        width, height = (child.width, child.height)
        items.add(width, height, rank + 1, is_late)
    links: list[Link] = []
    keys: list[Inner | Entry | Exit] = []
    cut: dict[Inner | Entry, tuple[int, int, int]] = {}  # stub item, producer, consumer
    stub_of: dict[tuple[int, int], int] = {}

    def arrive(target: int, port: int) -> float | None:
        child = children[target]
        if isinstance(child, _Shape) and child.is_open and port in child.in_ports:
            return child.in_ports[port] - child.width / 2
        return None

    def leave(source: int, way: int) -> float:
        child = children[source]
        if isinstance(child, _Shape) and child.is_open:
            return child.out_ports.get(way, child.width / 2) - child.width / 2
        return 0.0

    def cut_off(key: Inner | Entry, producer: int, target: int, port: int) -> None:
        stub = stub_of.get((producer, target))
        if stub is None:
            stub = stub_of[producer, target] = items.add(*_STUB, items.rank[target] - 1, low=True)
        cut[key] = (stub, producer, target)
        keys.append(key)
        links.append(Link(stub, target, 0.0, arrive(target, port)))

    port_of: dict[int, int] = {}
    for entry in lines.entries:
        if items.rank[entry.target] > _LONGEST:
            cut_off(entry, ~entry.number, entry.target, entry.port)
            continue
        if entry.number not in port_of:
            port_of[entry.number] = items.add(0.0, TITLE_HEIGHT, 0)
        keys.append(entry)
        links.append(Link(port_of[entry.number], entry.target, 0.0, arrive(entry.target, entry.port)))
    for line in lines.inner:
        if not 0 < items.rank[line.target] - items.rank[line.source] <= _LONGEST:
            cut_off(line, line.source, line.target, line.port)
            continue
        keys.append(line)
        out = leave(line.source, line.way)
        links.append(Link(line.source, line.target, out, arrive(line.target, line.port)))
    bottom = max(ranks, default=0) + 2
    exit_of: dict[int, int] = {}
    for way in lines.exits:
        if way.source not in exit_of:
            exit_of[way.source] = items.add(0.0, 0.0, bottom)
        keys.append(way)
        links.append(Link(way.source, exit_of[way.source], leave(way.source, way.way), 0.0))
    if framed and not port_of:
        items.add(0.0, TITLE_HEIGHT, 0)  # holds the title's place

    # Where the flow comes in and where it goes out stand above one another, so that boxes in a row make no slope.
    on_axis = [port_of[number] for number in list(port_of)[:1]]
    if exit_of:
        on_axis.append(exit_of[max(exit_of, key=lambda source: (items.rank[source], source))])
    done = arrange_in_series(items, links, _SPACING, cancelled, parts, on_axis if framed else ())
    x, width_of = np.array(done.x), np.array(items.width)
    left, right = float((x - width_of / 2).min(initial=0.0)), float((x + width_of / 2).max(initial=0.0))
    padding = _PADDING if framed else 0.0
    width = max(right - left + 2 * padding, title)
    shift = (width - right - left) / 2
    height = max((top + h for top, h in zip(done.top, items.height, strict=True)), default=0.0)
    if not exit_of:
        height += padding
    rects = np.array(
        [(done.x[i] + shift - items.width[i] / 2, done.top[i], items.width[i], items.height[i]) for i in range(count)],
        np.float32,
    ).reshape(-1, 4)
    heads = {number: len(done.pieces) + i for i, number in enumerate(port_of)}
    through = np.array([(done.x[item], 0.0, done.x[item], TITLE_HEIGHT) for item in port_of.values()]).reshape(-1, 4)
    pieces = np.concatenate([done.pieces, through])
    pieces[:, 0::2] += shift
    shape = _Shape(
        width,
        height,
        is_open=True,
        rects=rects,
        pieces=pieces.astype(np.float32),
        in_ports={number: done.x[item] + shift for number, item in port_of.items()},
        out_ports={source: done.x[item] + shift for source, item in exit_of.items()},
        cut=frozenset(cut),
        stubs=tuple(
            (done.x[stub] + shift - _STUB.width / 2, done.top[stub], producer, consumer)
            for stub, producer, consumer in dict.fromkeys(cut.values())
        ),
        children=children,
    )
    for key, used in zip(keys, done.link_pieces, strict=True):
        if isinstance(key, Inner):
            shape.inner[key] = used
        elif isinstance(key, Exit):
            shape.exits[key] = used
        else:
            shape.entries[key] = used if key in cut else [heads[key.number], *used]
    return shape


class _Assembly:
    """Puts shapes into one another and collects the arrays."""

    def __init__(self, layouts: ModuleLayouts, folding: Folding, cancelled: Cancelled | None) -> None:
        self.layouts, self.folding, self.cancelled = layouts, folding, cancelled
        count = len(layouts.names)
        self.node_rect = np.zeros((count, 4), np.float32)
        self.node_group = np.full(count, -1, np.int32)
        self.shown = np.zeros(count, bool)
        self.stand_in = np.arange(count, dtype=np.int32)
        self.boxes: list[Box] = []
        self.box_rects: list[tuple[float, float, float, float]] = []
        self.pieces: list[FloatArray] = []
        self.total = 0
        self.base: dict[int, tuple[int, _Shape]] = {}  # open container -> its first piece
        self.twin = list(range(len(layouts.tree.containers)))  # the container that is drawn for one
        self.copy_of = np.full(count, -1, np.int32)  # which module of a stack that shows one, by its nodes
        self.stubs: list[tuple[float, float, str, int, int]] = []
        self._known_around: dict[int, tuple[list[int], bool]] = {}

    def run(self) -> NestedLayout:
        """The whole region."""
        whole = self.layouts.shape(0, self.folding, self.cancelled)
        self._place(0, whole, 0.0, 0.0, -1, -1)
        poll(self.cancelled)
        edges, counts, used, cut = self._collect_edges()
        return NestedLayout(
            names=self.layouts.names,
            group_names=tuple(box.key for box in self.boxes),
            stub_labels=tuple(label for _, _, label, _, _ in self.stubs),
            node_rect=self.node_rect,
            node_style=np.array(self.layouts.styles, np.uint8),
            node_group=self.node_group,
            group_rect=np.array(self.box_rects, np.float32).reshape(-1, 4),
            pieces=np.concatenate(self.pieces) if self.pieces else np.zeros((0, 4), np.float32),
            edges=edges,
            edge_start=np.array([0, *accumulate(len(one) for one in used)], np.int32),
            edge_pieces=np.array([piece for one in used for piece in one], np.int32),
            edge_cut=np.array(cut, np.uint8),
            stub_rect=np.array([(x, y, *_STUB) for x, y, *_ in self.stubs], np.float32).reshape(-1, 4),
            stub_owner=np.array([owner for *_, owner, _ in self.stubs], np.int32),
            stub_peer=np.array([peer for *_, peer in self.stubs], np.int32),
            boxes=tuple(self.boxes),
            shown=self.shown,
            stand_in=self.stand_in,
            edge_values=counts,
        )

    def _place(self, number: int, shape: _Shape, left: float, top: float, depth: int, around: int) -> None:
        """Draws a box with its left top corner at a point; ``around`` is the box that it is in, as an index."""
        tree = self.layouts.tree
        box = tree.containers[number]
        index = around
        if number:
            index = len(self.boxes)
            count = len(box.children) if box.is_stack else 1
            members = tuple(box.members)
            self.boxes.append(
                Box(box.key, box.title, box.type_name, depth, shape.is_open, count, members, shape.is_single)
            )
            self.box_rects.append((left, top, shape.width, shape.height))
        if not shape.is_open:
            self.node_rect[box.members] = (left, top, shape.width, shape.height)
            self.node_group[box.members] = index
            self.stand_in[box.members] = box.members[0]
            return
        self.base[number] = (self.total, shape)
        self.pieces.append(shape.pieces + np.array([left, top, left, top], np.float32))
        self.total += len(shape.pieces)
        where = shape.rects + np.array([left, top, 0.0, 0.0], np.float32)
        nodes = [(place, child) for place, child in enumerate(box.children[: len(where)]) if child >= 0]
        if nodes:
            own = [child for _, child in nodes]
            self.node_rect[own] = where[[place for place, _ in nodes]]
            self.node_group[own] = index
            self.shown[own] = True
        for place, child in enumerate(shape.children):
            if isinstance(child, _Shape):
                x, y = where[place, 0], where[place, 1]
                self._place(~box.children[place], child, float(x), float(y), depth + 1, index)
        if len(where) < len(box.children):
            self._show_by_one(number)
        self._add_stubs(number, shape, left, top)

    def _show_by_one(self, number: int) -> None:
        """The first module of a stack stands for the others."""
        tree = self.layouts.tree
        modules = [~child for child in tree.containers[number].children]
        first = tree.containers[modules[0]]
        inside = modules[1] - modules[0]
        self.copy_of[first.members] = 0
        for count, other in enumerate(modules[1:], 1):
            members = tree.containers[other].members
            self.node_rect[members] = self.node_rect[first.members]
            self.node_group[members] = self.node_group[first.members]
            self.stand_in[members] = self.stand_in[first.members]
            self.copy_of[members] = count
            for offset in range(inside):
                self.twin[other + offset] = self.twin[modules[0] + offset]

    def _add_stubs(self, number: int, shape: _Shape, left: float, top: float) -> None:
        tree = self.layouts.tree
        box = tree.containers[number]
        sources = list(box.inputs)
        for x, y, producer, consumer in shape.stubs:
            source = box.children[producer] if producer >= 0 else sources[~producer]
            target = box.children[consumer]
            peer, owner = self._one_node(source), self._one_node(target)
            label = tree.containers[~source].title if source < 0 else self._node_label(source)
            self.stubs.append((left + x, top + y, label, owner, peer))

    def _node_label(self, node: int) -> str:
        found = self.layouts.region.nodes[node]
        return found.name if found.kind is not NodeKind.CALL else node_title(found)

    def _one_node(self, child: int) -> int:
        return child if child >= 0 else self.layouts.tree.containers[~child].members[0]

    def _collect_edges(self) -> tuple[IntArray, IntArray, list[list[int]], list[bool]]:
        """Edges between what is shown, each once; how many FX edges it stands for; its pieces; whether it is cut."""
        every = self.layouts.edges
        ends = self.stand_in[every]
        copies = self.copy_of[every]
        apart = (copies[:, 0] >= 0) & (copies[:, 1] >= 0) & (copies[:, 0] != copies[:, 1])
        drawn = np.flatnonzero((ends[:, 0] != ends[:, 1]) & ~apart)
        # A module that stands for a stack shows its own edges, not those of all.
        drawn = drawn[np.argsort((copies[drawn] > 0).any(axis=1), kind="stable")]
        keys = ends[drawn, 0].astype(np.int64) * len(self.layouts.names) + ends[drawn, 1]
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        own = np.where((copies[drawn] > 0).any(axis=1), 0, 1)
        counts = np.maximum(np.bincount(places.reshape(-1), own, minlength=len(first)), 1)
        chosen = drawn[first]
        used: list[list[int]] = []
        cut: list[bool] = []
        for i, (producer, consumer) in enumerate(every[chosen].tolist()):
            if not i % 1024:
                poll(self.cancelled)
            pieces, is_cut = self._pieces(producer, consumer)
            used.append(pieces)
            cut.append(is_cut)
        return ends[chosen].astype(np.int32).reshape(-1, 2), counts.astype(np.int32), used, cut

    def _pieces(self, producer: int, consumer: int) -> tuple[list[int], bool]:
        """The pieces of an edge: out of the boxes around the producer, across, into those around the consumer."""
        tree = self.layouts.tree
        around, around_too = self._around(producer), self._around(consumer)
        if around is around_too and around[1]:
            first, shape = self.base[self.twin[tree.parent_of[producer]]]
            line = Inner(tree.place_of[producer], 0, tree.place_of[consumer], 0)
            return [first + piece for piece in shape.inner.get(line, ())], line in shape.cut or line not in shape.inner
        above = [*around[0], producer] if around[1] else around[0]
        below = [*around_too[0], consumer] if around_too[1] else around_too[0]
        level = 1
        while level < len(above) - 1 and level < len(below) - 1 and above[level] == below[level]:
            level += 1
        used: list[int] = []
        way = 0
        for depth in range(len(above) - 2, level - 1, -1):
            place = self._place_in(above[depth + 1])
            first, shape = self.base[self.twin[~above[depth]]]
            leaving = shape.exits.get(Exit(place, way))
            if leaving is None:
                return [], True  # one of many results, which are not drawn into the output node
            used += [first + piece for piece in leaving]
            way = place
        source = above[level]
        ports = [tree.containers[~box].inputs.get(source, 0) for box in below[level:-1]]
        ports.append(0)
        first, shape = self.base[self.twin[~above[level - 1]]]
        line = Inner(self._place_in(source), way, self._place_in(below[level]), ports[0])
        if line not in shape.inner:
            return [], True
        used += [first + piece for piece in shape.inner[line]]
        is_cut = line in shape.cut
        for depth in range(level, len(below) - 1):
            first, shape = self.base[self.twin[~below[depth]]]
            entry = Entry(ports[depth - level], self._place_in(below[depth + 1]), ports[depth - level + 1])
            used += [first + piece for piece in shape.entries[entry]]
            is_cut = is_cut or entry in shape.cut
        return used, is_cut

    def _around(self, node: int) -> tuple[list[int], bool]:
        """The boxes around a node from the region (~0) inwards, as far as they are open, and the closed one if there is
        one; whether there is none, so that the node itself is drawn."""
        parent = self.layouts.tree.parent_of[node]
        known = self._known_around.get(parent)
        if known is None:
            containers, opened = self.layouts.tree.containers, self.folding.opened
            found: list[int] = []
            is_shown = True
            for number in reversed(self.layouts.tree.ancestors(node)):
                found.append(~number)
                if number and containers[self.twin[number]].key not in opened:
                    is_shown = False
                    break
            known = self._known_around[parent] = found, is_shown
        return known

    def _place_in(self, child: int) -> int:
        """A child's number in the box around it as that is drawn."""
        tree = self.layouts.tree
        return tree.place(~self.twin[~child] if child < 0 else child)
