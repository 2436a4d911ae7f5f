"""Reads at computed positions: embedding, index, index_select, gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.index import Index, IndirectVar, bounds, upper
from compiler.ir import IndexValue, Lazy, Value
from compiler.lowering.pointwise import broadcast_index, check_broadcast
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.ops import cast, const, op, scalar
from compiler.sizes import Expr, Size, hint, known_less, product

aten = torch.ops.aten


def position(value: Value, size: Size, wrap: bool = True) -> Expr:
    """A computed index into a dimension of ``size``; negative ones count from the end where ``wrap``.

    A position that is itself made of loop variables (an arange) needs no indirection.
    """
    value = cast(value, torch.int64)
    if isinstance(value, IndexValue) and bounds(value.expr)[0] >= 0 and known_less(upper(value.expr), size):
        return value.expr
    if wrap:
        negative = op("lt", torch.bool, value, const(0, torch.int64))
        value = op("where", torch.int64, negative, op("add", torch.int64, value, scalar(size, torch.int64)), value)
    return IndirectVar(value, size)


def _source(scope: Scope, x: Lazy) -> Lazy:
    """What to read from: memory where more elements are read than there are, else the value computed in place."""
    return scope.realize(x) if hint(product(scope.shape())) > hint(product(x.size)) else x


@lower(aten.embedding)
def embedding(scope: Scope, weight: Lazy, indices: Lazy, *_: Any, **__: Any) -> Lazy:
    """Row ``indices[...]`` of the weight."""
    table = scope.realize(weight)

    def compute(index: Index) -> Value:
        row = position(indices.load(index[:-1]), weight.size[0], wrap=False)
        return table.load((row, index[-1]))

    return scope.pointwise((table, indices), compute)


@lower(aten.index_select)
def index_select(scope: Scope, x: Lazy, dim: int, indices: Lazy) -> Lazy:
    """Slices of ``dim`` at the given positions."""
    source = _source(scope, x)
    if not x.size:
        raise NotLowered("index_select of a tensor with no dimensions")
    at = dim % len(x.size)

    def compute(index: Index) -> Value:
        where = position(indices.load((index[at],) if indices.size else ()), x.size[at], wrap=False)
        return source.load((*index[:at], where, *index[at + 1 :]))

    return scope.pointwise((source, indices), compute)


@lower(aten.gather)
def gather(scope: Scope, x: Lazy, dim: int, indices: Lazy, sparse_grad: bool = False) -> Lazy:
    """Along ``dim``, the element at the position that ``indices`` holds."""
    source = _source(scope, x)
    if not x.size:
        raise NotLowered("gather from a tensor with no dimensions")
    at = dim % len(x.size)

    def compute(index: Index) -> Value:
        where = position(indices.load(index), x.size[at], wrap=False)
        return source.load((*index[:at], where, *index[at + 1 :]))

    return scope.pointwise((source, indices), compute)


@lower(aten.index.Tensor)
def index_tensor(scope: Scope, x: Lazy, indices: Sequence[Lazy | None]) -> Lazy:
    """Advanced indexing by integer tensors that broadcast together; boolean masks have a size known only later."""
    named = [(dim, t) for dim, t in enumerate(indices) if t is not None]
    if any(t.dtype in (torch.bool, torch.uint8) for _, t in named):
        raise NotLowered("indexing by a mask")
    source = _source(scope, x)
    rank = max(len(t.size) for _, t in named)
    dims = [dim for dim, _ in named]
    # torch puts the indexed dimensions where they stood if they are neighbours, else in front
    first = dims[0] if dims == list(range(dims[0], dims[0] + len(dims))) else 0

    check_broadcast([t for _, t in named], scope.shape()[first : first + rank])

    def compute(index: Index) -> Value:
        chosen = index[first : first + rank]
        rest = iter(index[:first] + index[first + rank :])
        by_dim = {dim: position(t.load(broadcast_index(t, chosen)), x.size[dim]) for dim, t in named}
        return source.load(tuple(by_dim[d] if d in by_dim else next(rest) for d in range(len(x.size))))

    return scope.pointwise((source, *(t for _, t in named)), compute)
