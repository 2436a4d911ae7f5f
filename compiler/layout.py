"""Channels-last convolutions: cuDNN's tensor-core kernels want the channels innermost, and transpose what is not.

The pass rewrites an inference graph so that convolutions read and write channels-last tensors. What lies between two
of them (normalisation, activations, pooling, residual sums) follows by torch's own stride rules, so that one copy at
the first convolution and one where the order of strides matters again are all that is added. Graphs that train keep
their strides, for the backward graph was traced with them.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.utils import _pytree as pytree

from compiler.report import Target

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


# A weight this many times as large as what its convolution reads and writes stays as it is: cuDNN then transposes it in
# its workspace, which is no slower than a copy of it beforehand, and is gone as soon as the call returns.
HEAVY = 8
FEW_CHANNELS = 4  # tensor cores take more at a time: cuDNN pads such an input, which costs a copy and memory


def wants_channels_last(graph: torch.fx.GraphModule, target: Target) -> bool:
    """Whether the graph has 2-D convolutions of known sizes that cuDNN would run on tensor cores."""
    if target.backend != "cuda":
        return False
    tf32 = torch.get_float32_matmul_precision() != "highest" or torch.backends.cudnn.allow_tf32
    fast = {torch.float16, torch.bfloat16, *([torch.float32] if tf32 else [])}
    found = [n for n in graph.graph.nodes if n.target is aten.convolution.default and _is_2d(n)]
    grouped = [n for n in found if n.args[8] != 1]
    if len(grouped) == len(found) or not all(n.meta["val"].dtype in fast for n in found) or not _is_static(graph):
        return False
    return any(_weight_of(n).shape[1] > FEW_CHANNELS and not _is_heavy(n) for n in found)


def _weight_of(convolution: torch.fx.Node) -> torch.Tensor:
    weight: torch.Tensor = convolution.args[1].meta["val"]  # type: ignore[union-attr]
    return weight


def _is_heavy(convolution: torch.fx.Node) -> bool:
    read: torch.Tensor = convolution.args[0].meta["val"]  # type: ignore[union-attr]
    written: torch.Tensor = convolution.meta["val"]
    return _weight_of(convolution).numel() > HEAVY * (read.numel() + written.numel())


def _is_2d(node: torch.fx.Node) -> bool:
    return len(node.meta["val"].shape) == 4


def _is_static(graph: torch.fx.GraphModule) -> bool:
    values = pytree.tree_leaves([n.meta.get("val") for n in graph.graph.nodes])
    return not any(isinstance(v, torch.SymInt) for v in values) and all(
        isinstance(s, int) for v in values if isinstance(v, torch.Tensor) for s in v.shape
    )


def channels_last(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same computation with channels-last convolutions. Its outputs keep the strides that they had."""
    return _Rewriter(graph).run()


class _Rewriter:
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.old = graph
        self.new = torch.fx.Graph()
        self.made: dict[torch.fx.Node, torch.fx.Node] = {}
        self.mode = detect_fake_mode([n.meta.get("val") for n in graph.graph.nodes])

    def run(self) -> torch.fx.GraphModule:
        for node in self.old.graph.nodes:
            self.made[node] = self._output(node) if node.op == "output" else self._copy(node)
        rewritten = torch.fx.GraphModule(self.old, self.new)
        rewritten.meta.update(self.old.meta)
        return rewritten

    def _copy(self, node: torch.fx.Node) -> torch.fx.Node:
        replaced: dict[torch.fx.Node, torch.fx.Node] = {n: self.made[n] for n in node.all_input_nodes}
        packet = getattr(node.target, "overloadpacket", None)
        convolution = packet is aten.convolution and _is_2d(node)
        stays = convolution and _is_heavy(node)
        if convolution and not stays:
            for operand in node.args[:2]:
                assert isinstance(operand, torch.fx.Node)
                replaced[operand] = self._in_channels_last(replaced[operand], node)
        changed = [n for n in node.all_input_nodes if _strides(replaced[n]) != _strides(n)]
        if changed and (stays or not self._follows(node)):
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

    def _follows(self, node: torch.fx.Node) -> bool:
        if node.target is operator.getitem:
            return True
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        packet = node.target.overloadpacket
        return torch.Tag.pointwise in node.target.tags or packet in FOLLOWS or packet in VIEWS

    def _in_channels_last(self, value: torch.fx.Node, reader: torch.fx.Node) -> torch.fx.Node:
        if value.meta["val"].is_contiguous(memory_format=torch.channels_last):
            return value
        return self._clone(value, reader, torch.channels_last)

    def _restored(self, value: torch.fx.Node, like: torch.fx.Node) -> torch.fx.Node:
        """``value`` with the strides that it had."""
        old = like.meta["val"]
        order = sorted(range(old.dim()), key=lambda d: (-old.stride(d), d))
        if not old.permute(order).is_contiguous():  # gaps between its elements
            room = self._call(aten.empty_strided.default, (old.shape, old.stride()), like, _like(old))
            return self._call(aten.copy.default, (room, value), like)
        if order == list(range(old.dim())):
            return self._clone(value, like, torch.contiguous_format)
        inverse = [order.index(d) for d in range(old.dim())]
        copy = self._clone(self._call(aten.permute.default, (value, order), like), like, torch.contiguous_format)
        return self._call(aten.permute.default, (copy, inverse), like)

    def _clone(self, value: torch.fx.Node, origin: torch.fx.Node, memory_format: torch.memory_format) -> torch.fx.Node:
        return self._call(aten.clone.default, (value,), origin, {"memory_format": memory_format})

    def _call(
        self, target: Any, args: tuple[Any, ...], origin: torch.fx.Node, kwargs: dict[str, Any] | None = None
    ) -> torch.fx.Node:
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
        try:
            with self.mode:
                replaced[source].meta["val"].view(node.args[1])
        except (RuntimeError, ValueError):
            return False
        return True

    def _output(self, node: torch.fx.Node) -> torch.fx.Node:
        def result(old: torch.fx.Node) -> torch.fx.Node:
            value = self.made[old]
            return value if _strides(value) == _strides(old) else self._restored(value, old)

        output: torch.fx.Node = self.new.output(pytree.tree_map_only(torch.fx.Node, result, node.args[0]))
        return output


def _like(tensor: torch.Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "device": tensor.device}


def _strides(node: torch.fx.Node) -> list[tuple[int, ...]]:
    values = pytree.tree_leaves(node.meta.get("val"))
    return [v.stride() for v in values if isinstance(v, torch.Tensor)]
