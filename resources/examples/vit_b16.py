"""Vision Transformer B/16 (Dosovitskiy et al., 2020) for inference."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TITLE = "ViT-B/16"
DESCRIPTION = "Vision Transformer: 16×16 patches by convolution, then 12 encoder layers of width 768."
TRAINING = False


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
        attended = F.scaled_dot_product_attention(query, key, value)
        return self.proj(attended.transpose(1, 2).reshape(batch, length, width))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = SelfAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class VisionTransformer(nn.Module):
    """Images ``[batch, 3, size, size]`` to class logits."""

    def __init__(self, size: int, layers: int, width: int, heads: int, classes: int) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, kernel_size=16, stride=16)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embedding = nn.Parameter(torch.empty(1, (size // 16) ** 2 + 1, width).normal_(std=0.02))
        self.encoder = nn.Sequential(*(EncoderLayer(width, heads) for _ in range(layers)))
        self.ln = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.conv_proj(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(images.shape[0], -1, -1), patches], dim=1)
        encoded = self.ln(self.encoder(tokens + self.pos_embedding))
        return self.head(encoded[:, 0])


def vit_b16(
    batch: int = 1,
    size: int = 224,
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    classes: int = 1000,
    dtype: str = "float32",
) -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    scalar_type = getattr(torch, dtype)
    model = VisionTransformer(size, layers, width, heads, classes).to(scalar_type).eval()
    return model, (torch.randn(batch, 3, size, size, dtype=scalar_type),)
