"""Random numbers drawn in kernels: the numbers of the reference, whatever the layout; distributions; seeds; dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.backend import executable_of
from compiler.passes.random_numbers import philox
from compiler.report import ExternReason
from tests.graphs import capture, compiled, launches

aten = torch.ops.aten

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def drawn(function: Callable[..., Any], *inputs: Any, seed: int = 3) -> list[Tensor]:
    """What the kernels return, after comparing it with what the captured graph does for the same seed."""
    region, library = compiled(torch.func.functionalize(function), *inputs)
    assert launches(region)
    run = executable_of(region, library, frozenset())
    torch.manual_seed(seed)
    results = list(run(list(inputs)))
    torch.manual_seed(seed)
    expected = region.graph(*inputs)
    for result, reference in zip(results, expected, strict=True):
        assert result.stride() == reference.stride()
        torch.testing.assert_close(result, reference)
    return results


def test_philox_gives_the_published_words() -> None:
    zero = torch.zeros(1, dtype=torch.int64)
    assert [int(w) for w in philox(zero, zero)] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_uniform_and_normal(dtype: torch.dtype) -> None:
    flat, normal = drawn(lambda: [torch.rand(20_001, dtype=dtype), torch.randn(150, 133, dtype=dtype)])
    assert flat.min() >= 0
    assert flat.max() < 1
    assert abs(flat.double().mean() - 0.5) < 0.01
    assert abs(flat.double().var() - 1 / 12) < 0.003
    assert abs(normal.double().mean()) < 0.03
    assert abs(normal.double().std() - 1) < 0.02
    neighbours = torch.stack((normal.flatten()[:-1], normal.flatten()[1:])).double().corrcoef()
    assert abs(neighbours[0, 1]) < 0.03


def test_integers() -> None:
    small, signed, huge, bytes_ = drawn(
        lambda x: [
            torch.randint(7, (5000,)),
            torch.randint(-3, 3, (50, 40), dtype=torch.int32),
            torch.randint(0, 1 << 62, (3, 5)),
            torch.randint_like(x, 200),
        ],
        torch.zeros(40, 10, dtype=torch.uint8),
    )
    assert torch.bincount(small).min() > 550
    assert small.max() == 6
    assert signed.unique().tolist() == [-3, -2, -1, 0, 1, 2]
    assert huge.unique().numel() == 15
    assert bytes_.max() < 200


def test_a_number_belongs_to_its_place_not_to_a_layout() -> None:
    x = torch.randn(6, 10, 7)
    for view in (x, x.permute(2, 0, 1), x[:, :1].expand(6, 10, 7)):
        drawn(lambda x: [torch.rand_like(x) * x, torch.randn_like(x).sum(0), torch.rand_like(x).softmax(-1) + x], view)
    drawn(lambda x: torch.rand(70, 130).t().contiguous() + x, torch.randn(130, 70))
    drawn(lambda x: torch.rand(2, 9000).sum(1) + x, torch.randn(2))
    drawn(lambda: torch.cat([torch.rand(3, 4), torch.randn(5, 4)]).flip(0))


def test_every_draw_has_numbers_of_its_own() -> None:
    a, b, c = drawn(lambda: [torch.rand(100), torch.rand(100), torch.rand(100) + 0])
    assert not torch.equal(a, b)
    assert not torch.equal(b, c)


def test_distributions() -> None:
    x = torch.rand(100, 101) * 0.8 + 0.1
    coin, mask, spread, exponential, normal = drawn(
        lambda x: [
            torch.bernoulli(x),
            torch.empty_like(x).bernoulli_(0.2),
            torch.empty_like(x).uniform_(-3, 5),
            torch.empty_like(x).exponential_(2.0),
            torch.normal(x * 10, 0.5),
        ],
        x,
    )
    assert coin.unique().tolist() == [0, 1]
    assert abs(coin.mean() - x.mean()) < 0.02
    assert abs(mask.mean() - 0.2) < 0.02
    assert spread.min() >= -3
    assert spread.max() < 5
    assert abs(spread.mean() - 1) < 0.1
    assert exponential.min() >= 0
    assert abs(exponential.mean() - 0.5) < 0.03
    assert abs((normal - x * 10).std() - 0.5) < 0.02


def test_nothing_to_draw_and_generators_of_ones_own() -> None:
    region, library = compiled(lambda: [torch.rand(3, 0), torch.rand(())])
    empty, number = executable_of(region, library, frozenset())([])
    assert empty.shape == (3, 0)
    assert 0 <= number < 1
    generator = torch.Generator().manual_seed(1)
    graph = capture(lambda: torch.rand(3, generator=generator))
    assert [n.target for n in graph.graph.nodes if n.op == "call_function"] == [aten.rand.generator]


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(F.gelu(F.dropout(x, 0.3)) + 1, 0.5)


def step(model: Any, x: Tensor, seed: int | None = None) -> tuple[Tensor, Tensor]:
    if seed is not None:
        torch.manual_seed(seed)
    x = x.clone().requires_grad_()
    result = model(x)
    result.sum().backward()
    assert x.grad is not None
    return result.detach(), x.grad


def test_dropouts_gradient_uses_the_forwards_mask() -> None:
    compiled_model = torch.compile(lambda x: F.dropout(x, 0.4), backend="fusescope")
    x = torch.rand(50, 60) + 1
    result, gradient = step(compiled_model, x)
    torch.testing.assert_close(result, x * gradient)
    assert 0.35 < (result == 0).float().mean() < 0.45


def test_a_seed_reproduces_and_every_call_advances() -> None:
    model = torch.compile(Dropped(), backend="fusescope")
    x = torch.randn(30, 16)
    first, again, next_, other = step(model, x, 1), step(model, x, 1), step(model, x), step(model, x, 2)
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], next_[0])
    assert not torch.equal(first[0], other[0])


def test_a_checkpointed_dropout_is_recomputed_with_the_same_mask() -> None:
    def layer(x: Tensor) -> Tensor:
        return (F.dropout(x.sin(), 0.5) * x).cos()

    def function(x: Tensor) -> Tensor:
        result = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        assert isinstance(result, Tensor)
        return result

    result, gradient = step(torch.compile(function, backend="fusescope"), x := torch.rand(40, 30) + 0.5)
    # where cos(...) is 1 the element was dropped and has no gradient
    assert torch.equal(gradient == 0, result == 1)
    kept = result != 1
    inner = 2 * x.sin() * x
    expected = -inner.sin() * 2 * (x.cos() * x + x.sin())
    torch.testing.assert_close(gradient[kept], expected[kept], rtol=1e-4, atol=1e-5)


def test_eagers_numbers_on_request() -> None:
    def function(x: Tensor) -> list[Tensor]:
        drop, _ = torch.native_dropout(x, 0.2, True)
        return [F.dropout(x, 0.5), torch.randn_like(x) + 1, torch.bernoulli(x.sigmoid()), drop]

    x = torch.randn(20, 30)
    torch.manual_seed(7)
    expected = function(x)
    run = torch.compile(function, backend="fusescope", options={"random": "eager"})
    torch.manual_seed(7)
    for result, reference in zip(run(x), expected, strict=True):
        assert torch.equal(result, reference)


def test_one_call_draws_all_seeds() -> None:
    function = torch.func.functionalize(lambda x: F.dropout(F.dropout(x, 0.1) + 1, 0.2) + torch.randn_like(x))
    region, _ = compiled(function, torch.randn(8, 8))
    calls = [step for step in region.steps if step not in launches(region)]
    assert [call.reason for call in calls] == [ExternReason.RANDOM]  # type: ignore[union-attr]
    assert len(launches(region)) == 1
