"""Tensors made from nothing: full, zeros, ones, arange, iota."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from compiler.ir import IndexValue, Lazy, Value
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.ops import cast, const, op, scalar

aten = torch.ops.aten
prims = torch.ops.prims


def _filled(scope: Scope, value: Any) -> Lazy:
    if not isinstance(value, bool | int | float | sympy.Expr):
        raise NotLowered("a fill value known only at run time")
    dtype = scope.output.dtype
    return scope.pointwise((), lambda index: scalar(value, dtype))


@lower(aten.full)
def full(scope: Scope, size: Any, value: Any, **_: Any) -> Lazy:
    """One value everywhere."""
    return _filled(scope, value)


@lower(aten.full_like, aten.new_full, aten.fill.Scalar)
def full_like(scope: Scope, x: Lazy, *args: Any, **_: Any) -> Lazy:
    """One value everywhere, sized like (or made beside) another tensor."""
    return _filled(scope, args[-1])


@lower(aten.zeros, aten.zeros_like, aten.new_zeros)
def zeros(scope: Scope, *_: Any, **__: Any) -> Lazy:
    """Zeros."""
    return _filled(scope, 0)


@lower(aten.ones, aten.ones_like, aten.new_ones)
def ones(scope: Scope, *_: Any, **__: Any) -> Lazy:
    """Ones."""
    return _filled(scope, 1)


@lower(aten.empty.memory_format, aten.new_empty)
def empty(scope: Scope, *_: Any, **__: Any) -> Lazy:
    """Any values: zeros, which need no memory until something wants them there."""
    return _filled(scope, 0)


@lower(aten.scalar_tensor)
def scalar_tensor(scope: Scope, value: Any, **_: Any) -> Lazy:
    """A number as a tensor of no dimensions."""
    return _filled(scope, value)


@lower(prims.iota)
def iota(scope: Scope, length: int, *, start: int, step: int, dtype: torch.dtype, **_: Any) -> Lazy:
    """start + step * i."""
    return scope.pointwise(
        (), lambda index: cast(IndexValue(torch.int64, sympy.expand(index[0] * step) + start), dtype)
    )


@lower(aten.arange)
def arange(scope: Scope, *bounds: Any, **_: Any) -> Lazy:
    """start + step * i, in the output's dtype."""
    start = bounds[0] if len(bounds) > 1 else 0
    step = bounds[2] if len(bounds) > 2 else 1
    dtype = scope.output.dtype
    if not isinstance(start, int | float | sympy.Expr) or not isinstance(step, int | float):
        raise NotLowered("arange between bounds known only at run time")

    def compute(index: Any) -> Value:
        if isinstance(start, int | sympy.Expr) and isinstance(step, int):
            return cast(IndexValue(torch.int64, sympy.expand(index[0] * step) + start), dtype)
        wide = torch.float64 if dtype is torch.float64 else torch.float32
        scaled = op("mul", wide, cast(IndexValue(torch.int64, index[0]), wide), const(step, wide))
        return cast(op("add", wide, scaled, scalar(start, wide)), dtype)

    return scope.pointwise((), compute)
