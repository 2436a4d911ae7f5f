"""Ops that torch takes apart in another way on a GPU than on the CPU, left whole while a model is traced on the CPU.

Their pieces are made when the graph is moved to the target (``graph.py``), on fake tensors that lie there. The CPU's
normalisations round mean and deviation to the dtype of half floats and add scale and shift in another order; it keeps
another memory format where images are padded or enlarged.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

aten = torch.ops.aten
Table = Mapping[Any, Callable[..., Any]]

# With their backwards, which read what the forwards return in another dtype.
_BY_DEVICE = frozenset(
    {
        aten.native_layer_norm,
        aten.native_layer_norm_backward,
        aten.native_group_norm,
        aten.native_group_norm_backward,
        aten.native_batch_norm,
        aten.native_batch_norm_backward,
        aten._native_batch_norm_legit,
        aten._native_batch_norm_legit_functional,
        aten._native_batch_norm_legit_no_training,
        aten.log_sigmoid_forward,
        aten.log_sigmoid_backward,
        aten.reflection_pad1d,
        aten.reflection_pad2d,
        aten.reflection_pad3d,
        aten.replication_pad1d,
        aten.replication_pad2d,
        aten.replication_pad3d,
        aten.upsample_linear1d,
        aten.upsample_bilinear2d,
        aten.upsample_trilinear3d,
        aten.upsample_bicubic2d,
        aten.upsample_nearest1d,
        aten.upsample_nearest2d,
        aten.upsample_nearest3d,
        aten._upsample_nearest_exact1d,
        aten._upsample_nearest_exact2d,
        aten._upsample_nearest_exact3d,
        aten.grid_sampler_2d,
    }
)
_NAMES_A_PIECE = ("val", "tensor_meta", "original_aten")


def before_the_move(table: Table) -> dict[Any, Callable[..., Any]]:
    """The rules of ``table`` that hold on any device."""
    return {op: rule for op, rule in table.items() if not _is_by_device(op)}


def _is_by_device(op: Any) -> bool:
    return getattr(op, "overloadpacket", op) in _BY_DEVICE


class _Declined(Exception):
    """A rule does not take these operands."""


class TakenApart:
    """Puts the pieces of ops into ``graph`` while it is copied; ``on_target`` moves the values they are made of."""

    def __init__(self, graph: fx.Graph, table: Table, on_target: Callable[[Any], Any]) -> None:
        self._graph = graph
        self._table = dict(table)
        self._on_target = on_target

    def replaces(self, node: fx.Node, env: dict[fx.Node, Any]) -> bool:
        """Whether pieces stand for the node, or for one of its results; ``env`` then knows them."""
        if node.target is operator.getitem:
            source, place = cast("tuple[fx.Node, int]", node.args)
            if isinstance(env[source], (tuple, list)):
                env[node] = env[source][place]
                return True
        rule = self._table.get(node.target) if _is_by_device(node.target) else None
        if rule is None:
            return False
        pieces = self._pieces(node, rule, env)
        if pieces is None:
            return False
        env[node] = self._inlined(node, pieces, env)
        return True

    def _pieces(self, node: fx.Node, rule: Callable[..., Any], env: Mapping[fx.Node, Any]) -> fx.GraphModule | None:
        """What the rule makes of the node's operands on the target; None where it declines."""
        operands = node.all_input_nodes
        values = [self._on_target(env[n].meta["val"]) for n in operands]
        mode = next(v.fake_mode for v in values if isinstance(v, FakeTensor))

        def call(*given: Any) -> Any:
            known = dict(zip(operands, given, strict=True))
            args, kwargs = pytree.tree_map_only(fx.Node, known.__getitem__, (node.args, node.kwargs))
            result = rule(*args, **kwargs)
            if result is NotImplemented:
                raise _Declined
            return tuple(result) if isinstance(result, tuple) else result  # plain, where it has a name of its own

        with mode, torch.no_grad(), enable_python_dispatcher():
            try:
                made = make_fx(call, decomposition_table=self._table)(*values)
            except _Declined:
                return None
        return made if all(piece.op != "get_attr" for piece in made.graph.nodes) else None

    def _inlined(self, node: fx.Node, pieces: fx.GraphModule, env: Mapping[fx.Node, Any]) -> Any:
        inner: dict[fx.Node, Any] = {}
        operands = iter(node.all_input_nodes)
        shared = {key: value for key, value in node.meta.items() if key not in _NAMES_A_PIECE}
        for piece in pieces.graph.nodes:
            if piece.op == "placeholder":
                inner[piece] = env[next(operands)]
            elif piece.op == "output":
                return pytree.tree_map_only(fx.Node, inner.__getitem__, piece.args[0])
            else:
                made = inner[piece] = self._graph.node_copy(piece, inner.__getitem__)
                made.meta = {**shared, "original_aten": node.target, "val": piece.meta["val"]}
        raise AssertionError("a graph ends with its output")
