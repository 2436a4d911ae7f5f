"""Ranks: which layer each item goes to, by longest path with late-able items pulled down to their consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
Cancelled = Callable[[], bool]


class LayoutCancelled(Exception):
    """The caller's ``cancelled`` callback returned True."""


def poll(cancelled: Cancelled | None) -> None:
    """Raises LayoutCancelled if the caller wants no layout any more."""
    if cancelled is not None and cancelled():
        raise LayoutCancelled


def polled(values: Iterable[T], cancelled: Cancelled | None, every: int = 1024) -> Iterator[T]:
    """The values; polls before every ``every`` of them. Raises LayoutCancelled."""
    source = iter(values)
    while chunk := tuple(islice(source, every)):
        poll(cancelled)
        yield from chunk


def topological_order(successors: Sequence[Sequence[int]]) -> tuple[list[int], set[tuple[int, int]]]:
    """All items, producers first and lower indices first among the free ones, and the edges that close cycles.

    Groups can wait for each other where a report's groups interleave. Then the lowest waiting index goes first, and
    the edges into it from items that come later are returned as back edges.
    """
    count = len(successors)
    if all(not targets or min(targets) > item for item, targets in enumerate(successors)):
        return list(range(count)), set()  # as in a graph that lists producers first
    waiting = [0] * count
    for targets in successors:
        for target in targets:
            waiting[target] += 1
    free = [item for item in range(count) if not waiting[item]]
    heapify(free)
    placed = [False] * count
    order: list[int] = []
    forced: set[int] = set()
    lowest = 0
    while len(order) < count:
        if free:
            item = heappop(free)
            if placed[item]:
                continue
        else:
            while placed[lowest]:
                lowest += 1
            item = lowest
            forced.add(item)
        placed[item] = True
        order.append(item)
        for target in successors[item]:
            waiting[target] -= 1
            if not waiting[target] and not placed[target]:
                heappush(free, target)
    if not forced:
        return order, set()
    position = {item: i for i, item in enumerate(order)}
    back = {(a, b) for a in range(count) for b in successors[a] if b in forced and position[a] >= position[b]}
    return order, back


def rank_items(
    successors: Sequence[Sequence[int]], sink: int | None = None, cancelled: Cancelled | None = None
) -> tuple[list[int], list[bool]]:
    """The rank of each item and whether it was pulled down to its consumers.

    ``successors`` must be free of cycles. Longest path puts every item as high as it can go; that would leave each
    layer's parameters at the top, thousands of ranks from their use. So an item moves down to just above its first
    consumer if nothing holds it above (all of its producers move with it), or if it has more consumers than producers.
    Edges to ``sink`` (the output node) pull nothing: what a graph returns should stay where it is computed.
    """
    order, _ = topological_order(successors)
    poll(cancelled)
    count = len(successors)
    rank = [0] * count
    producers: list[list[int]] = [[] for _ in range(count)]
    for item in polled(order, cancelled, 4096):
        below = rank[item] + 1
        for target in successors[item]:
            producers[target].append(item)
            if rank[target] < below:
                rank[target] = below
    pulling = [[t for t in targets if t != sink] for targets in successors]
    follows = [False] * count
    for item in polled(order, cancelled, 4096):
        follows[item] = all(follows[p] and len(pulling[p]) == 1 for p in producers[item])
    late = [False] * count
    for item in polled(reversed(order), cancelled, 4096):
        consumers = pulling[item]
        if consumers and (follows[item] or len(consumers) > len(producers[item])):
            wanted = min(rank[c] for c in consumers) - 1
            late[item] = follows[item]
            if wanted > rank[item]:
                rank[item] = wanted
    return rank, late
