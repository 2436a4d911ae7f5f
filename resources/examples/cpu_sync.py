"""A model that reads a value back to the CPU, which no CUDA Graph can capture."""

import torch
from torch import Tensor, nn

TITLE = "CPU synchronisation"
DESCRIPTION = "Calls .item() to choose a scale: the CPU waits for the GPU, and CUDA Graph capture must split there."
TRAINING = False


class DynamicRangeLinear(nn.Module):
    """Scales its input into [-1, 1] by a maximum that is read back to the CPU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        scale = max(x.abs().max().item(), 1e-6)
        return torch.relu(self.linear(x / scale)) * scale


def cpu_sync(batch: int = 64, width: int = 512, dtype: str = "float32") -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    return DynamicRangeLinear(width).to(scalar_type).eval(), (torch.randn(batch, width, dtype=scalar_type),)
