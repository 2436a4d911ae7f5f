"""The live run: modes switch while it runs, samples are numbered, a mode that cannot be had is told and not fatal."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from app.worker import run as live
from app.worker.protocol import Event, Measured, RunState, Samples, StartRun
from app.worker.run import RunControl, run
from compiler.report import CudaGraph, Trace
from compiler.targets import TARGETS

pytest.importorskip("torch", reason="timing is part of the compiler")


class Clock:
    """An event that ends when it is recorded, as if the GPU took no time."""

    def __init__(self) -> None:
        self.at = 0.0

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return

    def record(self) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end_event: Any) -> float:
        return float(end_event.at - self.at) * 1e3


class FakeStep:
    """Counts its iterations and asks ``then`` after each."""

    def __init__(self, mode: str, then: Callable[[str, int], None]) -> None:
        self.mode, self.then, self.iterations = mode, then, 0
        self.note = f"{mode} is prepared"
        self.cuda_graph = CudaGraph(captured=True, nodes=3) if mode == "graph" else None

    def __call__(self) -> None:
        self.iterations += 1
        time.sleep(0.002)
        self.then(self.mode, self.iterations)


def observe_fake(compilation: object, step: Any, mode: str, earlier: object) -> tuple[CudaGraph | None, Trace]:
    if mode == "eager":
        raise RuntimeError("no profiler here")
    return step.cuda_graph, Trace(mode, "Test GPU", span_us=7.0)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Event]]:
    """Run with fake steps; ``then(control, mode, iteration)`` is the user. Returns the events sent."""
    from compiler.runtime import timing

    monkeypatch.setattr(timing, "cuda_event_maker", lambda: Clock)
    monkeypatch.setattr(live, "observe_step", observe_fake)
    compilation: Any = SimpleNamespace(report=SimpleNamespace(target=TARGETS["h200"]))

    def run_it(modes: str, then: Callable[[RunControl, str, int], None], broken: str = "") -> list[Event]:
        control = RunControl(modes.split())

        def prepare_step(_: object, mode: str) -> FakeStep:
            if mode == broken:
                raise RuntimeError("no way\nsecond line")
            return FakeStep(mode, lambda mode, iteration: then(control, mode, iteration))

        monkeypatch.setattr(live, "prepare_step", prepare_step)
        events: list[Event] = []
        run(StartRun(7, modes.split()), control, compilation, events.append)
        return events

    return run_it


def running(events: list[Event]) -> list[str]:
    return [event.mode for event in events if isinstance(event, RunState) and event.state == "running"]


def test_a_switch_takes_effect_at_the_next_iteration(play: Callable[..., list[Event]]) -> None:
    after_switch: list[str] = []

    def user(control: RunControl, mode: str, iteration: int) -> None:
        if mode == "compiled" and iteration == 30:
            control.set(["graph"])
        elif mode == "compiled" and iteration > 30:
            after_switch.append(mode)
        elif mode == "graph" and iteration == 40:
            control.stop()

    events = play("compiled", user)
    assert running(events) == ["compiled", "graph"]
    assert after_switch == []
    measured = {event.measurement.mode: event for event in events if isinstance(event, Measured)}
    assert set(measured) == {"compiled", "graph"}
    assert measured["graph"].cuda_graph == CudaGraph(captured=True, nodes=3)
    assert measured["compiled"].cuda_graph is None
    assert measured["compiled"].measurement.gpu == "NVIDIA H200 SXM"
    assert measured["compiled"].trace == Trace("compiled", "Test GPU", span_us=7.0)
    assert isinstance(events[-1], RunState)
    assert events[-1].state == "stopped"


def test_every_mode_is_prepared_before_the_first_iteration(play: Callable[..., list[Event]]) -> None:
    events = play("eager", lambda control, mode, iteration: control.stop() if iteration > 20 else None)
    states = [(event.state, event.mode) for event in events if isinstance(event, RunState)]
    prepared = [mode for state, mode in states if state == "preparing"]
    assert prepared == ["eager", "compiled", "graph"]
    assert states.index(("running", "eager")) > states.index(("preparing", "graph"))


def test_samples_are_numbered_without_gaps_and_batches_are_short(play: Callable[..., list[Event]]) -> None:
    events = play("eager", lambda control, mode, iteration: control.stop() if iteration == 120 else None)
    samples = [event for event in events if isinstance(event, Samples) and not event.warmup]
    assert len(samples) > 1
    position = 0
    for batch in samples:
        assert batch.first == position
        assert len(batch.cpu_us) == len(batch.gpu_us) > 0
        position += len(batch.cpu_us)
    (measured,) = (event for event in events if isinstance(event, Measured))
    assert measured.measurement.iterations == position == len(measured.measurement.cpu_samples)


def test_a_mode_that_cannot_be_had_is_told_once_and_the_run_goes_on(play: Callable[..., list[Event]]) -> None:
    def user(control: RunControl, mode: str, iteration: int) -> None:
        if mode == "compiled" and iteration == 30:
            control.set(["graph"])
        elif iteration == 40:
            control.stop()

    events = play("compiled", user, broken="graph")
    told = [event for event in events if isinstance(event, RunState) and event.text == "graph cannot run: no way"]
    assert [event.mode for event in told] == ["compiled"]
    assert [event.measurement.mode for event in events if isinstance(event, Measured)] == ["compiled"]


def test_the_mode_asked_for_first_must_be_had(play: Callable[..., list[Event]]) -> None:
    with pytest.raises(RuntimeError, match="no way"):
        play("graph", lambda *_: None, broken="graph")


def test_warm_up_is_sent_but_in_no_record(play: Callable[..., list[Event]]) -> None:
    events = play("eager", lambda control, mode, iteration: control.stop() if iteration == 60 else None)
    warm = [event for event in events if isinstance(event, Samples) and event.warmup and event.mode == "eager"]
    recorded = [event for event in events if isinstance(event, Samples) and not event.warmup]
    # ten after preparing, three because other modes were prepared since
    assert sum(len(event.cpu_us) for event in warm) == 13
    (measured,) = (event.measurement for event in events if isinstance(event, Measured))
    assert measured.iterations == sum(len(event.cpu_us) for event in recorded) == 60 - 13
    assert events.index(warm[0]) < events.index(recorded[0])


def test_several_modes_take_turns(play: Callable[..., list[Event]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_TURN_S", 0.02)
    seen: list[str] = []

    def user(control: RunControl, mode: str, iteration: int) -> None:
        if seen[-1:] != [mode]:
            seen.append(mode)
        if len(seen) > 9:
            control.stop()

    events = play("compiled graph inductor", user)
    assert seen[:5] == ["compiled", "graph", "inductor", "eager", "compiled"]  # prepared, then running
    assert seen[5:9] == ["graph", "inductor", "compiled", "graph"]
    measured = {event.measurement.mode for event in events if isinstance(event, Measured)}
    assert measured == {"compiled", "graph", "inductor"}


def test_inductor_is_prepared_when_it_is_asked_for(play: Callable[..., list[Event]]) -> None:
    def user(control: RunControl, mode: str, iteration: int) -> None:
        if mode == "eager" and iteration == 30:
            control.set(["inductor"])
        elif mode == "inductor" and iteration == 20:
            control.stop()

    events = play("eager", user)
    states = [(event.state, event.mode) for event in events if isinstance(event, RunState)]
    assert states.index(("preparing", "inductor")) > states.index(("running", "eager"))
    assert running(events) == ["eager", "inductor"]


def test_a_mode_that_cannot_be_traced_is_still_measured(play: Callable[..., list[Event]]) -> None:
    events = play("eager", lambda control, mode, iteration: control.stop() if iteration == 30 else None)
    told = [event.text for event in events if isinstance(event, RunState) and event.state == "tracing"]
    assert told == ["", "eager cannot be traced: no profiler here"]
    (measured,) = (event for event in events if isinstance(event, Measured))
    assert measured.trace is None
    assert measured.measurement.iterations == 30 - 13
