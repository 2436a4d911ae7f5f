"""Graphs rewritten node by node so that some values get other strides than the capture saw.

What reads such a value follows by torch's own stride rules, where its numbers do not depend on strides; in front of
anything else, and of the graph's outputs, a copy gives back the strides that were captured.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.utils import _pytree as pytree

aten = torch.ops.aten

# Ops whose values do not depend on the strides of their inputs and whose results torch lays out by them.
FOLLOWS = frozenset(
    {
        aten.clone,
        aten._to_copy,
        aten.convolution,
        aten._native_batch_norm_legit_no_training,
        aten.max_pool2d_with_indices,
        aten.avg_pool2d,
        aten._adaptive_avg_pool2d,
        aten.upsample_nearest2d,
        aten.upsample_bilinear2d,
        aten.constant_pad_nd,
        aten.cat,
        aten.mean,
        aten.sum,
        aten.amax,
        aten.amin,
        aten.var_mean,
        aten.permute,
        aten.transpose,
        aten.unsqueeze,
        aten.squeeze,
        aten.slice,
        aten.select,
        aten.expand,
        aten.split,
        aten.split_with_sizes,
        aten.copy_,
    }
)
VIEWS = frozenset({aten.view, aten._unsafe_view, aten.reshape})


def is_static(graph: torch.fx.GraphModule) -> bool:
    """Whether every size in the graph is a number."""
    values = pytree.tree_leaves([n.meta.get("val") for n in graph.graph.nodes])
    return not any(isinstance(v, torch.SymInt) for v in values) and all(
        isinstance(s, int) for v in values if isinstance(v, torch.Tensor) for s in v.shape
    )


class Restriding:
    """One rewriting. A subclass says in ``replaced`` or ``operands`` what gets other strides."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.old = graph
        self.new = torch.fx.Graph()
        self.made: dict[torch.fx.Node, torch.fx.Node] = {}
        self.mode = detect_fake_mode([n.meta.get("val") for n in graph.graph.nodes])

    def run(self) -> torch.fx.GraphModule:
        """The rewritten graph. Its outputs have the strides that they had."""
        for node in self.old.graph.nodes:
            self.made[node] = self._output(node) if node.op == "output" else self.replaced(node) or self._copy(node)
        rewritten = torch.fx.GraphModule(self.old, self.new)
        rewritten.meta.update(self.old.meta)
        return rewritten

    def replaced(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """What stands for ``node`` in the new graph, of the same values; None where that is a copy of it."""
        return None

    def operands(self, node: torch.fx.Node) -> dict[torch.fx.Node, torch.fx.Node]:
        """What a copy of ``node`` reads in place of each of its inputs."""
        return {n: self.made[n] for n in node.all_input_nodes}

    def follows(self, node: torch.fx.Node) -> bool:
        """Whether ``node`` may read inputs of any strides, and torch's rules say which its result gets then."""
        if node.target is operator.getitem:
            return True
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        packet = node.target.overloadpacket
        return torch.Tag.pointwise in node.target.tags or packet in FOLLOWS or packet in VIEWS

    def _copy(self, node: torch.fx.Node) -> torch.fx.Node:
        replaced = self.operands(node)
        packet = getattr(node.target, "overloadpacket", None)
        changed = [n for n in node.all_input_nodes if strides(replaced[n]) != strides(n)]
        if changed and not self.follows(node):
            for operand in changed:
                replaced[operand] = self._restored(replaced[operand], operand)
            changed = []
        if changed and packet in VIEWS and not self._can_view(node, replaced):
            replaced[changed[0]] = self._restored(replaced[changed[0]], changed[0])
            changed = []
        copied: torch.fx.Node = self.new.node_copy(node, lambda n: replaced[n])
        if changed:
            copied.meta["val"] = self._value(copied)
        return copied

    def _restored(self, value: torch.fx.Node, like: torch.fx.Node) -> torch.fx.Node:
        """``value`` with the strides that it had."""
        old = like.meta["val"]
        order = sorted(range(old.dim()), key=lambda d: (-old.stride(d), d))
        if not old.permute(order).is_contiguous():  # gaps between its elements
            room = self.call(aten.empty_strided.default, (old.shape, old.stride()), like, _like(old))
            return self.call(aten.copy.default, (room, value), like)
        if order == list(range(old.dim())):
            return self.clone(value, like, torch.contiguous_format)
        inverse = [order.index(d) for d in range(old.dim())]
        copy = self.clone(self.call(aten.permute.default, (value, order), like), like, torch.contiguous_format)
        return self.call(aten.permute.default, (copy, inverse), like)

    def clone(self, value: torch.fx.Node, origin: torch.fx.Node, memory_format: torch.memory_format) -> torch.fx.Node:
        """A copy of ``value``, for ``origin``'s sake."""
        return self.call(aten.clone.default, (value,), origin, {"memory_format": memory_format})

    def call(
        self, target: Any, args: tuple[Any, ...], origin: torch.fx.Node, kwargs: dict[str, Any] | None = None
    ) -> torch.fx.Node:
        """A new node, traced back to where ``origin`` comes from."""
        node = self.new.call_function(target, args, kwargs or {})
        node.meta = {k: v for k, v in origin.meta.items() if k in ("stack_trace", "nn_module_stack", "source_fn_stack")}
        node.meta["val"] = self._value(node)
        return node

    def _value(self, node: torch.fx.Node) -> Any:
        args, kwargs = pytree.tree_map_only(torch.fx.Node, lambda n: n.meta["val"], (node.args, node.kwargs))
        assert callable(node.target)
        if self.mode is None:
            return node.target(*args, **kwargs)
        with self.mode, torch.no_grad():
            return node.target(*args, **kwargs)

    def _can_view(self, node: torch.fx.Node, replaced: dict[torch.fx.Node, torch.fx.Node]) -> bool:
        source = node.args[0]
        assert isinstance(source, torch.fx.Node)
        assert self.mode is not None
        size = pytree.tree_map_only(torch.fx.Node, lambda n: n.meta["val"], node.args[1])
        try:
            with self.mode:
                replaced[source].meta["val"].view(size)
        except (RuntimeError, ValueError):
            return False
        return True

    def _output(self, node: torch.fx.Node) -> torch.fx.Node:
        def result(old: torch.fx.Node) -> torch.fx.Node:
            value = self.made[old]
            return value if strides(value) == strides(old) else self._restored(value, old)

        output: torch.fx.Node = self.new.output(pytree.tree_map_only(torch.fx.Node, result, node.args[0]))
        return output


def _like(tensor: torch.Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "device": tensor.device}


def strides(node: torch.fx.Node) -> list[tuple[int, ...]]:
    """Of every tensor that the node stands for."""
    values = pytree.tree_leaves(node.meta.get("val"))
    return [v.stride() for v in values if isinstance(v, torch.Tensor)]
