"""Dropout in training: the random mask must differ from step to step, under CUDA Graph replay too."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TITLE = "Dropout, training"
DESCRIPTION = "A feed-forward layer with dropout and its backward; the mask is drawn anew at every step and replay."
TRAINING = True


class DropoutMLP(nn.Module):
    def __init__(self, width: int, probability: float) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.dropout = nn.Dropout(probability)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(self.dropout(F.gelu(self.fc1(x))))


def dropout(
    batch: int = 64, width: int = 512, probability: float = 0.1, dtype: str = "float32"
) -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    return DropoutMLP(width, probability).to(scalar_type).train(), (torch.randn(batch, width, dtype=scalar_type),)
