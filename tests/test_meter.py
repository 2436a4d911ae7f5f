"""The provenance meter: what counts as a line, and exact against inferred against nothing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from app.cli import run
from app.meter import Share, meter, share_text
from app.session import save_session
from compiler.report import Provenance, Report, Trace, TraceEvent
from tests.fake_reports import transformer_report


@pytest.fixture
def report() -> Report:
    return transformer_report(60)


def test_all_links_of_a_whole_report(report: Report) -> None:
    found = meter(report)
    assert found.nodes.mapped == found.kernels.mapped == found.time.mapped == 1.0
    assert found.kernels == Share(len(report.kernels), 0, len(report.kernels))
    assert not found.time_measured
    bodies = sum(len(kernel.source.splitlines()) - 6 for kernel in report.kernels)
    assert found.source_lines == Share(bodies - 3 * len(report.kernels), 0, bodies), "all but three lines of indices"


def test_what_was_inferred_is_counted_apart(report: Report) -> None:
    first, second = report.kernels[:2]
    first.lines_exact = False
    second.line_nodes = {}
    node = next(node for node in report.regions[0].nodes if node.provenance.frames)
    node.provenance = msgspec.structs.replace(node.provenance, exact=False)
    found = meter(report)
    assert (found.kernels.inferred, found.nodes.inferred) == (2, 1)
    assert found.source_lines.inferred == len(first.line_nodes)
    node.provenance = Provenance()
    assert meter(report).nodes.mapped < 1


def test_a_kernel_that_nobody_launches_leads_nowhere(report: Report) -> None:
    lost = report.kernels[0]
    lost.line_nodes = {4: ["region_0/no_such_node"]}
    report.regions[0].groups = [group for group in report.regions[0].groups if group.kernel != lost.name]
    found = meter(report)
    assert found.kernels.exact == found.kernels.total - 1
    assert found.time.mapped < 1


def test_only_instructions_count_as_lines(report: Report) -> None:
    for kernel in report.kernels:
        kernel.irs = {}
    kernel = report.kernels[0]
    kernel.irs = {"ptx": "// a comment\n$L__x:\n\tadd.f32 %f1, %f2, %f3;\n\tret;\n.b8 3\n"}
    kernel.ir_lines = {"ptx": [0, 0, 7, 0, 0]}
    assert meter(report).ir_lines == Share(1, 0, 2)


def test_traced_time_is_measured_time(report: Report) -> None:
    region = report.regions[0]
    events = [
        TraceEvent("launch", 0.0, 100.0, "cpu"),
        TraceEvent("kernel", 0.0, 30.0, "stream 7", unit=f"{region.name}/{region.groups[0].name}"),
        TraceEvent("gemm", 30.0, 60.0, "stream 7", unit=f"{region.name}/{region.extern_calls[0].name}"),
        TraceEvent("memset", 90.0, 10.0, "stream 7"),
    ]
    others = [TraceEvent("triton_fused", 0.0, 80.0, "stream 7")]
    report.traces = [Trace("graph", "NVIDIA H200", events, 100.0), Trace("inductor-graph", "NVIDIA H200", others, 80.0)]
    found = meter(report)
    assert found.time == Share(90.0, 0, 100.0)
    assert found.time_measured


def test_it_never_rounds_up_to_all() -> None:
    assert share_text(Share(9999, 0, 10_000)) == "99%"
    assert share_text(Share(1, 1, 2)) == "100% (50% inferred)"
    assert share_text(Share()) == "100%"


def test_show_tells_it(report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_session(tmp_path / "x.fscope", report)
    assert run(["show", str(tmp_path / "x.fscope")]) == 0
    assert "Traced back: 100% of op nodes to the model's lines, 100% of kernels to nodes" in capsys.readouterr().out
    assert run(["show", str(tmp_path / "x.fscope"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["provenance"]
    assert data["kernels"] == {"exact": len(report.kernels), "inferred": 0, "total": len(report.kernels)}
    assert set(data) == {"nodes", "kernels", "source_lines", "ir_lines", "time", "time_measured"}
