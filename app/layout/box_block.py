"""A box with all that is in it as arrays, relative to its corner: drawings are put together from the inside outwards.

What a change of one box does not touch is taken over as it is, a whole block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from app.layout.box_shape import Floats, Shape
from app.layout.graph_layout import IntArray
from app.layout.module_tree import ModuleTree
from app.layout.nested import Box

NODE, BOX, STAND_IN, SHOWN, FOREIGN = range(5)  # columns of Block.nodes
LINE, FIRST, COUNT, CUT = range(4)  # columns of Block.lines


def _rows(columns: int) -> Callable[[], IntArray]:
    return lambda: np.zeros((0, columns), np.int32)


def _corners() -> Floats:
    return np.zeros((0, 4))


@dataclass(frozen=True, eq=False)
class Block:
    """A drawn box and everything inside.

    - ``boxes``, ``box_rect`` (b, 4): itself first (but for the region, which has no box), then those inside.
    - ``nodes`` (n, 5), ``node_rect`` (n, 4): of each node its number, its box in ``boxes`` or -1, the node that stands
      for it, whether it is drawn itself, and whether it is in a module that another one of its stack is drawn for.
    - ``pieces`` (p, 4): stretches of lines. ``used`` (u,): their numbers, line after line.
    - ``lines`` (l, 4): of each line of an open box its number (see Routes), where its pieces begin in ``used``,
      how many, and whether it is cut; the number of pieces is -1 where the line is not drawn.
    - ``stub_at`` (s, 2), ``stub_ends`` (s, 2), ``stub_labels``: left and top, the node it belongs to, the one it names.
    - ``twins`` (t, 2): containers that are not drawn, and the one that is drawn for each.
    - ``singles``: containers that show one module for all.
    """

    shape: Shape
    boxes: tuple[Box, ...]
    box_rect: Floats
    nodes: IntArray
    node_rect: Floats
    pieces: Floats = field(default_factory=_corners)
    used: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    lines: IntArray = field(default_factory=_rows(4))
    stub_at: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    stub_ends: IntArray = field(default_factory=_rows(2))
    stub_labels: tuple[str, ...] = ()
    twins: IntArray = field(default_factory=_rows(2))
    singles: tuple[int, ...] = ()


def closed_block(box: Box, shape: Shape) -> Block:
    """A card that hides its nodes."""
    members = np.array(box.members, np.int32)
    nodes = np.zeros((len(members), 5), np.int32)
    nodes[:, NODE], nodes[:, STAND_IN] = members, members[0]
    rect = np.array([[0.0, 0.0, shape.width, shape.height]])
    return Block(shape, (box,), rect, nodes, np.repeat(rect, len(members), axis=0))


def open_block(
    tree: ModuleTree,
    number: int,
    box: Box | None,
    shape: Shape,
    numbers: IntArray,
    inside: Sequence[Block],
    label: Callable[[int], str],
) -> Block:
    """A box around its children.

    ``numbers`` says which of the shape's lines each line of the container is (-1: none), ``inside`` are the blocks of
    the containers among the children that are drawn, ``label`` names a node. ``box`` is None for the region.
    """
    container = tree.containers[number]
    drawn = np.array(container.children[: len(shape.rects)], np.int32)
    is_node = drawn >= 0
    own = np.zeros((int(is_node.sum()), 5), np.int32)
    own[:, NODE] = own[:, STAND_IN] = drawn[is_node]
    own[:, BOX], own[:, SHOWN] = (0 if box is not None else -1), 1
    corners = shape.rects[~is_node, :2]
    opened = [number for number, block in enumerate(inside) if block.shape.is_open]
    within, at = [inside[number] for number in opened], corners[opened]

    boxes = [(box,) if box is not None else (), *(block.boxes for block in inside)]
    own_box = np.array([[0.0, 0.0, shape.width, shape.height]]) if box is not None else np.zeros((0, 4))
    nodes = [own, *(block.nodes for block in inside)]
    node_counts = [len(block.nodes) for block in inside]
    all_nodes = np.concatenate(nodes)
    all_nodes[len(own) :, BOX] += np.repeat(_before(map(len, boxes))[1:], node_counts)
    box_rect = np.concatenate([own_box, *(block.box_rect for block in inside)])
    box_rect[len(own_box) :, :2] += np.repeat(corners, [len(block.boxes) for block in inside], axis=0)
    node_rect = np.concatenate([shape.rects[is_node], *(block.node_rect for block in inside)])
    node_rect[len(own) :, :2] += np.repeat(corners, node_counts, axis=0)
    twins = [block.twins for block in within]
    singles = tuple(chain.from_iterable(block.singles for block in within))
    if shape.is_single:
        more, more_rects, more_twins = _others(tree, number, all_nodes, node_rect, twins)
        all_nodes, node_rect = np.concatenate([all_nodes, more]), np.concatenate([node_rect, more_rects])
        twins, singles = [*twins, more_twins], (*singles, number)

    first_line = int(tree.routes.first_line[number])
    own_lines = np.empty((len(numbers), 4), np.int32)
    own_lines[:, LINE] = np.arange(first_line, first_line + len(numbers))
    own_lines[:, FIRST] = shape.used_start[numbers]
    own_lines[:, COUNT] = np.where(numbers >= 0, shape.used_start[numbers + 1] - shape.used_start[numbers], -1)
    own_lines[:, CUT] = shape.cut[numbers] if len(shape.cut) else False
    lines = np.concatenate([own_lines, *(block.lines for block in within)])
    used = [shape.used, *(block.used for block in within)]
    lines[len(own_lines) :, FIRST] += np.repeat(_before(map(len, used))[1:], [len(block.lines) for block in within])
    pieces = [shape.pieces, *(block.pieces for block in within)]
    all_used = np.concatenate(used)
    all_used[len(shape.used) :] += np.repeat(_before(map(len, pieces))[1:], list(map(len, used[1:])))
    all_pieces = np.concatenate(pieces)
    all_pieces[len(shape.pieces) :] += np.repeat(np.tile(at, 2), list(map(len, pieces[1:])), axis=0)

    stub_at, ends, labels = _stubs(tree, number, shape, label)
    counts = [len(block.stub_labels) for block in within]
    more_at = np.concatenate([stub_at, *(block.stub_at for block in within)])
    more_at[len(stub_at) :] += np.repeat(at, counts, axis=0)
    return Block(
        shape,
        tuple(chain.from_iterable(boxes)),
        box_rect,
        all_nodes,
        node_rect,
        all_pieces,
        all_used,
        lines,
        more_at,
        np.concatenate([ends, *(block.stub_ends for block in within)]),
        (*labels, *chain.from_iterable(block.stub_labels for block in within)),
        np.concatenate(twins) if twins else np.zeros((0, 2), np.int32),
        singles,
    )


def _before(counts: Sequence[int] | map[int]) -> IntArray:
    """Of each, the sum of those before it."""
    found = np.array(list(counts), np.int32)
    return (found.cumsum() - found).astype(np.int32)


def _others(
    tree: ModuleTree, number: int, nodes: IntArray, rects: Floats, twins: Sequence[IntArray]
) -> tuple[IntArray, Floats, IntArray]:
    """The modules of a stack that its first one stands for: their nodes' rows, and their containers' twins."""
    modules = [~child for child in tree.containers[number].children]
    members = np.array([tree.containers[module].members for module in modules], np.int32)
    order = np.argsort(nodes[:, NODE])
    rows = order[np.searchsorted(nodes[order, NODE], members[0])]
    others = len(modules) - 1
    more = np.tile(nodes[rows], (others, 1))
    more[:, NODE], more[:, SHOWN], more[:, FOREIGN] = members[1:].reshape(-1), 0, 1
    first, size = modules[0], modules[1] - modules[0]
    inside = np.arange(first, first + size, dtype=np.int32)
    for known in twins:
        inside[known[:, 0] - first] = known[:, 1]
    hidden = (np.array(modules[1:], np.int32)[:, None] + np.arange(size, dtype=np.int32)).reshape(-1)
    return more, np.tile(rects[rows], (others, 1)), np.stack([hidden, np.tile(inside, others)], axis=1)


def _stubs(
    tree: ModuleTree, number: int, shape: Shape, label: Callable[[int], str]
) -> tuple[Floats, IntArray, list[str]]:
    container = tree.containers[number]
    sources = list(container.inputs)
    ends, labels = [], []
    for _, _, producer, consumer in shape.stubs:
        source = container.children[producer] if producer >= 0 else sources[~producer]
        ends.append((tree.one_node(container.children[consumer]), tree.one_node(source)))
        labels.append(tree.containers[~source].title if source < 0 else label(source))
    at = np.array([stub[:2] for stub in shape.stubs], np.float64).reshape(-1, 2)
    return at, np.array(ends, np.int32).reshape(-1, 2), labels


def by_node(block: Block, count: int) -> tuple[IntArray, NDArray[np.float32]]:
    """The rows of ``nodes`` and ``node_rect`` in the order of the ``count`` nodes of the region."""
    nodes, rects = np.empty((count, 5), np.int32), np.empty((count, 4), np.float32)
    nodes[block.nodes[:, NODE]] = block.nodes
    rects[block.nodes[:, NODE]] = block.node_rect
    return nodes, rects
