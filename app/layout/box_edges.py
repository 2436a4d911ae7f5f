"""Edges of a nested drawing: each pair of things shown is joined once, along the lines of the boxes in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.layout.box_block import COUNT, CUT, FIRST, FOREIGN, LINE, STAND_IN, Block
from app.layout.graph_layout import IntArray
from app.layout.module_tree import ModuleTree

_HIDDEN, _DRAWN, _CUT, _MISSING = range(4)  # what became of a line

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edges:
    """Producer and consumer of each edge, how many FX edges it bundles, its pieces, whether it is cut; as in
    NestedLayout."""

    ends: IntArray
    values: IntArray
    start: IntArray
    pieces: IntArray
    cut: NDArray[np.uint8]


def collect_edges(tree: ModuleTree, block: Block, nodes: IntArray) -> Edges:
    """The edges between what is shown. ``block`` is the region, ``nodes`` its rows in the order of the nodes."""
    routes = tree.routes
    twin = np.arange(len(tree.containers), dtype=np.int32)
    twin[block.twins[:, 0]] = block.twins[:, 1]
    chosen, ends, values = _shown(tree, block, nodes, twin)
    state = np.full(int(routes.first_line[-1]), _HIDDEN, np.int8)
    where = np.zeros((len(state), 2), np.int64)  # its first piece in ``used``, and how many there are
    line = block.lines[:, LINE]
    state[line] = np.where(block.lines[:, COUNT] < 0, _MISSING, np.where(block.lines[:, CUT] > 0, _CUT, _DRAWN))
    where[line] = np.maximum(block.lines[:, FIRST : COUNT + 1], 0)

    steps_of = routes.start[chosen + 1] - routes.start[chosen]
    edge = np.repeat(np.arange(len(chosen)), steps_of)
    lines = _twin_lines(tree, routes.lines[_ranges(routes.start[chosen], steps_of)], twin)
    found = np.where(lines >= 0, state[lines], _MISSING)
    lost = (steps_of == 0) | (np.bincount(edge, found == _MISSING, minlength=len(chosen)) > 0)
    cut = lost | (np.bincount(edge, found == _CUT, minlength=len(chosen)) > 0)
    counts = np.where((found == _HIDDEN) | lost[edge], 0, where[lines, 1])
    pieces = block.used[_ranges(where[lines, 0], counts)]
    start = np.concatenate([[0], np.bincount(edge, counts, minlength=len(chosen)).cumsum()])
    return Edges(ends, values, start.astype(np.int32), pieces, cut.astype(np.uint8))


def _shown(tree: ModuleTree, block: Block, nodes: IntArray, twin: IntArray) -> tuple[Ints, IntArray, IntArray]:
    """An FX edge for each pair of things shown that edges join, the pairs in order, how many edges each bundles."""
    routes = tree.routes
    ends = nodes[routes.edges, STAND_IN]
    is_single = np.zeros(len(tree.containers), bool)
    is_single[list(block.singles)] = True
    # The modules of a stack that shows one of them are not joined: they are in one place.
    drawn = np.flatnonzero((ends[:, 0] != ends[:, 1]) & ~is_single[twin[routes.meeting]])
    foreign = nodes[routes.edges[drawn], FOREIGN].any(axis=1)
    if foreign.any():  # a module that stands for a stack shows its own edges, not those of all
        order = np.argsort(foreign, kind="stable")
        drawn, foreign = drawn[order], foreign[order]
    keys = ends[drawn, 0].astype(np.int64) * len(nodes) + ends[drawn, 1]
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    values = np.maximum(np.bincount(places.reshape(-1), ~foreign, minlength=len(first)), 1)
    chosen = drawn[first]
    return chosen, ends[chosen], values.astype(np.int32)


def _twin_lines(tree: ModuleTree, lines: IntArray, twin: IntArray) -> IntArray:
    """The lines that are drawn for some lines: of a container that another one is drawn for, those of that one, or -1
    where that one has none like it."""
    routes = tree.routes
    box = np.searchsorted(routes.first_line, lines, "right") - 1
    elsewhere = np.flatnonzero(twin[box] != box)
    if not len(elsewhere):
        return lines
    lines = lines.copy()
    names = {number: list(tree.containers[number].lines) for number in set(box[elsewhere].tolist())}
    for place in elsewhere.tolist():
        number, drawn = int(box[place]), int(twin[box[place]])
        name = names[number][int(lines[place]) - int(routes.first_line[number])]
        known = tree.containers[drawn].lines.get(name, -1)
        lines[place] = known + int(routes.first_line[drawn]) if known >= 0 else -1
    return lines


def _ranges(first: Ints | IntArray, counts: Ints | IntArray) -> Ints:
    """The numbers from each of ``first`` on, as many as its count, one range after the other."""
    before = counts.cumsum() - counts
    found: Ints = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(first - before, counts)
    return found
