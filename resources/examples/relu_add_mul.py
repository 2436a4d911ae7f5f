"""Three pointwise ops: the smallest thing that fuses."""

from collections.abc import Callable

import torch
from torch import Tensor

TITLE = "relu((a + b) * c)"
DESCRIPTION = "Three pointwise ops on one shape: the smallest thing that fuses into a single kernel."
TRAINING = False


def add_mul_relu(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.relu((a + b) * c)


def relu_add_mul(
    rows: int = 1024, columns: int = 1024, dtype: str = "float32"
) -> tuple[Callable[[Tensor, Tensor, Tensor], Tensor], tuple[Tensor, Tensor, Tensor]]:
    torch.manual_seed(0)
    a, b, c = (torch.randn(rows, columns, dtype=getattr(torch, dtype)) for _ in range(3))
    return add_mul_relu, (a, b, c)
