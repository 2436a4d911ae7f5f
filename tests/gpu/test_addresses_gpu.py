"""Inputs at addresses and in layouts that no compilation was made for: right numbers, compiled and replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.backend import fusescope  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def flat(count: int) -> Any:
    return torch.randn(count, device="cuda")


def shifted(rows: int, columns: int) -> Any:
    """A contiguous matrix that begins one element after an aligned address."""
    return flat(rows * columns + 1)[1:].view(rows, columns)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "pointwise": (lambda x, y: torch.relu(x * y), lambda: (shifted(64, 256), flat(64 * 256).view(64, 256))),
    "reduction": (lambda x: x.softmax(-1), lambda: (shifted(64, 256),)),
    "matmul": (lambda x, y: torch.relu(x @ y), lambda: (shifted(64, 256), shifted(256, 128))),
    "view of an input": (lambda x: x[1:] * 2, lambda: (flat(1025),)),
    "elements between an input's own": (
        lambda x: torch.as_strided_copy(x, (16, 8), (8, 2), 0).nan_to_num() + x.sum(),
        lambda: (flat(1025)[1::2],),
    ),
    "as_strided": (lambda x: x.as_strided((16, 16), (16, 1), 1).relu(), lambda: (flat(1024),)),
}


@pytest.mark.parametrize("name", CASES)
def test_misaligned_inputs(name: str) -> None:
    function, inputs = CASES[name]
    compiled = torch.compile(function, backend=fusescope)
    for _ in range(3):  # each time at another address
        values = inputs()
        # A product's library call may differ by the alignment of what it is given.
        torch.testing.assert_close(compiled(*values), function(*values), rtol=1e-4, atol=1e-4)


def test_an_aligned_compilation_is_given_misaligned_inputs() -> None:
    compiled = torch.compile(lambda x, y: torch.relu(x * y).sum(-1), backend=fusescope)
    for x in (flat(64 * 256).view(64, 256), shifted(64, 256), flat(64 * 256).view(64, 256)):
        y = shifted(64, 256)
        torch.testing.assert_close(compiled(x, y), torch.relu(x * y).sum(-1))


def test_a_misaligned_input_is_written_in_place() -> None:
    def step(x: Any, y: Any) -> Any:
        x.add_(y)
        return x.sum()

    compiled = torch.compile(step, backend=fusescope)
    for _ in range(3):
        base, y = flat(1025), flat(1024)
        expected = base.clone()
        torch.testing.assert_close(compiled(base[1:], y), step(expected[1:], y))
        torch.testing.assert_close(base, expected)


def test_parameters_that_are_slices_of_a_flat_tensor() -> None:
    storage = flat(1 + 64 * 64 + 64)
    linear = torch.nn.Linear(64, 64, device="cuda")
    linear.weight = torch.nn.Parameter(storage[1 : 1 + 64 * 64].view(64, 64))
    linear.bias = torch.nn.Parameter(storage[1 + 64 * 64 :])
    model = torch.nn.Sequential(linear, torch.nn.GELU())
    compiled = torch.compile(model, backend=fusescope)
    x = shifted(8, 64)
    compiled(x).sum().backward()
    gradient = linear.weight.grad.clone()
    linear.weight.grad = None
    torch.testing.assert_close(compiled(x), model(x))
    model(x).sum().backward()
    torch.testing.assert_close(gradient, linear.weight.grad)
