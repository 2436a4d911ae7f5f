"""What has to stay in sequence when steps are put in another order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir import Extern
from compiler.planning.memory import may_alias
from compiler.planning.partitions import symbols_used
from compiler.planning.schedule import Launch, Scheduled, writes_of


@dataclass
class Dependencies:
    """For each step, those that have to run before it, and those that have to run after it."""

    before: list[set[int]]
    after: list[set[int]]


def dependencies(steps: Sequence[Scheduled]) -> Dependencies:
    """What no order may change, read off a schedule that is right.

    A step runs after those that make what it reads. Of memory that somebody writes into, readers stay between the same
    writers. Steps with effects that no tensor shows keep their order, and a size is found out before it is used.
    """
    found = _Sequence(steps)
    for position, step in enumerate(steps):
        found.after_what_it_reads(position, step)
        found.between_the_same_writers(position, step)
        if isinstance(step, Extern):
            found.in_order_of_effects(position, step)
    return found.graph


class _Sequence:
    """The dependencies between the steps seen so far, and what the next one may depend on."""

    def __init__(self, steps: Sequence[Scheduled]) -> None:
        self.graph = Dependencies([set() for _ in steps], [set() for _ in steps])
        self._maker: dict[str, int] = {}
        self._memory = memory_of(steps)
        self._rewritten = {place for step in steps for place in self._written(step)}
        self._accesses: dict[str, list[tuple[int, bool]]] = defaultdict(list)  # memory -> (step, whether it writes)
        self._finds_out: dict[str, int] = {}  # a symbol -> the call that gives it its value
        self._effect: int | None = None

    def after_what_it_reads(self, position: int, step: Scheduled) -> None:
        """Whatever makes a buffer or a size runs before its readers."""
        for name in step.reads:
            if name in self._maker:
                self._edge(self._maker[name], position)
        for symbol in symbols_used(step) if self._finds_out else ():
            if symbol in self._finds_out:
                self._edge(self._finds_out[symbol], position)
        self._maker.update(dict.fromkeys(_made(step), position))
        if isinstance(step, Extern):
            self._finds_out.update(dict.fromkeys((binding.symbol for binding in step.bindings), position))

    def between_the_same_writers(self, position: int, step: Scheduled) -> None:
        """After the last writer of each memory, and as a writer after all that read it since."""
        written = self._written(step)
        touched = dict.fromkeys(self._place(name) for name in (*step.reads, *_made(step), *_rewrites(step)))
        for place in touched:
            if place not in self._rewritten:
                continue
            earlier = self._accesses[place]
            for other, wrote in reversed(earlier):
                if place in written or wrote:
                    self._edge(other, position)
                if wrote:
                    break
            earlier.append((position, place in written))

    def in_order_of_effects(self, position: int, step: Extern) -> None:
        """After the last call whose effects no tensor shows, if it has such itself."""
        if step.keeps_order:
            if self._effect is not None:
                self._edge(self._effect, position)
            self._effect = position

    def _edge(self, first: int, then: int) -> None:
        if first != then:
            self.graph.before[then].add(first)
            self.graph.after[first].add(then)

    def _place(self, name: str) -> str:
        return self._memory.get(name, name)

    def _written(self, step: Scheduled) -> set[str]:
        return {self._place(name) for name in _rewrites(step)}


def _made(step: Scheduled) -> tuple[str, ...]:
    """The names that a step gives its results."""
    return step.result_names if isinstance(step, Extern) else tuple(buffer.name for buffer in step.stored)


def _rewrites(step: Scheduled) -> tuple[str, ...]:
    """Buffers whose memory a step writes into after somebody else did."""
    return step.mutates if isinstance(step, Extern) else tuple(step.takes_over.values())


def memory_of(steps: Sequence[Scheduled]) -> dict[str, str]:
    """Buffer -> a name for the memory that it may share with others, for those that may."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.get(name, name) != name:
            parent[name] = parent.get(parent[name], parent[name])
            name = parent[name]
        return name

    for step in steps:
        for a, b in _sharing(step):
            parent[find(a)] = find(b)
    return {name: find(name) for name in parent}


def _sharing(step: Scheduled) -> list[tuple[str, str]]:
    """Pairs of buffers that may be the same memory because of this step."""
    if isinstance(step, Launch):
        return list(step.takes_over.items())
    if not may_alias(step):
        return []
    together = [*step.reads, *(buffer.name for buffer in writes_of(step))]
    return [(together[0], other) for other in together[1:]]
