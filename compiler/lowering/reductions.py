"""Reductions: sum, mean, product, extrema and their positions, variance, any and all, over any dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.index import Index
from compiler.ir import Lazy, Value
from compiler.lowering.pointwise import KIND, divide, elementwise
from compiler.lowering.registry import NotLowered, ReductionPlan, Scope, lower
from compiler.ops import cast, const, op, scalar
from compiler.sizes import Size, product

aten = torch.ops.aten
prims = torch.ops.prims


def reduced_dims(dims: Any, rank: int) -> tuple[int, ...]:
    """The dimensions that ``dims`` names: None and the empty list mean all of them."""
    if dims is None or (isinstance(dims, Sequence) and not dims):
        return tuple(range(rank))
    if isinstance(dims, int):
        dims = [dims]
    return tuple(sorted({d % rank for d in dims})) if rank else ()


def reduced_size(size: Sequence[Size], dims: Sequence[int], keepdim: bool) -> tuple[Size, ...]:
    """The size that is left after reducing ``dims``."""
    if keepdim:
        return tuple(1 if d in dims else s for d, s in enumerate(size))
    return tuple(s for d, s in enumerate(size) if d not in dims)


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Half floats add up in float32, small integers in int64 (torch's accumulate types on a GPU)."""
    if dtype.is_floating_point:
        return torch.float64 if dtype is torch.float64 else torch.float32
    return torch.int64


def divided(value: Value, count: Size, dtype: torch.dtype) -> Value:
    """``value / count``; by a power of two as a product with its inverse, which is exact.

    Another count's inverse is rounded, and the product again: the error of a large mean, from which every element then
    differs by little, would be twice as large.
    """
    if isinstance(count, int) and count & (count - 1) == 0:
        return value if count == 1 else op("mul", dtype, value, const(1.0 / count, dtype))
    return divide(dtype, value, scalar(count, dtype))


def _simple(
    scope: Scope, x: Lazy, kind: str, dims: Any, keepdim: bool, accumulate: torch.dtype, count: Size = 1
) -> Lazy:
    named = reduced_dims(dims, len(x.size))
    output = scope.output
    if product(x.size) == 0:
        raise NotLowered("a reduction over no elements")

    def epilogue(value: Value) -> Value:
        return cast(divided(value, count, accumulate), output.dtype)

    plan = ReductionPlan(kind, x, named, keepdim, accumulate, lambda value, _: cast(value, accumulate), epilogue)
    return scope.reduce(plan, scope.shape(output), output.dtype, output)


@lower(aten.sum, prims.sum)
def sum_(scope: Scope, x: Lazy, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Lazy:
    """The sum, accumulated in float32 (half floats) or int64 (integers)."""
    return _simple(scope, x, "sum", dims, keepdim, accumulator(dtype or scope.output.dtype))


@lower(aten.mean)
def mean(scope: Scope, x: Lazy, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Lazy:
    """The sum times one over the count."""
    count = product([x.size[d] for d in reduced_dims(dims, len(x.size))])
    if count == 0:
        raise NotLowered("a mean over no elements")
    return _simple(scope, x, "sum", dims, keepdim, accumulator(scope.output.dtype), count)


@lower(aten.prod)
def prod(scope: Scope, x: Lazy, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Lazy:
    """The product."""
    return _simple(scope, x, "prod", dims, keepdim, accumulator(scope.output.dtype))


@lower(aten.amax, aten.amin)
def extremum(scope: Scope, x: Lazy, dims: Any = None, keepdim: bool = False) -> Lazy:
    """The largest or smallest element; NaN wins."""
    kind = "max" if scope.node.target.overloadpacket is aten.amax else "min"
    return _simple(scope, x, kind, dims, keepdim, _comparable(x.dtype))


def _comparable(dtype: torch.dtype) -> torch.dtype:
    """What elements are compared in: float32 for half floats, int32 for booleans."""
    if dtype is torch.bool:
        return torch.int32
    return accumulator(dtype) if dtype.is_floating_point else dtype


@lower(aten.max, aten.min)
def extremum_and_position(scope: Scope, x: Lazy, dim: Any = None, keepdim: bool = False) -> Any:
    """Over everything: the extremum; over one dimension: the extremum and its first position."""
    name = scope.node.target.overloadpacket.__name__
    accumulate = _comparable(x.dtype)
    if isinstance(dim, Lazy):  # max.other: elementwise
        if torch.bool in (x.dtype, dim.dtype):
            raise NotLowered("an extremum of booleans")
        return elementwise(
            scope,
            lambda dtype, a, b: op("maximum" if name == "max" else "minimum", dtype, a, b),
            KIND.DEFAULT,
            (x, dim),
        )
    if dim is None:
        return _simple(scope, x, name, None, False, accumulate)
    values, _ = scope.output
    dims = reduced_dims(dim, len(x.size))
    located = any(user.args[1:] == (1,) for user in scope.node.users)
    kind = f"first{name}" if located and x.dtype.is_floating_point else name  # of equal zeros the one whose place it is
    value = scope.reduce(
        ReductionPlan(kind, x, dims, keepdim, accumulate, lambda v, _: cast(v, accumulate), lambda v: cast(v, x.dtype)),
        scope.shape(values),
        values.dtype,
        values,
    )
    return value, _position(scope, x, "arg" + name, dims, keepdim, scope.output[1])


def _position(scope: Scope, x: Lazy, kind: str, dims: tuple[int, ...], keepdim: bool, output: torch.Tensor) -> Lazy:
    accumulate = _comparable(x.dtype)
    plan = ReductionPlan(kind, x, dims, keepdim, accumulate, lambda v, _: cast(v, accumulate), lambda v: v)
    return scope.reduce(plan, scope.shape(output), torch.int64, output)


@lower(aten.argmax, aten.argmin)
def position(scope: Scope, x: Lazy, dim: int | None = None, keepdim: bool = False) -> Lazy:
    """The first position of the extremum, in row-major order where all dimensions are searched."""
    name = scope.node.target.overloadpacket.__name__
    if product(x.size) == 0:
        raise NotLowered("a reduction over no elements")
    return _position(scope, x, name, reduced_dims(dim, len(x.size)), keepdim, scope.output)


@lower(aten.any, aten.all)
def any_or_all(scope: Scope, x: Lazy, dims: Any = None, keepdim: bool = False) -> Lazy:
    """Whether any (all) elements are not zero."""
    if product(x.size) == 0:
        raise NotLowered("a reduction over no elements")
    kind = scope.node.target.overloadpacket.__name__
    output = scope.output
    plan = ReductionPlan(
        kind,
        x,
        reduced_dims(dims, len(x.size)),
        keepdim,
        torch.bool,
        lambda v, _: cast(v, torch.bool),
        lambda v: cast(v, output.dtype),
    )
    return scope.reduce(plan, scope.shape(output), output.dtype, output)


def _mean_of(scope: Scope, x: Lazy, dims: tuple[int, ...], accumulate: torch.dtype) -> Lazy:
    """The mean with the reduced dimensions kept, in the accumulator's dtype."""
    count = product([x.size[d] for d in dims])
    plan = ReductionPlan(
        "sum",
        x,
        dims,
        True,
        accumulate,
        lambda v, _: cast(v, accumulate),
        lambda v: divided(v, count, accumulate),
    )
    return scope.reduce(plan, reduced_size(x.size, dims, True), accumulate, None)


def _variance(
    scope: Scope, x: Lazy, mean: Lazy, dims: tuple[int, ...], keepdim: bool, correction: float, output: torch.Tensor
) -> Lazy:
    """sum((x - mean)^2) / max(count - correction, 0): two passes, as accurate as Welford's."""
    count = product([x.size[d] for d in dims])
    accumulate = mean.dtype

    def prologue(value: Value, index: Index) -> Value:
        at = tuple(i if d not in dims else i * 0 for d, i in enumerate(index))
        difference = op("sub", accumulate, cast(value, accumulate), mean.load(at))
        return op("mul", accumulate, difference, difference)

    def epilogue(value: Value) -> Value:
        if isinstance(count, int):
            value = divide(accumulate, value, const(max(count - correction, 0), accumulate))
        else:
            left = op("sub", accumulate, scalar(count, accumulate), const(correction, accumulate))
            value = divide(accumulate, value, op("maximum", accumulate, left, const(0, accumulate)))
        return cast(value, output.dtype)

    plan = ReductionPlan("sum", x, dims, keepdim, accumulate, prologue, epilogue, (mean,))
    return scope.reduce(plan, scope.shape(output), output.dtype, output)


@lower(aten.var.correction, aten.var_mean.correction, prims.var)
def var(scope: Scope, x: Lazy, dims: Any = None, *, correction: Any = 1, keepdim: bool = False, **_: Any) -> Any:
    """The variance, and the mean beside it for ``var_mean``."""
    named = reduced_dims(dims, len(x.size))
    if product(x.size) == 0 or not x.dtype.is_floating_point:
        raise NotLowered("a variance of no elements or of integers")
    correction = 1 if correction is None else correction
    mean_kept = _mean_of(scope, x, named, accumulator(x.dtype))
    both = scope.node.target.overloadpacket is aten.var_mean
    output = scope.output[0] if both else scope.output
    variance = _variance(scope, x, mean_kept, named, keepdim, correction, output)
    if not both:
        return variance
    mean_output = scope.output[1]
    positions = [d for d in range(len(x.size)) if d not in named]

    def load_mean(index: Index) -> Value:
        kept: list[Any] = [i * 0 for i in range(len(x.size))]
        if keepdim:
            kept = list(index)
        else:
            for position, value in zip(positions, index, strict=True):
                kept[position] = value
        return cast(mean_kept.load(tuple(kept)), mean_output.dtype)

    return variance, scope.pointwise((mean_kept,), load_mean, mean_output)
