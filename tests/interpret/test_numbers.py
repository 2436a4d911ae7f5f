"""Numbers beside tensors and made of indices: zeros with a sign, and what no int32 holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusescope
from tests.interpret.checking import check, generated

HALF = (torch.float16, torch.bfloat16)
FLOATS = (torch.float64, torch.float32, *HALF)
ZEROS = torch.tensor([0.0, -0.0, 1.0, -1.0])


def negative_constants(x: Tensor) -> list[Tensor]:
    filled = [torch.where(x > 0, x, -0.0), x.masked_fill(x > 0, -0.0), torch.full_like(x, -0.0)]
    return [*filled, x * -0.0, -0.0 - x, x + -0.0, F.pad(x, (1, 1), value=-0.0)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [negative_constants])
def test_zeros_have_eagers_sign(function: Callable[[Tensor], list[Tensor]], dtype: torch.dtype) -> None:
    x = ZEROS.to(dtype)
    results, _ = generated(function, x)
    for number, (result, eager) in enumerate(zip(results, function(x), strict=True)):
        torch.testing.assert_close(result, eager, rtol=0, atol=0)
        assert result.signbit().tolist() == eager.signbit().tolist(), number


STEPS = [
    (0, 5 * 10**9, 10**9), (0, -5 * 10**9, -(10**9)), (2**40, 2**40 + 5, 1), (-(2**40), 2**42, 2**40),
    (2**31 - 3, 2**31 + 2, 1), (-(2**31) - 3, -(2**31) + 2, 1), (0, 2**60, 2**58),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.float32])
@pytest.mark.parametrize("bounds", STEPS)
def test_numbers_of_indices_may_leave_an_int32(bounds: tuple[int, int, int], dtype: torch.dtype) -> None:
    check(lambda x: torch.arange(*bounds, dtype=dtype) + x, torch.zeros(1, dtype=torch.int32))
    check(lambda x: torch.arange(*bounds, dtype=dtype)[:4].view(2, 2).t() + x, torch.zeros(1, dtype=torch.int32))


def test_numbers_of_sizes_may_leave_an_int32() -> None:
    def function(x: Tensor) -> list[Tensor]:
        n = x.shape[0]
        start = n * 10**9
        numbers = [x + start, x * (n * 2**31), x / (n * 10**10), x - n**13, torch.full((2,), start)]
        return [*numbers, torch.arange(start, start + 5) + x.sum(), torch.arange(n) * 10**9 + torch.arange(n) * n]

    run = torch.compile(function, backend=fusescope, dynamic=True)
    for size in (5, 3, 12):
        x = torch.arange(size)
        for result, eager in zip(run(x), function(x), strict=True):
            torch.testing.assert_close(result, eager, rtol=1e-6, atol=0)
