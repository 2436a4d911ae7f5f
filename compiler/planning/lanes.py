"""A schedule on several streams: which step runs on which, and what it has to wait for there.

Steps wait for each other where one writes memory that the other reads or writes. Names that may stand for the same
memory (views that library calls return, storage that a kernel goes on with) count as one. No buffer takes over dead
storage here, for that would order steps that have nothing to do with each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir import Extern
from compiler.planning.memory import may_alias
from compiler.planning.schedule import Launch, Scheduled


@dataclass(frozen=True)
class Lanes:
    """``lane`` gives each step's stream, 0 being the caller's. ``waits`` are the steps on other streams that a step
    waits for before it runs; ``count`` is how many streams there are."""

    lane: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    count: int


def dependencies(steps: Sequence[Scheduled]) -> list[set[int]]:
    """For each step the earlier ones whose memory it reads or overwrites, or that read what it overwrites."""
    root = _Roots(steps)
    written: dict[str, int] = {}  # memory -> the step that wrote it last
    read: dict[str, set[int]] = defaultdict(set)  # memory -> the steps that have read it since
    result = []
    for position, step in enumerate(steps):
        reads = {root.of(name) for name in step.reads}
        writes = {root.of(name) for name in _written_by(step)}
        before = {written[name] for name in reads | writes if name in written}
        before |= {reader for name in writes for reader in read[name]}
        result.append(before - {position})
        for name in writes:
            written[name], read[name] = position, set()
        for name in reads - writes:
            read[name].add(position)
    return result


def lanes(steps: Sequence[Scheduled], most: int) -> Lanes | None:
    """The schedule on at most ``most`` streams; None where one is enough.

    A step goes on where a step that it waits for was the last, else on a stream of its own, else behind steps that it
    waits for anyhow.
    """
    before = dependencies(steps)
    ancestors: list[set[int]] = []
    for position in range(len(steps)):
        ancestors.append(before[position].union(*(ancestors[earlier] for earlier in before[position])))
    tails: list[int] = []  # of each stream the last step
    lane: list[int] = []
    for position in range(len(steps)):
        ends = [k for k, tail in enumerate(tails) if tail in before[position]]
        behind = [k for k, tail in enumerate(tails) if tail in ancestors[position]]
        if ends:
            chosen = max(ends, key=lambda k: tails[k])
        elif len(tails) < most:
            chosen = len(tails)
            tails.append(position)
        else:
            chosen = min(behind or range(len(tails)), key=lambda k: tails[k])
        tails[chosen] = position
        lane.append(chosen)
    if len(tails) < 2:
        return None
    seen: list[dict[int, int]] = [{} for _ in tails]  # stream -> other stream -> the last of its steps waited for
    waits = []
    for position, mine in enumerate(lane):
        needed = []
        for earlier in sorted(before[position], reverse=True):
            if lane[earlier] != mine and seen[mine].get(lane[earlier], -1) < earlier:
                seen[mine][lane[earlier]] = earlier
                needed.append(earlier)
        waits.append(tuple(needed))
    return Lanes(tuple(lane), tuple(waits), len(tails))


def _written_by(step: Scheduled) -> list[str]:
    if isinstance(step, Launch):
        return [*(buffer.name for buffer in step.stored), *step.takes_over.values()]
    return [*step.result_names, *step.mutates]


class _Roots:
    """One name for all names that may stand for the same memory."""

    def __init__(self, steps: Sequence[Scheduled]) -> None:
        self._parent: dict[str, str] = {}
        for step in steps:
            if isinstance(step, Launch):
                for made, taken in step.takes_over.items():
                    self._join(made, taken)
            elif isinstance(step, Extern) and may_alias(step):
                names = [*step.result_names, *step.reads]
                for name in names[1:]:
                    self._join(names[0], name)

    def of(self, name: str) -> str:
        while (parent := self._parent.get(name, name)) != name:
            name = parent
        return name

    def _join(self, a: str, b: str) -> None:
        self._parent[self.of(a)] = self.of(b)
