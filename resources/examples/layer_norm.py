"""Layer normalisation over rows, with scale and shift."""

import torch
from torch import Tensor, nn

TITLE = "LayerNorm"
DESCRIPTION = "Layer normalisation: mean and variance of each row, then scale and shift, in one kernel."
TRAINING = False


def layer_norm(rows: int = 4096, columns: int = 1024, dtype: str = "float32") -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    norm = nn.LayerNorm(columns)
    nn.init.normal_(norm.weight, mean=1.0, std=0.1)
    nn.init.normal_(norm.bias, std=0.1)
    scalar_type = getattr(torch, dtype)
    return norm.to(scalar_type).eval(), (torch.randn(rows, columns, dtype=scalar_type),)
