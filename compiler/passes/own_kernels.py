"""Launches of the model's own Triton kernels as calls that return a tuple.

Dynamo captures a launch as one call that copies what the kernel writes, launches it, and returns the copies by the
names of the kernel's parameters; all the rest here knows results by their number.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._higher_order_ops.triton_kernel_wrap import (
    kernel_side_table,
    triton_kernel_wrapper_functional,
    triton_kernel_wrapper_mutation,
)

KERNEL = "fusescope_kernel"  # in the meta of a launch: the kernel's name


def launch_of_own_kernel(**launch: Any) -> tuple[Any, ...]:
    """What the kernel writes, in the order of ``tensors_to_clone``."""
    results = triton_kernel_wrapper_functional(**launch)
    return tuple(results[name] for name in launch["tensors_to_clone"])


def with_own_kernels(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph itself, its launches made such calls."""
    launches = [node for node in graph.graph.nodes if node.target is triton_kernel_wrapper_functional]
    for node in launches:
        names: Any = node.kwargs["tensors_to_clone"]
        node.target = launch_of_own_kernel
        node.meta["val"] = tuple(node.meta["val"][name] for name in names)
        node.meta[KERNEL] = _kernel_name(node)
        for reader in list(node.users):
            if reader.target is operator.getitem:
                reader.args = (node, names.index(reader.args[1]))
    if launches:
        graph.recompile()
    return graph


def own_kernel_of(node: torch.fx.Node) -> str | None:
    """The name of the model's own Triton kernel that a node launches, "" where torch has forgotten it by now; None for
    any other node."""
    if node.target in (triton_kernel_wrapper_functional, triton_kernel_wrapper_mutation):
        return _kernel_name(node)
    name: str | None = node.meta.get(KERNEL)
    return name


def _kernel_name(launch: torch.fx.Node) -> str:
    index: Any = launch.kwargs["kernel_idx"]
    kernel: Any = kernel_side_table.id_to_kernel.get(index)  # torch._dynamo.reset() empties the table
    return str(getattr(kernel, "__name__", "") or getattr(getattr(kernel, "fn", None), "__name__", ""))
