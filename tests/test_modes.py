"""Modes and comparison on the CPU: what an iteration does, how facts add up, when two results are equal."""

from __future__ import annotations

import gc
import logging
import sys
import weakref
from collections.abc import Iterator
from logging.handlers import BufferingHandler
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.report import CudaGraph, SkipReason  # noqa: E402
from compiler.runtime.capture import CaptureRefused  # noqa: E402
from compiler.runtime.compare import compare_outputs, in_float64, relative_error  # noqa: E402
from compiler.runtime.modes import Iteration, Step, WholeGraphStep, prepare  # noqa: E402
from compiler.runtime.partitioned import merge_facts  # noqa: E402
from resources.examples.graph_break import graph_break  # noqa: E402


def test_inference_runs_without_autograd() -> None:
    layer = torch.nn.Linear(3, 2)
    step = prepare("eager", layer, (torch.randn(4, 3),), training=False)
    step()
    (output,) = step.outputs()
    assert not output.requires_grad
    assert step.cuda_graph is None


def test_training_gradients_are_those_of_one_iteration() -> None:
    layer = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    step = prepare("eager", layer, (x,), training=True)
    step()
    step()
    output, weight, bias = step.outputs()
    assert output.grad_fn is None
    # d mean(x W + b) / d W and d b, once: not accumulated over the two calls.
    torch.testing.assert_close(weight, x.mean(0).expand(2, 3) / 2)
    torch.testing.assert_close(bias, torch.full((2,), 0.5))


def test_outputs_may_be_nested_and_of_any_type() -> None:
    iteration = Iteration(lambda x: {"a": [x, 1], "b": x.long()}, None, (torch.ones(2),), training=True)
    assert [type(value) for value in iteration()] == [torch.Tensor, int, torch.Tensor]


def test_unknown_mode_is_named() -> None:
    with pytest.raises(ValueError, match='no mode called "fast"'):
        prepare("fast", torch.relu, (torch.randn(3),), training=False)


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Our backend replaced by one that runs the graph as it is and hands out what it was told to."""
    seen: list[Any] = []

    def fusescope(graph: Any, example_inputs: Any, *, options: Any = None) -> Any:
        seen.append(options)
        return graph.forward

    monkeypatch.setitem(sys.modules, "compiler.backend", SimpleNamespace(fusescope=fusescope, session_for=dict))
    torch._dynamo.reset()
    yield seen
    torch._dynamo.reset()


def test_a_model_with_breaks_is_never_one_graph(regions: list[Any], capsys: Any) -> None:
    model, inputs = graph_break()
    compiled = prepare("compiled", model, inputs, training=False)
    count = len(regions)
    assert count >= 2
    # Dynamo has the model compiled already, with its breaks: that must not pass for a model without.
    step = prepare("graph", model, inputs, training=False)
    assert step.note.startswith("Captured region by region: Dynamo breaks the graph")
    assert "\n" not in step.note
    told = {"cuda_graph", "observer", "on_graphed_region", "session"}
    assert [set(options) for options in regions[-count:]] == [told] * count
    assert len({id(options["session"]) for options in regions[-count:]}) == 1  # else two regions had the same name
    facts = step.cuda_graph
    assert facts is not None
    assert [reason.rule for reason in facts.skip_reasons] == ["graph_break"]
    compiled()
    capsys.readouterr()
    step()
    assert capsys.readouterr().out.count("hidden:") == 1
    for got, expected in zip(step.outputs(), compiled.outputs(), strict=True):
        torch.testing.assert_close(got, expected)


class Logs(torch.nn.Module):
    """Tells a logger, in a way of a library's own, between two ops, and may print too."""

    def __init__(self, prints: bool) -> None:
        super().__init__()
        self.prints = prints

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        LOG.warning_once("seen")  # type: ignore[attr-defined]
        LOG.info("seen")
        if self.prints:
            print("printed")
        return x + 1


class Logger(logging.Logger):
    def warning_once(self, text: str) -> None:
        self.warning(text)


LOG = Logger(__name__)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Iterations that would be captured as one graph are called instead, and what they log is kept."""
    logged: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(record.getMessage())

    class Captured(Step):
        def __init__(self, iteration: Iteration, *_: Any) -> None:
            super().__init__(iteration, "The whole iteration is one CUDA Graph of 1 nodes.")

    LOG.handlers = [Handler()]
    monkeypatch.setattr("compiler.runtime.modes.WholeGraphStep", Captured)
    monkeypatch.setattr("compiler.runtime.modes._device_of", lambda *_: torch.device("cpu"))
    return logged


def test_calls_of_loggers_do_not_keep_an_iteration_from_being_one_graph(
    regions: list[Any], graphs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = BufferingHandler(capacity=100)
    monkeypatch.setattr(logging.getLogger("torch._dynamo.metrics_context"), "handlers", [heard])
    x = torch.randn(3)
    step = prepare("graph", Logs(False), (x,), training=False)
    step()
    assert step.note == "The whole iteration is one CUDA Graph of 1 nodes. Calls of loggers are left out."
    assert not heard.buffer, "torch 2.11 cannot write the setting"
    assert len(regions) == 1
    assert graphs == []
    torch.testing.assert_close(step.outputs(), [x.relu() + 1])
    # What the user compiles afterwards logs as before.
    torch.compile(Logs(False), backend="eager")(x)
    assert graphs == ["seen", "seen"]


def test_what_else_breaks_a_graph_is_the_reason_beside_calls_of_loggers(
    regions: list[Any], graphs: list[str], capsys: Any
) -> None:
    step = prepare("graph", Logs(True), (torch.randn(3),), training=False)
    capsys.readouterr()
    step()
    assert capsys.readouterr().out == "printed\n"
    assert step.note.startswith("Captured region by region: Dynamo breaks the graph")
    assert "logging" not in step.note
    assert graphs[-2:] == ["seen", "seen"]


def test_nothing_of_an_earlier_iteration_is_left_when_one_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = torch.nn.Linear(3, 2)
    iteration = Iteration(layer, layer, (torch.randn(4, 3),), training=True)
    left = [layer(torch.randn(4, 3))]
    left.append(left)  # type: ignore[arg-type]  # a cycle, as tracing leaves them
    output = weakref.ref(left[0])  # and with it what accumulates gradients, on the stream of that iteration
    del left
    found: list[object] = []

    def record(run: Any, **_: Any) -> Any:
        found.append(output())
        return SimpleNamespace(result=run(), facts=CudaGraph())

    monkeypatch.setattr("compiler.runtime.capture.record", record)
    monkeypatch.setattr("torch.cuda.graph_pool_handle", lambda: None)
    gc.disable()
    try:
        WholeGraphStep(iteration, torch.device("cpu"), layer)
    finally:
        gc.enable()
    assert found == [None]


def test_options_of_graphs_act_on_each_region(regions: list[Any]) -> None:
    options = {"graph_streams": "4", "num_warps": "4"}
    step = prepare("graph", torch.relu, (torch.randn(3),), training=False, whole=True, options=options)
    assert options.items() <= regions[-1].items()
    assert step.note == "Captured region by region: graph_streams acts on each."
    assert step.cuda_graph is not None
    assert step.cuda_graph.skip_reasons == []


def test_facts_of_regions_add_up() -> None:
    whole = CudaGraph(captured=True, partitions=1, nodes=3)
    merged = merge_facts([whole, CudaGraph(capturable=False, skip_reasons=[SkipReason("host_sync", "item")])])
    assert (merged.captured, merged.capturable, merged.partitions, merged.nodes) == (True, False, 1, 3)
    assert [skip.rule for skip in merged.skip_reasons] == ["host_sync"]


def test_rounding_is_equal_and_wrong_is_not() -> None:
    exact = torch.randn(1000, dtype=torch.float64)
    eager = exact.bfloat16()
    rounded = (exact + 1e-4 * exact).bfloat16()
    assert compare_outputs([eager], [rounded], [exact]).equal
    wrong = eager.clone()
    wrong[:100] += 1
    result = compare_outputs([eager], [wrong], [exact])
    assert not result.equal
    assert result.error > 10 * result.baseline_error
    assert result.detail


def test_missing_outputs_and_wrong_sizes_are_not_equal() -> None:
    x = torch.randn(3)
    assert not compare_outputs([x, x], [x], [x, x]).equal
    assert not compare_outputs([x], [x[:2]], [x.double()]).equal
    assert not compare_outputs([x], [x.double()], [x.double()]).equal
    assert compare_outputs([x, 1, None], [x, 1, None], [x.double(), 1, None]).equal


def test_relative_error_of_zero_is_absolute() -> None:
    assert relative_error(torch.full((4,), 0.5), torch.zeros(4)) == 1.0
    assert relative_error(torch.tensor([3.0]), torch.tensor([2.0])) == 0.5


def test_float64_copy_leaves_the_model_alone() -> None:
    layer = torch.nn.Linear(3, 2)
    exact, (x, ids) = in_float64(layer, (torch.randn(4, 3), torch.arange(3)))
    assert exact(x).dtype == torch.float64
    assert ids.dtype == torch.int64
    assert layer.weight.dtype == torch.float32


def test_another_compilers_regions_are_never_replaced_by_ours(regions: list[Any]) -> None:
    """With "graph" not one graph, our backend would compile the model anew: the mode would time other code."""
    model, inputs = graph_break()
    with pytest.raises(CaptureRefused, match="several regions"):
        prepare("graph", model, inputs, training=False, compiled=model, whole=False, by_region=False)
    assert regions == []
