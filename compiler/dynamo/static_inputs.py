"""Which inputs of an ATen graph are parameters and buffers: Dynamo hands them in like any other, but they stay put."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import TracingContext

_MARK, _MOVES = "fusescope_static", "fusescope_moves"  # in the meta of a placeholder


def aot_metadata() -> Any:
    """What AOTAutograd found out about the graph that it is compiling, or None."""
    context = TracingContext.try_get()
    return context.fw_metadata if context is not None else None


def _static_in_forward() -> set[int]:
    return set(getattr(aot_metadata(), "static_input_indices", None) or [])


def mark_static_inputs(graph: torch.fx.GraphModule, kind: str) -> frozenset[int]:
    """Positions of parameters and buffers among a graph's inputs: their addresses stay. Their nodes are marked.

    Asked while AOTAutograd compiles the graph. In a backward graph these are the saved ``primals`` that were static in
    the forward.
    """
    indices = _static_in_forward()
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


def mark_views_of_inputs(forward: torch.fx.GraphModule, backward: torch.fx.GraphModule) -> None:
    """Mark what a backward graph is given that lies in memory of an input of its forward that is not static: it moves
    with that input. Asked while AOTAutograd cuts the two apart."""
    static = _static_in_forward()
    given = enumerate(forward.graph.find_nodes(op="placeholder"))
    moving = {storage_of(node) for index, node in given if index not in static} - {None}
    for node in backward.graph.find_nodes(op="placeholder"):
        if storage_of(node) in moving:
            node.meta[_MOVES] = True


def made_by_forward(graph: torch.fx.GraphModule) -> frozenset[int]:
    """Positions of a backward graph's inputs that the forward's CUDA Graph leaves where it left them before."""
    return frozenset(
        index
        for index, node in enumerate(graph.graph.find_nodes(op="placeholder"))
        if not node.name.startswith(("tangents", "primals")) and not node.meta.get(_MOVES)
    )


def storage_of(node: torch.fx.Node) -> int | None:
    """What tells the memory of a node's value from others' while it is traced; None where it is no strided tensor."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return int(value.untyped_storage()._cdata)
