"""A stack of residual MLP layers at a small batch, where launch overhead outweighs the work."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TITLE = "MLP, 8 layers"
DESCRIPTION = "8 × (LayerNorm, Linear 1024, GELU, residual) at batch 16: small kernels, so CUDA Graph replay pays most."
TRAINING = False


class ResidualLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.gelu(self.linear(self.norm(x)))


class MLP(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ResidualLayer(width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def mlp(batch: int = 16, width: int = 1024, layers: int = 8, dtype: str = "float32") -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    return MLP(width, layers).to(scalar_type).eval(), (torch.randn(batch, width, dtype=scalar_type),)
