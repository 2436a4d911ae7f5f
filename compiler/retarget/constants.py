"""Tensors that a model made while it was traced on the CPU, brought to the target as they are there."""

from __future__ import annotations

from operator import setitem
from typing import Any

import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

aten = torch.ops.aten
_LIFTS = (aten.lift_fresh_copy.default, aten.lift_fresh.default)


def on_target(module: fx.GraphModule, node: fx.Node, copied: fx.Node, device: torch.device) -> fx.Node:
    """What stands for a node of ``module`` in the graph of its copy: another where it is a constant.

    Tensors are made on the CPU and copied to the device; those of one number stay, as torch keeps them there. A number
    that is set (``x[i] = number``) is made where ``x`` is, and traced as a constant where that is the CPU.
    """
    source = _constant_behind(node)
    value = _attribute(module, str(source.target)) if source is not None else None
    if not isinstance(value, Tensor) or value.device == device:
        return copied
    if value.dim() == 0:
        return _number_on(copied, value, device) if _is_set(node) else copied
    moved: fx.Node = copied.graph.call_function(torch.ops.prims.device_put.default, (copied, device))
    moved.meta = dict(copied.meta)
    return moved


def _constant_behind(node: fx.Node) -> fx.Node | None:
    """The constant that a node lifts into the graph, or is, where nothing lifts it."""
    if node.target in _LIFTS:
        (source,) = node.all_input_nodes
        return source if source.op == "get_attr" else None
    return node if node.op == "get_attr" and not any(user.target in _LIFTS for user in node.users) else None


def _is_set(node: fx.Node) -> bool:
    called = node.meta.get("source_fn_stack") or [("", None)]
    return called[-1][1] is setitem


def _number_on(copied: fx.Node, number: Tensor, device: torch.device) -> fx.Node:
    """The number as a tensor made on the device, in place of a constant."""
    with unset_fake_temporarily():
        value = number.item()
    keywords: dict[str, Any] = {"dtype": number.dtype, "layout": torch.strided, "device": device, "pin_memory": False}
    made: fx.Node = copied.graph.call_function(aten.full.default, ([], value), keywords)
    made.meta = {**copied.meta, "original_aten": made.target}
    copied.graph.erase_node(copied)
    return made


def _attribute(module: fx.GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return value
