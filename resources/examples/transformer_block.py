"""One pre-norm transformer block in training: forward and backward."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TITLE = "Transformer block, training"
DESCRIPTION = "A pre-norm transformer block with its backward: two compiled regions that share saved tensors."
TRAINING = True


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.proj(attended.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class TransformerBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def transformer_block(
    batch: int = 8, length: int = 128, width: int = 512, heads: int = 8, dtype: str = "float32"
) -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    block = TransformerBlock(width, heads).to(scalar_type).train()
    return block, (torch.randn(batch, length, width, dtype=scalar_type),)
