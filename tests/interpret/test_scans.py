"""Cumulative ops along rows in registers, rows in blocks, and columns; with neighbours that share their kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.ir import Extern
from compiler.region import CompiledRegion
from tests.graphs import launches
from tests.interpret.checking import check

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]


def fused(function: Callable[..., Any], *inputs: Any) -> CompiledRegion:
    region = check(function, *inputs)
    assert not [step.detail for step in region.steps if isinstance(step, Extern)]
    return region


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
def test_every_dtype(dtype: torch.dtype) -> None:
    x = (torch.randn(3, 5, 7) * 3).to(dtype)
    fused(lambda x: [x.cumsum(0), x.cumsum(1), x.cumsum(-1), x.cumprod(2)], x)
    if dtype is not torch.bool:
        fused(lambda x: [*x.cummax(1), *x.cummin(-1)], x)
    if dtype.is_floating_point:
        fused(lambda x: x.logcumsumexp(1), x)
    else:
        fused(lambda x: [x.cumsum(1, dtype=torch.float32), x.cumsum(0, dtype=torch.int32)], x)


# length along the scanned dimension, whether it is the last: in registers, and in blocks with a carry
WAYS = {"row": (300, -1), "blocks of a row": (9001, -1), "column": (40, 0), "blocks of a column": (300, 0)}


@pytest.mark.parametrize("way", WAYS)
def test_every_way(way: str) -> None:
    length, dim = WAYS[way]
    # sums of these are exact, where others would depend on their order
    x = torch.randint(-24, 25, (length, 3) if dim == 0 else (3, length)) / 8
    region = fused(
        lambda x: [x.cumsum(dim), *x.cummax(dim), x.logcumsumexp(dim), (x.double() * 0.01 + 1).cumprod(dim)], x
    )
    assert all(launch.kernel.persistent == ("blocks" not in way) for launch in launches(region))


def test_nan_infinities_and_ties() -> None:
    nan, inf = math.nan, math.inf
    x = torch.tensor([[1.0, 3, 3, 2, 3, nan, 5], [-inf, -inf, 0, inf, inf, -inf, 1], [nan, 1, nan, 2, inf, 0, -inf]])
    fused(lambda x: [*x.cummax(1), *x.cummin(1), x.cumsum(1), x.cumprod(1), x.logcumsumexp(1)], x)
    fused(lambda x: [*x.cummax(0), x.logcumsumexp(0)], x)
    fused(
        lambda x: [*x.cummax(1), *x.cummin(1)], torch.tensor([[-128, -128, 5, 5], [127, 127, -1, 0]], dtype=torch.int8)
    )


def test_backwards() -> None:
    """The gradient of a cumulative sum is one from the other end."""
    x = torch.randint(-24, 25, (4, 9000)) / 8
    fused(lambda x: [x[:, :50].flip(1).cumsum(1).flip(1), x.flip(1).cumsum(1).flip(1) * 2], x)


def test_neighbours_share_the_kernel() -> None:
    torch.manual_seed(0)  # sums of sums of sums: where they cancel, few digits are left
    x, w = torch.randn(6, 80), torch.randn(80)
    region = fused(lambda x, w: ((x * w).exp().cumsum(1) + x).relu(), x, w)
    assert len(launches(region)) == 1
    region = fused(lambda x: [x.softmax(1).cumsum(1), x.sum(1)], x)
    assert len(launches(region)) == 1
    exact, long = torch.randint(-24, 25, (6, 80)) / 8, torch.randint(-24, 25, (3, 9001)) / 8
    fused(lambda x: (x.cumsum(1) - x.cumsum(1).mean(1, keepdim=True)).softmax(1), x.double())
    fused(lambda x: x.cumsum(1).cumsum(1).cumsum(0), exact)
    fused(lambda x: (x.softmax(1).cumsum(1) * x).sum(1), long.double())
    fused(lambda x: (x.cumsum(1) < 0.5).sum(1), long)


def test_a_scan_keeps_its_order_beside_other_reductions() -> None:
    x = torch.randn(4, 6, 10)
    fused(lambda x: [x.sum((1, 2)), x.reshape(4, 60).cumsum(1)], x)
    fused(lambda x: [x.cumsum(1).sum((1, 2)), x.cumsum(1)], x)
    fused(lambda x: [x.permute(0, 2, 1).reshape(4, 60).cumsum(1), x.sum((1, 2))], x)
    fused(lambda x: x.flatten().cumsum(0).reshape(4, 6, 10).sum(2), x)


def test_strides_and_sizes() -> None:
    x = torch.randn(8, 6, 10)
    for view in (x.permute(2, 0, 1), x[::2, 1:, ::3], x[:, :1].expand(8, 6, 10)):
        fused(lambda x: [x.cumsum(0), x.cumsum(1), *x.cummax(2)], view)
    fused(lambda x: [x.cumsum(1), *x.cummax(0)], torch.randn(1, 1))
    fused(lambda x: [x.cumsum(0), *x.cummin(0), x.logcumsumexp(0)], torch.tensor(2.0))
    check(lambda x: [x.cumsum(1), x.cumsum(0)], torch.randn(3, 0))
    fused(lambda x: [x[:1].cumsum(0), x.half().cumsum(0)], torch.randn(7))


def test_few_long_rows_are_left_to_the_library() -> None:
    region = check(lambda x: x.cumsum(0), torch.randint(0, 5, (70_000,)))
    assert not launches(region)
