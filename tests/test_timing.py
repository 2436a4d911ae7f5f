"""Timing: the event queue keeps order and its bound, batches lose nothing, percentiles interpolate."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.runtime.timing import (
    QUEUE_RANGE,
    EventQueue,
    Samples,
    iterations_for,
    measurement,
    percentiles,
    sample,
    stream,
)


class FakeGpu:
    """A GPU whose iterations end only when someone waits for them, or all at once with ``finish``."""

    def __init__(self, milliseconds: float = 1.0) -> None:
        self.milliseconds = milliseconds
        self.recorded = 0
        self.ended = 0
        self.made = 0
        self.most_in_flight = 0

    def finish(self) -> None:
        self.ended = self.recorded

    def make_event(self) -> FakeEvent:
        self.made += 1
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self.position = 0

    def record(self) -> None:
        self.gpu.recorded += 1
        self.position = self.gpu.recorded
        self.gpu.most_in_flight = max(self.gpu.most_in_flight, (self.gpu.recorded - self.gpu.ended) // 2)

    def query(self) -> bool:
        return self.gpu.ended >= self.position

    def synchronize(self) -> None:
        self.gpu.ended = max(self.gpu.ended, self.position)

    def elapsed_time(self, end_event: FakeEvent) -> float:
        assert self.query()
        assert end_event.query(), "read before the GPU was done"
        return self.gpu.milliseconds * (end_event.position - self.position)


def test_sample_records_every_iteration_over_one_ring_of_events() -> None:
    gpu, calls = FakeGpu(), []
    samples = sample(lambda: calls.append(1), 500, make_event=gpu.make_event)
    assert len(samples) == len(samples.gpu_us) == len(calls) == 500
    assert samples.gpu_us == [1000.0] * 500
    assert all(value >= 0 for value in samples.cpu_us)
    assert gpu.made == 2 * QUEUE_RANGE[1]


@pytest.mark.parametrize(("milliseconds", "most"), [(0.1, QUEUE_RANGE[1]), (10.0, 10), (1000.0, QUEUE_RANGE[0])])
def test_the_cpu_runs_ahead_by_a_bounded_time(milliseconds: float, most: int) -> None:
    gpu = FakeGpu(milliseconds)
    sample(lambda: None, 300, make_event=gpu.make_event)
    assert gpu.most_in_flight == most


def test_collect_takes_only_what_ended() -> None:
    gpu = FakeGpu()
    queue = EventQueue(gpu.make_event)
    queue.submit(lambda: None)
    assert len(queue.collect()) == 0
    gpu.finish()
    queue.submit(lambda: None)
    assert len(queue.collect()) == 1
    assert len(queue.collect(wait=True)) == 1


def test_a_failing_step_leaves_earlier_iterations_readable() -> None:
    gpu = FakeGpu()
    queue = EventQueue(gpu.make_event)
    queue.submit(lambda: None)
    with pytest.raises(ZeroDivisionError):
        queue.submit(lambda: 1 / 0)
    assert len(queue.collect(wait=True)) == 1


def test_stream_yields_every_iteration_once_and_stops() -> None:
    gpu, calls = FakeGpu(0.01), []

    def step() -> None:
        calls.append(1)
        time.sleep(0.001)

    batches = list(stream(step, lambda: len(calls) >= 50, batch_seconds=0.01, make_event=gpu.make_event))
    assert len(batches) > 1
    assert sum(len(batch) for batch in batches) == len(calls) == 50


def test_stream_asked_to_stop_at_once_runs_nothing() -> None:
    gpu, calls = FakeGpu(), []
    assert [len(b) for b in stream(lambda: calls.append(1), lambda: True, make_event=gpu.make_event)] == [0]
    assert not calls


def test_percentiles_interpolate() -> None:
    result = percentiles([4.0, 1.0, 2.0, 3.0, 5.0])
    assert (result.p50, result.p90, result.p99) == (3.0, pytest.approx(4.6), pytest.approx(4.96))
    assert percentiles([7.0]) == percentiles([7.0, 7.0])
    with pytest.raises(ValueError, match="no values"):
        percentiles([])


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1))
def test_percentiles_are_ordered_and_within_range(values: list[float]) -> None:
    result = percentiles(values)
    slack = 1e-6 * max(values)
    assert min(values) <= result.p50 + slack
    assert result.p50 <= result.p90 + slack
    assert result.p90 <= result.p99 + slack
    assert result.p99 <= max(values) + slack


def test_measurement_keeps_the_samples() -> None:
    record = measurement("eager", "GPU", Samples([1.0, 3.0], [10.0, 30.0]), warmup=4)
    assert (record.iterations, record.cpu_us.p50, record.gpu_us.p50, record.warmup) == (2, 2.0, 20.0, 4)
    assert record.gpu_samples == [10.0, 30.0]
    assert record.wall_us is None


def test_iterations_fit_the_budget() -> None:
    assert iterations_for(0.0) == 200
    assert iterations_for(0.004) == 100
    assert iterations_for(10.0) == 20
