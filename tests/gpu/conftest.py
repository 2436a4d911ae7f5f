"""Skips everything here where there is no CUDA device, and loads gallery examples onto it where there is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.backends.registry import list_backends, register_backend  # noqa: E402

from compiler.backend import fusescope  # noqa: E402

if "fusescope" not in list_backends():  # the package is not installed, only checked out
    register_backend(fusescope, name="fusescope")

Loader = Callable[..., tuple[Any, tuple[Any, ...], bool]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch.set_float32_matmul_precision("high")
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def load_example() -> Loader:
    """``load(name, **options)``: the model and its inputs on the GPU, and whether it trains."""

    def load(name: str, **options: Any) -> tuple[Any, tuple[Any, ...], bool]:
        module = importlib.import_module(f"resources.examples.{name}")
        model, inputs = getattr(module, name)(**options)
        if isinstance(model, torch.nn.Module):
            model = model.cuda()
        return model, tuple(value.cuda() for value in inputs), module.TRAINING

    return load
