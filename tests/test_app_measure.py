"""Measuring without a GPU: what a traced mode is joined to, and a mode that cannot be had."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch", reason="measuring is part of the compiler")

from app.session import open_session
from app.worker import measure
from app.worker.measure import measure_modes, observe_step
from compiler.report import ExternCall, ExternReason, Region, Report, SkipReason, Trace
from compiler.runtime.capture import CaptureRefused
from tests.fake_reports import H100

DROPOUT = Path(__file__).parent / "fixtures" / "recorded" / "inductor_dropout.fscope"


def bare(trace: Trace) -> Trace:
    return msgspec.structs.replace(trace, events=[msgspec.structs.replace(event, unit="") for event in trace.events])


def test_what_inductor_runs_is_joined_when_it_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its regions tell no observer which step runs: trace and graph come with no unit, and leave with one."""
    report = open_session(DROPOUT).report
    traces = {trace.mode: trace for trace in report.traces}
    graph = report.regions[0].cuda_graph
    nodes = [msgspec.structs.replace(node, region="", unit="", measured_us=None) for node in graph.topology]
    compilation: Any = SimpleNamespace(report=report, observer=None)
    monkeypatch.setattr("compiler.runtime.trace.trace", lambda step, mode, observer: bare(traces[mode]))

    plain: Any = SimpleNamespace(cuda_graph=None)
    facts, compiled = observe_step(compilation, plain, "compiled")
    assert facts is None
    assert compiled == traces["compiled"]

    captured: Any = SimpleNamespace(cuda_graph=msgspec.structs.replace(graph, topology=nodes))
    facts, replayed = observe_step(compilation, captured, "graph", [compiled])
    assert facts is not None
    assert [event.unit for event in replayed.events] == [event.unit for event in traces["graph"].events]
    known = [(node.region, node.unit, node.measured_us) for node in graph.topology]
    assert [(node.region, node.unit, node.measured_us) for node in facts.topology] == known
    assert sum(bool(node.unit) for node in facts.topology) == 12

    _, eager = observe_step(compilation, plain, "eager", [compiled])
    assert not any(event.unit for event in eager.events)


def test_a_mode_that_cannot_be_had_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CaptureRefused(SkipReason("graph_break", "The model is several regions."))

    monkeypatch.setattr(measure, "prepare_step", refuse)
    call = ExternCall("call0", [], "aten.rand.default", ExternReason.RANDOM)  # so that nothing is run to compare with
    report = Report("inductor", "a test", H100, regions=[Region("inference", "inference", [], extern_calls=[call])])
    compilation: Any = SimpleNamespace(report=report)
    assert measure_modes(compilation, ["graph"], 10) == []
    assert report.notes == ["Mode graph was not measured: The model is several regions."]
