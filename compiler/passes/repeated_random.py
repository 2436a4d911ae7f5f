"""Random ops that a backward repeats (activation checkpointing), as AOTAutograd's partitioner leaves them.

It wraps them so that both halves draw from the same state of the generator, and says nothing of what the wrapped calls
return.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

_OF_THE_ORIGIN = ("stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "seq_nr")


def fill_in(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph itself, in which such a call has the values of its op, and the place of what reads it."""
    for node in graph.graph.nodes:
        if getattr(node.target, "__name__", "") == "graphsafe_run_with_rng_state" and "val" not in node.meta:
            reader = next(iter(node.users), node)
            node.meta.update({key: reader.meta[key] for key in _OF_THE_ORIGIN if key in reader.meta})
            node.meta["val"] = _value(node)
    return graph


def _value(node: torch.fx.Node) -> Any:
    (op, *args), kwargs = pytree.tree_map_only(
        torch.fx.Node, lambda n: n.meta["val"], (node.args, {k: v for k, v in node.kwargs.items() if k != "rng_state"})
    )
    mode = next(t.fake_mode for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, FakeTensor))
    with mode, torch.no_grad():
        return op(*args, **kwargs)
