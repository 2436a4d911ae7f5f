"""Random numbers on a GPU: the reference's numbers, seeds, dropout's masks, and replays that each draw anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import executable_of
from tests.graphs import compiled


def test_kernels_draw_the_references_numbers() -> None:
    def function(x: Tensor) -> list[Tensor]:
        like = x.permute(1, 0)
        return [
            torch.rand_like(x),
            torch.randn_like(like).contiguous(),
            torch.randint(-5, 1000, (77, 31), device=x.device),
            torch.rand(1000, device=x.device, dtype=torch.float16),
            torch.rand(100, device=x.device, dtype=torch.float64),
            torch.native_dropout(x, 0.3, True)[0],
        ]

    x = torch.randn(129, 514, device="cuda")
    region, library = compiled(function, x, binaries=True)
    run = executable_of(region, library, frozenset())
    torch.manual_seed(5)
    results = run([x])
    torch.manual_seed(5)
    for result, expected in zip(results, region.graph(x), strict=True):
        torch.testing.assert_close(result, expected)


def _step(model: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    result = model(x)
    result.sum().backward()
    assert x.grad is not None
    return result.detach().clone(), x.grad.clone()


def _dropped(graphed: bool) -> Any:
    torch._dynamo.reset()
    return torch.compile(lambda x: F.dropout(x, 0.4), backend="fusescope", options={"cuda_graph": graphed})


def test_dropout_with_and_without_replay() -> None:
    x = torch.rand(512, 257, device="cuda") + 1
    for graphed in (False, True):
        model = _dropped(graphed)
        for _ in range(3):  # the first calls of a graph warm up and capture
            _step(model, x)
        torch.manual_seed(1)
        first, second = _step(model, x), _step(model, x)
        torch.manual_seed(1)
        again = _step(model, x)
        for result, gradient in (first, second):
            torch.testing.assert_close(result, x * gradient)
            assert 0.38 < (result == 0).float().mean().item() < 0.42
        assert torch.equal(first[0], again[0])
        assert not torch.equal(first[0], second[0])


def test_replays_continue_where_eager_left_the_generator() -> None:
    torch._dynamo.reset()
    draw = torch.compile(lambda x: torch.rand_like(x), backend="fusescope", options={"cuda_graph": True})
    x = torch.zeros(1000, device="cuda")
    with torch.no_grad():
        seen = [draw(x).clone() for _ in range(6)]
        torch.rand(10, device="cuda")
        seen.append(draw(x).clone())
    assert all(not torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])


def test_eagers_numbers_on_request() -> None:
    def function(x: Tensor) -> list[Tensor]:
        return [F.dropout(x, 0.5), torch.randn_like(x) + 1, torch.bernoulli(x.sigmoid())]

    torch._dynamo.reset()
    x = torch.randn(200, 300, device="cuda")
    torch.manual_seed(7)
    expected = function(x)
    run = torch.compile(function, backend="fusescope", options={"random": "eager"})
    torch.manual_seed(7)
    for result, reference in zip(run(x), expected, strict=True):
        assert torch.equal(result, reference)
