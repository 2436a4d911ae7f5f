"""Complex numbers are library calls; real parts of theirs, and tensors that are negatives of their memory, are read by
kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.backend import fusescope

pytestmark = pytest.mark.usefixtures("fresh_dynamo")

PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "imaginary": lambda z: z.imag + 1,
    "imaginary of a conjugate": lambda z: z.conj().imag * 2,
    "of the adjoint": lambda z: z.mH.imag.sum(0),
    "product with the adjoint": lambda z: (z @ z.mH).real - z.real.sum(),
    "negative view": lambda z: torch._neg_view(z.real).exp(),
    "returned": lambda z: z.conj().imag,
    "sizes": lambda z: z.abs().log() + z.angle(),
    "rearranged": lambda z: z.conj().t()[1:].flip(0).reshape(-1).imag + 1,
    "written into": lambda z: (z.conj().imag.add_(5), z.imag + 1)[1],
    "written through": lambda z: (z.mul_(2), (z + 1).abs())[1],
}
REALS: dict[str, Callable[[Tensor], Tensor]] = {
    "pointwise": lambda x: x.exp() * 2,
    "view": lambda x: x.t()[1:] * 2,
    "reduced": lambda x: x.amax(0) + x.sum(),
    "product": lambda x: x.t()[1:] @ x,
    "sorted": lambda x: x.sort(0)[0] + 1,
    "returned": lambda x: x.t(),
    "written into": lambda x: (x.cos_(), x + 1)[1],
    "written through": lambda x: (x[1:].add_(2), x.fill_(3) * x)[1],
}


def numbers() -> Tensor:
    return torch.view_as_complex(((torch.arange(24.0) * 7) % 23 - 10).reshape(4, 3, 2) / 8)


def agree(function: Callable[[Tensor], Tensor], mine: Tensor, theirs: Tensor, dynamic: bool) -> None:
    result = torch.compile(function, backend=fusescope, dynamic=dynamic)(mine)
    torch.testing.assert_close(result, function(theirs))
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_complex_numbers(name: str, conjugate: bool, dynamic: bool) -> None:
    mine, theirs = (numbers().conj() if conjugate else numbers() for _ in range(2))
    agree(PARTS[name], mine, theirs, dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", REALS)
def test_an_input_that_is_the_negative_of_its_memory(name: str, dynamic: bool) -> None:
    mine, theirs = (numbers().conj().imag for _ in range(2))
    assert mine.is_neg()
    agree(REALS[name], mine, theirs, dynamic)


def test_a_gradient_that_is_the_negative_of_its_memory() -> None:
    function = torch.compile(lambda x: x.sin() * 2, backend=fusescope)
    x = torch.randn(4, 3, requires_grad=True)
    memory = torch.randn(4, 3)
    for gradient in (memory, torch._neg_view(memory), memory):
        (ours,) = torch.autograd.grad(function(x), x, gradient)
        torch.testing.assert_close(ours, 2 * x.detach().cos() * gradient)


def test_gradients_through_conjugates() -> None:
    def function(x: Tensor) -> Tensor:
        z = torch.view_as_complex(x)
        return z.conj().imag * 2 + (z * z.conj()).real

    x = torch.view_as_real(numbers()).requires_grad_()
    gradients = [
        torch.autograd.grad(call(x).square().sum(), x)[0]
        for call in (torch.compile(function, backend=fusescope), function)
    ]
    torch.testing.assert_close(*gradients)
