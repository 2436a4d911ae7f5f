"""List schedules: orders found step by step, from the front or from the back, by the memory that each step leaves live.

What a step frees changes as others run. It is kept in a heap, whose entries from before a change are passed over: all
takes time linear in the size of the graph, but for a logarithm.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from compiler.ir import Program
from compiler.planning.dependencies import Dependencies, memory_of
from compiler.planning.memory import returned_buffers
from compiler.planning.schedule import Scheduled, writes_of

Order = list[int]


@dataclass
class Storages:
    """What each step makes and uses, as memory: a name for each storage."""

    made: list[list[str]] = field(default_factory=list)
    used: list[list[str]] = field(default_factory=list)  # made before, or given up by the caller
    bytes: dict[str, int] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, steps: Sequence[Scheduled], program: Program, given_up: Collection[str]) -> Storages:
        """The storages of a schedule. What the caller holds is not among them, but for the inputs ``given_up``."""
        memory = memory_of(steps)
        found = cls(kept={memory.get(name, name) for name in returned_buffers(program)})
        for buffer in program.inputs:
            if buffer is not None and buffer.name in given_up:
                found.bytes.setdefault(memory.get(buffer.name, buffer.name), buffer.bytes)
        inputs = {b.name for b in program.inputs if b is not None} | program.constants.keys()
        others = {memory.get(name, name) for name in inputs} - found.bytes.keys()  # the caller's, whatever happens
        for step in steps:
            made = []
            for buffer in writes_of(step):
                place = memory.get(buffer.name, buffer.name)
                if place not in others and place not in found.bytes:
                    found.bytes[place] = buffer.bytes
                    made.append(place)
            used = dict.fromkeys(memory.get(name, name) for name in step.reads)
            found.made.append(made)
            found.used.append([place for place in used if place in found.bytes and place not in made])
        return found

    def size(self, places: Collection[str]) -> int:
        """Bytes of storages together."""
        return sum(self.bytes[place] for place in places)


def from_the_front(graph: Dependencies, storages: Storages, budget: int = -1) -> Order:
    """Of the steps that may run next the captured order's first where it keeps what is live within ``budget`` bytes,
    else the one after which least is live; of equals, the captured order's first."""
    front = _Front(graph, storages)
    while len(front.order) < len(graph.before):
        front.run(front.next(budget))
    return front.order


class _Front:
    """The steps that have run, in order, and those that may run next.

    ``growth`` is by how much each step changes what is live: it frees a storage once it is the last user left.
    """

    def __init__(self, graph: Dependencies, storages: Storages) -> None:
        self.order: Order = []
        self._graph = graph
        self._storages = storages
        self._users: dict[str, set[int]] = defaultdict(set)
        for position in range(len(storages.made)):
            for place in self._touched(position):
                self._users[place].add(position)
        self._taken = [storages.size(made) for made in storages.made]
        self._growth = list(self._taken)
        for place in self._users:
            self._freed_by_the_last(place)
        made = {place for places in storages.made for place in places}
        self._live = storages.size(storages.bytes.keys() - made)
        self._waiting = [len(before) for before in graph.before]
        self._done = [False] * len(self._waiting)
        self._by_growth: list[tuple[int, int]] = []
        self._in_order: Order = []
        for position, count in enumerate(self._waiting):
            if not count:
                self._may_run(position)

    def next(self, budget: int) -> int:
        """The step to run next."""
        while self._done[self._in_order[0]]:
            heapq.heappop(self._in_order)
        if self._live + self._taken[self._in_order[0]] <= budget:
            return heapq.heappop(self._in_order)
        while True:
            known, position = heapq.heappop(self._by_growth)
            if not self._done[position] and known == self._growth[position]:  # else it came to free more since
                return position

    def run(self, position: int) -> None:
        """Note that a step has run: what it frees, what others will free, and what may run after it."""
        self._done[position] = True
        self.order.append(position)
        self._live += self._growth[position]
        for place in self._touched(position):
            self._users[place].discard(position)
            last = self._freed_by_the_last(place)
            if last is not None and not self._waiting[last] and not self._done[last]:
                heapq.heappush(self._by_growth, (self._growth[last], last))
        for other in sorted(self._graph.after[position]):
            self._waiting[other] -= 1
            if not self._waiting[other]:
                self._may_run(other)

    def _touched(self, position: int) -> tuple[str, ...]:
        return (*self._storages.used[position], *self._storages.made[position])

    def _freed_by_the_last(self, place: str) -> int | None:
        """The only user that a storage has left, if it is freed then: its step grows by that much less."""
        if len(self._users[place]) != 1 or place in self._storages.kept:
            return None
        (last,) = self._users[place]
        self._growth[last] -= self._storages.bytes[place]
        return last

    def _may_run(self, position: int) -> None:
        heapq.heappush(self._by_growth, (self._growth[position], position))
        heapq.heappush(self._in_order, position)


def from_the_back(graph: Dependencies, storages: Storages) -> Order:
    """The order found from its end: of the steps that may run last always the one before which least is live."""
    back = _Back(graph, storages)
    while (position := back.next()) is not None:
        back.run(position)
    return back.order[::-1]


class _Back:
    """The steps that will run, last first, and those that may run before them.

    Seen from the end a step gives back what it makes and claims what it uses, unless a later step claimed that already.
    """

    def __init__(self, graph: Dependencies, storages: Storages) -> None:
        self.order: Order = []
        self._graph = graph
        self._storages = storages
        self._claimers: dict[str, list[int]] = defaultdict(list)
        for position, used in enumerate(storages.used):
            for place in used:
                self._claimers[place].append(position)
        self._claimed = set(storages.kept)
        self._growth = [
            storages.size([place for place in used if place not in self._claimed]) - storages.size(made)
            for used, made in zip(storages.used, storages.made, strict=True)
        ]
        self._waiting = [len(after) for after in graph.after]
        self._done = [False] * len(self._waiting)
        self._ready = [(self._growth[p], -p) for p, count in enumerate(self._waiting) if not count]
        heapq.heapify(self._ready)

    def next(self) -> int | None:
        """The step to run before those found; None where all are."""
        while self._ready:
            known, negative = heapq.heappop(self._ready)
            if not self._done[-negative] and known == self._growth[-negative]:  # else it came to claim less since
                return -negative
        return None

    def run(self, position: int) -> None:
        """Note that a step runs here: what it claims, others need not, and what may run before it."""
        self._done[position] = True
        self.order.append(position)
        for place in self._storages.used[position]:
            if place not in self._claimed:
                self._claim(place)
        for other in sorted(self._graph.before[position]):
            self._waiting[other] -= 1
            if not self._waiting[other]:
                heapq.heappush(self._ready, (self._growth[other], -other))

    def _claim(self, place: str) -> None:
        self._claimed.add(place)
        for other in self._claimers[place]:
            if not self._done[other]:
                self._growth[other] -= self._storages.bytes[place]
                if not self._waiting[other]:
                    heapq.heappush(self._ready, (self._growth[other], -other))
