"""An ATen graph that was traced on CPU tensors, rewritten to what tracing on the target would have given.

Autograd cannot run over fake CUDA tensors where torch was built without CUDA, so models are traced on the CPU and the
finished graph is moved: placeholders become fake tensors on the target, devices among the arguments change, attention
becomes the call that the target chooses, and every value is propagated again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.utils import _pytree as pytree

from compiler.inductor.attention import AttentionRules
from compiler.report import Target


def retarget(
    graph: fx.GraphModule,
    device: torch.device,
    target: Target,
    mode: FakeTensorMode,
    *,
    training: bool,
    staying: Collection[int] = (),
) -> fx.GraphModule:
    """A copy of ``graph`` on ``device``, with values from ``mode``.

    Args:
        training: the graph's attention has a backward.
        staying: positions of the inputs that are left on the CPU.
    """
    moved = fx.Graph()
    attention = AttentionRules(moved, target, training=training)
    env: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        replaced = attention.rewrite(node, env)
        if replaced is None:
            replaced = moved.node_copy(node, env.__getitem__)
            replaced.args = _moved_arguments(replaced.args, device)
            replaced.kwargs = _moved_arguments(replaced.kwargs, device)
        if node.op == "get_attr":
            replaced = _constant_on(moved, graph, replaced, device)
        env[node] = replaced
    result = fx.GraphModule(graph, moved)
    result.meta = dict(graph.meta)
    placeholders = [node for node in moved.nodes if node.op == "placeholder"]
    # fake constants would do as well, but Inductor reads the values of small ones
    inputs = [
        node.meta.get("val") if i in staying else on_device(node.meta.get("val"), device, mode)
        for i, node in enumerate(placeholders)
    ]

    def retarget_inner(inner: fx.GraphModule, staying: Collection[int]) -> fx.GraphModule:
        return retarget(inner, device, target, mode, training=training, staying=staying)

    with torch.no_grad():
        _Propagation(result, device, mode, retarget_inner).propagate_dont_convert_inputs(*inputs)
    moved.set_codegen(copy.copy(graph.graph._codegen))  # nested arguments, where the graph takes such
    result.recompile()
    described = any("tensor_meta" in node.meta for node in moved.nodes)
    for node in moved.nodes:
        value = node.meta.get("val")
        if described and isinstance(value, Tensor):
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)
    return result


class _Propagation(FakeTensorProp):
    """Computes every value again; one with sizes that only its data tell is moved, and keeps its symbols.

    ``retarget_inner`` moves what a branch or a loop runs, given which of its inputs stay on the CPU.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        device: torch.device,
        mode: FakeTensorMode,
        retarget_inner: Callable[[fx.GraphModule, Collection[int]], fx.GraphModule],
    ) -> None:
        super().__init__(graph, mode)
        self._device, self._mode_of_values = device, mode
        self._retarget_inner = retarget_inner
        self._moved_graphs: set[fx.Node] = set()

    def run_node(self, node: fx.Node) -> Any:
        for source in node.all_input_nodes:
            inner = self.env.get(source)
            if isinstance(inner, fx.GraphModule) and source not in self._moved_graphs:
                self._moved_graphs.add(source)
                self.env[source] = self._retarget_inner(inner, self._staying(node, inner))
                setattr(self.module, str(source.target), self.env[source])
        if node.meta.get("unbacked_bindings"):
            node.meta["val"] = on_device(node.meta["val"], self._device, self._mode_of_values)
            return node.meta["val"]
        return super().run_node(node)

    def _staying(self, call: fx.Node, inner: fx.GraphModule) -> list[int]:
        """Which inputs of a graph that ``call`` runs lie on the CPU: the last of the call's operands are its inputs."""
        count = sum(node.op == "placeholder" for node in inner.graph.nodes)
        operands = pytree.tree_leaves(self.fetch_args_kwargs_from_env(call))
        inputs = operands[len(operands) - count :]
        return [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.device.type == "cpu"]


def on_device(value: Any, device: torch.device, mode: FakeTensorMode) -> Any:
    """Fake tensors of ``value`` (or of what is nested in it) as ones of the same layout on ``device``."""

    def move(tensor: Tensor) -> Tensor:
        with mode:
            fresh = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
        fresh._is_param = isinstance(tensor, torch.nn.Parameter)
        return fresh

    return pytree.tree_map_only(Tensor, move, value)


def _moved_arguments(arguments: Any, device: torch.device) -> Any:
    return fx.node.map_aggregate(arguments, lambda a: device if isinstance(a, torch.device) and a.type == "cpu" else a)


def _constant_on(graph: fx.Graph, module: fx.GraphModule, node: fx.Node, device: torch.device) -> fx.Node:
    """A tensor that the model made on the CPU while it was traced reaches the target by a copy, as it does there."""
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    if not isinstance(value, Tensor) or value.dim() == 0 or value.device == device:
        return node
    copy = graph.call_function(torch.ops.prims.device_put.default, (node, device))
    copy.meta = dict(node.meta)
    return copy
