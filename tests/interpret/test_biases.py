"""Biases of convolutions: added by the kernel that reads the result, left to the library where none does."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.ir import Extern
from compiler.region import CompiledRegion
from tests.graphs import launches
from tests.interpret.checking import check


def biases(region: CompiledRegion) -> list[bool]:
    """Of each convolution, whether the library adds one."""
    return [step.args[2] is not None for step in region.steps if isinstance(step, Extern)]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_reader_of_ours_adds_the_bias(rank: int) -> None:
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    x, weight = torch.randn(2, 6, *[7] * rank), torch.randn(8, 6, *[3] * rank)
    region = check(lambda x, w, b: convolve(x, w, b).relu() * 2, x, weight, torch.randn(8))
    assert biases(region) == [False]


def test_without_a_reader_of_ours_it_stays() -> None:
    x, weight, bias, square = torch.randn(2, 6, 7, 7), torch.randn(8, 6, 3, 3), torch.randn(8), torch.randn(8, 8, 1, 1)
    region = check(lambda x, w, b: F.conv2d(x, w, b), x, weight, bias)
    assert biases(region) == [True]
    assert all("convolution" not in launch.origins for launch in launches(region))

    def chain(x: Tensor, w: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return F.conv_transpose2d(F.conv2d(F.conv2d(x, w, b), s, b).sigmoid(), s, b).tanh()

    assert biases(check(chain, x, weight, bias, square)) == [True, False, False]
