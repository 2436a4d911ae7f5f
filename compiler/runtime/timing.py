"""Times iterations: the CPU time to submit one, and the GPU time between two CUDA events around the same call.

Nothing synchronises inside a timed call. ``sample`` submits iterations back to back, as a server or a training loop
does, and keeps only a bounded number in flight; ``stream`` waits between iterations; ``measure`` isolates each with a
synchronise before it, which also gives the wall time until its results are there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from compiler.report import Measurement, Percentiles

if TYPE_CHECKING:
    import torch

# How far ahead of the GPU the CPU may run, in GPU time: long enough that the queue never drains between two
# iterations, short enough that stopping or switching modes feels immediate.
QUEUE_SECONDS = 0.1
QUEUE_RANGE = (2, 64)  # iterations
BATCH_SECONDS = 0.05


class Event(Protocol):
    """The part of ``torch.cuda.Event`` that timing needs."""

    @property
    def query(self) -> Callable[[], bool]: ...
    @property
    def synchronize(self) -> Callable[[], None]: ...
    def record(self) -> None: ...
    def elapsed_time(self, end_event: Any) -> float: ...


@dataclass
class Samples:
    """Iterations in the order they were submitted, in microseconds. Both lists have the same length."""

    cpu_us: list[float] = field(default_factory=list)
    gpu_us: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.cpu_us)


class EventQueue:
    """Iterations in flight, over a ring of event pairs that are made once and used again and again."""

    def __init__(self, make_event: Callable[[], Event]) -> None:
        self._free = [(make_event(), make_event()) for _ in range(QUEUE_RANGE[1])]
        self._flying: deque[tuple[Event, Event, float]] = deque()
        self._limit = QUEUE_RANGE[0]

    def submit(self, step: Callable[[], object]) -> Samples:
        """Run ``step`` once; returns the iterations that had to end first so that the queue stays bounded."""
        ended = Samples()
        while len(self._flying) >= self._limit:
            self._flying[0][1].synchronize()
            self._collect_one(ended)
        start, end = self._free[-1]
        start.record()
        began = time.perf_counter_ns()
        step()
        submitted = time.perf_counter_ns()
        end.record()
        # Taken out only now: a step that raises must not cost the ring a pair.
        self._free.pop()
        self._flying.append((start, end, (submitted - began) / 1e3))
        return ended

    def collect(self, *, wait: bool = False) -> Samples:
        """The iterations that ended since the last call; with ``wait`` all that were submitted."""
        ended = Samples()
        while self._flying:
            if wait:
                self._flying[0][1].synchronize()
            elif not self._flying[0][1].query():
                break
            self._collect_one(ended)
        return ended

    def _collect_one(self, into: Samples) -> None:
        start, end, cpu_us = self._flying.popleft()
        gpu_ms = start.elapsed_time(end)
        self._free.append((start, end))
        into.cpu_us.append(cpu_us)
        into.gpu_us.append(gpu_ms * 1e3)
        least, most = QUEUE_RANGE
        self._limit = max(least, min(most, int(QUEUE_SECONDS * 1e3 / max(gpu_ms, 1e-3))))


class StreamEvent:
    """A CUDA event of one stream: looking the current stream up at every record costs as much as the record."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        import torch

        self._event = torch.cuda.Event(enable_timing=True)
        self._stream = stream
        self.query: Callable[[], bool] = self._event.query
        self.synchronize: Callable[[], None] = self._event.synchronize

    def record(self) -> None:
        self._event.record(self._stream)

    def elapsed_time(self, end_event: StreamEvent) -> float:
        """Milliseconds until ``end_event``. Both events must have ended."""
        return float(self._event.elapsed_time(end_event._event))


def cuda_event_maker() -> Callable[[], Event]:
    """Makes timing events of the stream that is current now."""
    import torch

    stream = torch.cuda.current_stream()
    return lambda: StreamEvent(stream)


def sample(step: Callable[[], object], iterations: int, *, make_event: Callable[[], Event] | None = None) -> Samples:
    """Run ``step`` ``iterations`` times back to back."""
    queue = EventQueue(make_event or cuda_event_maker())
    samples = Samples()
    for _ in range(iterations):
        _extend(samples, queue.submit(step))
    _extend(samples, queue.collect(wait=True))
    return samples


def stream(
    step: Callable[[], object],
    should_stop: Callable[[], bool],
    *,
    batch_seconds: float = BATCH_SECONDS,
    make_event: Callable[[], Event] | None = None,
) -> Iterator[Samples]:
    """Run ``step`` until ``should_stop()``; yields the iterations every ``batch_seconds``.

    Each iteration begins when the GPU is done with the one before: a graph that is launched while it still runs
    makes the CPU wait, and that wait is not time to submit.
    """
    queue = EventQueue(make_event or cuda_event_maker())
    batch = Samples()
    deadline = time.perf_counter() + batch_seconds
    while not should_stop():
        _extend(batch, queue.submit(step))
        _extend(batch, queue.collect(wait=True))
        if time.perf_counter() >= deadline:
            yield batch
            batch = Samples()
            deadline = time.perf_counter() + batch_seconds
    yield batch


def _extend(samples: Samples, more: Samples) -> None:
    samples.cpu_us += more.cpu_us
    samples.gpu_us += more.gpu_us


def percentiles(values: Sequence[float]) -> Percentiles:
    """Percentiles with linear interpolation between the two nearest values.

    Raises:
        ValueError: ``values`` is empty.
    """
    if not values:
        raise ValueError("Percentiles of no values.")
    ordered = sorted(values)

    def at(fraction: float) -> float:
        position = (len(ordered) - 1) * fraction
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

    return Percentiles(p50=at(0.50), p90=at(0.90), p99=at(0.99))


def measurement(mode: str, gpu: str, samples: Samples, *, warmup: int = 0) -> Measurement:
    """The record of ``samples``, which must hold at least one iteration."""
    return Measurement(
        mode=mode,
        gpu=gpu,
        iterations=len(samples),
        cpu_us=percentiles(samples.cpu_us),
        gpu_us=percentiles(samples.gpu_us),
        cpu_samples=samples.cpu_us,
        gpu_samples=samples.gpu_us,
        warmup=warmup,
    )


def iterations_for(seconds_each: float, *, budget_seconds: float = 0.4, least: int = 20, most: int = 200) -> int:
    """How many iterations to record so that they take about ``budget_seconds``."""
    return max(least, min(most, int(budget_seconds / max(seconds_each, 1e-5))))


def measure(
    step: Callable[[], object], mode: str, *, iterations: int | None = None, least: int = 20, warmup: int = 5
) -> Measurement:
    """Record isolated iterations of ``step`` on the current GPU.

    The device is idle when an iteration begins. CPU time is until the call and its two event records return, wall
    time until a synchronise after that returns, GPU time between the events. ``iterations`` defaults to as many as
    take 0.4 s, between ``least`` and 200.
    """
    import torch

    make_event = cuda_event_maker()
    start, end = make_event(), make_event()
    for _ in range(warmup):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    # This records both events once too, for an event is created at its first record.
    start.record()
    step()
    end.record()
    torch.cuda.synchronize()
    count = iterations or iterations_for(time.perf_counter() - began, least=least)
    samples = Samples()
    wall_us = []
    for _ in range(count):
        torch.cuda.synchronize()
        called = time.perf_counter_ns()
        start.record()
        step()
        end.record()
        submitted = time.perf_counter_ns()
        torch.cuda.synchronize()
        finished = time.perf_counter_ns()
        samples.cpu_us.append((submitted - called) / 1e3)
        samples.gpu_us.append(start.elapsed_time(end) * 1e3)
        wall_us.append((finished - called) / 1e3)
    record = measurement(mode, torch.cuda.get_device_name(), samples, warmup=warmup + 1)
    record.wall_us = percentiles(wall_us)
    record.wall_samples = wall_us
    return record
