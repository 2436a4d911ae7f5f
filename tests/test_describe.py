"""What a report says of a region must be true of its graph, for whatever model it came from."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterator
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler import report as r
from compiler.describe import describe_node, flops_of, tensor_info
from compiler.lowering.graph import VIEW_OPS
from compiler.pipeline import Compilation, StageEvent, compile_model
from tests.graphs import TARGET, capture

pytest.importorskip("triton", reason="kernels are Triton's")


class Mixed(nn.Module):
    """Library calls, views, reductions, an in-place update, random numbers and a call with several results."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(16, 16), nn.BatchNorm1d(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.norm(F.gelu(self.linear(x)))
        attended, _ = self.attention(h[None], h[None], h[None], need_weights=False)
        values, _ = (h + F.dropout(attended[0], 0.1)).topk(2)
        return values.softmax(-1), h.t().flip(0).cumsum(1)


MODELS = ["mixed", "relu_add_mul", "softmax", "mlp", "conv_bn_relu", "llama_block", "dropout", "graph_break"]
SMALL: dict[str, dict[str, int]] = {
    "softmax": {"rows": 9, "columns": 33},
    "relu_add_mul": {"rows": 9, "columns": 33},
    "mlp": {"batch": 4, "width": 32, "layers": 3},
    "conv_bn_relu": {"batch": 2, "channels": 4, "size": 8},
    "llama_block": {"length": 8, "width": 32, "heads": 4, "kv_heads": 2, "hidden": 48},
    "dropout": {"batch": 8, "width": 32},
}


@cache
def compilation(name: str) -> Compilation:
    """The model compiled, its kernels with it: for no GPU at hand a report is all that is made."""
    if name == "mixed":
        return compile_model(Mixed(), (torch.randn(6, 16),), source=name, target=TARGET, training=True)
    example = importlib.import_module(f"resources.examples.{name}")
    model, inputs = getattr(example, name)(**SMALL.get(name, {}))
    return compile_model(model, inputs, source=name, target=TARGET, training=example.TRAINING)


@pytest.fixture(params=MODELS)
def report(request: pytest.FixtureRequest) -> r.Report:
    return compilation(request.param).report


def regions(report: r.Report) -> Iterator[tuple[r.Region, dict[str, r.Node]]]:
    assert report.regions
    for region in report.regions:
        yield region, {node.name: node for node in region.nodes}


def test_every_call_is_somebodys_work(report: r.Report) -> None:
    """In a group, in an extern call, or only a name for memory that another node made."""
    for region, nodes in regions(report):
        done = {n for group in region.groups for n in group.nodes} | {n for c in region.extern_calls for n in c.nodes}
        assert done <= set(nodes)
        for node in nodes.values():
            if node.kind is r.NodeKind.CALL and node.name not in done:
                packet = node.op.split(".")[1] if node.op.startswith("aten.") else node.op
                assert packet in VIEW_OPS | {"getitem"}, f"{region.name}: nobody computes {node.name} ({node.op})"


def test_every_group_has_its_kernel_and_every_kernel_its_groups(report: r.Report) -> None:
    used: dict[str, int] = {}
    for region, _ in regions(report):
        for group in region.groups:
            assert report.kernel(group.kernel) is not None
            used[group.kernel] = used.get(group.kernel, 0) + 1
            assert group.reason.endswith(".")
    assert {kernel.name: kernel.launches for kernel in report.kernels} == used


def test_kernels_compiled_for_the_target(report: r.Report) -> None:
    for kernel in report.kernels:
        assert not kernel.error, kernel.error
        assert {"ttir", "ttgir", "llir", "ptx"} <= set(kernel.irs)
        assert kernel.registers is not None
        assert kernel.estimated_bytes > 0
        assert kernel.config["num_warps"] > 0


def test_lines_point_at_nodes_that_exist(report: r.Report) -> None:
    known = {f"{region.name}/{name}" for region, nodes in regions(report) for name in nodes}
    for kernel in report.kernels:
        assert kernel.line_nodes
        length = len(kernel.source.splitlines())
        for line, origins in kernel.line_nodes.items():
            assert 1 <= line <= length
            assert origins
            assert set(origins) <= known


def test_refusals_name_two_nodes(report: r.Report) -> None:
    for region, nodes in regions(report):
        for refusal in region.refusals:
            assert refusal.a in nodes
            assert refusal.b in nodes
            assert refusal.a != refusal.b
            assert refusal.detail


def test_the_schedule_is_one_line(report: r.Report) -> None:
    for region, _ in regions(report):
        orders = [step.order for step in (*region.groups, *region.extern_calls)]
        assert sorted(orders) == list(range(len(orders)))


def test_groups_read_and_write_nodes_that_exist(report: r.Report) -> None:
    for region, nodes in regions(report):
        for group in region.groups:
            assert set(group.inputs) | set(group.outputs) <= set(nodes)
            assert group.outputs
            assert set(group.recomputed) <= set(group.nodes)
            others = [set(other.nodes) for other in region.groups if other is not group]
            assert all(any(node in other for other in others) for node in group.recomputed)


def test_nodes_read_only_nodes_before_them(report: r.Report) -> None:
    for region, _ in regions(report):
        seen: set[str] = set()
        for node in region.nodes:
            assert set(node.inputs) <= seen, f"{node.name} reads {set(node.inputs) - seen}"
            seen.add(node.name)


def test_buffers_live_within_the_schedule(report: r.Report) -> None:
    for region, nodes in regions(report):
        steps = len(region.groups) + len(region.extern_calls)
        names = {b.name for b in region.memory.buffers}
        for b in region.memory.buffers:
            assert 0 <= b.first_use <= b.last_use < steps
            assert b.node in nodes
            assert not b.reuses or b.reuses in names
        assert region.memory.peak_bytes <= region.memory.total_bytes


def test_reports_survive_being_written_and_read(report: r.Report) -> None:
    import msgspec

    assert msgspec.json.decode(msgspec.json.encode(report), type=r.Report) == report


def test_provenance_reaches_the_users_file() -> None:
    (region,) = compilation("relu_add_mul").report.regions
    add = next(node for node in region.nodes if node.name == "add")
    assert add.provenance.frames[0].code == "return torch.relu((a + b) * c)"
    assert add.provenance.frames[0].file.endswith("relu_add_mul.py")
    training = compilation("mlp").report.regions[-1] if compilation("mlp").report.training else None
    paths = {n.provenance.module_path for region in compilation("llama_block").report.regions for n in region.nodes}
    assert {"self_attn", "mlp"} <= {path.split(".")[0] for path in paths}
    assert training is None or any(n.provenance.frames for n in training.nodes)


def test_backward_nodes_name_the_forwards_module() -> None:
    backward = compilation("mixed").report.regions[1]
    assert backward.kind == "backward"
    calls = [n for n in backward.nodes if n.kind is r.NodeKind.CALL]
    named = [n for n in calls if n.provenance.module_path]
    assert len(named) > len(calls) // 2
    assert {"linear", "norm"} <= {n.provenance.module_path for n in named}
    assert any(n.op == "tangent" for n in backward.nodes)
    assert any(n.op == "saved" for n in backward.nodes)


def test_parameters_and_buffers_are_told_from_the_callers_inputs() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    for compiler in ("fusescope", "inductor"):
        for training in (False, True):
            report = compile_model(
                model, (torch.randn(4, 8),), source="s", target=TARGET, compiler=compiler, training=training
            ).report
            region = report.regions[0]
            inputs = [n for n in region.nodes if n.op == "input"]
            assert [list(n.outputs[0].shape) for n in inputs] == [[4, 8]]
            assert sum(n.op == "parameter" for n in region.nodes) >= 6
            # The statistics that the model writes into are its own, and no input of the caller's.
            assert "mutated_input" not in {reason.rule for reason in region.cuda_graph.skip_reasons}


def test_graph_breaks_are_reported_with_their_line() -> None:
    found = compilation("graph_break").report.graph_breaks
    assert found
    assert found[0].source is not None
    assert found[0].source.file.endswith("graph_break.py")


def test_library_calls_say_why() -> None:
    calls = [call for region in compilation("mixed").report.regions for call in region.extern_calls]
    reasons = {call.reason for call in calls}
    assert {r.ExternReason.LIBRARY_IS_FASTER, r.ExternReason.RANDOM, r.ExternReason.NO_LOWERING} <= reasons
    assert all(call.detail or call.reason is r.ExternReason.LIBRARY_IS_FASTER for call in calls)


def test_the_stages_come_in_order_and_only_forward() -> None:
    seen: list[StageEvent] = []
    compile_model(torch.relu, (torch.randn(4),), source="relu", target=TARGET, on_stage=seen.append)
    begun = [event.stage for event in seen if event.ms is None and event.fraction >= 0]
    assert list(dict.fromkeys(begun)) == ["capture", "lower", "fuse", "generate", "plan", "compile", "report"]
    assert seen[-1].fraction == 1.0
    ended = [event for event in seen if event.ms is not None]
    assert {event.stage for event in ended} == set(begun)


def test_sizes_strides_and_bytes_of_a_tensor() -> None:
    info = tensor_info(torch.empty(3, 4, dtype=torch.bfloat16).t())
    assert info == r.TensorInfo([4, 3], "bfloat16", [1, 4], "cpu", 24)


def test_flops_are_torchs_where_it_has_a_formula() -> None:
    graph = capture(lambda x, w: (x @ w).relu().t(), torch.randn(4, 8), torch.randn(8, 16))
    flops = {node.name: flops_of(node) for node in graph.graph.nodes}
    assert flops["mm"] == 2 * 4 * 8 * 16
    assert flops["relu"] == 64
    assert flops["t" if "t" in flops else "permute"] == 0
    assert describe_node(next(n for n in graph.graph.nodes if n.name == "mm"), "inference").estimated_bytes == 4 * (
        4 * 8 + 8 * 16 + 4 * 16
    )


def test_pieces_of_a_result_are_getitems() -> None:
    graph = capture(lambda x: list(x.topk(2)), torch.randn(3, 4))
    nodes = [describe_node(n, "inference") for n in graph.graph.nodes]
    assert [n.op for n in nodes if n.kind is r.NodeKind.CALL] == ["aten.topk.default", "getitem", "getitem"]
    assert next(n for n in graph.graph.nodes if n.target is operator.getitem).name in {n.name for n in nodes}
