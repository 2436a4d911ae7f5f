"""A minified graph as a Python file: a module, and a function that makes it with inputs on which it fails."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

import torch

from compiler.minify import Check, Minified

LITERAL_ELEMENTS = 64  # up to so many, a tensor's own values are written down


def minified_source(found: Minified, check: Check, *, source: str, command: str) -> str:
    """The file's text. Inputs are drawn at random where the graph fails on such too, else written down.

    ``command`` is the command that shows the failure ("compile" or "verify").
    """
    names = [node.name for node in found.graph.graph.find_nodes(op="placeholder")]
    drawn = [_drawn(value) for value in found.inputs]
    texts = drawn if _fails_with(found, drawn, check) else [_written(value) for value in found.inputs]
    body = textwrap.indent(found.graph.code.strip(), "    ")
    if names:  # constants are made where the inputs are: inputs are moved to the target's device, literals are not
        body = re.sub(r"device\(type='\w+'(, index=\d+)?\)", f"{names[0]}.device", body)
    made = "".join(f"        {text},  # {name}\n" for name, text in zip(names, texts, strict=True))
    return f'''"""{found.nodes} of the {found.nodes_before} calls of a graph ({found.region}) of {source}, which fails:

    {found.failure.text.splitlines()[0]}

To see it: python main.py {command} THIS_FILE.py
"""

import torch
from torch import device, inf, nan  # names that the graph's code may use


class Minified(torch.nn.Module):
{body}


def minified():
    """The model and inputs on which it fails."""
    torch.manual_seed(0)
    inputs = (
{made}    )
    return Minified(), inputs
'''


def _fails_with(found: Minified, texts: Sequence[str], check: Check) -> bool:
    """Whether the graph fails in the same way on inputs made by these expressions."""
    names = {"torch": torch, "inf": torch.inf, "nan": torch.nan}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            values = [eval(text, names).to(value.device) for text, value in zip(texts, found.inputs, strict=True)]
            again = check(found.graph, values)
        except Exception:
            return False
    return again is not None and again.kind == found.failure.kind


def _drawn(value: torch.Tensor) -> str:
    """An expression for random values of the same size, strides and dtype, integers within the same bounds."""
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return _laid_out(value, lambda n: f"torch.randn({n}, dtype={value.dtype})")
    low, high = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
    return _laid_out(value, lambda n: f"torch.randint({low}, {high + 1}, ({n},), dtype={value.dtype})")


def _written(value: torch.Tensor) -> str:
    """An expression for the values themselves where they are few, else for random ones."""
    if value.numel() > LITERAL_ELEMENTS:
        return _drawn(value)
    memory = value.as_strided((_extent(value),), (1,)).tolist()
    return _laid_out(value, lambda n: f"torch.tensor({memory}, dtype={value.dtype})")


def _laid_out(value: torch.Tensor, make: Callable[[int], str]) -> str:
    """``make(elements of memory)`` seen with the tensor's size and strides."""
    text = make(_extent(value))
    if value.dim() == 1 and value.is_contiguous():
        return text
    if value.is_contiguous():
        return f"{text}.reshape({tuple(value.shape)})"
    return f"{text}.as_strided({tuple(value.shape)}, {tuple(value.stride())})"


def _extent(value: torch.Tensor) -> int:
    """Elements of memory from the tensor's first to its last."""
    if not value.numel():
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
