"""What training code does around a model: gradients are eager's whatever surrounds the compiled region."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from compiler.backend import Session, fusescope
from compiler.kernel_library import KernelLibrary
from tests.graphs import TARGET

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def compiled(function: Any) -> Callable[..., Any]:
    kept = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    return torch.compile(function, backend=lambda gm, x: fusescope(gm, x, options={"session": kept}))


def gradients(function: Callable[..., Any], model: Any, *inputs: Tensor) -> list[Tensor]:
    """Result and gradients of inputs and parameters after a backward of a weighted sum."""
    ours = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    result = function(*ours)
    weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
    (result.float() * weights).sum().backward()
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    return [result.detach(), *(x.grad for x in (*ours, *parameters) if x.grad is not None)]


def assert_trains_like_eager(model: Any, *inputs: Tensor, tolerance: float = 1e-5) -> None:
    twin = copy.deepcopy(model) if isinstance(model, nn.Module) else model
    for a, b in zip(gradients(compiled(model), model, *inputs), gradients(twin, twin, *inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(width, 16), nn.Linear(16, width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.second(F.gelu(self.first(x))))


class Checkpointed(Block):
    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(super().forward, x, use_reentrant=False) * 2


class Autocast(Block):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(x).float()


class Scale(torch.autograd.Function):
    """x * s, whose gradient is clipped: no derivative that autograd would find."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Tensor) -> Tensor:
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, s = ctx.saved_tensors
        return (gradient * s).clamp(-0.1, 0.1), (gradient * x).sum()


class Frozen(Block):
    def __init__(self) -> None:
        super().__init__()
        self.first.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            scale = self.norm(x).abs().mean()
        return super().forward(x) * scale + self.second(self.first(x).detach())


def shared(x: Tensor) -> Tensor:
    """One value saved for several backwards."""
    y = x.exp()
    return y * y + y.sin() + (y @ y.t()).tanh().sum(-1, keepdim=True)


def test_checkpointing() -> None:
    assert_trains_like_eager(Checkpointed(), torch.randn(3, 8))


def test_autocast() -> None:
    assert_trains_like_eager(Autocast(), torch.randn(3, 8), tolerance=2e-2)


def test_frozen_weights_and_parts_without_gradients() -> None:
    assert_trains_like_eager(Frozen(), torch.randn(3, 8))


def test_a_custom_function() -> None:
    assert_trains_like_eager(lambda x, s: Scale.apply(x.sin(), s).cos(), torch.randn(4, 5), torch.tensor(2.0))


def test_a_value_saved_once_and_used_often() -> None:
    assert_trains_like_eager(shared, torch.randn(4, 4))


def test_backward_twice_through_a_kept_graph() -> None:
    x, y = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    with torch.no_grad():
        y.copy_(x)
    for function, tensor in ((compiled(shared), x), (shared, y)):
        loss = function(tensor).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_hooks_on_tensors_and_modules() -> None:
    model = Block()
    seen: list[tuple[int, ...]] = []

    def hook(module: Any, inputs: Any, output: Tensor) -> Tensor:
        return output * 3

    model.second.register_forward_hook(hook)
    twin = copy.deepcopy(model)
    results, given = [], torch.randn(3, 8)
    for function, owner in ((compiled(model), model), (twin, twin)):
        x = given.clone().requires_grad_()
        out = function(x)
        out.register_hook(lambda gradient: seen.append(tuple(gradient.shape)) or gradient * 2)
        out.square().sum().backward()
        results.append([x.grad, *(p.grad for p in owner.parameters())])
    assert seen == [(3, 8), (3, 8)]
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=lambda m: m.__name__)
def test_without_gradients(mode: Any) -> None:
    model, x = Block(), torch.randn(3, 8)
    function = compiled(model)
    with mode():
        result = function(x)
        torch.testing.assert_close(result, model(x))
    assert not result.requires_grad
    assert function(x).requires_grad, "compiled anew where gradients are wanted"


def test_gradients_add_up_over_micro_batches() -> None:
    model = Block()
    twin, function = copy.deepcopy(model), compiled(model)
    for _ in range(3):
        x = torch.randn(3, 8)
        function(x).square().mean().backward()
        twin(x).square().mean().backward()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-5, atol=1e-6)


LAYERS: dict[str, Callable[[int], Callable[[Tensor], Tensor]]] = {
    "linear": lambda width: nn.Linear(width, width),
    "norm": lambda width: nn.LayerNorm(width),
    "rms": lambda width: nn.RMSNorm(width),
    "gelu": lambda width: nn.GELU(),
    "silu": lambda width: nn.SiLU(),
    "softmax": lambda width: nn.Softmax(-1),
    "prelu": lambda width: nn.PReLU(width),
    "batch norm": lambda width: nn.BatchNorm1d(width),
    "elu": lambda width: nn.ELU(),
}


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(sorted(LAYERS)), min_size=2, max_size=5), st.integers(2, 5), st.sampled_from([3, 8, 17])
)
def test_stacks_of_layers(names: list[str], rows: int, width: int) -> None:
    torch._dynamo.reset()
    torch.manual_seed(rows * width)
    model = nn.Sequential(*(LAYERS[name](width) for name in names))  # type: ignore[arg-type]
    assert_trains_like_eager(model, torch.randn(rows, width), tolerance=1e-4)
