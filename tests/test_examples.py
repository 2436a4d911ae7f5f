"""Every gallery example builds on the CPU and runs one eager iteration."""

from __future__ import annotations

import ast
import importlib
import importlib.resources
import inspect
from collections.abc import Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

# Small options where the defaults would make the test slow; the other examples run as they are.
SMALL: dict[str, dict[str, Any]] = {
    "bert_base": {"layers": 2, "width": 128, "heads": 2, "vocabulary": 500, "length": 16},
    "gpt2": {"layers": 2, "width": 128, "heads": 2, "vocabulary": 500, "length": 16},
    "layer_norm": {"rows": 64},
    "llama_block": {"width": 256, "heads": 8, "kv_heads": 2, "hidden": 512, "length": 16},
    "mlp": {"width": 128},
    "mobilenet_v3": {"size": 64},
    "resnet18": {"size": 64},
    "rms_norm_residual": {"rows": 64},
    "softmax": {"rows": 64},
    "transformer_block": {"batch": 2, "length": 16, "width": 128},
    "vit_b16": {"layers": 2, "width": 128, "heads": 2, "size": 32},
}
GALLERY = {
    "relu_add_mul", "softmax", "layer_norm", "rms_norm_residual", "mlp", "conv_bn_relu", "resnet18", "mobilenet_v3",
    "transformer_block", "gpt2", "bert_base", "vit_b16", "llama_block", "graph_break", "cpu_sync", "dropout",
}  # fmt: skip


def example_names() -> list[str]:
    folder = importlib.resources.files("resources.examples")
    return sorted(p.name[:-3] for p in folder.iterdir() if p.name.endswith(".py") and p.name != "__init__.py")


def build(name: str, **options: Any) -> tuple[Any, tuple[Any, ...], bool]:
    module = importlib.import_module(f"resources.examples.{name}")
    model, inputs = getattr(module, name)(**options)
    return model, inputs, module.TRAINING


def float_outputs(result: Any) -> Iterable[Any]:
    for value in result if isinstance(result, tuple) else (result,):
        if value.is_floating_point():
            yield value


def test_the_gallery_is_complete() -> None:
    assert set(example_names()) == GALLERY


@pytest.mark.parametrize("name", sorted(GALLERY))
def test_example_runs_in_eager(name: str) -> None:
    model, inputs, training = build(name, **SMALL.get(name, {}))
    outputs = list(float_outputs(model(*inputs)))
    assert outputs
    assert all(torch.isfinite(value).all() for value in outputs)
    if isinstance(model, torch.nn.Module):
        assert model.training == training
    if training:
        torch.stack([value.mean() for value in outputs]).sum().backward()
        missing = [key for key, parameter in model.named_parameters() if parameter.grad is None]
        assert not missing


@pytest.mark.parametrize("name", sorted(GALLERY))
def test_example_is_seeded(name: str) -> None:
    (first, inputs, _), (second, again, _) = (build(name, **SMALL.get(name, {})) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(inputs, again, strict=True))
    if isinstance(first, torch.nn.Module):
        state, same = first.state_dict(), second.state_dict()
        assert state.keys() == same.keys()
        assert all(torch.equal(state[key], same[key]) for key in state)


@pytest.mark.parametrize("name", sorted(GALLERY))
def test_example_describes_itself_without_torch(name: str) -> None:
    """The start page reads these with ``ast``: they must be literals, and options need literal defaults."""
    source = importlib.resources.files("resources.examples").joinpath(f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    literals = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id in {"TITLE", "DESCRIPTION", "TRAINING"}
    }
    assert isinstance(literals["TITLE"], str)
    assert isinstance(literals["DESCRIPTION"], str)
    assert isinstance(literals["TRAINING"], bool)
    function = getattr(importlib.import_module(f"resources.examples.{name}"), name)
    for parameter in inspect.signature(function).parameters.values():
        assert type(parameter.default) in (int, float, str), parameter


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dtype_option_reaches_weights_and_inputs(dtype: str) -> None:
    model, (x,), _ = build("mlp", dtype=dtype, width=64, layers=1)
    assert x.dtype == getattr(torch, dtype)
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(torch, dtype)}
