"""What one iteration launches and what the GPU runs of it, as the profiler sees them.

A pass of its own: traced time is not timed, for tracing slows what it watches. Durations on the GPU are the GPU's own.
"""

from __future__ import annotations

import bisect
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from compiler.report import CudaGraph, GraphNode, GraphNodeKind, Trace, TraceEvent
from compiler.runtime.observe import Observer
from compiler.runtime.topology import with_times

_RANGE = "fusescope:"  # begins the names of the ranges that this module opens
_ITERATION = "fusescope iteration"
# CUDA's calls that put work on the GPU; what else the CPU does is not shown.
_LAUNCHES = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch", "cudaMemcpy", "cuMemcpy", "cudaMemset")


@dataclass(frozen=True)
class Seen:
    """An event as the profiler recorded it. Times in nanoseconds; ``on_gpu`` tells which clock lane it is on."""

    name: str
    start: int
    duration: int
    on_gpu: bool
    stream: int
    thread: int
    correlation: int


class _Ranges:
    """Listens during a trace: a profiler range around each step of a region."""

    def __init__(self) -> None:
        import torch

        self._make = torch._C._profiler._RecordFunctionFast
        self._open: list[object] = []

    def __call__(self, region: str, unit: str) -> None:
        while self._open:
            self._open.pop().__exit__(None, None, None)  # type: ignore[attr-defined]
        if region:
            opened = self._make(f"{_RANGE}{region}/{unit}")
            opened.__enter__()
            self._open.append(opened)


def trace(step: Callable[[], object], mode: str, *, observer: Observer | None = None) -> Trace:
    """One iteration of ``step`` on the current GPU, traced.

    ``observer`` is that of the regions that ``step`` runs, for launches to be joined to fusion groups and extern calls.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    listener = observer or Observer()
    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        listener.mark = _Ranges()
        try:
            step()  # the first call under a profiler is slower than any other
            torch.cuda.synchronize()
            with record_function(_ITERATION):
                step()
            torch.cuda.synchronize()
        finally:
            listener.mark = None
    events = [
        Seen(
            event.name(),
            event.start_ns(),
            event.duration_ns(),
            event.device_type().name == "CUDA",
            event.device_resource_id(),
            event.start_thread_id(),
            event.correlation_id(),
        )
        for event in profiler.profiler.kineto_results.events()
    ]
    return assemble(events, mode, torch.cuda.get_device_name())


def assemble(seen: Sequence[Seen], mode: str, gpu: str) -> Trace:
    """The record of the last marked iteration among ``seen``: launches in order, then the GPU's work in order."""
    iterations = [event for event in seen if event.name == _ITERATION and not event.on_gpu]
    if not iterations:
        return Trace(mode, gpu)
    began, ended = iterations[-1].start, iterations[-1].start + iterations[-1].duration
    launches = sorted(
        (e for e in seen if not e.on_gpu and e.name.startswith(_LAUNCHES) and began <= e.start < ended),
        key=lambda event: event.start,
    )
    unit_at = _units(seen)
    events: list[TraceEvent] = []
    by_correlation: dict[int, int] = {}
    for event in launches:
        by_correlation[event.correlation] = len(events)
        events.append(_record(event, began, "cpu", -1, unit_at(event)))
    # The range of an iteration shows on the GPU too, as do the steps'.
    work = [e for e in seen if e.on_gpu and e.start >= began and not e.name.startswith((_RANGE, _ITERATION))]
    for event in sorted(work, key=lambda event: event.start):
        launch = by_correlation.get(event.correlation, -1)
        unit = events[launch].unit if launch >= 0 else ""
        events.append(_record(event, began, f"stream {event.stream}", launch, unit))
    span = max((event.start_us + event.duration_us for event in events), default=0.0)
    return Trace(mode, gpu, events, span)


def _record(event: Seen, began: int, lane: str, launch: int, unit: str) -> TraceEvent:
    return TraceEvent(event.name, (event.start - began) / 1e3, event.duration / 1e3, lane, launch, unit)


def _units(seen: Sequence[Seen]) -> Callable[[Seen], str]:
    """A function from a launch to the region and step, "region/step", during which its thread made it, or ""."""
    ranges: dict[int, list[Seen]] = defaultdict(list)
    for event in sorted(seen, key=lambda event: event.start):
        if not event.on_gpu and event.name.startswith(_RANGE):
            ranges[event.thread].append(event)
    starts = {thread: [event.start for event in found] for thread, found in ranges.items()}

    def unit_at(launch: Seen) -> str:
        position = bisect.bisect_right(starts.get(launch.thread, []), launch.start) - 1
        if position < 0:
            return ""
        found = ranges[launch.thread][position]
        return found.name.removeprefix(_RANGE) if launch.start < found.start + found.duration else ""

    return unit_at


def gpu_events(found: Trace) -> list[TraceEvent]:
    """What ran on the GPU, in order."""
    return [event for event in found.events if event.lane != "cpu"]


def kernel_names(found: Trace) -> list[str]:
    """Kernels of the iteration in the order they ran, without copies and fills by the driver."""
    return [event.name for event in gpu_events(found) if not event.name.startswith(("Memcpy", "Memset"))]


def coverage(found: Trace) -> tuple[float, float] | None:
    """Shares (0..1) of the GPU's events, and of their time, that a graph launched. None where nothing ran."""
    events = gpu_events(found)
    total = sum(event.duration_us for event in events)
    if not events or not total:
        return None
    inside = [e for e in events if e.launch >= 0 and "GraphLaunch" in found.events[e.launch].name]
    return len(inside) / len(events), sum(event.duration_us for event in inside) / total


def with_trace(facts: CudaGraph, found: Trace) -> CudaGraph:
    """The facts with measured times on the graph's nodes, the longest path, and how much of an iteration is covered."""
    covered = coverage(found)
    return msgspec.structs.replace(
        facts,
        topology=with_times(facts.topology, durations(facts.topology, found)),
        covered_kernels=covered[0] if covered else None,
        covered_time=covered[1] if covered else None,
    )


def joined(found: Trace, topology: Sequence[GraphNode]) -> Trace:
    """The trace with each event of a graph joined to the step that issued the node."""
    nodes = {node.id: node for node in topology}
    events = list(found.events)
    for node, position in _pairs(topology, found):
        issuer = nodes[node]
        if issuer.unit:
            events[position] = msgspec.structs.replace(events[position], unit=f"{issuer.region}/{issuer.unit}")
    return msgspec.structs.replace(found, events=events)


def durations(topology: Sequence[GraphNode], found: Trace) -> dict[int, float]:
    """Microseconds of each node of the topology that the trace tells."""
    return {node: found.events[position].duration_us for node, position in _pairs(topology, found)}


def _pairs(topology: Sequence[GraphNode], found: Trace) -> list[tuple[int, int]]:
    """(node, position of its event): in each the same name comes in the same order."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for node in topology:
        waiting[_label(node)].append(node.id)
    pairs = []
    for position, event in enumerate(found.events):
        if event.lane == "cpu" or event.launch < 0 or "GraphLaunch" not in found.events[event.launch].name:
            continue
        kind = next((kind for kind in ("Memcpy", "Memset") if event.name.startswith(kind)), event.name)
        if waiting[kind]:
            pairs.append((waiting[kind].popleft(), position))
    return pairs


def _label(node: GraphNode) -> str:
    labels = {GraphNodeKind.MEMCPY: "Memcpy", GraphNodeKind.MEMSET: "Memset", GraphNodeKind.KERNEL: node.name}
    return labels.get(node.kind, "")
