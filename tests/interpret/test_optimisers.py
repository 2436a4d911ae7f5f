"""A compiled optimiser step: the numbers of eager, written in place, a kernel a parameter and no library call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import Session, fusescope
from compiler.kernel_library import KernelLibrary
from tests.graphs import TARGET, launches

optim = torch.optim
STEPS: dict[str, Callable[[Iterable[Tensor]], torch.optim.Optimizer]] = {
    "nesterov": lambda p: optim.SGD(p, 0.01, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=True),
    "amsgrad": lambda p: optim.Adam(p, 0.01, foreach=True, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, 0.01, foreach=True),
    "one by one": lambda p: optim.AdamW(p, 0.01, foreach=False),
    "rmsprop": lambda p: optim.RMSprop(p, 0.01, foreach=True, momentum=0.9, centered=True),
}


def session() -> Session:
    return Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))


def state_of(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    return [v for values in optimiser.state.values() for v in values.values() if isinstance(v, Tensor)]


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_eagers(name: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 3))
    twin = copy.deepcopy(net)
    ours, theirs = STEPS[name](net.parameters()), STEPS[name](twin.parameters())
    kept = session()
    addresses = [p.data_ptr() for p in net.parameters()]
    step = torch.compile(ours.step, backend=lambda gm, x: fusescope(gm, x, options={"session": kept}))
    for _ in range(3):
        x = torch.randn(4, 5)
        for model in (net, twin):
            model.zero_grad()
            model(x).square().mean().backward()
        step()
        theirs.step()
        for a, b in zip([*net.parameters(), *state_of(ours)], [*twin.parameters(), *state_of(theirs)], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert [p.data_ptr() for p in net.parameters()] == addresses
    assert all(len(launches(region)) == len(region.steps) for region in kept.regions), "no library call is left"
    assert len(launches(kept.regions[-1])) < len(addresses)


def run(function: Any, *inputs: Any) -> tuple[Any, Session]:
    torch._dynamo.reset()
    kept = session()
    compiled = torch.compile(function, backend=lambda gm, x: fusescope(gm, x, options={"session": kept}))
    return compiled(*inputs), kept


@pytest.mark.parametrize("decoupled", [False, True], ids=["adam", "adamw"])
def test_the_fused_step_called_by_hand(decoupled: bool) -> None:
    def lists() -> tuple[list[Tensor], ...]:
        torch.manual_seed(0)
        sizes = [(3, 4), (5,)]
        values = [[torch.rand(size) for size in sizes] for _ in range(5)]
        return (*values, [torch.tensor(2.0), torch.tensor(2.0)])

    call = torch._fused_adamw_ if decoupled else torch._fused_adam_
    rest = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": True, "maximize": True}
    ours, theirs = lists(), lists()
    run(lambda *tensors: call(*tensors, lr=0.01, **rest), *ours)
    call(*theirs, lr=0.01, **rest)
    for mine, yours in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, yours)


FOREACH: dict[str, Callable[[list[Tensor], list[Tensor]], Any]] = {
    "scalars": lambda a, b: torch._foreach_mul(a, [2.0, 3.0]),
    "alpha": lambda a, b: torch._foreach_add(a, b, alpha=0.5),
    "one tensor": lambda a, b: torch._foreach_div(a, torch.tensor(3.0)),
    "addcdiv by scalars": lambda a, b: torch._foreach_addcdiv(a, b, a, [0.5, 2.0]),
    "addcmul": lambda a, b: torch._foreach_addcmul(a, b, a, value=0.5),
    "lerp": lambda a, b: torch._foreach_lerp(a, b, 0.3),
    "norm": lambda a, b: torch._foreach_norm(a, 1),
    "norm of two": lambda a, b: torch._foreach_norm(a),
    "maximum": lambda a, b: torch._foreach_maximum(a, 0.5) + torch._foreach_minimum(a, b),
    "number to the power": lambda a, b: torch._foreach_pow(2.0, a),
    "unary": lambda a, b: torch._foreach_neg(torch._foreach_sqrt(torch._foreach_abs(a))),
    "clamp": lambda a, b: torch._foreach_clamp_max(a, [0.1, 0.2]),
}


@pytest.mark.parametrize("name", FOREACH)
def test_ops_over_lists(name: str) -> None:
    a, b = ([torch.rand(3, 4) + 0.1, torch.rand(5) + 0.1] for _ in range(2))
    result, kept = run(FOREACH[name], a, b)
    torch.testing.assert_close(list(result), list(FOREACH[name](a, b)))
    assert all(hasattr(step, "kernel") for region in kept.regions for step in region.steps)


# --- copies into inputs --------------------------------------------------------------------------------------------


def swap(x: Tensor, y: Tensor) -> None:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


def shift(x: Tensor, y: Tensor) -> None:
    x.copy_(x.roll(1, 0) + y)


def transpose(x: Tensor, y: Tensor) -> None:
    x.copy_(x.t() * 2)


def norm_in_place(x: Tensor, y: Tensor) -> Tensor:
    total = (x * y).sum(-1)
    x.copy_(x.softmax(-1))
    return total


def running(x: Tensor, y: Tensor) -> Tensor:
    y[0].mul_(0.9).add_(x.mean(0), alpha=0.1)
    return x - x.mean(0)


def both_used(x: Tensor, y: Tensor) -> Tensor:
    before = x.exp() + y.sum(0)
    x.add_(y)
    return before * x


def through_a_library(x: Tensor, y: Tensor) -> Tensor:
    product = x @ y
    x.copy_(product.relu())
    return product


@pytest.mark.parametrize(
    "function", [swap, shift, transpose, norm_in_place, running, both_used, through_a_library], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "with gaps"])
def test_inputs_are_overwritten_only_when_nobody_reads_them_any_more(function: Any, layout: str) -> None:
    def made() -> list[Tensor]:
        torch.manual_seed(1)
        x, y = torch.rand(6, 6), torch.rand(6, 6)
        if layout == "transposed":
            return [x.t(), y]
        return [torch.rand(6, 12)[:, ::2], y] if layout == "with gaps" else [x, y]

    ours, theirs = made(), made()
    result, _ = run(function, *ours)
    expected = function(*theirs)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(result, expected)


def test_a_copy_into_an_input_is_the_kernels_own_store() -> None:
    x, y = torch.rand(6, 6), torch.rand(6, 6)
    _, kept = run(lambda x, y: x.mul_(0.9).add_(y), x, y)
    (region,) = kept.regions
    (launch,) = region.steps
    assert list(launch.over.values()) == [region.plan.reuses[b.name] for b in launch.stored]
    assert region.plan.peak_bytes == 0
