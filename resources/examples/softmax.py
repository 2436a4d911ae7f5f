"""Softmax over rows: two reductions and a pointwise op that belong in one kernel."""

from collections.abc import Callable

import torch
from torch import Tensor

TITLE = "Softmax"
DESCRIPTION = "Softmax over rows: a maximum, a sum and the pointwise work between them in one kernel."
TRAINING = False


def row_softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


def softmax(
    rows: int = 4096, columns: int = 1024, dtype: str = "float32"
) -> tuple[Callable[[Tensor], Tensor], tuple[Tensor]]:
    torch.manual_seed(0)
    return row_softmax, (torch.randn(rows, columns, dtype=getattr(torch, dtype)),)
