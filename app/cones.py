"""What a node depends on, what depends on it, and what lies between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Reads = Sequence[Sequence[int]]  # of each node, the nodes that it reads


def upstream(reads: Reads, start: Iterable[int]) -> set[int]:
    """The nodes that some nodes depend on, with themselves."""
    found = set(start)
    waiting = list(found)
    while waiting:
        for producer in reads[waiting.pop()]:
            if producer not in found:
                found.add(producer)
                waiting.append(producer)
    return found


def downstream(reads: Reads, start: Iterable[int]) -> set[int]:
    """The nodes that depend on some nodes, with themselves."""
    readers: list[list[int]] = [[] for _ in reads]
    for consumer, producers in enumerate(reads):
        for producer in producers:
            readers[producer].append(consumer)
    return upstream(readers, start)


def between(reads: Reads, one: int, other: int) -> set[int]:
    """The nodes on any path from one node to the other, whichever comes first; empty if there is none."""
    for first, last in ((one, other), (other, one)):
        found = downstream(reads, [first]) & upstream(reads, [last])
        if found:
            return found
    return set()
