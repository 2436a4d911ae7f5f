"""One Llama decoder block (Touvron et al., 2023) at the shape of the 1B model, for inference."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TITLE = "Llama block"
DESCRIPTION = "RMSNorm, rotary embedding, grouped-query attention and SwiGLU: one decoder block of a Llama."
TRAINING = False


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        hidden = x.float()
        hidden = hidden * torch.rsqrt(hidden.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return hidden.to(x.dtype) * self.weight


def rotary_tables(length: int, head_width: int, base: float = 500000.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines ``[length, head_width]``; both halves of a head turn by the same angles."""
    frequencies = base ** (-torch.arange(0, head_width, 2).float() / head_width)
    angles = torch.outer(torch.arange(length).float(), frequencies).repeat(1, 2)
    return angles.cos(), angles.sin()


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class GroupedQueryAttention(nn.Module):
    """Attention in which ``heads / kv_heads`` query heads share one key and value head."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.group = heads // kv_heads
        self.q_proj = nn.Linear(width, heads * self.head_width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_width, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_width, bias=False)
        self.o_proj = nn.Linear(heads * self.head_width, width, bias=False)

    def split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        query = apply_rotary(self.split_heads(self.q_proj(x)), cos, sin)
        key = apply_rotary(self.split_heads(self.k_proj(x)), cos, sin)
        value = self.split_heads(self.v_proj(x))
        key = key.repeat_interleave(self.group, dim=1)
        value = value.repeat_interleave(self.group, dim=1)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.o_proj(attended.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    cos: Tensor
    sin: Tensor

    def __init__(self, length: int, width: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(width)
        self.self_attn = GroupedQueryAttention(width, heads, kv_heads)
        self.post_attention_layernorm = RMSNorm(width)
        self.mlp = SwiGLU(width, hidden)
        cos, sin = rotary_tables(length, width // heads)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), self.cos, self.sin)
        return x + self.mlp(self.post_attention_layernorm(x))


def llama_block(
    batch: int = 1,
    length: int = 128,
    width: int = 2048,
    heads: int = 32,
    kv_heads: int = 8,
    hidden: int = 8192,
    dtype: str = "float32",
) -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    block = LlamaBlock(length, width, heads, kv_heads, hidden).to(scalar_type).eval()
    return block, (torch.randn(batch, length, width, dtype=scalar_type),)
