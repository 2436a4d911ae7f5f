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
import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from compiler.ir import Extern, Program
from compiler.options import DEFAULTS, Options
from compiler.planning.memory import MemoryPlan, may_alias, plan_memory, returned_buffers
from compiler.planning.partitions import symbols_used
from compiler.planning.schedule import Launch, Scheduled, writes_of
from compiler.report import MemoryOrder

Order = list[int]
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
    captured = finish(steps)
    plan = plan_memory(captured, program, options, given_up, donated)
    best = Ordered(captured, plan, plan.peak_bytes)
    if not options.reorder or len(steps) < 3:
        return best
    best = Ordered(captured, plan, plan.peak_bytes, 0, MemoryOrder.CAPTURED)
    graph = dependencies(steps, program)
    sizes = _Sizes.of(steps, program, given_up)
    outside = {id(steps[position]) for position in refused}

    def tried(policy: MemoryOrder, order: Order) -> Ordered | None:
        """The order's schedule, where it may be taken."""
        arranged = [steps[position] for position in order]
        if _alternations(arranged, outside) > _alternations(steps, outside):
            return None
        if plan_memory(arranged, program, options, given_up, donated).peak_bytes > best.plan.peak_bytes:
            return None  # what combining does to it need not be found out
        finished = finish(arranged)
        planned = plan_memory(finished, program, options, given_up, donated)
        return Ordered(finished, planned, best.captured_peak, len(order) - _longest_rise(order), policy)

    for policy, order in (
        (MemoryOrder.FORWARD, _from_the_front(graph, sizes)),
        (MemoryOrder.BACKWARD, _from_the_back(graph, sizes)),
    ):
        found = tried(policy, order)
        if found is not None and found.plan.peak_bytes < best.plan.peak_bytes:
            best = found
    for _ in range(MAX_LOWERED):
        found = tried(MemoryOrder.BUDGET, _from_the_front(graph, sizes, best.plan.peak_bytes - 1))
        if found is None or found.plan.peak_bytes >= best.plan.peak_bytes:
            break
        best = found
    if best.moved:
        found = tried(MemoryOrder.BUDGET, _from_the_front(graph, sizes, best.plan.peak_bytes))
        if found is not None and (found.plan.peak_bytes, found.moved) < (best.plan.peak_bytes, best.moved):
            best = found
    return best


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


# --- what has to stay in sequence ----------------------------------------------------------------------------------


@dataclass
class Dependencies:
    """For each step, those that have to run before it, and those that have to run after it."""

    before: list[set[int]]
    after: list[set[int]]


def dependencies(steps: Sequence[Scheduled], program: Program) -> Dependencies:
    """What no order may change, read off a schedule that is right.

    A step runs after those that make what it reads. Of memory that somebody writes into, readers stay between the same
    writers. Steps with effects that no tensor shows keep their order, and a size is found out before it is used.
    """
    graph = Dependencies([set() for _ in steps], [set() for _ in steps])
    maker: dict[str, int] = {}
    writers: dict[str, list[tuple[int, bool]]] = defaultdict(list)  # memory -> (step, whether it writes)
    memory = _memory_of(steps)
    rewritten = {memory.get(name, name) for step in steps for name in _rewrites(step)}
    finds_out: dict[str, int] = {}
    effect: int | None = None

    def edge(first: int, then: int) -> None:
        if first != then:
            graph.before[then].add(first)
            graph.after[first].add(then)

    for position, step in enumerate(steps):
        for name in step.reads:
            if name in maker:
                edge(maker[name], position)
        for symbol in symbols_used(step) if finds_out else ():
            if symbol in finds_out:
                edge(finds_out[symbol], position)
        made = step.result_names if isinstance(step, Extern) else tuple(b.name for b in step.stored)
        maker.update(dict.fromkeys(made, position))
        written = {memory.get(name, name) for name in _rewrites(step)}
        for place in dict.fromkeys(memory.get(name, name) for name in (*step.reads, *made, *_rewrites(step))):
            if place not in rewritten:
                continue
            earlier = writers[place]
            writes = place in written
            for other, wrote in reversed(earlier):
                if writes or wrote:
                    edge(other, position)
                if wrote:
                    break
            earlier.append((position, writes))
        if isinstance(step, Extern):
            finds_out.update(dict.fromkeys((binding.symbol for binding in step.bindings), position))
            if step.keeps_order:
                if effect is not None:
                    edge(effect, position)
                effect = position
    return graph


def _rewrites(step: Scheduled) -> tuple[str, ...]:
    """Buffers whose memory a step writes into after somebody else did."""
    return step.mutates if isinstance(step, Extern) else tuple(step.takes_over.values())


def _memory_of(steps: Sequence[Scheduled]) -> dict[str, str]:
    """Buffer -> a name for the memory that it may share with others, for those that may."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.get(name, name) != name:
            parent[name] = parent.get(parent[name], parent[name])
            name = parent[name]
        return name

    for step in steps:
        pairs: list[tuple[str, str]] = []
        if isinstance(step, Launch):
            pairs += step.takes_over.items()
        elif may_alias(step):
            together = [*step.reads, *(buffer.name for buffer in writes_of(step))]
            pairs += [(together[0], name) for name in together[1:]]
        for a, b in pairs:
            parent[find(a)] = find(b)
    return {name: find(name) for name in parent}


# --- list scheduling -----------------------------------------------------------------------------------------------


@dataclass
class _Sizes:
    """What each step makes and uses, as memory: a name for each storage."""

    made: list[list[str]] = field(default_factory=list)
    used: list[list[str]] = field(default_factory=list)  # made before, or given up by the caller
    bytes: dict[str, int] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, steps: Sequence[Scheduled], program: Program, given_up: Collection[str]) -> _Sizes:
        memory = _memory_of(steps)
        sizes = cls(kept={memory.get(name, name) for name in returned_buffers(program)})
        for buffer in program.inputs:
            if buffer is not None and buffer.name in given_up:
                sizes.bytes.setdefault(memory.get(buffer.name, buffer.name), buffer.bytes)
        inputs = {b.name for b in program.inputs if b is not None} | program.constants.keys()
        others = {memory.get(name, name) for name in inputs} - sizes.bytes.keys()  # the caller's, whatever happens
        for step in steps:
            made = []
            for buffer in writes_of(step):
                place = memory.get(buffer.name, buffer.name)
                if place not in others and place not in sizes.bytes:
                    sizes.bytes[place] = buffer.bytes
                    made.append(place)
            used = dict.fromkeys(memory.get(name, name) for name in step.reads)
            sizes.made.append(made)
            sizes.used.append([place for place in used if place in sizes.bytes and place not in made])
        return sizes


def _from_the_front(graph: Dependencies, sizes: _Sizes, budget: int = -1) -> Order:
    """Of the steps that may run next the captured order's first where it keeps what is live within ``budget`` bytes,
    else the one after which least is live; of equals, the captured order's first.

    Changes of what a step frees are kept up to date: it falls due when a storage has one user left.
    """
    users: dict[str, set[int]] = defaultdict(set)
    for position in range(len(sizes.made)):
        for place in (*sizes.used[position], *sizes.made[position]):
            users[place].add(position)
    taken = [sum(sizes.bytes[p] for p in made) for made in sizes.made]
    growth = list(taken)
    for place, positions in users.items():
        if len(positions) == 1 and place not in sizes.kept:
            growth[next(iter(positions))] -= sizes.bytes[place]
    made = {place for places in sizes.made for place in places}
    live = sum(size for place, size in sizes.bytes.items() if place not in made)
    waiting = [len(before) for before in graph.before]
    by_growth: list[tuple[int, int]] = []
    in_order: Order = []

    def may_run(position: int) -> None:
        heapq.heappush(by_growth, (growth[position], position))
        heapq.heappush(in_order, position)

    for position, count in enumerate(waiting):
        if not count:
            may_run(position)
    done = [False] * len(waiting)
    order: Order = []
    while len(order) < len(waiting):
        while done[in_order[0]]:
            heapq.heappop(in_order)
        if live + taken[in_order[0]] <= budget:
            position = heapq.heappop(in_order)
        else:
            known, position = heapq.heappop(by_growth)
            if done[position] or known != growth[position]:
                continue  # an entry from before it came to free more
        done[position] = True
        order.append(position)
        live += growth[position]
        for place in (*sizes.used[position], *sizes.made[position]):
            users[place].discard(position)
            if len(users[place]) == 1 and place not in sizes.kept:
                (last,) = users[place]
                growth[last] -= sizes.bytes[place]
                if not waiting[last] and not done[last]:
                    heapq.heappush(by_growth, (growth[last], last))
        for other in sorted(graph.after[position]):
            waiting[other] -= 1
            if not waiting[other]:
                may_run(other)
    return order


def _from_the_back(graph: Dependencies, sizes: _Sizes) -> Order:
    """The order found from its end: of the steps that may run last always the one before which least is live.

    Seen from the end a step gives back what it makes and claims what it uses, unless a later step claimed that already.
    """
    claimers: dict[str, list[int]] = defaultdict(list)
    for position, used in enumerate(sizes.used):
        for place in used:
            claimers[place].append(position)
    claimed = set(sizes.kept)
    growth = [
        sum(sizes.bytes[p] for p in used if p not in claimed) - sum(sizes.bytes[p] for p in made)
        for used, made in zip(sizes.used, sizes.made, strict=True)
    ]
    waiting = [len(after) for after in graph.after]
    ready = [(growth[p], -p) for p, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    done = [False] * len(waiting)
    order: Order = []
    while ready:
        known, negative = heapq.heappop(ready)
        position = -negative
        if done[position] or known != growth[position]:
            continue
        done[position] = True
        order.append(position)
        for place in sizes.used[position]:
            if place in claimed:
                continue
            claimed.add(place)
            for other in claimers[place]:
                if not done[other]:
                    growth[other] -= sizes.bytes[place]
                    if not waiting[other]:
                        heapq.heappush(ready, (growth[other], -other))
        for other in sorted(graph.before[position]):
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, (growth[other], -other))
    return order[::-1]
