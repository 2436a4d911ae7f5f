"""On a GPU: autocast, gradient checkpointing, and an optimiser's step in a few launches, all with eager's numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from compiler.backend import fusescope  # noqa: E402
from compiler.runtime.trace import kernel_names, trace  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

OPTIMISERS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, 0.01, foreach=True, capturable=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, foreach=True, capturable=True),
}


def net() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(64, 96), nn.LayerNorm(96), nn.GELU(), nn.Linear(96, 64)) for _ in range(8)]
    return nn.Sequential(*layers).cuda()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimisers_step(name: str) -> None:
    torch._dynamo.reset()
    model = net()
    twin = copy.deepcopy(model)
    ours, theirs = OPTIMISERS[name](model.parameters()), OPTIMISERS[name](twin.parameters())
    step = torch.compile(ours.step, backend=fusescope)
    for _ in range(3):
        x = torch.randn(16, 64, device="cuda")
        twin.zero_grad()
        twin(x).square().mean().backward()
        # The same gradients: Adam divides by their size, which makes noise in small ones as large as a step.
        for a, b in zip(model.parameters(), twin.parameters(), strict=True):
            a.grad = b.grad.clone()
        step()
        theirs.step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    parameters = len(list(model.parameters()))
    kernels = kernel_names(trace(step, "compiled"))
    assert len(kernels) <= parameters // 4, kernels


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, x: Any) -> Any:
        return checkpoint(self.inner, x, use_reentrant=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("module", [net, Checkpointed], ids=["plain", "checkpointed"])
def test_autocast(module: Callable[[], nn.Module], dtype: Any) -> None:
    torch._dynamo.reset()
    model = module().cuda()
    twin, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    x = torch.randn(16, 64, device="cuda")
    function = torch.compile(model, backend=fusescope)
    with torch.autocast("cuda", dtype=dtype):
        function(x).float().square().mean().backward()
        twin(x).float().square().mean().backward()
    exact(x.double()).square().mean().backward()
    for a, b, c in zip(model.parameters(), twin.parameters(), exact.parameters(), strict=True):
        ours, theirs = (a.grad - c.grad).norm(), (b.grad - c.grad).norm()
        assert ours <= 2 * theirs + 1e-3 * c.grad.norm()
