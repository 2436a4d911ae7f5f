"""Views: the same memory at another index. They cost nothing and join whichever kernels read through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from compiler.index import Index, is_dense, linear_index, unflatten, view_index
from compiler.ir import Lazy
from compiler.lowering.pointwise import broadcast_index, check_broadcast
from compiler.lowering.positions import clamped, wrapped
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.sizes import Expr, Size, product

aten = torch.ops.aten


@lower(aten.view.default, aten._unsafe_view, aten.reshape, aten.unflatten, aten.flatten)
def view(scope: Scope, x: Lazy, *_: Any) -> Lazy:
    """The same elements in row-major order with another size."""
    new = scope.shape()
    return scope.view(x, lambda index: view_index(index, x.size, new))


@lower(aten.permute)
def permute(scope: Scope, x: Lazy, dims: Sequence[int]) -> Lazy:
    """Dimensions in another order."""
    order = [d % len(x.size) for d in dims]

    def reindex(index: Index) -> Index:
        result = list(index)
        for position, dim in enumerate(order):
            result[dim] = index[position]
        return tuple(result)

    return scope.view(x, reindex)


@lower(aten.transpose, aten.t, aten.numpy_T)
def transpose(scope: Scope, x: Lazy, *dims: int) -> Lazy:
    """Two dimensions exchanged (``t``: the two of a matrix)."""
    rank = len(x.size)
    order = list(range(rank))
    if dims:
        a, b = (d % rank for d in dims)
        order[a], order[b] = order[b], order[a]
    else:
        order.reverse()
    result: Lazy = permute(scope, x, order)
    return result


@lower(aten.expand)
def expand(scope: Scope, x: Lazy, *_: Any, **__: Any) -> Lazy:
    """Dimensions of size 1 read as any size."""
    check_broadcast([x], scope.shape())
    return scope.view(x, lambda index: broadcast_index(x, index))


@lower(aten.unsqueeze)
def unsqueeze(scope: Scope, x: Lazy, dim: int) -> Lazy:
    """A new dimension of size 1."""
    at = dim % (len(x.size) + 1)
    return scope.view(x, lambda index: index[:at] + index[at + 1 :])


@lower(aten.squeeze)
def squeeze(scope: Scope, x: Lazy, dims: int | Sequence[int] | None = None) -> Lazy:
    """Dimensions of size 1 removed."""
    rank = len(x.size)
    named = range(rank) if dims is None else [dims] if isinstance(dims, int) else dims
    removed = {d % rank for d in named if rank and x.size[d % rank] == 1}
    if rank - len(removed) != scope.output.dim():
        raise NotLowered("a squeeze of a size known only at run time")

    def reindex(index: Index) -> Index:
        kept = iter(index)
        return tuple(sympy.Integer(0) if d in removed else next(kept) for d in range(rank))

    return scope.view(x, reindex)


@lower(aten.slice.Tensor)
def slice_(scope: Scope, x: Lazy, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Lazy:
    """Every ``step``-th element from ``start`` on."""
    at = dim % len(x.size)
    first = clamped(0 if start is None else start, x.size[at])

    def reindex(index: Index) -> Index:
        return (*index[:at], sympy.expand(index[at] * step) + first, *index[at + 1 :])

    return scope.view(x, reindex)


@lower(aten.select.int)
def select(scope: Scope, x: Lazy, dim: int, position: int) -> Lazy:
    """One index of a dimension."""
    at = dim % len(x.size)
    where = sympy.sympify(wrapped(position, x.size[at]))
    return scope.view(x, lambda index: (*index[:at], where, *index[at:]))


@lower(aten.split.Tensor, aten.split_with_sizes, aten.chunk, aten.unbind.int)
def split(scope: Scope, x: Lazy, *args: Any, **kwargs: Any) -> tuple[Lazy, ...]:
    """Consecutive pieces of one dimension (``unbind``: each index of it)."""
    packet = scope.node.target.overloadpacket
    is_unbind = packet is aten.unbind
    position = 0 if is_unbind else 1
    at = (args[position] if len(args) > position else kwargs.get("dim", 0)) % len(x.size)
    pieces = []
    start: Size = 0
    for output in scope.output:
        first = sympy.sympify(start)

        def reindex(index: Index, first: Expr = first) -> Index:
            if is_unbind:
                return (*index[:at], first, *index[at:])
            return (*index[:at], index[at] + first, *index[at + 1 :])

        pieces.append(scope.view(x, reindex, output))
        start += 1 if is_unbind else scope.shape(output)[at]
    return tuple(pieces)


@lower(aten.diagonal)
def diagonal(scope: Scope, x: Lazy, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Lazy:
    """The elements where one dimension's index is the other's plus ``offset``, as the last dimension."""
    first, second = dim1 % len(x.size), dim2 % len(x.size)

    def reindex(index: Index) -> Index:
        rest = iter(index[:-1])
        place = {first: index[-1] + max(-offset, 0), second: index[-1] + max(offset, 0)}
        return tuple(place[d] if d in place else next(rest) for d in range(len(x.size)))

    return scope.view(x, reindex)


@lower(aten.unfold)
def unfold(scope: Scope, x: Lazy, dim: int, size: int, step: int) -> Lazy:
    """Windows of ``size`` elements, ``step`` apart; their elements are the last dimension."""
    if not x.size:
        return scope.view(x, lambda index: ())
    at = dim % len(x.size)

    def reindex(index: Index) -> Index:
        return (*index[:at], sympy.expand(index[at] * step) + index[-1], *index[at + 1 : -1])

    return scope.view(x, reindex)


@lower(aten.as_strided.default)
def as_strided(scope: Scope, x: Lazy, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Lazy:
    """Any elements of the memory that ``x`` lies in: of a value without gaps, whose order is then known."""
    root = x.root()
    if not is_dense(root.size, root.stride):
        raise NotLowered("as_strided of memory with gaps")
    start = (x.offset if offset is None else offset) - root.offset
    last = start + sum((s - 1) * st for s, st in zip(size, stride, strict=True))
    if start < 0 or last >= product(root.size):
        raise NotLowered("as_strided beyond the tensor's own memory")
    # dimensions of one element have any stride
    order = sorted((d for d, s in enumerate(root.size) if s > 1), key=lambda d: -root.stride[d])
    sizes = [root.size[d] for d in order]

    def reindex(index: Index) -> Index:
        flat = linear_index(index, stride, start)
        by_dim = dict(zip(order, unflatten(flat, sizes), strict=True))
        return tuple(by_dim.get(d, sympy.Integer(0)) for d in range(len(root.size)))

    return scope.view(root, reindex)


@lower(aten.alias, aten.detach, aten.lift_fresh)
def alias(scope: Scope, x: Lazy) -> Lazy:
    """The same tensor."""
    return scope.view(x, lambda index: index)
