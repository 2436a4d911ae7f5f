"""Tensors made from nothing, of every dtype and with fractions where whole numbers are asked for; sums of booleans."""

from __future__ import annotations

import itertools

import pytest
import torch

from compiler.backend import fusescope
from tests.interpret.checking import check

aten = torch.ops.aten
ENDS = [(4.3, -3), (4.3, 1), (-2.5, 7.9), (0, 50), (3, 3), (-7, -1.5)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.float64])
def test_numbers_in_equal_steps_are_eagers(dtype: torch.dtype) -> None:
    ends = [(a, b) for a, b in ENDS if dtype is not torch.uint8 or min(a, b) >= 0]
    cases = list(itertools.product(ends, (1, 2, 5, 50)))
    check(lambda: [torch.linspace(a, b, n, dtype=dtype) for (a, b), n in cases])


def test_numbers_between_tensors_are_eagers() -> None:
    for dtype in (torch.int64, torch.float32):
        make = lambda a, b, dtype=dtype: [  # noqa: E731
            torch.linspace(a, b, 50, dtype=dtype), torch.linspace(a, 2, 7, dtype=dtype), torch.linspace(1, b, 1)
        ]  # fmt: skip
        check(make, torch.tensor(4.3), torch.tensor(-3))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_powers_in_equal_steps_are_eagers(dtype: torch.dtype) -> None:
    cases = list(itertools.product([(0, 1.2), (0.5, 4.3), (2, 0)], (1, 2, 4, 9), (2.0, 3.0, 10.0, 1.1)))
    cases = [c for c in cases if dtype.is_floating_point or c[1] > 1 or c[0][0] == int(c[0][0])]
    check(lambda: [torch.logspace(a, b, n, base, dtype=dtype) for (a, b), n, base in cases])


def test_whole_numbers_lose_their_fractions_before_they_are_counted() -> None:
    cases = [(2.1, -2.9, -1.0), (0.1, -7.9, -4.0), (0.9, 9.7, 2.5), (-3.5, 3, 1.5)]
    check(lambda: [torch.arange(a, b, c, dtype=torch.int64) for a, b, c in cases])


def test_booleans_are_added_and_multiplied_by_or_and_and() -> None:
    a, b = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    for alpha in (True, False, 0, 2):
        check(
            lambda a, b, rows, alpha=alpha: [
                torch.add(a, b, alpha=alpha), torch.add(a, True, alpha=alpha), a.index_add(0, rows, b[:2], alpha=alpha),
                *torch._foreach_add([a], [b], alpha=alpha),
            ],
            a, b, torch.tensor([1, 3]),
        )  # fmt: skip


@pytest.mark.parametrize("exponent", [torch.float16, torch.int8])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float16, torch.float32])
def test_powers_of_two_have_eagers_dtype(dtype: torch.dtype, exponent: torch.dtype) -> None:
    check(torch.ldexp, torch.tensor([0, 1, 3]).to(dtype), torch.tensor(2).to(exponent))
    check(torch.ldexp, torch.tensor([0, 1, 3]).to(dtype), torch.tensor([1, 2, 3]).to(exponent))


@pytest.mark.parametrize("stride", [(1, 5), (5, 1), (12, 2), (2, 1), (0, 1), (0, 0)])
def test_empty_memory_lies_as_asked_for(stride: tuple[int, int]) -> None:
    def make(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.empty_strided((5, 5), stride), x.new_empty_strided((5, 5), stride)

    made = torch.compile(make, backend=fusescope)(torch.ones(2))
    assert [x.stride() for x in made] == [stride, stride]
