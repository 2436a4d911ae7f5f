"""Joined kernels give eager's numbers, to each of their tensors its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.planning.schedule import Launch
from tests.interpret.checking import generated


def programs(*tensors: Tensor) -> list[Tensor]:
    return [(x.float() * 1.5 + i % 2).tanh().to(x.dtype) for i, x in enumerate(tensors)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_many_tensors_of_many_sizes(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    shapes: list[Any] = [(5,), (64,), (3, 4), (), (1000,), (16, 16), (2, 3, 5), (1,), (128,), (77,)]
    tensors = [torch.randn(shape).to(dtype) for shape in shapes]
    tensors[2] = torch.randn(4, 3).to(dtype).t()
    results, region = generated(programs, *tensors)
    for result, expected in zip(results, programs(*tensors), strict=True):
        torch.testing.assert_close(result, expected)
    parts = [step.parts for step in region.steps if isinstance(step, Launch)]
    assert sum(parts) == len(shapes)
    assert len(parts) <= 6
