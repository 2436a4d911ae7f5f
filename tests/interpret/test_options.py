"""Whatever the options, the numbers are eager's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from compiler.options import Options
from tests.interpret.checking import check

CHOICES = {
    "nothing fused": Options(max_fused_loops=1, horizontal_fusion=False),
    "few buffers": Options(max_fused_buffers=2),
    "every reduction in passes": Options(persistent_inner=0, persistent_outer=0),
    "every reduction in registers": Options(persistent_inner=65536, persistent_outer=1024),
    "small blocks, no reuse": Options(pointwise_block=64, num_warps=1, memory_reuse=False, reorder=False),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_numbers(choice: str) -> None:
    torch.manual_seed(0)  # a sum of thousands that nearly cancel is off by more than the tolerance in any order
    def model(x: Tensor, w: Tensor) -> list[Tensor]:
        y = torch.relu(x @ w) + 1
        return [y.softmax(1), y.sum(0), y.var(1), (y * y).amax(0), torch.nn.functional.layer_norm(y @ w, (70,))]

    check(model, torch.randn(90, 70), torch.randn(70, 70) / 8, options=CHOICES[choice])
    check(lambda x: [x.sum(1), x.exp().argmax(1)], torch.randn(3, 9000), options=CHOICES[choice])
