"""The roofline and the heat of source lines: measured is measured, estimated is estimated, nothing gets lost."""

from __future__ import annotations

import pytest

from app.roofline import measured_units, peak_tflops, points, roof_us
from app.source_heat import source_heat
from compiler.report import ExternReason, GraphNode, GraphNodeKind, Report
from tests.fake_reports import H100, transformer_report
from tests.fake_runs import lab_report


@pytest.fixture
def plain() -> Report:
    return transformer_report(120)


def test_the_roof_is_the_longer_of_memory_and_arithmetic() -> None:
    assert roof_us(H100, 3_352_000, 0, 66.9) == (pytest.approx(1.0), "memory")
    us, bound = roof_us(H100, 10, 66_900_000_000, 66.9)
    assert (us, bound) == (pytest.approx(1000.0), "compute")


def test_only_libraries_reach_tensor_cores() -> None:
    assert peak_tflops(H100, "bfloat16", library=True) == 989.0
    assert peak_tflops(H100, "bfloat16", library=False) == 66.9
    assert peak_tflops(H100, "float32", library=True) == 66.9


def test_nothing_measured_wastes_nothing(plain: Report) -> None:
    found = points(plain, plain.regions[0])
    assert found
    assert all(not point.time.measured and point.wasted_us == 0.0 for point in found)
    assert all(point.time.us == point.roof_us for point in found)


def test_what_works_on_the_cpu_is_under_no_roof(plain: Report) -> None:
    region = plain.regions[0]
    group, call = region.groups[0], region.extern_calls[0]
    next(kernel for kernel in plain.kernels if kernel.name == group.kernel).language = "cpp"
    call.reason = ExternReason.CPU_TENSOR
    units = {point.unit for point in points(plain, region)}
    in_cpp = {other.name for other in region.groups if other.kernel == group.kernel}
    assert units.isdisjoint({*in_cpp, call.name})
    assert region.groups[-1].name in units


def test_graph_nodes_come_before_traces_and_kernels() -> None:
    report = lab_report(60)
    region = report.regions[0]
    group = region.groups[0]
    found = measured_units(report, region)
    assert found[group.name].origin == "CUDA Graph nodes"
    region.cuda_graph.topology = []
    assert measured_units(report, region)[group.name].origin == "trace"
    report.traces = []
    assert measured_units(report, region)[group.name].origin == "kernel"
    assert region.extern_calls[0].name not in measured_units(report, region)


def test_several_nodes_of_a_unit_add_up_also_inside_child_graphs(plain: Report) -> None:
    region = plain.regions[0]
    name = region.groups[0].name

    def kernel(number: int, us: float) -> GraphNode:
        return GraphNode(number, GraphNodeKind.KERNEL, "k", region=region.name, unit=name, measured_us=us)

    child = GraphNode(1, GraphNodeKind.CHILD_GRAPH, "child", children=[kernel(0, 3.0)])
    region.cuda_graph.topology = [kernel(0, 2.0), child]
    assert measured_units(plain, region)[name].us == 5.0


def test_heat_keeps_all_the_time() -> None:
    report = lab_report(120)
    region = report.regions[0]
    lines = source_heat(report)["model.py"]
    total = sum(line.us for line in lines.values())
    with_line = {node.name for node in region.nodes if node.provenance.frames}
    members = {u.name: u.nodes for u in (*region.groups, *region.extern_calls)}
    expected = sum(p.time.us for p in points(report, region) if set(members[p.unit]) <= with_line)
    assert total == pytest.approx(expected)
    assert all(line.estimated_us == 0.0 for line in lines.values())
    assert sum(line.measured_us for line in source_heat(transformer_report(120))["model.py"].values()) == 0.0


def test_frames_outside_the_report_are_passed_over(plain: Report) -> None:
    plain.sources = {}
    assert source_heat(plain) == {}
