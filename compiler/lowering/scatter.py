"""Writes at computed places: index_put, put, index_add, index_copy, index_fill, scatter, scatter_add, scatter_reduce
(and what is decomposed into them, as the gradients of gather, indexing and embedding are).

Where several points share a place, sums, maxima and minima come out right by atomic operations. Sums of floats then
depend on the order in the last digits, and of plain writes any one wins, as on a GPU in eager; under
``torch.use_deterministic_algorithms`` both are library calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch

from compiler.index import Index, unflatten
from compiler.ir import Const, IndexValue, Lazy, Value
from compiler.lowering.division import floor_divide
from compiler.lowering.indexing import position
from compiler.lowering.pointwise import broadcast_index, broadcast_size, check_broadcast, divide
from compiler.lowering.reducing import identity
from compiler.lowering.registry import NotLowered, ScatterPlan, Scope, lower
from compiler.ops import cast, const, op, scalar
from compiler.sizes import Size, product

aten = torch.ops.aten
At = Callable[[Index], tuple[Value, Index, Value | None]]
_NARROW = (torch.int8, torch.int16, torch.uint8, torch.bool)


def _accumulator(dtype: torch.dtype, combine: str) -> torch.dtype:
    """What elements are held in while others are combined with them: what GPUs have atomic operations for."""
    if combine == "store":
        return dtype
    if dtype.is_floating_point:
        return torch.float64 if dtype is torch.float64 else torch.float32
    return torch.int32 if dtype in _NARROW else dtype


def _scattered(scope: Scope, combine: str, target: Lazy, size: Sequence[Size], at: At, inputs: Sequence[Lazy]) -> Lazy:
    dtype = target.dtype
    ordered = combine == "store" or (combine == "add" and dtype.is_floating_point)
    if ordered and torch.are_deterministic_algorithms_enabled():
        raise NotLowered("parallel writes come in any order, and deterministic algorithms were asked for")
    if combine in ("max", "min") and dtype.is_floating_point:
        return _float_extrema(scope, combine, target, size, at, inputs)
    plan = ScatterPlan(combine, target, tuple(size), _accumulator(dtype, combine), at, tuple(inputs))
    return scope.scatter(plan, scope.output)


def _float_extrema(
    scope: Scope, combine: str, target: Lazy, size: Sequence[int], at: At, inputs: Sequence[Lazy]
) -> Lazy:
    """Floats compared as whole numbers of the same order, NaN at the end that wins: for those there are atomics."""
    wide = torch.float64 if target.dtype is torch.float64 else torch.float32
    whole = torch.int64 if wide is torch.float64 else torch.int32
    last = const(torch.iinfo(whole).max if combine == "max" else torch.iinfo(whole).min, whole)

    def key(value: Value) -> Value:
        number = cast(value, wide)
        ordered = op("order_key", whole, number)
        return op("where", whole, op("isnan", torch.bool, number), last, ordered)

    def at_key(point: Index) -> tuple[Value, Index, Value | None]:
        value, place, mask = at(point)
        return key(value), place, mask

    output = scope.output
    keys = scope.pointwise((target,), lambda index: key(target.load(index)), output.to(whole))
    plan = ScatterPlan(combine, keys, tuple(size), whole, at_key, tuple(inputs))
    found = scope.scatter(plan, output.to(whole))
    return scope.pointwise((found,), lambda index: cast(op("order_value", wide, found.load(index)), output.dtype))


@lower(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    scope: Scope, x: Lazy, indices: Sequence[Lazy | None], values: Lazy, accumulate: bool = False, *_: Any
) -> Lazy:
    """``x[indices] = values`` or ``+= values``; a mask with one value for all is a choice per element."""
    named = [(dim, t) for dim, t in enumerate(indices) if t is not None]
    if any(t.dtype in (torch.bool, torch.uint8) for _, t in named):
        return _masked_put(scope, x, indices, values, accumulate)
    shape = broadcast_size([t.size for _, t in named])
    check_broadcast([t for _, t in named], shape)
    dims = [dim for dim, _ in named]
    first = dims[0] if dims == list(range(dims[0], dims[0] + len(dims))) else 0
    rest = [s for d, s in enumerate(x.size) if d not in dims]
    size = (*rest[:first], *shape, *rest[first:])
    check_broadcast([values], size)

    def at(point: Index) -> tuple[Value, Index, Value | None]:
        chosen = point[first : first + len(shape)]
        others = iter(point[:first] + point[first + len(shape) :])
        by_dim = {dim: position(t.load(broadcast_index(t, chosen)), x.size[dim]) for dim, t in named}
        place = tuple(by_dim[d] if d in by_dim else next(others) for d in range(len(x.size)))
        return values.load(broadcast_index(values, point)), place, None

    combine = "add" if accumulate else "store"
    return _scattered(scope, combine, x, size, at, (values, *(t for _, t in named)))


def _masked_put(scope: Scope, x: Lazy, indices: Sequence[Lazy | None], values: Lazy, accumulate: bool) -> Lazy:
    masks = [(dim, t) for dim, t in enumerate(indices) if t is not None]
    if len(masks) != 1 or product(values.size) != 1:
        raise NotLowered("a mask whose true elements are numbered only at run time")
    ((dim, mask),) = masks
    if tuple(x.size[dim : dim + len(mask.size)]) != tuple(mask.size):
        raise NotLowered("a mask of another size than the tensor")

    def compute(index: Index) -> Value:
        here, old = mask.load(index[dim : dim + len(mask.size)]), x.load(index)
        new = values.load(tuple(sympy.Integer(0) for _ in values.size))
        if accumulate:
            new = op("logical_or" if x.dtype is torch.bool else "add", x.dtype, old, new)
        return op("where", x.dtype, cast(here, torch.bool), new, old)

    return scope.pointwise((x, mask, values), compute)


def _along(scope: Scope, combine: str, x: Lazy, dim: int, indices: Lazy, source: Any) -> Lazy:
    """Every element of ``source`` that ``indices`` covers, to the position along ``dim`` that ``indices`` holds."""
    if not x.size or not indices.size:
        raise NotLowered("a scatter without dimensions")
    along = dim % len(x.size)
    if combine == "store" and _is_constant(x) and _one_a_row(x, along, indices):
        return _one_hot(scope, x, along, indices, source)

    def at(point: Index) -> tuple[Value, Index, Value | None]:
        where = position(indices.load(point), x.size[along], wrap=False)
        value = source.load(point) if isinstance(source, Lazy) else scalar(source, x.dtype)
        return value, (*point[:along], where, *point[along + 1 :]), None

    inputs = (indices, source) if isinstance(source, Lazy) else (indices,)
    return _scattered(scope, combine, x, indices.size, at, inputs)


def _is_constant(x: Lazy) -> bool:
    """Whether every element is the same number, which lies nowhere in memory yet."""
    return x.root().buffer is None and isinstance(x.load(tuple(sympy.Integer(0) for _ in x.size)), Const)


def _one_a_row(x: Lazy, along: int, indices: Lazy) -> bool:
    """Whether exactly one element is replaced along ``along``, in every row of ``x``."""
    return all(
        index == (1 if d == along else size) for d, (index, size) in enumerate(zip(indices.size, x.size, strict=True))
    )


def _one_hot(scope: Scope, x: Lazy, along: int, indices: Lazy, source: Any) -> Lazy:
    """A constant with one element of every row replaced (the gradient of a gather, of a loss by class): each element
    knows by its index which it is, so that the result need not lie in memory, nor be filled before it is written.
    No memory is touched at a computed place, so that a position outside replaces nothing."""

    def compute(index: Index) -> Value:
        point = (*index[:along], sympy.Integer(0), *index[along + 1 :])
        value = source.load(point) if isinstance(source, Lazy) else scalar(source, x.dtype)
        here = op("eq", torch.bool, IndexValue(torch.int64, index[along]), cast(indices.load(point), torch.int64))
        return op("where", x.dtype, here, value, x.load(index))

    inputs = (x, indices, source) if isinstance(source, Lazy) else (x, indices)
    return scope.pointwise(inputs, compute)


def _slices(
    scope: Scope,
    combine: str,
    x: Lazy,
    dim: int,
    inputs: Sequence[Lazy],
    value: Callable[[Index], Value],
    *,
    wrap: bool = False,
) -> Lazy:
    """Slice ``i`` of ``value`` along ``dim`` to the position that the first of ``inputs`` holds at ``i``."""
    indices = inputs[0]
    if not x.size:
        raise NotLowered("a write into a tensor without dimensions")
    along = dim % len(x.size)
    size = (*x.size[:along], product(indices.size), *x.size[along + 1 :])

    def at(point: Index) -> tuple[Value, Index, Value | None]:
        where = position(indices.load((point[along],) if indices.size else ()), x.size[along], wrap=wrap)
        return value(point), (*point[:along], where, *point[along + 1 :]), None

    return _scattered(scope, combine, x, size, at, inputs)


@lower(aten.put.default)
def put(scope: Scope, x: Lazy, indices: Lazy, source: Lazy, accumulate: bool = False) -> Lazy:
    """``x`` with elements, numbered as if it were flat, replaced or added to (the gradient of ``take``)."""
    if indices.size != source.size:
        raise NotLowered("values that are shaped otherwise than their places")
    total = product(x.size)

    def at(point: Index) -> tuple[Value, Index, Value | None]:
        place = position(indices.load(point), total)
        return cast(source.load(point), x.dtype), unflatten(place, x.size), None

    return _scattered(scope, "add" if accumulate else "store", x, indices.size, at, (indices, source))


@lower(aten.index_add.default)
def index_add(scope: Scope, x: Lazy, dim: int, indices: Lazy, source: Lazy, *, alpha: Any = 1) -> Lazy:
    """``x`` with slices added; as in eager, no position counts from the end."""
    if len(source.size) != len(x.size):
        raise NotLowered("slices of another number of dimensions")
    factor = scalar(alpha, x.dtype)
    kind = "bitwise_and" if x.dtype is torch.bool else "mul"

    def value(point: Index) -> Value:
        added = cast(source.load(point), x.dtype)
        return added if alpha == 1 else op(kind, x.dtype, added, factor)

    return _slices(scope, "add", x, dim, (indices, source), value)


@lower(aten.index_copy.default)
def index_copy(scope: Scope, x: Lazy, dim: int, indices: Lazy, source: Lazy) -> Lazy:
    """``x`` with slices replaced; as in eager, no position counts from the end."""
    if len(source.size) != len(x.size):
        raise NotLowered("slices of another number of dimensions")
    return _slices(scope, "store", x, dim, (indices, source), lambda point: cast(source.load(point), x.dtype))


@lower(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(scope: Scope, x: Lazy, dim: int, indices: Lazy, value: Any) -> Lazy:
    """``x`` with slices set to one number; negative positions count from the end."""
    number = cast(value.load(()), x.dtype) if isinstance(value, Lazy) else scalar(value, x.dtype)
    inputs = (indices, value) if isinstance(value, Lazy) else (indices,)
    return _slices(scope, "store", x, dim, inputs, lambda _: number, wrap=True)


@lower(aten.scatter.src, aten.scatter.value)
def scatter(scope: Scope, x: Lazy, dim: int, indices: Lazy, source: Any) -> Lazy:
    """``x`` with elements replaced; of several for one place any one."""
    return _along(scope, "store", x, dim, indices, source)


@lower(aten.scatter_add.default)
def scatter_add(scope: Scope, x: Lazy, dim: int, indices: Lazy, source: Lazy) -> Lazy:
    """``x`` with elements added."""
    return _along(scope, "add", x, dim, indices, source)


@lower(aten.scatter_reduce.two)
def scatter_reduce(
    scope: Scope, x: Lazy, dim: int, indices: Lazy, source: Lazy, reduce: str, *, include_self: bool = True
) -> Lazy:
    """``x`` with elements combined with those already there, or only with each other: sums, means, extrema."""
    combine = {"sum": "add", "mean": "add", "amax": "max", "amin": "min"}.get(reduce, "")
    if not combine or x.dtype is torch.bool:
        raise NotLowered(f"scatter_reduce by {reduce} of {x.dtype}")
    start = x
    if not include_self:
        neutral = 0 if combine == "add" else identity(combine, x.dtype).value
        start = _along(scope, "store", x, dim, indices, neutral)
    total = _along(scope, combine, start, dim, indices, source)
    if reduce != "mean":
        return total
    output = scope.output
    counts = _counts(scope, dim, indices, include_self)
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32

    def compute(index: Index) -> Value:
        count = op("maximum", torch.int32, counts.load(index), const(1, torch.int32))
        if x.dtype.is_floating_point:
            return cast(divide(wide, cast(total.load(index), wide), cast(count, wide)), output.dtype)
        return floor_divide(x.dtype, total.load(index), cast(count, x.dtype))

    return scope.pointwise((total, counts), compute)


def _counts(scope: Scope, dim: int, indices: Lazy, include_self: bool) -> Lazy:
    """How many elements go to each place, the one that is there with them where ``include_self``."""
    like = scope.output.to(torch.int32)
    along, size = dim % like.dim(), scope.shape(like)
    first = const(int(include_self), torch.int32)
    start = scope.pointwise((), lambda index: first, like)

    def at(point: Index) -> tuple[Value, Index, Value | None]:
        where = position(indices.load(point), size[along], wrap=False)
        return const(1, torch.int32), (*point[:along], where, *point[along + 1 :]), None

    return scope.scatter(ScatterPlan("add", start, indices.size, torch.int32, at, (indices,)), like)
