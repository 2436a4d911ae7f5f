"""Searches in a sorted row, step by step those of ATen."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.graphs import launches
from tests.interpret.checking import check

NAN, INF = float("nan"), float("inf")


def values() -> Tensor:
    return torch.cat([torch.randn(60), torch.tensor([NAN, INF, -INF, 0.5, 0.25, -1.0])]).reshape(6, 11)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5, 8, 100])
def test_buckets(length: int, right: bool) -> None:
    row = torch.randn(length).sort().values
    row[length // 2] = 0.25
    region = check(lambda x, row: torch.bucketize(x.abs(), row, right=right) * 2, values(), row.sort().values)
    assert len(launches(region)) == len(region.steps) == 1


def test_integers_halves_and_a_row_with_nan() -> None:
    check(torch.bucketize, torch.randint(0, 50, (40,)), torch.arange(0, 50, 7))
    check(lambda x, row: torch.bucketize(x, row, out_int32=True), values().half(), torch.arange(-2, 3).half())
    row = torch.tensor([-1.0, 0.25, 0.5, NAN, NAN])
    check(lambda row, x: torch.searchsorted(row, x, side="right"), row, values())
    check(torch.searchsorted, torch.tensor([3.0, -1.0, 0.5, 0.25, 2.0]), values())
