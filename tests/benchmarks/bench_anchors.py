"""The 19 anchor rows and two of training.

python tests/benchmarks/bench_anchors.py FOLDER [--only NAMES] [--modes MODES]

Shapes, dtypes and models are those the published table was measured with; torchvision and transformers models are
built from their configurations with random weights.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from bench_common import MODES, Cases, main

Built = tuple[Any, tuple[Any, ...], bool]


def random(*sizes: int, dtype: str = "float32") -> Any:
    """Normally distributed values on the GPU."""
    import torch

    return torch.randn(*sizes, device="cuda", dtype=getattr(torch, dtype))


def pointwise(side: int) -> Built:
    import torch

    return lambda a, b, c: torch.relu((a + b) * c), tuple(random(side, side) for _ in range(3)), False


def softmax() -> Built:
    import torch

    return lambda x: torch.softmax(x, -1), (random(8192, 4096, dtype="bfloat16"),), False


def layer_norm() -> Built:
    import torch.nn.functional as F

    x, weight, bias = (random(*sizes, dtype="bfloat16") for sizes in ((8192, 4096), (4096,), (4096,)))
    return lambda x, weight, bias: F.layer_norm(x, (4096,), weight, bias), (x, weight, bias), False


def rms_norm_residual() -> Built:
    import torch

    def normalise(x: Any, weight: Any, residual: Any) -> Any:
        x = x + residual
        variance = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(variance + 1e-6)).to(x.dtype) * weight, x

    sizes = ((8192, 4096), (4096,), (8192, 4096))
    return normalise, tuple(random(*size, dtype="bfloat16") for size in sizes), False


def column_sum() -> Built:
    return lambda x: x.sum(0), (random(16384, 16384),), False


def sum_of_squares() -> Built:
    return lambda x: (x * x).sum(), (random(16384, 16384),), False


def cross_entropy() -> Built:
    import torch
    import torch.nn.functional as F

    targets = torch.randint(0, 50257, (4096,), device="cuda")
    return lambda x, t: F.cross_entropy(x, t), (random(4096, 50257), targets), False


def transpose_add() -> Built:
    return lambda x, y: x.t().contiguous() + y, (random(8192, 8192), random(8192, 8192)), False


def mlp(batch: int) -> Built:
    from resources.examples.mlp import MLP

    model = MLP(1024, 8).to("cuda").bfloat16().eval()
    return model, (random(batch, 1024, dtype="bfloat16"),), False


def vision(name: str, batch: int, dtype: str) -> Built:
    import torch
    import torchvision

    model = getattr(torchvision.models, name)().to("cuda", getattr(torch, dtype)).eval()
    return model, (random(batch, 3, 224, 224, dtype=dtype),), False


def _output_of(model: Any, field: str, **keywords: Any) -> Any:
    """The model with one field of its output, as a module, so that it has parameters and a float64 copy."""
    from torch import nn

    class Output(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any) -> Any:
            return getattr(self.model(ids, **keywords), field)

    return Output()


def gpt2(batch: int, length: int) -> Built:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False)).to("cuda", torch.bfloat16).eval()
    ids = torch.randint(0, 50257, (batch, length), device="cuda")
    return _output_of(model, "logits", use_cache=False).eval(), (ids,), False


def gpt2_training(batch: int, length: int) -> Built:
    """A forward with its loss, and a backward. Without dropout, whose numbers no two modes share."""
    import torch
    from torch import nn
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = GPT2LMHeadModel(config)

        def forward(self, ids: Any) -> Any:
            return self.model(ids, labels=ids, use_cache=False).loss

    ids = torch.randint(0, 50257, (batch, length), device="cuda")
    return Loss().to("cuda", torch.bfloat16).train(), (ids,), True


def bert(batch: int, length: int) -> Built:
    import torch
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig()).to("cuda", torch.float16).eval()
    ids = torch.randint(0, 30000, (batch, length), device="cuda")
    return _output_of(model, "last_hidden_state").eval(), (ids,), False


def seeded(build: Callable[..., Built], *arguments: Any) -> Callable[[], Built]:
    """``build`` with fixed weights and inputs."""

    def call() -> Built:
        import torch

        torch.manual_seed(0)
        return build(*arguments)

    return functools.wraps(build)(call)


CASES: Cases = {
    "relu_add_mul_1M": seeded(pointwise, 1024),
    "relu_add_mul_256M": seeded(pointwise, 16384),
    "softmax_8192x4096_bf16": seeded(softmax),
    "layer_norm_8192x4096_bf16": seeded(layer_norm),
    "rms_norm_residual_8192x4096_bf16": seeded(rms_norm_residual),
    "column_sum_16384x16384": seeded(column_sum),
    "sum_of_squares_256M": seeded(sum_of_squares),
    "cross_entropy_4096x50257": seeded(cross_entropy),
    "transpose_add_8192": seeded(transpose_add),
    "mlp8_b16_bf16": seeded(mlp, 16),
    "mlp8_b8192_bf16": seeded(mlp, 8192),
    "resnet18_b1": seeded(vision, "resnet18", 1, "float32"),
    "resnet50_b64_fp16": seeded(vision, "resnet50", 64, "float16"),
    "vit_b16_b8_bf16": seeded(vision, "vit_b_16", 8, "bfloat16"),
    "mobilenet_v3_b1": seeded(vision, "mobilenet_v3_large", 1, "float32"),
    "gpt2_b1_s128_bf16": seeded(gpt2, 1, 128),
    "gpt2_b8_s1024_bf16": seeded(gpt2, 8, 1024),
    "bert_b1_s128_fp16": seeded(bert, 1, 128),
    "bert_b32_s512_fp16": seeded(bert, 32, 512),
    "gpt2_training_b1_s128_bf16": seeded(gpt2_training, 1, 128),
    "gpt2_training_b8_s1024_bf16": seeded(gpt2_training, 8, 1024),
}

if __name__ == "__main__":
    sys.exit(main("anchors", "Anchor rows", CASES, __file__, MODES, case_seconds=180, budget=1500))
