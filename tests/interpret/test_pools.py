"""Pooling and its gradients, against eager: padding, ceiling, dilation, NaN, ties, layouts; large windows are calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.ir import Extern
from compiler.region import CompiledRegion
from tests.graphs import launches
from tests.interpret.checking import check

aten = torch.ops.aten
# kernel, stride, padding, ceil_mode
SHAPES: dict[str, tuple[Any, Any, Any, bool]] = {
    "side by side": (2, 2, 0, False),
    "overlapping": (3, 2, 1, False),
    "every place": (3, 1, 1, False),
    "with gaps": (2, 3, 0, False),
    "uneven": ((3, 2), (2, 1), (1, 0), False),
    "ceiling": (3, 2, 1, True),
    "ceiling side by side": (2, 2, 0, True),
}


def fused(function: Callable[..., Any], *inputs: Any) -> CompiledRegion:
    region = check(function, *inputs)
    assert not [step.detail for step in region.steps if isinstance(step, Extern)]
    return region


def pair(value: Any) -> list[int]:
    return list(value) if isinstance(value, tuple) else [value, value]


@pytest.mark.parametrize("name", SHAPES)
def test_maxima_and_their_gradient(name: str) -> None:
    kernel, stride, padding, ceil = SHAPES[name]
    x = torch.randint(-9, 9, (2, 3, 9, 10)).float()  # with ties
    fused(lambda x: F.max_pool2d(x, kernel, stride, padding, 1, ceil, return_indices=True), x)
    values, positions = F.max_pool2d(x, kernel, stride, padding, 1, ceil, return_indices=True)
    geometry = (pair(kernel), pair(stride), pair(padding), [1, 1], ceil)
    fused(
        lambda g, x, i: aten.max_pool2d_with_indices_backward.default(g, x, *geometry, i),
        torch.randn_like(values), x, positions,
    )  # fmt: skip


@pytest.mark.parametrize("counting", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_means_and_their_gradient(name: str, counting: bool) -> None:
    kernel, stride, padding, ceil = SHAPES[name]
    x = torch.randn(2, 3, 9, 10)
    fused(lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil, counting), x)
    grad = torch.randn_like(F.avg_pool2d(x, kernel, stride, padding, ceil, counting))
    geometry = (pair(kernel), pair(stride), pair(padding), ceil, counting, None)
    fused(lambda g, x: aten.avg_pool2d_backward.default(g, x, *geometry), grad, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8])
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.randint(0, 90, (2, 9, 8)).to(dtype)
    fused(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    if dtype.is_floating_point:
        fused(lambda x: [F.avg_pool2d(x / 7, 3, 2, 1), F.avg_pool2d(x, 2, divisor_override=3)], x)


def test_nan_infinities_dilation_and_layouts() -> None:
    x = torch.randn(2, 4, 9, 9)
    x[0, 0, 3, 4] = math.nan
    x[0, 1] = -math.inf
    x[1, 2, 4:6, 4] = math.nan
    for view in (x, x.to(memory_format=torch.channels_last), x.transpose(2, 3), x[:, :1].expand(2, 4, 9, 9)):
        fused(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), view)
    fused(lambda x: F.max_pool2d(x, 3, 1, 1, 2, return_indices=True), x)
    fused(lambda x: F.avg_pool2d(x.nan_to_num(0, 1, -1), 3), x.transpose(1, 3))


def test_other_dimensions() -> None:
    x, volume = torch.randn(2, 3, 17), torch.randn(1, 2, 5, 6, 4)
    fused(lambda x: [F.max_pool1d(x, 3, 2), F.avg_pool1d(x, 4, 2, 1)], x)
    fused(lambda x: [F.max_pool3d(x, 2), F.avg_pool3d(x, 2, 1, 1)], volume)
    fused(lambda x: F.adaptive_avg_pool2d(x, (3, 2)), torch.randn(2, 3, 9, 8))
    check(lambda x: [F.adaptive_avg_pool2d(x, (2, 3)), F.adaptive_max_pool2d(x, 2)], torch.randn(2, 3, 9, 8))
    fused(lambda g, x: aten._adaptive_avg_pool2d_backward.default(g, x), torch.randn(3, 3, 2), torch.randn(3, 9, 8))


def test_neighbours_share_the_kernel() -> None:
    x = torch.randn(2, 4, 8, 8)
    region = fused(lambda x: (F.max_pool2d(x.relu() + 1, 2) * 2).sigmoid(), x)
    assert len(launches(region)) == 1
    fused(lambda x: F.avg_pool2d(F.max_pool2d(x.sin(), 3, 2, 1).relu(), 2).sum((2, 3)), x)


def test_large_windows_are_left_to_the_library() -> None:
    region = check(lambda x: [F.max_pool2d(x, 7, 7), F.avg_pool2d(x, 6)], torch.randn(1, 2, 14, 14))
    assert not launches(region)


def test_training_through_the_backend() -> None:
    def model(x: Tensor) -> Tensor:
        return F.avg_pool2d(F.max_pool2d(x.relu(), 3, 2, 1), 2).square().sum()

    torch._dynamo.reset()
    x = torch.randn(2, 3, 12, 12)
    gradients = []
    for run in (model, torch.compile(model, backend="fusescope")):
        leaf = x.clone().requires_grad_()
        run(leaf).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(gradients[1], gradients[0])


def test_a_gradient_is_of_its_own_dtype_whatever_reads_it() -> None:
    """It is computed inside its reader's kernel, whose results may be of another dtype."""

    def compared(x: Tensor) -> Tensor:
        _, positions = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        grad = torch.linspace(0.1, 0.9, positions.numel(), dtype=x.dtype).reshape(positions.shape)
        back = aten.max_pool2d_with_indices_backward(grad, x, [3, 3], [2, 2], [1, 1], [1, 1], False, positions)
        return back > 0.5

    check(compared, torch.randn(1, 2, 9, 8))


UNEVEN = {
    "one too many": ((2, 3, 8, 9), (3, 4)),
    "even one way": ((2, 3, 8, 9), (3, 3)),
    "even": ((2, 3, 8, 9), (4, 3)),
    "more than there are": ((2, 3, 3, 4), (5, 7)),
    "no batch": ((3, 7, 5), (3, 2)),
    "in space": ((2, 2, 5, 4, 7), (3, 2, 4)),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_as_many_windows_as_asked_for(name: str) -> None:
    size, out = UNEVEN[name]
    spatial = len(out) == 3
    mean = F.adaptive_avg_pool3d if spatial else F.adaptive_avg_pool2d
    maximum = F.adaptive_max_pool3d if spatial else F.adaptive_max_pool2d
    x = torch.randint(-9, 9, size).float()  # with ties
    fused(lambda x: mean(x, out).sin(), x)
    fused(lambda x: mean(x, out), x.transpose(-1, -2).contiguous().transpose(-1, -2))
    fused(lambda x: list(maximum(x, out, return_indices=True)), x)
    values, positions = maximum(x, out, return_indices=True)
    gradient = torch.randn_like(values)
    rank = len(out)
    of_mean = getattr(aten, f"_adaptive_avg_pool{rank}d_backward").default
    of_maximum = getattr(aten, f"adaptive_max_pool{rank}d_backward").default
    fused(lambda g, x: of_mean(g, x), gradient, x)
    fused(lambda g, x, i: of_maximum(g, x, i), gradient, x, positions)


def test_adaptive_pools_of_nan_infinity_and_half_floats() -> None:
    x = torch.randn(2, 8, 7)
    x[0, 3, 3], x[0, 6, 1], x[1, 2, 2] = math.nan, -math.inf, math.inf
    x[1, :3, :3] = -math.inf
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        fused(lambda x: list(F.adaptive_max_pool2d(x, (3, 4), return_indices=True)), x.to(dtype))
        fused(lambda x: F.adaptive_avg_pool2d(x, (3, 4)), x.to(dtype))


def test_large_uneven_windows_are_a_call() -> None:
    region = check(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), torch.randn(2, 64, 64))
    assert [step.detail for step in region.steps if isinstance(step, Extern)]
