"""``torch.compile(f, backend="fusescope")`` on a CPU: eager's results, breaks named, sizes and mutations respected.

The regions run as captured here; ``test_interpreter.py`` runs this file again with the generated programs.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.backend import Session, fusescope, mutated_inputs, on_gpu
from compiler.dynamo.log import watch_dynamo
from compiler.errors import CompileError
from compiler.kernel_library import KernelLibrary
from compiler.report import ExternReason
from compiler.specializing import Built, Specializing, specialize
from tests.graphs import TARGET, capture, launches

pytest.importorskip("triton", reason="kernels are Triton's")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def session() -> Session:
    return Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))


def compiled(function: Any, session: Session, **options: Any) -> Callable[..., Any]:
    return torch.compile(
        function, backend=lambda gm, inputs: fusescope(gm, inputs, options={"session": session}), **options
    )


def test_by_name_through_its_entry_point() -> None:
    if not any(e.name == "fusescope" for e in entry_points(group="torch_dynamo_backends")):
        pytest.skip("the package is not installed")
    x = torch.randn(4, 5)
    function = torch.compile(lambda x: torch.relu(x + 1).softmax(-1), backend="fusescope")
    torch.testing.assert_close(function(x), torch.relu(x + 1).softmax(-1))


def test_options_are_taken_by_name() -> None:
    x = torch.randn(4)
    function = torch.compile(lambda x: x * 2, backend=fusescope, options={"cuda_graph": True})
    torch.testing.assert_close(function(x), x * 2)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_graph_may_make_all_it_has_on_a_gpu(device: str) -> None:
    graph = torch.fx.Graph()
    made = graph.call_function(torch.ones, (4,), {"device": device})
    graph.output((made,))
    with FakeTensorMode():
        made.meta["example_value"] = torch.ones(4, device=device)
    assert on_gpu(torch.fx.GraphModule({}, graph), []) is (device == "cuda")


INPUTS: dict[str, Callable[[], Tensor]] = {
    "contiguous": lambda: torch.randn(2, 6, 4, 5),
    "transposed": lambda: torch.randn(2, 4, 6, 5).transpose(1, 2),
    "channels last": lambda: torch.randn(2, 6, 4, 5).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.randn(1, 6, 1, 5).expand(2, 6, 4, 5),
    "with gaps": lambda: torch.randn(2, 6, 4, 10)[..., ::2],
    "offset": lambda: torch.randn(3, 6, 4, 5)[1:],
}


@pytest.mark.parametrize("layout", INPUTS)
def test_any_layout_of_an_input(layout: str, session: Session) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x * 2).relu(), x.softmax(1).sum((0, 2))

    x = INPUTS[layout]()
    for result, expected in zip(compiled(function, session)(x), function(x), strict=True):
        torch.testing.assert_close(result, expected)
        assert result.stride() == expected.stride()


def test_structured_arguments_and_results(session: Session) -> None:
    def function(pair: tuple[Tensor, Tensor], scale: float, names: dict[str, Tensor]) -> dict[str, Any]:
        a, b = pair
        return {"sum": a + b * scale, "nested": [names["x"].exp(), (a, 3)], "nothing": None}

    arguments = ((torch.randn(3), torch.randn(3)), 2.5, {"x": torch.randn(2)})
    result, expected = compiled(function, session)(*arguments), function(*arguments)
    torch.testing.assert_close(result["sum"], expected["sum"])
    torch.testing.assert_close(result["nested"][0], expected["nested"][0])
    assert result["nested"][1][1] == 3
    assert result["nothing"] is None


def test_python_scalars_and_tensors_without_dimensions(session: Session) -> None:
    function = compiled(lambda x, n, s: x * n + s, session)
    x, s = torch.randn(4), torch.tensor(0.5)
    for n in (2, 3, 4, 2.5):
        torch.testing.assert_close(function(x, n, s), x * n + s)


def test_a_function_that_returns_no_tensor(session: Session) -> None:
    function = compiled(lambda x: (x.shape[0], "done"), session)
    assert function(torch.randn(4)) == (4, "done")
    assert not session.regions


def test_an_input_returned_as_it_is_stays_itself(session: Session) -> None:
    x = torch.randn(3, 4)
    same, view, fresh = compiled(lambda x: (x, x.t()[1:], x + 1), session)(x)
    assert same is x
    assert view.data_ptr() == x[:, 1].data_ptr()
    assert fresh.data_ptr() != x.data_ptr()
    x.zero_()
    assert float(view.abs().sum()) == 0.0


# --- writes into inputs --------------------------------------------------------------------------------------------


def test_writes_into_an_input_reach_the_caller(session: Session) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        before = x.sum()
        x.add_(1)
        y[1:].mul_(x[1:])
        return before + x.sum()

    x, y = torch.randn(5), torch.randn(5)
    x2, y2 = x.clone(), y.clone()
    torch.testing.assert_close(compiled(function, session)(x, y), function(x2, y2))
    torch.testing.assert_close((x, y), (x2, y2))


def test_batch_norm_moves_its_running_statistics(session: Session) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
    twin, function = copy.deepcopy(net), compiled(net, session)
    for _ in range(3):
        x = torch.randn(2, 3, 6, 6)
        torch.testing.assert_close(function(x), twin(x))
    for ours, theirs in zip(net.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert int(net[1].num_batches_tracked) == 3


def test_the_inputs_that_a_graph_writes_are_known() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        y.copy_(x + 1)
        return x * 2

    assert mutated_inputs(capture(function, torch.randn(3), torch.randn(3))) == {1}


# --- training ------------------------------------------------------------------------------------------------------


def test_training_makes_a_forward_and_a_backward_region(session: Session) -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    twin = copy.deepcopy(net)
    x = torch.randn(5, 6)
    compiled(net, session)(x).square().mean().backward()
    twin(x).square().mean().backward()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    assert [(r.name, r.kind) for r in session.regions] == [("forward", "forward"), ("backward", "backward")]


def test_without_gradients_there_is_one_inference_region(session: Session) -> None:
    with torch.no_grad():
        compiled(nn.Linear(3, 3), session)(torch.randn(2, 3))
    assert [r.kind for r in session.regions] == ["inference"]


def test_random_numbers_follow_torchs_generator(session: Session) -> None:
    function = compiled(lambda x: F.dropout(x, 0.5) + torch.rand_like(x), session)
    x = torch.ones(64)
    torch.manual_seed(3)
    first = function(x)
    torch.manual_seed(3)
    assert torch.equal(function(x), first)
    assert not torch.equal(function(x), first)
    reasons = {step.reason for step in session.regions[0].steps if not hasattr(step, "kernel")}
    assert reasons == {ExternReason.RANDOM}


# --- breaks and sizes ----------------------------------------------------------------------------------------------


def test_a_graph_break_names_the_users_line(session: Session) -> None:
    def function(x: Tensor) -> Tensor:
        y = x.sin() + 1
        torch._dynamo.graph_break()
        return y.cos() * 2

    x = torch.randn(4)
    with watch_dynamo() as dynamo:
        torch.testing.assert_close(compiled(function, session)(x), function(x))
    assert [r.name for r in session.regions] == ["inference", "inference_1"]
    (found,) = dynamo.graph_breaks
    assert found.source is not None
    assert found.source.file == __file__
    assert found.source.line == inspect.getsourcelines(function)[1] + 2
    assert "graph_break" in found.source.code


def test_a_value_read_back_breaks_the_graph(session: Session) -> None:
    def function(x: Tensor) -> Tensor:
        if x.sum().item() > 0:
            return x + 1
        return x - 1

    for x in (torch.ones(3), -torch.ones(3)):
        with watch_dynamo() as dynamo:
            torch.testing.assert_close(compiled(function, session)(x), function(x))
        assert dynamo.graph_breaks


def test_a_size_that_changes_becomes_symbolic_and_one_program_serves_all(session: Session) -> None:
    function = compiled(lambda x: x.softmax(-1) * x.shape[0], session)
    for rows in (3, 4, 5, 4, 3, 9):
        x = torch.randn(rows, 7)
        torch.testing.assert_close(function(x), x.softmax(-1) * rows)
    static, symbolic = (region.program.outputs[0].size for region in session.regions)
    assert static == (3, 7)
    assert not isinstance(symbolic[0], int)
    assert symbolic[1] == 7


def test_dynamic_sizes_train_like_eager(session: Session) -> None:
    function = compiled(lambda x: (x.tanh() * x).sum(1), session, dynamic=True)
    for rows in (4, 6, 4):
        x = torch.randn(rows, 5, requires_grad=True)
        expected, = torch.autograd.grad((x.tanh() * x).sum(1).square().sum(), x)
        gradient, = torch.autograd.grad(function(x).square().sum(), x)
        torch.testing.assert_close(gradient, expected)
    assert {region.kind for region in session.regions} == {"forward", "backward"}


def test_dynamic_sizes_compile_once(session: Session) -> None:
    function = compiled(lambda x: (x.reshape(-1, 2) + 1).sum(1), session, dynamic=True)
    for rows in (4, 6, 4, 8, 6):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(function(x), (x.reshape(-1, 2) + 1).sum(1))
    assert len(session.regions) == 1
    assert not session.specialized


def test_a_graph_that_fails_with_symbolic_sizes_is_compiled_for_each(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise CompileError("no symbols today", stage="generate")

    monkeypatch.setattr("compiler.codegen.wrapper.torch_expr", refuse)
    function = compiled(lambda x: x.exp() + x.shape[0], session, dynamic=True)
    for rows in (4, 6, 4):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(function(x), x.exp() + rows)
    assert len(session.regions) == 2
    assert "no symbols today" in session.specialized["inference"]


def test_specialising_gives_every_node_static_sizes() -> None:
    graph = capture(lambda x: x.exp().sum(0), torch.randn(3, 4))
    fixed = specialize(graph, [torch.randn(9, 4)])
    values = [node.meta["val"] for node in fixed.graph.nodes if node.op != "output"]
    assert [tuple(v.shape) for v in values] == [(9, 4), (9, 4), (4,)]
    assert all(isinstance(size, int) for v in values for size in v.shape)


def test_sizes_used_last_keep_their_graphs() -> None:
    graph = capture(lambda x: x.exp().sum(0), torch.randn(3, 4))
    events: list[str] = []

    def compile_static(fixed: torch.fx.GraphModule) -> Built:
        size = next(iter(fixed.graph.nodes)).meta["val"].shape[0]
        events.append(f"compile {size}")
        return Built(lambda args: fixed(*args), lambda: events.append(f"release {size}"))

    run = Specializing(compile_static, graph, graph_capacity=2)
    for size in (3, 5, 3, 7, 5, 3):
        x = torch.randn(size, 4)
        (got,) = run([x])
        torch.testing.assert_close(got, x.exp().sum(0))
    assert events == ["compile 3", "compile 5", "compile 7", "release 5", "release 3", "release 7"]


def test_data_dependent_sizes_run_through_the_library(session: Session) -> None:
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        x = torch.tensor([1.0, -1.0, 2.0, -3.0])
        function = compiled(lambda x: (x[x > 0] * 2).sum() + x.exp().sum(), session)
        torch.testing.assert_close(function(x), (x[x > 0] * 2).sum() + x.exp().sum())
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False
    steps = [step for region in session.regions for step in region.steps if not hasattr(step, "kernel")]
    assert ExternReason.DATA_DEPENDENT_SHAPE in {step.reason for step in steps}


# --- what is left to libraries -------------------------------------------------------------------------------------


def test_complex_numbers_and_attention_are_library_calls(session: Session) -> None:
    def function(x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x)
        return torch.fft.irfft(spectrum * 2).relu()

    x = torch.randn(2, 8)
    torch.testing.assert_close(compiled(function, session)(x), function(x))
    q, k, v = torch.randn(3, 1, 2, 4, 8)
    attention = compiled(F.scaled_dot_product_attention, session)
    torch.testing.assert_close(attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    reasons = {s.reason for r in session.regions for s in r.steps if not hasattr(s, "kernel")}
    assert {ExternReason.UNSUPPORTED_DTYPE, ExternReason.LIBRARY_IS_FASTER} <= reasons


def test_a_custom_op_runs_as_it_is(session: Session) -> None:
    @torch.library.custom_op("fusescope_test::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2

    double.register_fake(torch.empty_like)
    x = torch.randn(4)
    torch.testing.assert_close(compiled(lambda x: double(x + 1).relu(), session)(x), ((x + 1) * 2).relu())
    (region,) = session.regions
    assert len(launches(region)) == 2
    assert "torch.ops.fusescope_test.double.default" in region.wrapper


def test_identical_layers_are_compiled_once_for_all_regions(session: Session) -> None:
    def function(x: Tensor) -> Tensor:
        y = F.gelu(x) + 1
        torch._dynamo.graph_break()
        return F.gelu(y) + 1

    compiled(function, session)(torch.randn(4, 8))
    assert len(session.regions) == 2
    assert len(session.library.by_source) == 1
