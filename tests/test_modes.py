"""Modes and comparison on the CPU: what an iteration does, how facts add up, when two results are equal."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from compiler.report import CudaGraph, SkipReason  # noqa: E402
from compiler.runtime.compare import compare_outputs, in_float64, relative_error  # noqa: E402
from compiler.runtime.modes import Iteration, merge_facts, prepare  # noqa: E402


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


def test_facts_of_regions_add_up() -> None:
    reason = SkipReason("graph_break", "print")
    merged = merge_facts(
        [CudaGraph(captured=True, partitions=1, nodes=3), CudaGraph(skip_reasons=[SkipReason("host_sync", "item")])],
        reason,
    )
    assert (merged.captured, merged.capturable, merged.partitions, merged.nodes) == (True, False, 1, 3)
    assert [skip.rule for skip in merged.skip_reasons] == ["graph_break", "host_sync"]


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
