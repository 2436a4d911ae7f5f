"""Residual addition followed by RMS normalisation, as at the head of every Llama sublayer."""

import torch
from torch import Tensor, nn

TITLE = "Residual + RMSNorm"
DESCRIPTION = "Adds a residual and normalises by root mean square; the sum is an output too, so it is written once."
TRAINING = False


class ResidualRMSNorm(nn.Module):
    """Returns the normalised sum, and the sum itself for the next residual addition."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        residual = x + residual
        hidden = residual.float()
        hidden = hidden * torch.rsqrt(hidden.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return hidden.to(x.dtype) * self.weight, residual


def rms_norm_residual(
    rows: int = 4096, columns: int = 1024, dtype: str = "float32"
) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    norm = ResidualRMSNorm(columns)
    nn.init.normal_(norm.weight, mean=1.0, std=0.1)
    scalar_type = getattr(torch, dtype)
    x, residual = (torch.randn(rows, columns, dtype=scalar_type) for _ in range(2))
    return norm.to(scalar_type).eval(), (x, residual)
