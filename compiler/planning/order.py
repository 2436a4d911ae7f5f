"""The order in which launches and library calls run: the one that needs the least memory at its peak.

Any order that keeps data, writes and side effects in sequence computes the same numbers. The captured one stands unless
another is lower: two list schedules are tried, one from the front (of what may run next, what leaves the least memory
behind) and one from the back (of what may run last, what needs the least memory kept for it). A third keeps to the
captured order while that needs less than the peak that was reached, and leaves it where it would need more: it lowers
the peak, perhaps several times, where the first two wander off too early. One more is allowed that peak itself, which
leaves most steps beside those whose data they share. All take time linear in the size of the graph, but for a
logarithm, and depend on nothing else.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from compiler.ir import Program
from compiler.options import DEFAULTS, Options
from compiler.planning.dependencies import dependencies
from compiler.planning.list_schedules import Order, Storages, from_the_back, from_the_front
from compiler.planning.memory import MemoryPlan, plan_memory
from compiler.planning.schedule import Scheduled
from compiler.report import MemoryOrder

MAX_LOWERED = 8  # times that the peak is lowered by what the captured order may need


@dataclass(frozen=True)
class Ordered:
    """A schedule and its memory plan. ``captured_peak`` is the peak, in bytes, of the order of the capture, ``moved``
    the fewest steps that have to be taken out and put back elsewhere to get this order from that one.
    """

    steps: list[Scheduled]
    plan: MemoryPlan
    captured_peak: int
    moved: int = 0
    policy: MemoryOrder | None = None  # None where no other order was looked for


def lower_peak(
    steps: Sequence[Scheduled],
    program: Program,
    options: Options = DEFAULTS,
    *,
    given_up: Collection[str] = (),
    donated: Collection[str] = (),
    refused: Collection[int] = (),
    finish: Callable[[Sequence[Scheduled]], list[Scheduled]] = list,
) -> Ordered:
    """The best of the orders that are tried, and its plan.

    Args:
        given_up: inputs that nobody but the schedule holds: they are freed at their last use.
        donated: those of them that may be written over.
        refused: positions of steps that no CUDA Graph can hold. No order is taken that parts the others more often.
        finish: what is done to a schedule before it is planned.
    """
    trials = _Trials(steps, program, options, given_up, donated, {id(steps[p]) for p in refused}, finish)
    captured = trials.captured()
    if not options.reorder or len(steps) < 3:
        return captured
    graph, storages = dependencies(steps), Storages.of(steps, program, given_up)
    forward, backward = from_the_front(graph, storages), from_the_back(graph, storages)
    best = replace(captured, policy=MemoryOrder.CAPTURED)
    best = trials.lower(best, MemoryOrder.FORWARD, forward)
    best = trials.lower(best, MemoryOrder.BACKWARD, backward)
    for _ in range(MAX_LOWERED):
        below = from_the_front(graph, storages, best.plan.peak_bytes - 1)
        found = trials.lower(best, MemoryOrder.BUDGET, below)
        if found is best:
            break
        best = found
    if best.moved:
        best = trials.nearer(best, MemoryOrder.BUDGET, from_the_front(graph, storages, best.plan.peak_bytes))
    return best


@dataclass(frozen=True)
class _Trials:
    """Orders of one schedule's steps, planned. ``outside`` has the ``id`` of those that no CUDA Graph can hold; the
    rest is as ``lower_peak`` takes it."""

    steps: Sequence[Scheduled]
    program: Program
    options: Options
    given_up: Collection[str]
    donated: Collection[str]
    outside: set[int]
    finish: Callable[[Sequence[Scheduled]], list[Scheduled]]

    def captured(self) -> Ordered:
        """The steps as they are."""
        finished = self.finish(self.steps)
        plan = self._plan(finished)
        return Ordered(finished, plan, plan.peak_bytes)

    def lower(self, best: Ordered, policy: MemoryOrder, order: Order) -> Ordered:
        """The order, where its peak is lower than that of the best so far; else that."""
        found = self._tried(best, policy, order)
        return found if found is not None and found.plan.peak_bytes < best.plan.peak_bytes else best

    def nearer(self, best: Ordered, policy: MemoryOrder, order: Order) -> Ordered:
        """As ``lower``, or where it is as low and moves fewer steps."""
        found = self._tried(best, policy, order)
        better = found is not None and (found.plan.peak_bytes, found.moved) < (best.plan.peak_bytes, best.moved)
        return found if found is not None and better else best

    def _tried(self, best: Ordered, policy: MemoryOrder, order: Order) -> Ordered | None:
        """The order's schedule, where it may be taken and is no worse than the best so far."""
        arranged = [self.steps[position] for position in order]
        if _alternations(arranged, self.outside) > _alternations(self.steps, self.outside):
            return None
        if self._plan(arranged).peak_bytes > best.plan.peak_bytes:
            return None  # what finishing does to it need not be found out
        finished = self.finish(arranged)
        moved = len(order) - _longest_rise(order)
        return Ordered(finished, self._plan(finished), best.captured_peak, moved, policy)

    def _plan(self, schedule: Sequence[Scheduled]) -> MemoryPlan:
        return plan_memory(schedule, self.program, self.options, self.given_up, self.donated)


def _longest_rise(order: Order) -> int:
    """The most steps that run in the same sequence as in the capture."""
    ends: Order = []  # of the rises of each length the one that ends lowest
    for position in order:
        at = bisect.bisect_left(ends, position)
        ends[at : at + 1] = [position]
    return len(ends)


def _alternations(steps: Sequence[Scheduled], outside: set[int]) -> int:
    """How often the schedule changes between steps that a CUDA Graph can hold and steps that it cannot."""
    inside = [id(step) not in outside for step in steps]
    return sum(a != b for a, b in itertools.pairwise(inside))
