"""Topology and traces without a GPU: orders, the longest path, launches joined to their work and to steps."""

from __future__ import annotations

import pytest

from compiler.joining import joined_by_nodes
from compiler.report import CudaGraph, GraphNode, GraphNodeKind
from compiler.runtime.topology import in_order, longest_path
from compiler.runtime.trace import Seen, assemble, coverage, kernel_names, with_trace

KERNEL, MEMCPY = GraphNodeKind.KERNEL, GraphNodeKind.MEMCPY


def node(number: int, *dependencies: int, name: str = "k", kind: GraphNodeKind = KERNEL, unit: str = "") -> GraphNode:
    return GraphNode(id=number, kind=kind, name=name, dependencies=list(dependencies), region="forward", unit=unit)


def test_nodes_come_after_those_they_wait_for() -> None:
    assert in_order([1, 2, 3], {2: [1]}) == [1, 2, 3]
    assert in_order([30, 20, 10], {30: [20, 10], 20: [10]}) == [10, 20, 30]


def test_the_longest_path_goes_by_time_and_not_by_length() -> None:
    diamond = [node(0), node(1, 0), node(2, 0), node(3, 2), node(4, 1, 3)]
    assert longest_path(diamond, {0: 1, 1: 50, 2: 2, 3: 2, 4: 1}) == {0, 1, 4}
    assert longest_path(diamond, {0: 1, 1: 3, 2: 2, 3: 2, 4: 1}) == {0, 2, 3, 4}
    assert longest_path(diamond, {}) == set()


def cpu(name: str, start: int, duration: int, correlation: int = 0, thread: int = 1) -> Seen:
    return Seen(name, start, duration, False, 0, thread, correlation)


def gpu(name: str, start: int, duration: int, correlation: int, stream: int = 7) -> Seen:
    return Seen(name, start, duration, True, stream, 0, correlation)


SEEN = [
    cpu("cudaLaunchKernel", 510, 5, correlation=1),
    gpu("warm up", 520, 5, 1),
    cpu("fusescope iteration", 1000, 1000),
    cpu("fusescope:forward/group0", 1100, 100),
    cpu("fusescope:backward/ext_mm", 1100, 300, thread=2),
    cpu("cuLaunchKernelEx", 1150, 20, correlation=11),
    cpu("cudaLaunchKernel", 1350, 20, correlation=12, thread=2),
    cpu("cudaLaunchKernel", 1450, 20, correlation=13),
    cpu("cudaGraphLaunch", 1500, 20, correlation=14),
    cpu("aten::mm", 1340, 50),
    gpu("late", 2500, 100, 13),
    gpu("triton_0", 2000, 200, 11),
    gpu("fusescope:forward/group0", 2000, 200, 11),
    gpu("gemm", 2300, 100, 12, stream=8),
    gpu("k", 3000, 300, 14),
    gpu("Memcpy DtoD (Device -> Device)", 3400, 100, 14),
    gpu("k", 3600, 200, 14),
]


def test_launches_are_joined_to_their_work_and_to_steps() -> None:
    found = assemble(SEEN, "compiled", "a GPU")
    launches = [event for event in found.events if event.lane == "cpu"]
    assert [(event.name, event.unit) for event in launches] == [
        ("cuLaunchKernelEx", "forward/group0"),
        ("cudaLaunchKernel", "backward/ext_mm"),
        ("cudaLaunchKernel", ""),
        ("cudaGraphLaunch", ""),
    ]
    work = [(e.name, e.lane, e.launch, e.unit, e.start_us) for e in found.events if e.lane != "cpu"]
    assert work[:3] == [
        ("triton_0", "stream 7", 0, "forward/group0", 1.0),
        ("gemm", "stream 8", 1, "backward/ext_mm", 1.3),
        ("late", "stream 7", 2, "", 1.5),
    ]
    assert [launch for _, _, launch, _, _ in work[3:]] == [3, 3, 3]
    assert found.span_us == pytest.approx(2.8)
    assert kernel_names(found) == ["triton_0", "gemm", "late", "k", "k"]


def test_times_reach_the_graphs_nodes_in_order_of_their_names() -> None:
    found = assemble(SEEN, "graph", "a GPU")
    topology = [node(0, unit="group0"), node(1, 0, kind=MEMCPY, name="Copy"), node(2, 1, unit="group1"), node(3, 2)]
    facts = with_trace(CudaGraph(captured=True, topology=topology), found)
    assert [n.measured_us for n in facts.topology] == [0.3, 0.1, 0.2, None]
    assert [n.critical for n in facts.topology] == [True, True, True, False]
    assert coverage(found) == pytest.approx((0.5, 0.6))
    assert (facts.covered_kernels, facts.covered_time) == coverage(found)
    units = [event.unit for event in joined_by_nodes(found, topology).events if event.launch == 3]
    assert units == ["forward/group0", "", "forward/group1"]


def test_what_the_cpu_called_is_known_of_launches_without_a_step() -> None:
    """The outermost op counts: a product calls others. autograd's own ranges are no ops."""
    seen = [
        cpu("fusescope iteration", 0, 1000),
        cpu("autograd::engine::evaluate_function: CompiledFunctionBackward", 5, 900),
        cpu("aten::addmm", 10, 50),
        cpu("aten::empty", 20, 5),
        cpu("cudaLaunchKernel", 30, 5, 1),
        cpu("cudaLaunchKernel", 40, 5, 2),
        cpu("aten::addmm", 70, 20),
        cpu("cudaLaunchKernel", 75, 5, 3),
        cpu("cuLaunchKernel", 95, 2, 4),
        cpu("aten::mean", 90, 20, thread=2),
    ]
    events = assemble(seen, "compiled", "a GPU").events
    assert [event.op for event in events] == ["aten::addmm", "aten::addmm", "aten::addmm", ""]
    assert events[0].call == events[1].call != events[2].call
    assert events[3].call == -1


def iteration(number: int, us: int, name: str = "k") -> list[Seen]:
    """One iteration of two kernels, the first of ``us`` microseconds; it ends on the GPU after it does on the CPU."""
    at = number * 1_000_000
    return [
        cpu("fusescope iteration", at, 1000),
        cpu("cudaLaunchKernel", at + 10, 5, 2 * number),
        cpu("cudaLaunchKernel", at + 20, 5, 2 * number + 1),
        gpu("k", at + 100, us * 1000, 2 * number),
        gpu(name, at + 100 + us * 1000, 7000, 2 * number + 1),
    ]


def test_durations_are_medians_over_the_iterations_that_ran_the_same() -> None:
    seen = [event for number, us in enumerate((3, 9, 5)) for event in iteration(number, us)]
    found = assemble(seen, "compiled", "a GPU")
    first, second = (event for event in found.events if event.lane != "cpu")
    assert (found.iterations, first.duration_us, first.us, second.us) == (3, 5.0, 5.0, 7.0)
    found = assemble([*seen, *iteration(3, 80)], "compiled", "a GPU")
    first, _ = (event for event in found.events if event.lane != "cpu")
    assert (first.duration_us, first.us) == (80.0, 7.0)
    found = assemble([*iteration(0, 3, name="another"), *iteration(1, 9)], "compiled", "a GPU")
    first, _ = (event for event in found.events if event.lane != "cpu")
    assert first.median_us is None
    assert first.us == 9.0


def test_nothing_traced_covers_nothing() -> None:
    found = assemble([], "graph", "a GPU")
    assert found.events == []
    assert coverage(found) is None
    assert with_trace(CudaGraph(), found).covered_time is None
