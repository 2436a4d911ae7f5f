"""What one iteration launches and what the GPU runs of it, as the profiler sees them.

A pass of its own: traced time is not timed, for tracing slows what it watches. Durations on the GPU are the GPU's own.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from compiler.joining import nodes_joined, pairs
from compiler.report import CudaGraph, GraphNode, Trace, TraceEvent
from compiler.runtime.observe import Observer
from compiler.runtime.topology import with_times

_RANGE = "fusescope:"  # begins the names of the ranges that this module opens
_ITERATION = "fusescope iteration"
_ITERATIONS = 5  # traced, for a median of every duration
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
    """Iterations of ``step`` on the current GPU, traced: a record of the last one.

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
            for _ in range(_ITERATIONS):
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
    """The record of the marked iterations among ``seen``: of the last, its launches in order, then the GPU's work.

    Where all of them ran the same on the GPU, each event has its median duration over them.
    """
    marks = [event for event in seen if event.name == _ITERATION and not event.on_gpu]
    if not marks:
        return Trace(mode, gpu)
    sources = _Sources(seen)
    *others, last = [
        _iteration(within, mark.start, sources) for mark, within in zip(marks, _parted(seen, marks), strict=True)
    ]
    work = [event for event in last if event.lane != "cpu"]
    runs = [work, *([event for event in other if event.lane != "cpu"] for other in others)]
    if others and all([e.name for e in run] == [e.name for e in work] for run in runs):
        for event, *same in zip(*runs, strict=True):
            event.median_us = round(median([event.duration_us, *(other.duration_us for other in same)]), 3)
    span = max((event.start_us + event.duration_us for event in last), default=0.0)
    return Trace(mode, gpu, last, span, len(marks))


def _parted(seen: Sequence[Seen], marks: Sequence[Seen]) -> list[tuple[list[Seen], list[Seen]]]:
    """Each iteration's launches on the CPU and work on the GPU. ``marks`` span the CPU's part of the iterations."""
    starts = [mark.start for mark in marks]
    parts: list[tuple[list[Seen], list[Seen]]] = [([], []) for _ in marks]
    launched: dict[int, int] = {}  # correlation -> iteration
    in_order = sorted(seen, key=lambda event: event.start)
    for event in in_order:
        number = bisect.bisect_right(starts, event.start) - 1
        inside = number >= 0 and event.start < marks[number].start + marks[number].duration
        if inside and not event.on_gpu and event.name.startswith(_LAUNCHES):
            parts[number][0].append(event)
            launched[event.correlation] = number
    for event in in_order:
        # The range of an iteration shows on the GPU too, as do the steps'.
        if event.on_gpu and not event.name.startswith((_RANGE, _ITERATION)):
            number = launched.get(event.correlation, bisect.bisect_right(starts, event.start) - 1)
            if number >= 0:
                parts[number][1].append(event)
    return parts


def _iteration(within: tuple[list[Seen], list[Seen]], began: int, sources: _Sources) -> list[TraceEvent]:
    launches, work = within
    events: list[TraceEvent] = []
    by_correlation: dict[int, int] = {}
    for event in launches:
        by_correlation[event.correlation] = len(events)
        record = _record(event, began, "cpu", -1, sources.unit(event))
        if not record.unit:
            record.op, record.call = sources.call(event)
        events.append(record)
    for event in work:
        launch = by_correlation.get(event.correlation, -1)
        unit = events[launch].unit if launch >= 0 else ""
        events.append(_record(event, began, f"stream {event.stream}", launch, unit))
    return events


def _record(event: Seen, began: int, lane: str, launch: int, unit: str) -> TraceEvent:
    return TraceEvent(event.name, (event.start - began) / 1e3, event.duration / 1e3, lane, launch, unit)


class _Sources:
    """What the CPU was doing when it made a launch."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        on_cpu = sorted((event for event in seen if not event.on_gpu), key=lambda event: event.start)
        self._steps = _Spans(event for event in on_cpu if event.name.startswith(_RANGE))
        self._calls = _Spans(event for event in on_cpu if _OP.match(event.name))

    def unit(self, launch: Seen) -> str:
        """The region and step, "region/step", during which its thread made it, or ""."""
        found = self._steps.around(launch)
        return found[0].name.removeprefix(_RANGE) if found else ""

    def call(self, launch: Seen) -> tuple[str, int]:
        """The outermost op that made it and the number of that op's call, or ("", -1)."""
        found = self._calls.around(launch)
        return (found[0].name, found[1]) if found else ("", -1)


_OP = re.compile(r"\w+::\w+(\.\w+)?$")  # "aten::mm", and not the names of autograd's own ranges


class _Spans:
    """Events that hold others, of each thread the outermost."""

    def __init__(self, events: Iterable[Seen]) -> None:
        """``events`` by their start."""
        self._of_thread: dict[int, list[tuple[Seen, int]]] = defaultdict(list)
        for number, event in enumerate(events):
            found = self._of_thread[event.thread]
            if not found or event.start >= found[-1][0].start + found[-1][0].duration:
                found.append((event, number))
        self._starts = {thread: [event.start for event, _ in found] for thread, found in self._of_thread.items()}

    def around(self, launch: Seen) -> tuple[Seen, int] | None:
        """The event in which the launch's thread made it, with its number."""
        position = bisect.bisect_right(self._starts.get(launch.thread, []), launch.start) - 1
        if position < 0:
            return None
        found, number = self._of_thread[launch.thread][position]
        return (found, number) if launch.start < found.start + found.duration else None


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
    """The facts with times and units on the graph's nodes, the longest path, and the share of an iteration covered."""
    covered = coverage(found)
    topology = nodes_joined(facts.topology, found)
    return msgspec.structs.replace(
        facts,
        topology=with_times(topology, durations(topology, found)),
        covered_kernels=covered[0] if covered else None,
        covered_time=covered[1] if covered else None,
    )


def durations(topology: Sequence[GraphNode], found: Trace) -> dict[int, float]:
    """Microseconds of each node of the topology that the trace tells."""
    return {node: found.events[place].us for node, place in pairs(topology, found)}
