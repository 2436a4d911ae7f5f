"""The shape of one box of a nested drawing: its children in rows between its inputs and its outputs, and its lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from app.layout.graph_layout import IntArray
from app.layout.items import Items, Link, Spacing
from app.layout.labels import SHAPE_PX, TITLE_HEIGHT, Size
from app.layout.module_tree import Entry, Exit, Inner, Line
from app.layout.ranks import Cancelled, rank_items, topological_order
from app.layout.series import Parts, arrange_in_series

_SPACING = Spacing(across=22.0, down=30.0)
_PADDING = 16.0
_LONGEST = 12  # ranks that an edge may cross inside a box before it is cut to a stub
STUB = Size(96.0, 18.0)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shape:
    """A laid-out box, relative to its left top corner; boxes that look alike share one.

    - ``rects`` (children, 4): left, top, width, height. ``pieces`` (p, 4): stretches of lines, as in GraphLayout.
    - Line i of its ``Lines`` consists of ``used[used_start[i]:used_start[i + 1]]``; ``cut[i]`` says that it is a stub.
    - ``stubs``: left, top, producer (~i is input i), consumer.
    """

    width: float
    height: float
    is_open: bool = False
    is_single: bool = False  # a stack that shows one of its modules
    rects: Floats = field(default_factory=lambda: np.zeros((0, 4)))
    pieces: Floats = field(default_factory=lambda: np.zeros((0, 4)))
    in_ports: dict[int, float] = field(default_factory=dict)
    out_ports: dict[int, float] = field(default_factory=dict)
    used: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    used_start: IntArray = field(default_factory=lambda: np.zeros(1, np.int32))
    cut: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    stubs: tuple[tuple[float, float, int, int], ...] = ()


@dataclass(frozen=True)
class Lines:
    """The lines of a box for the children as they are: what leaves or enters a closed child is one line."""

    inner: tuple[Inner, ...]
    entries: tuple[Entry, ...]
    exits: tuple[Exit, ...]

    @classmethod
    def of(cls, lines: Iterable[Line], children: tuple[Shape | Size, ...], single: bool) -> tuple[Lines, IntArray]:
        """The lines that a box shows, and which of them each of ``lines`` is, in the order of ``numbered``; -1 where it
        is none, between modules of a stack that shows one."""
        is_open = [isinstance(child, Shape) and child.is_open for child in children]
        has_ways = [isinstance(child, Shape) and child.is_open and not child.is_single for child in children]
        inner, entries, exits = dict[Inner, int](), dict[Entry, int](), dict[Exit, int]()
        found: list[tuple[int, int]] = []  # kind, number among its kind
        for line in lines:
            if isinstance(line, Inner):
                if single:
                    found.append((0, -1))
                    continue
                a, way, b, port = line
                shown = Inner(a, way if has_ways[a] else 0, b, port if is_open[b] else 0)
                found.append((0, inner.setdefault(shown, len(inner))))
            elif isinstance(line, Entry):
                b = 0 if single else line.target
                entry = Entry(line.number, b, line.port if is_open[b] else 0)
                found.append((1, entries.setdefault(entry, len(entries))))
            else:
                a = 0 if single else line.source
                way_out = Exit(a, line.way if has_ways[a] else 0)
                found.append((2, exits.setdefault(way_out, len(exits))))
        base = (0, len(inner), len(inner) + len(entries))
        numbers = np.array([base[kind] + number if number >= 0 else -1 for kind, number in found], np.int32)
        return cls(tuple(inner), tuple(entries), tuple(exits)), numbers

    @property
    def numbered(self) -> tuple[Line, ...]:
        """All lines."""
        return (*self.inner, *self.entries, *self.exits)


def title_width(title: str, type_name: str) -> float:
    """The width that a box's title wants."""
    text = len(title) * SHAPE_PX * 0.68 + (len(type_name) * SHAPE_PX * 0.62 + 10 if type_name != title else 0)
    return min(-(-(text + 58) // 8) * 8.0, 340.0)


def lay_out_box(
    children: tuple[Shape | Size, ...],
    lines: Lines,
    title: float,
    framed: bool,
    single: bool,
    parts: Parts,
    cancelled: Cancelled | None,
) -> Shape:
    """Places children in rows between a row of input ports and a row of output ports. ``title`` is the width that its
    title wants; ``parts`` are arrangements made before. Raises LayoutCancelled."""
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
        if isinstance(child, Shape) and child.is_open and port in child.in_ports:
            return child.in_ports[port] - child.width / 2
        return None

    def leave(source: int, way: int) -> float:
        child = children[source]
        if isinstance(child, Shape) and child.is_open:
            return child.out_ports.get(way, child.width / 2) - child.width / 2
        return 0.0

    def cut_off(key: Inner | Entry, producer: int, target: int, port: int) -> None:
        stub = stub_of.get((producer, target))
        if stub is None:
            stub = stub_of[producer, target] = items.add(*STUB, items.rank[target] - 1, low=True)
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
        np.float64,
    ).reshape(-1, 4)
    heads = {number: len(done.pieces) + i for i, number in enumerate(port_of)}
    through = np.array([(done.x[item], 0.0, done.x[item], TITLE_HEIGHT) for item in port_of.values()]).reshape(-1, 4)
    pieces = np.concatenate([done.pieces, through])
    pieces[:, 0::2] += shift
    ways: dict[Line, list[int]] = {}
    for key, found in zip(keys, done.link_pieces, strict=True):
        ways[key] = [heads[key.number], *found] if isinstance(key, Entry) and key not in cut else found
    used = [ways[line] for line in lines.numbered]
    return Shape(
        width,
        height,
        is_open=True,
        is_single=single,
        rects=rects,
        pieces=pieces,
        in_ports={number: done.x[item] + shift for number, item in port_of.items()},
        out_ports={source: done.x[item] + shift for source, item in exit_of.items()},
        used=np.array([piece for one in used for piece in one], np.int32),
        used_start=np.array([0, *accumulate(map(len, used))], np.int32),
        cut=np.array([line in cut for line in lines.numbered], bool),
        stubs=tuple(
            (done.x[stub] + shift - STUB.width / 2, done.top[stub], producer, consumer)
            for stub, producer, consumer in dict.fromkeys(cut.values())
        ),
    )
