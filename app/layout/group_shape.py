"""The inside of one fusion group, laid out once for all groups of the same structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.layout.graph_layout import FloatArray
from app.layout.items import Items, Link, Spacing
from app.layout.labels import TITLE_HEIGHT, Size
from app.layout.layered import arrange
from app.layout.ranks import Cancelled, rank_items

INNER_STUB = Size(88.0, 18.0)  # one width for all, so that groups which differ in names only share a shape
_SPACING = Spacing(across=16.0, down=22.0)
_PADDING = 14.0
_STACK_GAP = 20.0
_LONGEST = 12  # ranks that an edge may cross inside a group before it is cut to a stub
_LONGEST_EXIT = 40  # ranks to the group's bottom from which a value still gets a port there


class GroupStructure(NamedTuple):
    """What the inside of a group depends on. Members and inputs are local indices; equal structures look the same."""

    sizes: tuple[Size, ...]
    inner: tuple[tuple[int, int], ...]  # producer, consumer; producers come first
    inputs: tuple[tuple[int, int], ...]  # input, consumer
    outputs: tuple[int, ...]  # members read from outside
    title_width: float


@dataclass(frozen=True)
class InnerStub:
    """A label that stands for an edge too long to draw inside the group. Producers >= 0 are members, ~i is input i."""

    left: float
    top: float
    producer: int
    consumer: int


@dataclass(frozen=True, eq=False)
class GroupShape:
    """A laid-out group, relative to its left top corner.

    ``entries`` holds the pieces of each (input, consumer) edge, ``exits`` of each output down to the bottom,
    ``inner`` of each (producer, consumer) edge. Ports are x coordinates on the top and bottom side.
    """

    width: float
    height: float
    rects: FloatArray  # (members, 4)
    pieces: FloatArray  # (pieces, 4)
    in_ports: dict[int, float]
    out_ports: dict[int, float]
    entries: dict[tuple[int, int], list[int]]
    exits: dict[int, list[int]]
    inner: dict[tuple[int, int], list[int]]
    cut_edges: frozenset[tuple[int, int]]  # producers as in stubs
    stubs: tuple[InnerStub, ...]


def stack_shape(sizes: tuple[Size, ...]) -> GroupShape:
    """Nodes under one another, each read by the next alone; without a frame, a title or ports of its own."""
    width = max(size.width for size in sizes)
    rects: list[tuple[float, float, float, float]] = []
    pieces: list[tuple[float, float, float, float]] = []
    top = 0.0
    for size in sizes:
        if rects:
            pieces.append((width / 2, top, width / 2, top + _STACK_GAP))
            top += _STACK_GAP
        rects.append(((width - size.width) / 2, top, *size))
        top += size.height
    last = len(sizes) - 1
    return GroupShape(
        width=width,
        height=top,
        rects=np.array(rects, np.float32),
        pieces=np.array(pieces, np.float32),
        in_ports={},
        out_ports={last: width / 2},
        entries={},
        exits={last: []},
        inner={(i, i + 1): [i] for i in range(last)},
        cut_edges=frozenset(),
        stubs=(),
    )


def lay_out_group(structure: GroupStructure, cancelled: Cancelled | None = None) -> GroupShape:
    """Places the members of a group in rows between a row of input ports and a row of output ports."""
    members = len(structure.sizes)
    successors: list[list[int]] = [[] for _ in range(members)]
    for producer, consumer in structure.inner:
        successors[producer].append(consumer)
    ranks, _ = rank_items(successors)
    items = Items()
    for size, rank in zip(structure.sizes, ranks, strict=True):
        items.add(size.width, size.height, rank + 1)
    links: list[Link] = []
    keys: list[tuple[str, int, int]] = []
    cut: list[tuple[int, int, int]] = []  # stub item, producer, consumer

    def connect(kind: str, producer: int, consumer: int, source: int, target: int) -> None:
        links.append(Link(source, target))
        keys.append((kind, producer, consumer))

    def cut_off(kind: str, producer: int, consumer: int) -> None:
        stub = items.add(*INNER_STUB, items.rank[consumer] - 1, low=True)
        cut.append((stub, producer if kind == "inner" else ~producer, consumer))
        connect(kind, producer, consumer, stub, consumer)

    # The row of ports is as high as the title, so that edges come out below it.
    port_of: dict[int, int] = {}
    for source, consumer in structure.inputs:
        if items.rank[consumer] > _LONGEST:
            cut_off("entry", source, consumer)
        else:
            if source not in port_of:
                port_of[source] = items.add(0.0, TITLE_HEIGHT, 0)
            connect("entry", source, consumer, port_of[source], consumer)
    for producer, consumer in structure.inner:
        if items.rank[consumer] - items.rank[producer] > _LONGEST:
            cut_off("inner", producer, consumer)
        else:
            connect("inner", producer, consumer, producer, consumer)
    bottom = max(ranks, default=0) + 2
    exit_of: dict[int, int] = {}
    for member in structure.outputs:
        if bottom - items.rank[member] <= _LONGEST_EXIT:
            exit_of[member] = items.add(0.0, 0.0, bottom)
            connect("exit", member, member, member, exit_of[member])
    if not port_of:
        items.add(0.0, TITLE_HEIGHT, 0)  # holds the title's place

    done = arrange(items, links, _SPACING, cancelled)
    left = min(x - width / 2 for x, width in zip(done.x, items.width, strict=True))
    right = max(x + width / 2 for x, width in zip(done.x, items.width, strict=True))
    width = max(right - left + 2 * _PADDING, structure.title_width)
    shift = (width - right - left) / 2
    height = max(top + h for top, h in zip(done.top, items.height, strict=True))
    if not exit_of:
        height += _PADDING
    rects = np.array(
        [[done.x[i] + shift - items.width[i] / 2, done.top[i], *structure.sizes[i]] for i in range(members)],
        np.float32,
    ).reshape(-1, 4)
    # From the top side through the title to where the port's edges begin.
    heads = {source: len(done.pieces) + i for i, source in enumerate(port_of)}
    through = np.array([(done.x[item], 0.0, done.x[item], TITLE_HEIGHT) for item in port_of.values()]).reshape(-1, 4)
    pieces = np.concatenate([done.pieces, through]).astype(np.float32)
    pieces[:, 0::2] += shift
    cut_edges = frozenset((producer, consumer) for _, producer, consumer in cut)
    entries: dict[tuple[int, int], list[int]] = {}
    exits: dict[int, list[int]] = {}
    inner: dict[tuple[int, int], list[int]] = {}
    for (kind, producer, consumer), used in zip(keys, done.link_pieces, strict=True):
        if kind == "entry":
            is_cut = (~producer, consumer) in cut_edges
            entries[producer, consumer] = used if is_cut else [heads[producer], *used]
        elif kind == "inner":
            inner[producer, consumer] = used
        else:
            exits[producer] = used
    return GroupShape(
        width=width,
        height=height,
        rects=rects,
        pieces=pieces,
        in_ports={source: done.x[item] + shift for source, item in port_of.items()},
        out_ports={member: done.x[item] + shift for member, item in exit_of.items()},
        entries=entries,
        exits=exits,
        inner=inner,
        cut_edges=cut_edges,
        stubs=tuple(
            InnerStub(done.x[item] + shift - INNER_STUB.width / 2, done.top[item], producer, consumer)
            for item, producer, consumer in cut
        ),
    )
