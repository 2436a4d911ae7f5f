"""Attention calls as the target makes them, where the CPU's kernel was recorded."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from compiler.report import Target

aten = torch.ops.aten
_FORWARD = aten._scaled_dot_product_flash_attention_for_cpu.default
_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
_FLASH_HEAD_DIM = 256  # the widest head that the flash kernels take


class AttentionRules:
    """Rewrites attention while a graph is copied into ``graph``."""

    def __init__(self, graph: fx.Graph, target: Target, *, training: bool) -> None:
        self._graph = graph
        self._target = target
        self._training = training
        self._chosen: dict[fx.Node, str] = {}  # the new forward call -> "flash", "efficient"

    def rewrite(self, node: fx.Node, env: Mapping[fx.Node, fx.Node]) -> fx.Node | None:
        """The node's replacement in the new graph; None where the node is no attention call."""
        if node.target is _FORWARD:
            return self._forward(node, env)
        if node.target is _BACKWARD:
            return self._backward(node, env)
        return None

    def _forward(self, node: fx.Node, env: Mapping[fx.Node, fx.Node]) -> fx.Node:
        call = _bound(node, env, ("query", "key", "value", "dropout_p", "is_causal"))
        query, key, value = call["query"], call["key"], call["value"]
        mask, scale = call.get("attn_mask"), call.get("scale")
        dropout, causal = call.get("dropout_p", 0.0), call.get("is_causal", False)
        if self._flash(node, mask):
            arguments: tuple[Any, ...] = (query, key, value, dropout, causal)
            new = self._call(aten._scaled_dot_product_flash_attention.default, arguments, scale, node)
            self._chosen[new] = "flash"
        else:
            arguments = (query, key, value, mask, self._training, dropout, causal)
            new = self._call(aten._scaled_dot_product_efficient_attention.default, arguments, scale, node)
            self._chosen[new] = "efficient"
        return new

    def _call(self, target: Any, arguments: tuple[Any, ...], scale: Any, node: fx.Node) -> fx.Node:
        """A call in place of ``node``, named as tracing on the target would name it."""
        name = target.overloadpacket.__name__
        new = self._graph.create_node("call_function", target, arguments, {"scale": scale}, name=name)
        new.meta = {**node.meta, "original_aten": target}
        return new

    def _flash(self, node: fx.Node, mask: Any) -> bool:
        """The flash kernels take half precision and no mask; NVIDIA's need compute capability 8.0."""
        query: Any = node.args[0]
        value = query.meta["val"]
        capable = self._target.backend == "hip" or int(self._target.arch) >= 80
        half = value.dtype in (torch.float16, torch.bfloat16)
        return half and mask is None and capable and value.shape[-1] <= _FLASH_HEAD_DIM

    def _backward(self, node: fx.Node, env: Mapping[fx.Node, fx.Node]) -> fx.Node:
        names = ("grad_out", "query", "key", "value", "out", "logsumexp", "dropout_p", "is_causal")
        call = _bound(node, env, names)
        forward: Any = call["logsumexp"].args[0]
        meta = {k: v for k, v in forward.meta.items() if k != "val"}

        def saved(index: int) -> fx.Node:
            item = self._graph.call_function(operator.getitem, (forward, index))
            item.meta = dict(meta)
            return item

        scale = call.get("scale")
        shared = [call[n] for n in ("grad_out", "query", "key", "value")]
        if self._chosen[forward] == "flash":
            # no offsets where all sequences are as long; lengths are constants of the call where they are known
            lengths = [_length(node, position) for position in (1, 2)]
            counts = [n if isinstance(n, int) else saved(index) for n, index in zip(lengths, (4, 5), strict=True)]
            arguments = [*shared, call["out"], call["logsumexp"], None, None, *counts]
            arguments += [call["dropout_p"], call["is_causal"], saved(6), saved(7)]
            target = aten._scaled_dot_product_flash_attention_backward.default
        else:
            mask = call.get("attn_mask")
            arguments = [*shared, mask, call["out"], call["logsumexp"], saved(2), saved(3)]
            arguments += [call["dropout_p"], [True, True, True, False], call["is_causal"]]
            target = aten._scaled_dot_product_efficient_attention_backward.default
        return self._call(target, tuple(arguments), scale, node)


def _length(backward: fx.Node, position: int) -> Any:
    """The sequence length of the query (1) or key (2) of a backward call."""
    argument: Any = backward.args[position]
    return argument.meta["val"].shape[-2]


def _bound(node: fx.Node, env: Mapping[fx.Node, fx.Node], names: tuple[str, ...]) -> dict[str, Any]:
    """The call's arguments by name, as nodes of the new graph."""
    arguments = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return {name: env[a] if isinstance(a, fx.Node) else a for name, a in arguments.items()}
