"""Kernels of every family of ops go through Triton to PTX, for a GPU that need not be there.

``tests/gpu/test_families_gpu.py`` runs the same functions on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.graphs import compiled, launches

aten = torch.ops.aten
pytest.importorskip("triton", reason="kernels are Triton's")


def random_numbers(x: Tensor) -> list[Tensor]:
    dropped, mask = torch.native_dropout(x, 0.1, True)
    wide = torch.rand(8, 8, dtype=torch.float64) + torch.randn(8, 8, dtype=torch.float64)
    return [dropped, mask, torch.randn_like(x).sum(1), torch.randint(-3, 9, (40,)), wide]


def scatters(x: Tensor, rows: Tensor, places: Tensor) -> list[Tensor]:
    doubled = (x * 2).index_put((rows,), x[:5], accumulate=True)
    wide = x.float().scatter_add(1, places, x.float().sin()).sum(1)
    whole = places.scatter_reduce(0, places % 16, places, "amax")
    return [
        doubled,
        wide,
        whole,
        x.scatter(1, places[:, :1], 0.0),
        x.new_zeros(16).index_add(0, rows.abs(), x.sum(1)[:5]),
    ]


def scans(x: Tensor, long: Tensor) -> list[Tensor]:
    columns = [x.cumsum(0), x.cumprod(0), *x.cummin(0)]
    return [(x.exp().cumsum(1) + x).relu(), *x.cummax(1), x.logcumsumexp(1), *columns, *long.cummax(1), long.cumsum(1)]


def pools(x: Tensor) -> list[Tensor]:
    largest, positions = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    geometry = ([3, 3], [2, 2], [1, 1], [1, 1], False)
    back = aten.max_pool2d_with_indices_backward.default(largest, x, *geometry, positions)
    means = F.avg_pool2d(x, 3, 2, 1, True, False)
    geometry = ([3, 3], [2, 2], [1, 1], True, False, None)
    return [largest, positions, back, means, aten.avg_pool2d_backward.default(means, x, *geometry)]


def float8(x: Tensor) -> list[Tensor]:
    small, large = (x * 3).to(torch.float8_e4m3fn), (x * 1e5).to(torch.float8_e5m2)
    return [small.float().sum(1), large.half() + small.half(), x.amax(1)]


def integers(n: Tensor) -> list[Tensor]:
    return [
        n << 2,
        n >> n,
        n**n,
        3**n,
        n // 3,
        n % 5,
        n.float().argmax(),
        (n > 3).amax(1),
        n.scatter_reduce(0, n, n, "mean"),
    ]


def resolutions(x: Tensor) -> list[Tensor]:
    large = F.interpolate(x, scale_factor=2, mode="bilinear") + F.interpolate(x, scale_factor=2)
    shape = list(x.shape)
    near = aten.upsample_nearest2d_backward(large, list(large.shape[2:]), shape)
    return [large, near, aten.upsample_bilinear2d_backward(large, list(large.shape[2:]), shape, False)]


def places(x: Tensor) -> list[Tensor]:
    parts = [x.diagonal() * 2, x.unfold(1, 3, 2).sum(-1), (x + 1).as_strided((3, 4), (2, 7), 1) * 2]
    return [*parts, x.slice_scatter(x[:2] * 2, 0, 3, 5), x.diagonal_scatter(x[0, :16]), x.masked_scatter(x > 0, x)]


FAMILIES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "random numbers": (random_numbers, (torch.randn(16, 40).half(),)),
    "places": (places, (torch.randn(16, 40),)),
    "resolutions": (resolutions, (torch.randn(2, 3, 6, 8),)),
    "float8": (float8, (torch.randn(16, 40),)),
    "whole numbers": (integers, (torch.randint(0, 9, (16, 40)),)),
    "pools": (pools, (torch.randn(2, 4, 19, 21).to(memory_format=torch.channels_last),)),
    "scans": (scans, (torch.randn(300, 40).half(), torch.randint(-24, 25, (3, 9001)) / 8)),
    "scatters": (scatters, (torch.randn(16, 40), torch.tensor([3, 15, 3, -1, 0]), torch.randint(0, 40, (16, 40)))),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_to_ptx(name: str) -> None:
    function, inputs = FAMILIES[name]
    region, library = compiled(function, *inputs, binaries=True)
    assert launches(region)
    assert all("ptx" in kernel.binary.asm for kernel in library.by_source.values())


def test_four_neighbours_share_the_work_of_one_draw() -> None:
    """A thread that computes four elements runs Philox (ten rounds of two products) once."""
    function: Callable[..., Any] = lambda x: torch.native_dropout(x, 0.1, True)[0] + x  # noqa: E731
    _, library = compiled(function, torch.empty(1024, 1024, dtype=torch.bfloat16), binaries=True)
    (kernel,) = library.by_source.values()
    assert kernel.config.blocks["XBLOCK"] == kernel.config.num_warps * 32 * 4
    assert kernel.binary.asm["ptx"].count("mul.hi") == 20
