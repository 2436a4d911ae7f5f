"""Where a value belongs in a sorted row: bucketize and searchsorted, as a binary search with its steps written out."""

from __future__ import annotations

import torch

from compiler.index import Index, IndirectVar
from compiler.ir import Lazy, Value
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.ops import cast, const, op

aten = torch.ops.aten
MAX_STEPS = 12  # each is a read that waits for the one before; a longer search is left to the library
INT = torch.int64


def _search(scope: Scope, values: Lazy, boundaries: Lazy, out_int32: bool, right: bool) -> Lazy:
    """The first place in ``boundaries`` (a row of known length) whose element is not below the value, with ``right``
    the first that is above it.

    The steps are ATen's, so that a row that is not sorted, or has NaN in it, gives ATen's numbers too.
    """
    if len(boundaries.size) != 1 or values.dtype != boundaries.dtype:
        raise NotLowered("a search in a row for each value, or among numbers of another type")
    (length,) = boundaries.size
    if not isinstance(length, int) or not length or length.bit_length() > MAX_STEPS:
        raise NotLowered(f"a search in a row of {length} elements")
    row = scope.realize(boundaries)

    def compute(index: Index) -> Value:
        value = values.load(index)
        low: Value = const(0, INT)
        high: Value = const(length, INT)
        for _ in range(length.bit_length()):
            middle = op("shift_right", INT, op("add", INT, low, high), const(1, INT))
            inside = op("minimum", INT, middle, const(length - 1, INT))  # once the search has ended, any will do
            found = row.load((IndirectVar(inside, length),))
            stop = op("gt" if right else "ge", torch.bool, found, value)
            open_ = op("lt", torch.bool, low, high)
            above = op("add", INT, middle, const(1, INT))
            next_low = op("where", INT, stop, low, above)
            high = op("where", INT, open_, op("where", INT, stop, middle, high), high)
            low = op("where", INT, open_, next_low, low)
        return cast(low, torch.int32 if out_int32 else INT)

    return scope.pointwise((values, row), compute)


@lower(aten.bucketize.Tensor)
def bucketize(scope: Scope, values: Lazy, boundaries: Lazy, *, out_int32: bool = False, right: bool = False) -> Lazy:
    """The bucket of each value between sorted boundaries."""
    return _search(scope, values, boundaries, out_int32, right)


@lower(aten.searchsorted.Tensor)
def searchsorted(
    scope: Scope,
    row: Lazy,
    values: Lazy,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Lazy | None = None,
) -> Lazy:
    """The place of each value in one sorted row."""
    if sorter is not None:
        raise NotLowered("a search through an order given apart")
    return _search(scope, values, row, out_int32, right or side == "right")
