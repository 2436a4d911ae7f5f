"""Which inputs of an ATen graph are parameters and buffers: Dynamo hands them in like any other, but they stay put."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import TracingContext

_MARK = "fusescope_static"  # in the meta of a placeholder


def aot_metadata() -> Any:
    """What AOTAutograd found out about the graph that it is compiling, or None."""
    context = TracingContext.try_get()
    return context.fw_metadata if context is not None else None


def mark_static_inputs(graph: torch.fx.GraphModule, kind: str) -> frozenset[int]:
    """Positions of parameters and buffers among a graph's inputs: their addresses stay. Their nodes are marked.

    Asked while AOTAutograd compiles the graph. In a backward graph these are the saved ``primals`` that were static in
    the forward.
    """
    indices = set(getattr(aot_metadata(), "static_input_indices", None) or [])
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if kind == "backward":
        names = {f"primals_{i + 1}" for i in indices}
        indices = {i for i, node in enumerate(placeholders) if node.name in names}
    found = frozenset(index for index in indices if index < len(placeholders))
    for index in found:
        placeholders[index].meta[_MARK] = True
    return found


def is_static(node: torch.fx.Node) -> bool:
    """Whether an input is a parameter or buffer, as far as ``mark_static_inputs`` was asked."""
    return bool(node.meta.get(_MARK)) or isinstance(node.meta.get("val"), torch.nn.Parameter)
