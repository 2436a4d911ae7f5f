"""Tensors made from nothing: full, zeros, ones, arange, iota, linspace, logspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch

from compiler.index import Index, has_gaps, is_dense
from compiler.ir import IndexValue, Lazy, Value
from compiler.lowering.pointwise import divide
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.ops import cast, const, op, scalar
from compiler.sizes import at_least

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


@lower(aten.empty_strided, aten.new_empty_strided)
def empty_strided(scope: Scope, *_: Any, **__: Any) -> Lazy:
    """Any values, in memory laid out as asked for."""
    size, stride = scope.shape(), scope.symbols.strides(scope.output)
    if not is_dense(size, stride) and not has_gaps(size, stride):
        raise NotLowered("memory that several elements share")
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
    """start + step * i, in the output's dtype; of whole numbers the bounds lose their fractions first."""
    start = bounds[0] if len(bounds) > 1 else 0
    step = bounds[2] if len(bounds) > 2 else 1
    dtype = scope.output.dtype
    if not isinstance(start, int | float | sympy.Expr) or not isinstance(step, int | float):
        raise NotLowered("arange between bounds known only at run time")
    if not dtype.is_floating_point:
        start, step = start if isinstance(start, sympy.Expr) else int(start), int(step)

    def compute(index: Any) -> Value:
        if isinstance(start, int | sympy.Expr) and isinstance(step, int):
            return cast(IndexValue(torch.int64, sympy.expand(index[0] * step) + start), dtype)
        wide = torch.float64 if dtype is torch.float64 else torch.float32
        scaled = op("mul", wide, cast(IndexValue(torch.int64, index[0]), wide), const(step, wide))
        return cast(op("add", wide, scaled, scalar(start, wide)), dtype)

    return scope.pointwise((), compute)


@lower(aten.linspace)
def linspace(scope: Scope, start: Any, end: Any, steps: Any, **_: Any) -> Lazy:
    """``steps`` numbers from ``start`` to ``end``, as far apart from each other."""
    dtype = scope.output.dtype
    wide = (torch.float64 if dtype is torch.float64 else torch.float32) if dtype.is_floating_point else _wide(scope)
    spaced = _spaced(dtype, wide, start, end, steps)
    return scope.pointwise(_tensors(start, end), lambda index: cast(spaced(index), dtype))


@lower(aten.logspace)
def logspace(scope: Scope, start: Any, end: Any, steps: Any, base: float = 10.0, **_: Any) -> Lazy:
    """``base`` to the power of ``linspace``'s numbers."""
    dtype, wide = scope.output.dtype, _wide(scope)
    if scope.output.is_cuda and not dtype.is_floating_point:
        # 10 to the power of 2 is 100 or 99.99999 by whose pow it is, and the fraction is cut off.
        raise NotLowered("powers cut off to whole numbers, where the last place of pow decides")
    # Of whole numbers the exponents are whole too, at the two ends; eager computes a single power apart, as a float.
    ends, wide = (torch.float64, torch.float64) if steps == 1 else (dtype, wide)
    spaced = _spaced(ends, wide, start, end, steps)
    return scope.pointwise(
        _tensors(start, end), lambda index: cast(op("pow", wide, const(base, wide), spaced(index)), dtype)
    )


def _spaced(dtype: torch.dtype, wide: torch.dtype, start: Any, end: Any, steps: Any) -> Callable[[Index], Value]:
    """The numbers from ``start`` to ``end`` (which lose their fractions where ``dtype`` has none) in ``wide``.

    Each is counted from the nearer end, as eager does it: where whole numbers are cut off, another way of computing
    the same gives another number.
    """
    if not isinstance(steps, int) and not at_least(steps, 2):
        raise NotLowered("a number of steps that may be 1")

    ends = wide if dtype.is_floating_point else dtype

    def number(value: Any) -> Value:
        own = value.load(()) if isinstance(value, Lazy) else scalar(value, ends)
        return cast(cast(own, ends), wide)

    first, last = number(start), number(end)
    if steps == 1:
        return lambda _: first
    step = divide(wide, op("sub", wide, last, first), scalar(steps - 1, wide))

    def compute(index: Index) -> Value:
        place = IndexValue(torch.int64, index[0])
        before, after = cast(place, wide), cast(IndexValue(torch.int64, steps - 1 - index[0]), wide)
        up = op("add", wide, first, op("mul", wide, step, before))
        down = op("sub", wide, last, op("mul", wide, step, after))
        near_start = op("lt", torch.bool, IndexValue(torch.int64, 2 * index[0]), scalar(steps - 1, torch.int64))
        return op("where", wide, near_start, up, down)

    return compute


def _wide(scope: Scope) -> torch.dtype:
    """What eager's kernels make whole numbers of, and powers: float64 on the CPU, float32 on a GPU."""
    narrow = scope.output.is_cuda and scope.output.dtype is not torch.float64
    return torch.float32 if narrow else torch.float64


def _tensors(*values: Any) -> tuple[Lazy, ...]:
    return tuple(value for value in values if isinstance(value, Lazy))
