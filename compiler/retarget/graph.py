"""An ATen graph that was traced on CPU tensors, rewritten to what tracing on the target would have given.

Autograd cannot run over fake CUDA tensors where torch was built without CUDA, so models are traced on the CPU and the
finished graph is moved: placeholders become fake tensors on the target, devices among the arguments change, ops that
are taken apart in another way on another device are taken apart now (``decompositions.py``), and every value is
propagated again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, fx
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode, UnsupportedOperatorException
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.utils import _pytree as pytree

from compiler.patching import replaced
from compiler.retarget.constants import on_target
from compiler.retarget.decompositions import TakenApart


def retarget(
    graph: fx.GraphModule,
    device: torch.device,
    mode: FakeTensorMode,
    *,
    decompositions: Mapping[Any, Callable[..., Any]] = MappingProxyType({}),
    staying: Collection[int] = (),
) -> fx.GraphModule:
    """A copy of ``graph`` on ``device``, with values from ``mode``.

    Args:
        decompositions: the rules for ops that were left whole until their device is known, and for what these make.
        staying: positions of the inputs that are left on the CPU.
    """
    moved = fx.Graph()
    pieces = TakenApart(moved, decompositions, lambda value: on_device(value, device, mode))
    env: dict[fx.Node, Any] = {}
    for node in graph.graph.nodes:
        if pieces.replaces(node, env):
            continue
        copied = moved.node_copy(node, env.__getitem__)
        copied.args = _moved_arguments(copied.args, device)
        copied.kwargs = _moved_arguments(copied.kwargs, device)
        if "eager_input_vals" in copied.meta:  # operands as the model gave them, by which Inductor calls some ops
            copied.meta["eager_input_vals"] = on_device(copied.meta["eager_input_vals"], device, mode)
        env[node] = on_target(graph, node, copied, device)
    for node in moved.find_nodes(op="get_attr"):
        if not node.users:
            moved.erase_node(node)
    result = fx.GraphModule(graph, moved)
    result.meta = dict(graph.meta)
    placeholders = [node for node in moved.nodes if node.op == "placeholder"]
    # fake constants would do as well, but Inductor reads the values of small ones
    inputs = [
        node.meta.get("val") if i in staying else on_device(node.meta.get("val"), device, mode)
        for i, node in enumerate(placeholders)
    ]

    def retarget_inner(inner: fx.GraphModule, staying: Collection[int]) -> fx.GraphModule:
        return retarget(inner, device, mode, decompositions=decompositions, staying=staying)

    with (
        torch.no_grad(),
        replaced(mode, "allow_non_fake_inputs", True),
        replaced(mode, "allow_fallback_kernels", False),
    ):
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
        self._moved_graphs: set[str] = set()  # attributes; several nodes may get the same one

    def run_node(self, node: fx.Node) -> Any:
        for source in node.all_input_nodes:
            inner = self.env.get(source)
            if isinstance(inner, fx.GraphModule) and str(source.target) not in self._moved_graphs:
                self._moved_graphs.add(str(source.target))
                self.env[source] = self._retarget_inner(inner, self._staying(node, inner))
                setattr(self.module, str(source.target), self.env[source])
        if node.meta.get("unbacked_bindings"):
            node.meta["val"] = on_device(node.meta["val"], self._device, self._mode_of_values)
            return node.meta["val"]
        leaves = pytree.tree_leaves(node.meta.get("val"))
        if any(t.layout is not torch.strided for t in leaves if isinstance(t, Tensor)):
            return node.meta["val"]  # a torch without CUDA makes no sparse tensor there, not even a fake one
        try:
            value = super().run_node(node)
            if node.target is torch.ops.higher_order.invoke_subgraph:
                node.meta["val"] = value  # the first call of a graph is left as it was traced
            return value
        except UnsupportedOperatorException:  # torch has no shapes for it but what its kernel returns on the device
            node.meta["val"] = on_device(node.meta["val"], self._device, self._mode_of_values)
            return node.meta["val"]

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


def fake_mode_of(graph: fx.GraphModule) -> FakeTensorMode:
    """The mode that the graph's values were made in."""
    mode = detect_fake_mode([n.meta.get("val") for n in graph.graph.nodes])
    if mode is None:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
    assert isinstance(mode, FakeTensorMode)
    return mode


def _moved_arguments(arguments: Any, device: torch.device) -> Any:
    return fx.node.map_aggregate(arguments, lambda a: device if isinstance(a, torch.device) and a.type == "cpu" else a)
