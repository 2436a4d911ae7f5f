"""Joins what a GPU ran to the units of a report that launched it, where nothing told them apart while they ran.

Our own regions say which step runs (``runtime/observe.py``), and their launches and graph nodes are known exactly.
Inductor's program says nothing, so its work is joined by what is known of each: the name of a generated kernel, the
op on the CPU that launched it, and the order, which is the wrapper's. A join is exact where a name or an op leaves one
choice, or where all names and ops that ran are in order those of the units, else inferred. What no unit can have
launched (a loss outside all regions, say) stays without one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import msgspec

from compiler.library_calls import Ran, align, base_name, ops_of
from compiler.report import ExternCall, GraphNode, GraphNodeKind, Group, Report, Trace, TraceEvent

OWN_MODES = ("compiled", "graph")  # which run the code that a report is about
_AGAIN = {"inductor": ("inductor", "inductor-graph")}  # compiler -> modes in which it compiles the model once more


class Joined(NamedTuple):
    """The unit that ran something: "region/unit". ``exact`` is False where the order decided."""

    unit: str
    exact: bool


@dataclass(frozen=True)
class _Step:
    """A unit in the order in which an iteration launches all of them."""

    region: str
    unit: str
    kernel: str  # "" for an extern call
    ops: frozenset[str]  # an extern call's, without namespace and overload


def join(report: Report, ran: Sequence[Ran]) -> list[Joined | None]:
    """For each of ``ran``, in the order in which it ran, the unit that launched it, or None."""
    steps = _schedule(report)
    found = _by_name(steps, [one.name for one in ran])
    if not found and any(step.kernel for step in steps):
        return [None] * len(ran)  # other code than the report's
    alone = not report.training and len(report.regions) == 1 and not report.graph_breaks
    for first, end, between, inside in list(_gaps(steps, found, len(ran))):
        paired = align(ran[first:end], [steps[number].ops for number in between], inside or alone)
        found |= {first + position: between[call] for position, call in paired.items()}
    one_choice = _one_choice(steps, ran)
    units = {place: f"{steps[number].region}/{steps[number].unit}" for place, number in found.items()}
    return [Joined(units[place], one_choice(one)) if place in units else None for place, one in enumerate(ran)]


def _one_choice(steps: Sequence[_Step], ran: Sequence[Ran]) -> Callable[[Ran], bool]:
    """Whether something that was joined could not have been joined to another unit, nor another thing to its unit."""
    in_full = _are_all(steps, ran)
    launchers = Counter(step.kernel for step in steps if step.kernel)
    callers = Counter(op for step in steps for op in step.ops)
    names = Counter(one.name for one in ran)
    calls: dict[str, set[int]] = defaultdict(set)
    for one in ran:
        calls[base_name(one.op)].add(one.call)

    def one_choice(one: Ran) -> bool:
        if one.name in launchers:
            return in_full or launchers[one.name] == names[one.name] == 1
        op = base_name(one.op)
        return bool(op) and (in_full or callers[op] == len(calls[op]) == 1)

    return one_choice


def _are_all(steps: Sequence[_Step], ran: Sequence[Ran]) -> bool:
    """Whether the steps' kernels and ops ran in the steps' order, each as often as in them: each has one place then.

    In what order regions run is taken for granted, so of several each must have a kernel or op of its own.
    """
    kernels = {step.kernel for step in steps if step.kernel}
    ops = frozenset().union(*(step.ops for step in steps))
    labels, call = [], -1
    for one in ran:
        label = one.name if one.name in kernels else base_name(one.op)
        if label in kernels or (label in ops and one.call != call):  # a call launches several kernels
            labels.append(label)
        call = one.call
    of_regions: dict[str, set[str]] = defaultdict(set)
    expected = []
    for step in steps:
        if found := ({step.kernel} | step.ops).intersection(labels):
            expected.append(step)
            of_regions[step.region] |= found
    regions_with = Counter(label for found in of_regions.values() for label in found)
    told_apart = all(any(regions_with[label] == 1 for label in found) for found in of_regions.values())
    in_order = all(label == step.kernel or label in step.ops for label, step in zip(labels, expected, strict=False))
    return told_apart and len(labels) == len(expected) and in_order


def _schedule(report: Report) -> list[_Step]:
    """All units as an iteration runs them: regions in order, then backwards, that of the last forward first."""
    ahead = [region for region in report.regions if region.kind != "backward"]
    back = [region for region in report.regions if region.kind == "backward"]
    steps = []
    for region in (*ahead, *sorted(back, key=lambda region: _number(region.name), reverse=True)):
        units: list[Group | ExternCall] = [*region.groups, *region.extern_calls]
        for unit in sorted(units, key=lambda unit: unit.order):
            if isinstance(unit, Group):
                steps.append(_Step(region.name, unit.name, unit.kernel, frozenset()))
            else:
                steps.append(_Step(region.name, unit.name, "", ops_of(unit.op, unit.runs_as)))
    return steps


def _number(region: str) -> int:
    """2 of "backward_2", 0 of "backward"."""
    digits = region.rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def _by_name(steps: Sequence[_Step], names: Sequence[str]) -> dict[int, int]:
    """Position in ``names`` -> step: the nth launch of a name is the nth unit's that launches it.

    A region that runs several times in an iteration launches each of its kernels as many times more.
    """
    seen: dict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(names):
        seen[name].append(position)
    launchers: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        if step.kernel:
            launchers[step.kernel if step.kernel in seen else _plain_name(step)].append(number)
    found = {}
    for name, numbers in launchers.items():
        positions = seen.get(name, [])
        of_one_region = len({steps[number].region for number in numbers}) == 1
        if len(positions) == len(numbers) or (of_one_region and len(positions) % len(numbers) == 0):
            found.update({place: numbers[nth % len(numbers)] for nth, place in enumerate(positions)})
    return found


def _plain_name(step: _Step) -> str:
    """The kernel's name at run time, where reports tell kernels of one name apart by their regions' names."""
    return re.sub(rf"_{re.escape(step.region)}(_\d+)?$", "", step.kernel)


def _gaps(steps: Sequence[_Step], anchors: Mapping[int, int], count: int) -> Iterator[tuple[int, int, list[int], bool]]:
    """What is between launches whose steps are known: (first place, end, extern calls, whether in one run of a region).

    The calls are numbers in ``steps``, of those that may have run there.
    """
    ends = {step.region: number + 1 for number, step in enumerate(steps)}
    starts = {step.region: number for number, step in reversed(list(enumerate(steps)))}
    place, number = -1, -1  # of the launch before
    for next_place in (*sorted(anchors), count):
        here = anchors.get(next_place, len(steps))
        if number < here:
            between = [*range(number + 1, here)]
            inside = number >= 0 and here < len(steps) and steps[number].region == steps[here].region
        else:  # a region runs once more
            between = [*range(number + 1, ends[steps[number].region]), *range(starts[steps[here].region], here)]
            inside = False
        yield place + 1, next_place, [n for n in between if not steps[n].kernel], inside
        place, number = next_place, here


# --- traces and kernels --------------------------------------------------------------------------------------------


def joined_by_name(trace: Trace, report: Report, earlier: Sequence[Trace] = ()) -> Trace:
    """``trace`` with its events joined to the units of ``report`` where they have none and run the report's code.

    What the report's compiler made of the model another time is joined too, never exactly. ``earlier`` are other traces
    of the same compilation. A replay does not tell ops, so a library's kernel is taken for what it is in the compiled
    mode, where that runs as many of its name.
    """
    own = trace.mode in OWN_MODES
    if any(event.unit for event in trace.events) or not (own or trace.mode in _AGAIN.get(report.compiler, ())):
        return trace
    places = [place for place, event in enumerate(trace.events) if event.lane != "cpu"]
    if any(_is_replayed(trace, trace.events[place]) for place in places):
        places = [place for place in places if _is_replayed(trace, trace.events[place])]
    found = join(report, [_ran(trace, trace.events[place]) for place in places])
    compiled = next((other for other in earlier if other.mode == "compiled"), None)
    if compiled is not None and trace.mode != "compiled":
        model = joined_by_name(compiled, report)
        found = _as_in(model, [trace.events[place].name for place in places], found)
    events = list(trace.events)
    for place, unit in zip(places, found, strict=True):
        if unit is not None:
            events[place] = msgspec.structs.replace(events[place], unit=unit.unit, exact=unit.exact and own)
    work: dict[int, list[TraceEvent]] = defaultdict(list)
    for place in places:
        work[events[place].launch].append(events[place])
    for launch, launched in work.items():
        if launch >= 0 and len(launched) == 1 and not _is_replayed(trace, launched[0]):
            (event,) = launched
            events[launch] = msgspec.structs.replace(events[launch], unit=event.unit, exact=event.exact)
    return msgspec.structs.replace(trace, events=events)


def _is_replayed(trace: Trace, event: TraceEvent) -> bool:
    return event.launch >= 0 and "GraphLaunch" in trace.events[event.launch].name


def _ran(trace: Trace, event: TraceEvent) -> Ran:
    launch = trace.events[event.launch] if event.launch >= 0 else event
    return Ran(event.name, launch.op, launch.call)


def _as_in(model: Trace, names: Sequence[str], found: Sequence[Joined | None]) -> list[Joined | None]:
    """``found``, but the nth of a name as in ``model`` where that has as many of the name."""
    theirs: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in model.events:
        if event.lane != "cpu":
            theirs[event.name].append(event)
    counts = Counter(names)
    nth: Counter[str] = Counter()
    taken: list[Joined | None] = []
    for name, mine in zip(names, found, strict=True):
        if counts[name] == len(theirs[name]) and (mine is None or not mine.exact):
            event = theirs[name][nth[name]]
            mine = Joined(event.unit, exact=False) if event.unit else None
        nth[name] += 1
        taken.append(mine)
    return taken


def pairs(topology: Sequence[GraphNode], trace: Trace) -> list[tuple[int, int]]:
    """(node of a graph, place of its event) for what ``trace`` saw of it: in each the same name comes in one order."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for node in topology:
        waiting[_label(node)].append(node.id)
    found = []
    for place, event in enumerate(trace.events):
        if event.lane == "cpu" or not _is_replayed(trace, event):
            continue
        kind = next((kind for kind in ("Memcpy", "Memset") if event.name.startswith(kind)), event.name)
        if waiting[kind]:
            found.append((waiting[kind].popleft(), place))
    return found


def _label(node: GraphNode) -> str:
    labels = {GraphNodeKind.MEMCPY: "Memcpy", GraphNodeKind.MEMSET: "Memset", GraphNodeKind.KERNEL: node.name}
    return labels.get(node.kind, "")


def joined_by_nodes(trace: Trace, topology: Sequence[GraphNode]) -> Trace:
    """``trace`` with each event of a graph joined to the step that issued its node."""
    nodes = {node.id: node for node in topology}
    events = list(trace.events)
    for number, place in pairs(topology, trace):
        node = nodes[number]
        if node.unit:
            events[place] = msgspec.structs.replace(events[place], unit=f"{node.region}/{node.unit}", exact=node.exact)
    return msgspec.structs.replace(trace, events=events)


def nodes_joined(topology: Sequence[GraphNode], trace: Trace) -> list[GraphNode]:
    """The graph's nodes; those whose issuer is not known get the unit of their event in ``trace``."""
    events = {number: trace.events[place] for number, place in pairs(topology, trace)}

    def joined(node: GraphNode) -> GraphNode:
        event = events.get(node.id)
        if node.unit or event is None or not event.unit:
            return node
        region, _, unit = event.unit.partition("/")
        return msgspec.structs.replace(node, region=region, unit=unit, exact=event.exact)

    return [joined(node) for node in topology]


def own_trace(report: Report) -> Trace | None:
    """The traced iteration of the report's own code: plain where there is one, else replayed."""
    by_mode = {trace.mode: trace for trace in report.traces}
    return next((by_mode[mode] for mode in OWN_MODES if mode in by_mode), None)


def join_measured(report: Report) -> None:
    """Join what was traced and captured in ``report`` as far as it is not, and set its kernels' times."""
    for first in (True, False):  # the others are joined with the help of the compiled mode
        report.traces = [
            joined_by_name(trace, report, report.traces) if first is (trace.mode == "compiled") else trace
            for trace in report.traces
        ]
    for trace in report.traces:
        if trace.mode == "graph":
            for region in report.regions:
                region.cuda_graph.topology = nodes_joined(region.cuda_graph.topology, trace)
    note_kernel_times(report)


def note_kernel_times(report: Report) -> None:
    """Set the ``measured_us`` of kernels from the report's own trace, if it has one."""
    trace = own_trace(report)
    if trace is None:
        return
    kernels = {f"{region.name}/{group.name}": group.kernel for region in report.regions for group in region.groups}
    launches: dict[str, list[float]] = defaultdict(list)
    for event in trace.events:
        if event.lane != "cpu" and event.unit in kernels and not event.name.startswith(("Memcpy", "Memset")):
            launches[kernels[event.unit]].append(event.us)
    for kernel in report.kernels:
        kernel.measured_us = round(median(launches[kernel.name]), 3) if launches[kernel.name] else None
