"""Before you capture: every reason that splits or skips a graph is listed, with its place and what to change."""

from __future__ import annotations

import msgspec
import pytest

from app.capture_check import State, capture_checks
from compiler.report import (
    CudaGraph,
    ExternReason,
    GraphBreak,
    Node,
    NodeKind,
    Percentiles,
    Report,
    SkipReason,
    SourceLine,
)
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report


@pytest.fixture
def report() -> Report:
    return transformer_report(60)


def test_a_plain_model_has_nothing_against_it(report: Report) -> None:
    checks = capture_checks(report)
    assert {check.state for check in checks} <= {State.OK, State.COSTS}
    assert any(check.title == "Nothing refuses capture" for check in checks)
    assert any("become one launch" in check.title for check in checks)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (ExternReason.HOST_SYNC, "torch.where"),
        (ExternReason.CPU_TENSOR, "Move the tensor"),
        (ExternReason.DATA_DEPENDENT_SHAPE, "fixed size"),
    ],
)
def test_calls_that_work_on_the_cpu_split(report: Report, reason: ExternReason, advice: str) -> None:
    call = report.regions[0].extern_calls[1]
    call.reason = reason
    first = capture_checks(report)[0]
    assert first.state is State.SPLITS
    assert (first.region, first.node) == ("region_0", call.nodes[-1])
    assert first.source is not None
    assert advice in first.advice


def test_a_reason_of_the_compiler_is_told_once(report: Report) -> None:
    call = report.regions[0].extern_calls[1]
    call.reason = ExternReason.HOST_SYNC
    report.regions[0].cuda_graph = CudaGraph(
        capturable=False, skip_reasons=[SkipReason("host_sync", "item() waits.", call.nodes[0])]
    )
    worst = [check for check in capture_checks(report) if check.state in (State.SPLITS, State.SKIPS)]
    assert [(check.state, check.detail) for check in worst] == [(State.SKIPS, "item() waits.")]


def test_graph_breaks_and_changing_sizes(report: Report) -> None:
    report.graph_breaks = [GraphBreak("print()", SourceLine("model.py", 7))]
    tokens = report.regions[0].nodes[0]
    tokens.outputs = [msgspec.structs.replace(tokens.outputs[0], shape=["s0", 1024])]
    checks = capture_checks(report)
    assert checks[0].title == "Graph break: print()"
    assert checks[0].source == SourceLine("model.py", 7)
    sizes = next(check for check in checks if "sizes that change" in check.title)
    assert (sizes.state, sizes.node) == (State.COSTS, "input_ids")
    assert not any(check.title == "Nothing refuses capture" for check in checks)


@pytest.mark.parametrize(("compiler", "said"), [("fusescope", "Library calls read them"), ("inductor", "Where they")])
def test_inputs_that_library_calls_read_are_copied(report: Report, compiler: str, said: str) -> None:
    report.compiler = compiler
    (check,) = [check for check in capture_checks(report) if check.title.startswith("Inputs of region_0")]
    assert check.title == "Inputs of region_0: input_ids"
    assert check.detail.startswith(said)


def test_inputs_that_kernels_alone_read_are_followed(report: Report) -> None:
    region = report.regions[0]
    region.extern_calls = [call for call in region.extern_calls if call.op != "aten.embedding.default"]
    (check,) = [check for check in capture_checks(report) if check.title.startswith("Inputs of region_0")]
    assert (check.state, check.node) == (State.OK, "input_ids")
    assert "no copy" in check.detail


@pytest.mark.parametrize("size", [1 << 10, 1 << 30])
def test_inputs_that_are_written_to_are_copied_and_back(report: Report, size: int) -> None:
    region = report.regions[0]
    tokens = region.nodes[0]
    tokens.outputs = [msgspec.structs.replace(tokens.outputs[0], bytes=size)]
    region.nodes.append(Node("copy_", NodeKind.CALL, "aten.copy_.default", [tokens.name, region.nodes[-1].name]))
    (check,) = [check for check in capture_checks(report) if check.title.startswith("Inputs of region_0")]
    assert "are copied before each replay and back (" in check.detail
    if size == 1 << 30:
        assert "1.07 GB" in check.detail
        assert "1.28 ms" in check.detail, "each way reads and writes it, at 3,352 GB/s"
        assert check.state is State.COSTS
        assert "Return the new value" in check.advice


def test_what_was_measured_says_what_capture_is_worth() -> None:
    worth = next(check for check in capture_checks(lab_report(60)) if "become one launch" in check.title)
    assert "the CPU is the limit" in worth.detail
    assert "Test GPU" in worth.detail
    report = lab_report(60)
    plain = next(one for one in report.measurements if one.mode == "compiled")
    plain.cpu_us, plain.gpu_us = Percentiles(1733.4, 1800, 1900), Percentiles(958.6, 1000, 1100)
    worth = next(check for check in capture_checks(report) if "become one launch" in check.title)
    assert "takes 1.73 ms of CPU time" in worth.detail, "as times are told everywhere"
    assert "done after 959 µs" in worth.detail


def test_a_line_that_breaks_the_graph_again_and_again_is_told_once(report: Report) -> None:
    report.graph_breaks = [GraphBreak("Tensor.item()", SourceLine("model.py", 7))] * 3
    (check,) = [check for check in capture_checks(report) if check.title.startswith("Graph break")]
    assert check.detail.endswith("a graph of its own. It was reached 3 times.")


def test_what_holds_of_several_regions_is_told_once_and_of_which() -> None:
    report = transformer_report(60, training=True)
    for region in report.regions:
        reason = SkipReason("cpu_op", "The region runs on the CPU.")
        region.cuda_graph = CudaGraph(capturable=False, skip_reasons=[reason])
    skips = [check for check in capture_checks(report) if check.state is State.SKIPS]
    names = [region.name for region in report.regions]
    assert [check.detail for check in skips] == [f"The region runs on the CPU. In {', '.join(names)}."]
    report.regions[1].cuda_graph.skip_reasons[0].node = report.regions[1].nodes[3].name
    skips = [check for check in capture_checks(report) if check.state is State.SKIPS]
    assert [check.region for check in skips] == names, "each has a place of its own to go to"
