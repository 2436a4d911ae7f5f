"""Which inputs of a backward graph its kernels may write over: saved tensors that nobody else can see.

AOTAutograd calls them donated: intermediates of the forward that share memory with none of its inputs, its results and
the gradients. A backward that has some runs only once (AOTAutograd refuses ``retain_graph`` then), so that what they
held is not asked for again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from compiler.dynamo.static_inputs import aot_metadata, storage_of

_MARK = "fusescope_donated"  # in the meta of a placeholder


def mark_donated_inputs(graph: torch.fx.GraphModule) -> None:
    """Mark the donated inputs of a backward graph. Asked while AOTAutograd compiles it.

    Two saved tensors may be views of the same memory: such are left out.
    """
    metadata = aot_metadata()
    positions = getattr(metadata, "bw_donated_idxs", None) or []
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    holders = Counter(storage_of(node) for node in placeholders)
    for position in positions:
        node = placeholders[position]
        storage = storage_of(node)
        if storage is not None and holders[storage] == 1 and not _is_given(node):
            node.meta[_MARK] = True


def mark_donated_between(forward: torch.fx.GraphModule, backward: torch.fx.GraphModule, returned: int) -> None:
    """Mark the donated inputs of a backward graph by AOTAutograd's rules, where it does not look at these graphs.

    ``returned`` counts the forward's outputs that are not saved for the backward.
    """
    if not torch._functorch.config.donated_buffer:
        return
    given = forward.graph.find_nodes(op="placeholder")
    results = [*_outputs(forward)[:returned], *_outputs(backward)]
    seen = {storage_of(node) for node in (*given, *results) if isinstance(node, torch.fx.Node)}
    placeholders = backward.graph.find_nodes(op="placeholder")
    holders = Counter(storage_of(node) for node in placeholders)
    for node in placeholders:
        storage = storage_of(node)
        if storage is not None and holders[storage] == 1 and storage not in seen and not _is_given(node):
            node.meta[_MARK] = True


def donated_inputs(graph: torch.fx.GraphModule) -> frozenset[str]:
    """The names of the inputs that were marked."""
    return frozenset(node.name for node in graph.graph.nodes if node.op == "placeholder" and node.meta.get(_MARK))


def _is_given(node: torch.fx.Node) -> bool:
    """Whether an input of a backward graph was not made by its forward."""
    return node.name.startswith(("primals", "tangents"))


def _outputs(graph: torch.fx.GraphModule) -> list[Any]:
    (output,) = graph.graph.find_nodes(op="output")
    results: Any = output.args[0]
    return list(results)
