"""The real Inductor for a GPU that is not there: its report must be true of its own wrapper and graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._inductor import cpu_vec_isa
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import fresh_cache
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.compiler import config as compiler_config

from compiler import report as r
from compiler.dynamo.messages import DynamoFacts
from compiler.errors import CompileError
from compiler.inductor.compile import inductor_report
from compiler.inductor.fake_gpu import fake_gpu
from compiler.inductor.kernels import launches_in
from compiler.inductor.lines import LineTags
from compiler.inductor.run import InductorRun, code_only, inductor_backend
from compiler.inductor.skips import skip_rule
from compiler.patching import replaced
from compiler.pipeline import compile_model
from compiler.targets import TARGETS, cpu_target, resolve
from tests.inductor_checks import shape_of

pytest.importorskip("triton", reason="kernels are Triton's")
TARGET = resolve("h100")


class Small(nn.Module):
    """Library calls, pointwise chains, a reduction, attention and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).view(2, 16, 3, 4, 16).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 16, 64)
        return F.dropout(F.gelu(self.out(attended)), 0.1, self.training) + x


@cache
def report_of(training: bool) -> r.Report:
    """The model compiled by Inductor, for inference or training."""
    torch.manual_seed(0)
    model = Small().train(training)
    inputs = (torch.randn(2, 16, 64),)
    return compile_model(model, inputs, source="small", target=TARGET, compiler="inductor", training=training).report


@pytest.fixture(params=[False, True], ids=["inference", "training"])
def report(request: pytest.FixtureRequest) -> r.Report:
    return report_of(request.param)


def regions(report: r.Report) -> Iterator[tuple[r.Region, dict[str, r.Node]]]:
    assert report.regions
    for region in report.regions:
        yield region, {node.name: node for node in region.nodes}


@pytest.mark.parametrize(
    ("words", "model", "dtype"),
    [("TensorFloat32", lambda x: x @ x, torch.float32), ("complex operators", lambda x: x * x, torch.complex64)],
)
def test_advice_is_a_note_and_no_warning(
    recwarn: pytest.WarningsRecorder, words: str, model: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    """Inductor warns once a process; every report says it."""
    for _ in range(2):
        x = torch.ones(64, 64, dtype=dtype)
        report = compile_model(model, (x,), source="s", target=TARGET, compiler="inductor").report
        assert any(words in note for note in report.notes)
    assert not [w for w in recwarn.list if words in str(w.message)]


def test_regions(report: r.Report) -> None:
    assert [x.kind for x in report.regions] == (["forward", "backward"] if report.training else ["inference"])
    assert report.compiler == "inductor"
    assert all(stage.ms >= 0 for stage in report.stages)
    for region in report.regions:
        graphs = {"dynamo", region.kind, "post_grad"} | ({"joint"} if report.training else set())
        assert set(region.graphs) == graphs
        assert all("def forward" in text for text in region.graphs.values())


def test_kernels_are_those_of_the_wrapper(report: r.Report) -> None:
    """Every kernel in a wrapper is in the report and the other way round; so is every launch."""
    defined = {name for x in report.regions for name in re.findall(r"^(\w+) = async_compile", x.wrapper, re.M)}
    assert defined == {kernel.name for kernel in report.kernels}
    for region in report.regions:
        assert launches_in(region.wrapper) == [g.kernel for g in sorted(region.groups, key=lambda g: g.order)]
    for kernel in report.kernels:
        assert not kernel.error
        assert kernel.launches == sum(g.kernel == kernel.name for x in report.regions for g in x.groups)
        assert {"ttir", "ttgir", "llir", "ptx"} <= set(kernel.irs)
        assert kernel.registers
        assert all(n > 0 for n in kernel.grid)


def test_every_call_is_in_one_place(report: r.Report) -> None:
    for region, nodes in regions(report):
        units = [*region.groups, *region.extern_calls]
        assert sorted(u.order for u in units) == list(range(len(units)))
        for unit in units:
            assert unit.nodes
            assert set(unit.nodes) <= set(nodes)
            assert len(unit.nodes) == len(set(unit.nodes))
        for call in region.extern_calls:
            assert call.runs_as in region.wrapper
        done = {name for unit in units for name in unit.nodes}
        views = {"view", "permute", "reshape", "getitem", "select", "expand", "transpose", "slice", "unsqueeze"}
        for node in nodes.values():
            if node.kind is r.NodeKind.CALL and node.name not in done:
                op = node.op.split(".")[1] if node.op.startswith("aten.") else node.op
                assert op in views | {"prims.inductor_lookup_seed.default"}, f"nobody computes {node.name} ({node.op})"


def test_groups_hold_only_what_their_kernel_computes(report: r.Report) -> None:
    """A matrix product's result may be read by a kernel; its node is then the call's, not the group's."""
    for region, nodes in regions(report):
        library = {name for call in region.extern_calls for name in call.nodes}
        for group in region.groups:
            assert not library & set(group.nodes)
            assert set(group.inputs) <= set(nodes)
            assert set(group.outputs) <= set(group.nodes)
            assert group.estimated_bytes > 0


def test_refusals_map_to_two_nodes(report: r.Report) -> None:
    for region, nodes in regions(report):
        position = {name: i for i, name in enumerate(nodes)}
        for refusal in region.refusals:
            assert position[refusal.a] < position[refusal.b]
            assert refusal.detail
        assert len({(x.a, x.b, x.detail) for x in region.refusals}) == len(region.refusals)


def test_refusals_of_a_value_that_two_kernels_compute() -> None:
    def columns_and_rows(x: Tensor, y: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        both = (x @ w).relu() + y
        return both.sum(0).relu(), torch.cumsum(both, 0), torch.softmax(both, -1)

    inputs = (torch.randn(128, 256), torch.randn(128, 256), torch.randn(256, 256))
    made = compile_model(columns_and_rows, inputs, source="both", target=TARGET, compiler="inductor")
    (region,) = made.report.regions
    first, second = region.groups
    assert set(first.nodes) & set(second.nodes), "the addition is computed in both"
    home = {node: unit.name for unit in (second, first, *region.extern_calls) for node in unit.nodes}
    apart = [x for x in region.refusals if x.rule is not r.RefusalRule.EXTERN]
    assert {frozenset((home[x.a], home[x.b])) for x in apart} == {frozenset((first.name, second.name))}
    # both read the product and y, in another order: that they share nothing would be wrong
    assert [x.rule for x in apart] == [r.RefusalRule.ACCESS_MISMATCH], "once, whichever Inductor tried first"
    assert all("both use" in x.detail for x in apart)
    size = 128 * 256 * 4
    assert {x.bytes_lost for x in apart} == {2 * size}
    calls = [x for x in region.refusals if x.rule is r.RefusalRule.EXTERN]
    assert {home[x.b] for x in calls} == {first.name, second.name}, "each of its readers is named by a node of its own"
    assert [x.bytes_lost for x in calls] == [size, size], "the product is written for the other in any case"


def test_scheduler_nodes_end_in_units(report: r.Report) -> None:
    for region, nodes in regions(report):
        names = {u.name for u in [*region.groups, *region.extern_calls]}
        assert region.scheduler_nodes
        assert {s.unit for s in region.scheduler_nodes} - {""} == names
        assert all(set(s.nodes) <= set(nodes) for s in region.scheduler_nodes)


def test_memory_plan(report: r.Report) -> None:
    for region, _ in regions(report):
        plan = {b.name: b for b in region.memory.buffers}
        assert 0 < region.memory.peak_bytes <= region.memory.total_bytes
        for buffer in plan.values():
            assert buffer.first_use <= buffer.last_use
            if buffer.reuses:
                assert plan[buffer.reuses].last_use <= buffer.first_use


def test_provenance(report: r.Report) -> None:
    for region, _ in regions(report):
        calls = [n for n in region.nodes if n.kind is r.NodeKind.CALL]
        assert sum(bool(n.provenance.frames) for n in calls) > 0.9 * len(calls)


def test_what_a_pattern_put_in_has_the_place_of_the_nearest_node_that_has_one() -> None:
    """A scaled softmax becomes a dozen nodes of which Inductor keeps no stack; several lie between others of these."""

    def scaled(x: Tensor) -> Tensor:
        return (x * 2).softmax(-1)

    report = compile_model(scaled, (torch.ones(8, 16),), source="s", target=TARGET, compiler="inductor").report
    calls = [node for node in report.regions[0].nodes if node.kind is r.NodeKind.CALL]
    assert any(not node.provenance.exact for node in calls)
    assert all(node.provenance.frames[0].code == "return (x * 2).softmax(-1)" for node in calls)


def test_lines_of_kernels_map_to_their_nodes(report: r.Report) -> None:
    nodes = {f"{region.name}/{name}" for region, found in regions(report) for name in found}
    groups = {k.name: {f"{x.name}/{n}" for x in report.regions for g in x.groups if g.kernel == k.name for n in g.nodes}
              for k in report.kernels}  # fmt: skip
    for kernel in report.kernels:
        lines = kernel.source.splitlines()
        for number, line in enumerate(lines, 1):
            found = kernel.line_nodes.get(number, [])
            assert set(found) <= nodes
            assert bool(found) == bool(re.match(r"\s+(tmp\d+ =|tl\.store)", line)), line
            if "tl.store" in line:
                assert set(found) <= groups[kernel.name]


def test_attention_written_out_becomes_the_call_of_the_target() -> None:
    """Inductor's patterns run on fake tensors of the GPU, with a backward: what they put in is the target's."""

    def attention(*inputs: Tensor) -> Tensor:
        q, k, v = (x.view(2, 16, 4, 16).permute(0, 2, 1, 3) for x in inputs)
        return torch.matmul(torch.matmul(q, k.transpose(-2, -1)).div(4.0).softmax(-1), v)

    x = tuple(torch.randn(2, 16, 64, dtype=torch.float16, requires_grad=True) for _ in range(3))
    report = compile_model(attention, x, source="a", target=TARGET, compiler="inductor", training=True).report
    calls = [call.op for region in report.regions for call in region.extern_calls]
    cudnn = "aten._scaled_dot_product_cudnn_attention"
    assert calls == [f"{cudnn}.default", f"{cudnn}_backward.default"]


def test_dynamic_sizes_and_cuda_graphs() -> None:
    def step(x: Tensor) -> Tensor:
        x[0] = 1.0
        return torch.rand_like(x) + x.sum(1, keepdim=True)

    for options in ({}, {"triton.cudagraphs": "True"}):
        report = compile_model(
            step, (torch.ones(24, 8),), source="s", target=TARGET, compiler="inductor", options=options, dynamic=True
        ).report
        (region,) = report.regions
        assert "mutated_input" in {reason.rule for reason in region.cuda_graph.skip_reasons}
        assert not region.cuda_graph.captured
        assert all(group.nodes for group in region.groups)
        assert any(isinstance(size, str) for node in region.nodes for t in node.outputs for size in t.shape)


def test_a_written_input_leads_to_the_line_that_writes_it() -> None:
    def step(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        y.index_add_(0, torch.arange(4), x[:4])
        return x * 2

    inputs = (torch.ones(24, 8), torch.ones(24, 8))
    (region,) = compile_model(step, inputs, source="s", target=TARGET, compiler="inductor").report.regions
    lines = {reason.node: reason.source and reason.source.code for reason in region.cuda_graph.skip_reasons}
    assert lines == {"arg0_1": "x.add_(y)", "arg1_1": "y.index_add_(0, torch.arange(4), x[:4])"}


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("cpu ops", "cpu_op"),
        ("DeviceCopy ops", "device_copy"),
        ("cross-device ops", "device_copy"),
        ("Conditional ops", "control_flow"),
        ("Switch ops", "control_flow"),
        ("unbacked binding ops", "data_dependent_shape"),
        ("CUDAGraph-unsafe custom ops", "incompatible_op"),
        ("custom partition op: my.op", "incompatible_op"),
        ("dynamic shape ops", "dynamic_shape"),
        ("something new", "other"),
    ],
)
def test_every_reason_to_split_has_its_rule(words: str, rule: str) -> None:
    """The words of torch 2.11 to 2.15."""
    assert skip_rule(words) == rule


def test_sizes_that_only_data_tell() -> None:
    """Every reason leads to its op and line, the checks of such sizes are no calls, and their symbols stay."""

    def step(x: Tensor) -> Tensor:
        kept = x[x > 0]
        return kept.sin().sum() + kept.shape[0]

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        report = compile_model(step, (torch.ones(24, 8),), source="s", target=TARGET, compiler="inductor").report
    (region,) = report.regions
    (call,) = region.extern_calls
    assert (call.op, call.reason) == ("aten.index.Tensor", r.ExternReason.DATA_DEPENDENT_SHAPE)
    sizes = {node.name: node.outputs[0].shape for node in region.nodes if node.outputs}
    assert sizes["index"] == sizes["sin"]
    assert all(isinstance(size, str) for size in sizes["index"])
    reasons = {reason.rule: reason for reason in region.cuda_graph.skip_reasons if reason.node}
    assert {"incompatible_op", "data_dependent_shape"} <= set(reasons)
    for reason in reasons.values():
        assert reason.node == "index"
        assert reason.source is not None
        assert reason.source.code == "kept = x[x > 0]"
    assert region.cuda_graph.partitions > 1


def test_a_value_read_back_is_told_with_its_line() -> None:
    def step(x: Tensor) -> tuple[Tensor, float]:
        total = x.sum().item()
        return x * total, total

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        report = compile_model(step, (torch.ones(24, 8),), source="s", target=TARGET, compiler="inductor").report
    reasons = report.regions[0].cuda_graph.skip_reasons
    assert {reason.node for reason in reasons} == {"_local_scalar_dense"}
    assert {reason.source.code for reason in reasons if reason.source} == {"total = x.sum().item()"}
    assert any("cpu device" in reason.detail for reason in reasons), "Inductor's own words"


def test_kernels_in_cpp_for_the_cpu() -> None:
    """Recorded programs may run on the CPU, where one C++ function may hold several scheduled loops."""

    def pair(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x.sin() + 1, (y @ y).relu().sum(0), y.cos() * 2

    run = InductorRun(cpu_target("x86_64", "a test"), {}, lambda event: None)
    torch._dynamo.reset()
    no_vectors = replaced(cpu_vec_isa, "valid_vec_isa_list", list)  # which there are, programs in C++ would tell
    code = replaced(GraphLowering, "compile_to_module", code_only)
    with no_vectors, code, pytest.raises(CompileError, match="not here"):
        torch.compile(pair, backend=inductor_backend(run))(torch.ones(8), torch.ones(16, 16))
    report = inductor_report(run, DynamoFacts(), source="s", training=False, options={}, files={}, versions={})
    (region,) = report.regions
    assert launches_in(region.wrapper) == [g.kernel for g in sorted(region.groups, key=lambda g: g.order)]
    assert {k.name for k in report.kernels} == {g.kernel for g in region.groups}
    assert all(k.language == "cpp" and "extern" in k.source and k.estimated_us is None for k in report.kernels)
    assert {n for g in region.groups for n in g.nodes} >= {"sin", "add", "relu", "sum_1", "cos", "mul"}
    assert [call.op for call in region.extern_calls] == ["aten.mm.default"]
    assert {reason.rule for reason in region.cuda_graph.skip_reasons} == {"cpu_op"}


@pytest.mark.parametrize("training", [False, True])
def test_what_torch_compile_has_cached_is_compiled_anew(training: bool) -> None:
    """AOTAutograd takes a graph that this user compiled before from its cache, and Inductor is not called for it."""

    def product(x: Tensor, w: Tensor) -> Tensor:
        return x @ w  # a library's call alone: no C++ to compile

    def call(function: Callable[..., Tensor]) -> None:
        torch._dynamo.reset()
        out = function(torch.ones(8, 16, requires_grad=training), torch.ones(16, 4, requires_grad=training))
        if training:
            out.sum().backward()

    settings = (compiler_config, "force_disable_caches"), (functorch_config, "enable_autograd_cache")
    run = InductorRun(cpu_target("x86_64", "a test"), {}, lambda event: None)
    with (
        fresh_cache(),
        compiler_config.patch(force_disable_caches=False),
        functorch_config.patch(enable_autograd_cache=True),
    ):
        before = [getattr(*setting) for setting in settings]
        call(torch.compile(product))
        hits = counters["aot_autograd"]["autograd_cache_hit"]
        call(torch.compile(product))
        assert counters["aot_autograd"]["autograd_cache_hit"] == hits + 1
        call(torch.compile(product, backend=inductor_backend(run)))
        assert [getattr(*setting) for setting in settings] == before
    assert [region.kind for region in run.regions] == (["forward", "backward"] if training else ["inference"])


def test_the_structure_is_that_of_every_torch(report: r.Report) -> None:
    """The fixture was written with torch 2.13 and holds with 2.11."""
    fixture = json.loads((Path(__file__).parent / "fixtures" / "inductor_shape.json").read_text())
    shape = sorted(shape_of(msgspec.to_builtins(report)))
    assert shape == fixture["training" if report.training else "inference"]


def test_watching_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code comes out when the marks for lines are not set."""
    watched = report_of(False)
    monkeypatch.setattr(LineTags, "patches", lambda tags: iter(()))
    report_of.cache_clear()
    assert [k.source for k in report_of(False).kernels] == [k.source for k in watched.kernels]
    report_of.cache_clear()


def test_everything_is_put_back() -> None:
    """After it: the machine's own GPUs are seen, our own compiler works, and a model compiles and runs on the CPU."""
    before = (torch.cuda.is_available(), torch.cuda.device_count(), torch.version.hip)
    report_of.__wrapped__(False)  # compiled anew
    assert (torch.cuda.is_available(), torch.cuda.device_count(), torch.version.hip) == before
    ours = compile_model(Small().eval(), (torch.randn(2, 16, 64),), source="small", target=TARGET)
    assert ours.report.compiler == "fusescope"
    assert not any(kernel.error for kernel in ours.report.kernels)
    model, x = Small().eval(), torch.randn(2, 16, 64)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x), model(x))


def test_an_error_inside_puts_everything_back() -> None:
    from torch._dynamo.device_interface import get_interface_for_device
    from torch._inductor.scheduler import WhyNoFuse

    def interrupted() -> None:
        with fake_gpu(TARGET):
            assert torch.cuda.is_available()
            assert torch.cuda.get_device_capability() == (9, 0)
            raise KeyboardInterrupt

    available = torch.cuda.is_available()
    before = (get_interface_for_device("cuda"), WhyNoFuse.__call__, torch.cuda.device_count)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (get_interface_for_device("cuda"), WhyNoFuse.__call__, torch.cuda.device_count) == before
    assert torch.cuda.is_available() is available


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("max_autotune", "max_autotune needs times of kernels"),
        ("benchmark_kernel", "benchmark_kernel needs times of kernels"),
        ("cpp_wrapper", "cpp_wrapper its program is not Python"),
    ],
)
def test_what_cannot_be_had_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(CompileError, match=sentence) as caught:
        compile_model(Small(), (), source="small", target=TARGET, compiler="inductor", options={name: "True"})
    assert caught.value.hint.startswith("Leave the option out")


def test_kernels_in_a_language_unknown_here_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.inductor.compile.kernels_in", lambda wrapper: {})
    with pytest.raises(CompileError, match=r"defines the kernel triton_poi_fused_sin_0 in another language"):
        compile_model(lambda x: x.sin(), (torch.ones(4),), source="s", target=TARGET, compiler="inductor")


def test_the_grid_of_a_template_is_that_which_its_program_computes() -> None:
    """No loops tell it: attention by a template had ended in a NameError."""
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 2, 128, 64)
    report = compile_model(
        lambda q: flex_attention(q, q, q), (q,), source="s", target=TARGET, compiler="inductor"
    ).report
    (group,) = (group for group in report.regions[0].groups if group.kind is r.GroupKind.TEMPLATE)
    launched = re.search(rf"{group.kernel}\.run\(.*?, (\d+), (\d+), (\d+), stream=", report.regions[0].wrapper)
    assert launched is not None
    assert group.grid == [int(blocks) for blocks in launched.groups()]
    assert {tuple(kernel.grid) for kernel in report.kernels if kernel.name == group.kernel} == {tuple(group.grid)}
    assert any("flex_attention" in name for name in group.nodes)
    assert not any(kernel.error for kernel in report.kernels)


@pytest.mark.parametrize("name", TARGETS)
def test_every_target(name: str) -> None:
    """Down to PTX and SASS, for AMD to its own assembly."""
    target = resolve(name)

    def doubled(x: Tensor) -> Tensor:
        return (x * 2).sum(-1)

    x = torch.randn(16, 64)
    report = compile_model(doubled, (x,), source="doubled", target=target, compiler="inductor").report
    (kernel,) = report.kernels
    assert not kernel.error
    assert "amdgcn" in kernel.irs if target.backend == "hip" else {"ptx", "sass"} <= set(kernel.irs)
    assert kernel.registers


def test_ops_that_torch_has_to_run_to_know_their_shapes() -> None:
    """There is no GPU to run them on: Inductor took no fake_quantize, nor anything else that has no rule."""
    aten = torch.ops.aten
    with fake_gpu(TARGET), FakeTensorMode():
        x, scale = torch.empty(4, 8, device="cuda"), torch.ones(8, device="cuda")
        zero = torch.zeros(8, dtype=torch.int32, device="cuda")
        returned = [
            *aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, -128, 127),
            *aten.fake_quantize_per_channel_affine_cachemask(x, scale, zero, 1, -128, 127),
        ]
    assert [tuple(value.shape) for value in returned] == [(4, 8)] * 4
    assert [value.dtype for value in returned] == [torch.float32, torch.bool] * 2
    assert {value.device for value in returned} == {torch.device("cuda", 0)}
