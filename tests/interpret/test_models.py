"""Whole models through ``torch.compile`` with their kernels interpreted: outputs, gradients, every group's check."""

from __future__ import annotations

import copy
import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.backend import Session, fusescope
from compiler.kernel_library import KernelLibrary
from compiler.verify import verify_model
from tests.graphs import TARGET, launches


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def session() -> Session:
    return Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))


def compiled(model: Any, kept: Session) -> Any:
    return torch.compile(model, backend=lambda gm, inputs: fusescope(gm, inputs, options={"session": kept}))


def assert_close(result: Tensor, expected: Tensor, tolerance: float = 2e-5) -> None:
    assert result.shape == expected.shape
    error = (result.double() - expected.double()).norm() / expected.double().norm().clamp(min=1e-6)
    assert float(error) <= tolerance, f"relative error {float(error):.2e}"


def train_like_eager(model: nn.Module, *inputs: Tensor, tolerance: float = 2e-5) -> Session:
    """One step of both: the outputs, every gradient and every buffer must agree."""
    kept, twin = session(), copy.deepcopy(model)
    ours = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    theirs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    result, expected = compiled(model, kept)(*ours), twin(*theirs)
    assert_close(result, expected, tolerance)
    weights = torch.linspace(-1, 1, expected.numel()).reshape(expected.shape)
    (result * weights).sum().backward()
    (expected * weights).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        if b.grad is not None:
            assert_close(a.grad, b.grad, tolerance)
    for (name, a), b in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert a.grad is not None, name
        assert_close(a.grad, b.grad, tolerance)
    for a, b in zip(model.buffers(), twin.buffers(), strict=True):
        assert_close(a, b, tolerance)
    assert [region.kind for region in kept.regions] == ["forward", "backward"]
    return kept


class Block(nn.Module):
    """A pre-norm transformer block with causal attention."""

    def __init__(self, width: int, heads: int, approximate: str = "none") -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        attended = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        x = x + self.dropout(self.project(attended.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.mlp(self.norm2(x)))


def test_a_transformer_block_trains_like_eager() -> None:
    kept = train_like_eager(Block(24, 3), torch.randn(2, 7, 24))
    assert all(launches(region) for region in kept.regions)


def test_a_convolution_net_trains_like_eager_and_updates_its_running_statistics() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 5),
    )  # fmt: skip
    train_like_eager(net, torch.randn(4, 3, 10, 10), tolerance=1e-4)


def test_channels_last_trains_like_eager() -> None:
    net = nn.Sequential(nn.Conv2d(4, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 4, 1))
    net = net.to(memory_format=torch.channels_last)
    train_like_eager(net, torch.randn(2, 4, 8, 8).to(memory_format=torch.channels_last), tolerance=1e-4)


def test_an_embedding_classifier_trains_like_eager() -> None:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.norm, self.head = nn.Embedding(13, 16), nn.RMSNorm(16), nn.Linear(16, 5)

        def forward(self, ids: Tensor, target: Tensor) -> Tensor:
            return F.cross_entropy(self.head(self.norm(self.embedding(ids)).mean(1)), target)

    train_like_eager(Classifier(), torch.randint(0, 13, (4, 6)), torch.randint(0, 5, (4,)))


class Activations(nn.Module):
    """Many activations of one input, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.all = nn.ModuleList(
            [nn.ELU(), nn.Hardtanh(), nn.LeakyReLU(0.1), nn.Mish(), nn.Softplus(), nn.Sigmoid(), nn.Tanh(),
             nn.LogSigmoid(), nn.Hardsigmoid(), nn.PReLU(6), nn.Softmax(-1), nn.LogSoftmax(1), nn.GLU(),
             nn.Threshold(0.1, 2.0), nn.SELU(), nn.Softsign(), nn.Hardshrink(), nn.ReLU6(), nn.Tanhshrink()]
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        return torch.cat([activation(x) for activation in self.all], -1)


def test_gradients_of_activations() -> None:
    train_like_eager(Activations(), torch.randn(4, 6) * 2)


def test_half_precision_inference_stays_as_near_to_float64_as_eager() -> None:
    model, x = Block(32, 4, "tanh").bfloat16().eval(), torch.randn(2, 9, 32).bfloat16()
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(x.double())
        eager = model(x).double()
        result = compiled(model, session())(x).double()
    assert float((result - exact).norm()) <= 1.5 * float((eager - exact).norm())


GALLERY: list[tuple[str, dict[str, int | str]]] = [
    ("relu_add_mul", {"rows": 33, "columns": 70}),
    ("softmax", {"rows": 17, "columns": 130, "dtype": "float16"}),
    ("softmax", {"rows": 3, "columns": 9000}),
    ("layer_norm", {"rows": 17, "columns": 96}),
    ("rms_norm_residual", {"rows": 17, "columns": 96, "dtype": "bfloat16"}),
    ("mlp", {"batch": 4, "width": 32, "layers": 2}),
    ("conv_bn_relu", {"batch": 2, "channels": 8, "size": 10}),
    ("llama_block", {"length": 16, "width": 64, "heads": 4, "kv_heads": 2, "hidden": 96, "dtype": "bfloat16"}),
    ("dropout", {"batch": 8, "width": 32, "dtype": "bfloat16"}),
    ("dropout", {"batch": 8, "width": 32}),
]


@pytest.mark.parametrize(("name", "options"), GALLERY, ids=lambda value: value if isinstance(value, str) else "")
def test_every_group_of_the_gallery_verifies(name: str, options: dict[str, int | str]) -> None:
    example = importlib.import_module(f"resources.examples.{name}")
    model, inputs = getattr(example, name)(**options)
    checks = verify_model(model, inputs, source=name, interpret=True, training=example.TRAINING)
    assert checks
    assert [check for check in checks if not check.ok] == []
