"""BERT-base (Devlin et al., 2018) for inference on random tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TITLE = "BERT-base"
DESCRIPTION = "12 post-norm encoder layers of width 768, with the pooler."
TRAINING = False


class Embeddings(nn.Module):
    def __init__(self, width: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(context, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, ids: Tensor, token_types: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        embedded = self.word_embeddings(ids) + self.token_type_embeddings(token_types)
        return self.norm(embedded + self.position_embeddings(positions))


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split_heads(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.split_heads(layer(x)) for layer in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(query, key, value)
        return self.output(attended.transpose(1, 2).reshape(x.shape))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Linear(width, 4 * width)
        self.output = nn.Linear(4 * width, width)
        self.output_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x))
        return self.output_norm(x + self.output(F.gelu(self.intermediate(x))))


class Bert(nn.Module):
    """Token ids and token types ``[batch, length]`` to hidden states and the pooled first token."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(width, vocabulary, context)
        self.encoder = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: Tensor, token_types: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embeddings(ids, token_types)
        for layer in self.encoder:
            x = layer(x)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert_base(
    batch: int = 1,
    length: int = 128,
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    vocabulary: int = 30522,
    dtype: str = "float32",
) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    model = Bert(layers, width, heads, vocabulary, context=max(512, length))
    ids = torch.randint(0, vocabulary, (batch, length))
    return model.to(getattr(torch, dtype)).eval(), (ids, torch.zeros_like(ids))
