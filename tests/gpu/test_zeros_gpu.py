"""The sign of zeros on a GPU: its own maximum of 0.0 and -0.0 is 0.0, and its adders leave a sum of -0.0 as it is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.interpret.checking import generated

pytestmark = pytest.mark.gpu
LENGTHS = [1, 3, 64, 5000]  # a row with idle lanes, those without, one in several steps


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("length", LENGTHS)
def test_an_extremum_is_the_zero_whose_place_it_has(length: int, dtype: torch.dtype) -> None:
    x = (torch.randint(0, 2, (64, length), device="cuda") * 2 - 1).to(dtype) * 0.0

    def extrema(x: Tensor) -> list[Tensor]:
        y = x.t().contiguous()  # reduced across rows
        found = [x.max(1, True), x.min(1, True), x.cummax(1), x.cummin(1), y.max(0, True), y.min(0, True)]
        return [part for both in found for part in both]

    results, _ = generated(extrema, x)
    for number in range(0, len(results), 2):
        value, place = results[number : number + 2]
        source, dim = (x, 1) if number < 8 else (x.t(), 0)
        assert torch.equal(value.signbit(), source.gather(dim, place).signbit()), number
        if number not in (4, 6):  # of a scan the last of equals is named, of the others the first
            assert not place.any(), number


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_sum_of_negative_zeros_is_zero(length: int, dtype: torch.dtype) -> None:
    def sums(x: Tensor) -> list[Tensor]:
        return [x.sum(1), x.sum(0), x.sum(), x.mean(1), x.cumsum(1), x.cumsum(0)]

    x = torch.full((4, length), -0.0, device="cuda", dtype=dtype)
    for number, result in enumerate(generated(sums, x)[0]):
        assert not result.signbit().any(), number


@pytest.mark.parametrize("length", LENGTHS)
def test_a_product_of_zeros_keeps_its_sign_from_block_to_block(length: int) -> None:
    x = torch.where(torch.arange(length, device="cuda") == 1, -0.0, 2.0).expand(4, length).contiguous()
    (result,), _ = generated(lambda x: x.clamp(max=1).cumprod(1), x)
    expected = torch.arange(length, device="cuda").expand(4, length) >= 1
    assert torch.equal(result.signbit(), expected)
