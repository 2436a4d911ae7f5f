"""Nets of the upper level: which values run to which units as lines, and which are cut to stubs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.layout.graph_layout import NodeStyle
from app.layout.ranks import Cancelled, poll, polled, rank_items, topological_order
from app.layout.units import UnitGraph

_LIMITS = (32, 24, 16, 12, 8, 5, 3, 2, 1)  # ranks that a line may cross, the most generous first
_DUMMIES_PER_UNIT = 1.0
# An input of more units than this is drawn to near ones only, and so is what an output of more values returns.
_SHARED_FROM, _SHARED_LIMIT = 6, 3
_MOST_STUBS = 6  # at one unit; more become one stub that counts them


Net = tuple[int, int]  # a value's node and the unit that it goes into


@dataclass(frozen=True)
class Nets:
    """Ranks of the units, the nets drawn as lines, and the cut ones by unit. ``counted`` units get one stub for all."""

    rank: list[int]
    late: list[bool]
    lines: list[Net]
    cut: dict[int, list[int]]
    counted: set[int]


def plan_nets(graph: UnitGraph, cancelled: Cancelled | None) -> Nets:
    """Ranks the units and decides which nets are short enough to draw.

    Without the cut, inputs that every layer reads (rotary tables, masks) would take a place in every row.
    """
    units, unit_of = graph.units, graph.unit_of
    nets = [(producer, target) for target, unit in enumerate(units) for producer in unit.inputs]
    successors: list[dict[int, None]] = [{} for _ in units]
    for producer, target in polled(nets, cancelled, 4096):
        successors[unit_of[producer]][target] = None
    order_edges = [list(targets) for targets in successors]
    _, back = topological_order(order_edges)
    if back:
        order_edges = [[b for b in targets if (a, b) not in back] for a, targets in enumerate(order_edges)]
    poll(cancelled)
    sink = next((unit_of[i] for i, style in enumerate(graph.styles) if style is NodeStyle.OUTPUT), None)
    rank, late = rank_items(order_edges, sink, cancelled)
    spans = [rank[target] - rank[unit_of[producer]] for producer, target in nets]
    poll(cancelled)
    limits = _limits(graph, nets, spans, sink)
    lines: list[Net] = []
    cut: dict[int, list[int]] = {}
    for net, span, limit in polled(zip(nets, spans, limits, strict=True), cancelled, 4096):
        producer, target = net
        shape = units[unit_of[producer]].shape
        has_port = shape is None or graph.local_of[producer] in shape.out_ports
        if 0 < span <= limit and has_port and (unit_of[producer], target) not in back:
            lines.append(net)
        else:
            cut.setdefault(target, []).append(producer)
    if any(rank[target] == 0 for target in cut):
        rank = [r + 1 for r in rank]  # room for stubs above the first row
    return Nets(rank, late, lines, cut, {target for target, all_ in cut.items() if len(all_) > _MOST_STUBS})


def _limits(graph: UnitGraph, nets: list[Net], spans: list[int], sink: int | None) -> list[int]:
    """How many ranks each net may cross, so that all lines together stay linear in the number of units."""
    fan_out: dict[int, int] = {}
    fan_in: dict[int, int] = {}
    for producer, target in nets:
        fan_out[producer] = fan_out.get(producer, 0) + 1
        fan_in[target] = fan_in.get(target, 0) + 1
    shared = [
        (graph.styles[producer] is NodeStyle.PILL and fan_out[producer] > _SHARED_FROM)
        or (target == sink and fan_in[target] > _SHARED_FROM)
        for producer, target in nets
    ]
    budget = _DUMMIES_PER_UNIT * len(graph.units)
    crossed, is_shared = np.array(spans, np.int64), np.array(shared, bool)
    producers = np.array([producer for producer, _ in nets], np.int64)
    limit = _LIMITS[-1]
    for limit in _LIMITS:
        drawn = crossed <= np.where(is_shared, min(limit, _SHARED_LIMIT), limit)
        longest = np.zeros(len(graph.unit_of), np.int64)
        np.maximum.at(longest, producers[drawn], crossed[drawn])
        if (longest[longest > 0] - 1).sum() <= budget:
            break
    return [min(limit, _SHARED_LIMIT) if one else limit for one in shared]
