"""A row's sum of values of which all but one are zero, without passing over the row.

The gradient of a loss by class is such a row, and softmax's backward wants its sum: the number at the class, times
what the whole row is multiplied by. It costs no more than any other number of the row.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.index import LoopVar
from compiler.ir import Const, IndexValue, Load, Op, Reduce, Value, walk
from compiler.ops import const, op


def sum_of_one_hot(reduce: Reduce) -> Value:
    """The sum over r of ``where(r == place, height, 0) * weight``, where only the place depends on r; any other
    reduction as it is.

    Every zero times the weight is in the sum as well: NaN where the weight is none or infinite.
    """
    dtype = reduce.dtype
    if reduce.kind != "sum" or dtype not in (torch.float32, torch.float64) or reduce.value.dtype is not dtype:
        return reduce
    if len(reduce.rvars) != 1 or not isinstance(reduce.rvars[0].extent, int):
        return reduce
    (r,) = reduce.rvars
    value = reduce.value
    if isinstance(value, Op) and value.name == "mul":
        left, right = value.args
        pairs = [(left, right), (right, left)]
    else:
        pairs = [(value, const(1.0, dtype))]
    for hot, weight in pairs:
        place = _place(hot, r)
        if place is None or _moves(weight, r):
            continue
        assert isinstance(hot, Op)
        least, most = const(0, place.dtype), const(r.extent, place.dtype)
        within = op("logical_and", torch.bool, op("ge", torch.bool, place, least), op("lt", torch.bool, place, most))
        zero = const(0.0, dtype)
        one = op("mul", dtype, op("where", dtype, within, hot.args[1], zero), weight)
        return replace(op("add", dtype, one, op("mul", dtype, zero, weight)), origin=reduce.origin)
    return reduce


def _place(hot: Value, r: LoopVar) -> Value | None:
    """Where the row has its number, if it is ``where(r == place, number, 0)``."""
    if not (isinstance(hot, Op) and hot.name == "where"):
        return None
    hit, height, zero = hot.args
    if not (isinstance(height, Const) and isinstance(zero, Const) and zero.value == 0):
        return None
    if not (isinstance(hit, Op) and hit.name == "eq"):
        return None
    for position, place in (hit.args, hit.args[::-1]):
        while isinstance(position, Op) and position.name == "cast" and _holds(position.dtype, r):
            (position,) = position.args
        if isinstance(position, IndexValue) and position.expr == r and not _moves(place, r):
            return place if place.dtype in (torch.int32, torch.int64) else None
    return None


def _holds(dtype: torch.dtype, r: LoopVar) -> bool:
    """Whether the dtype has every r as it is: in a narrow one several have one number."""
    assert isinstance(r.extent, int)
    return dtype in (torch.int32, torch.int64) and r.extent - 1 <= torch.iinfo(dtype).max


def _moves(value: Value, r: LoopVar) -> bool:
    """Whether the value is another at another r."""
    return any(
        (isinstance(v, Load) and r in v.index.free_symbols) or (isinstance(v, IndexValue) and r in v.expr.free_symbols)
        for v in walk(value)
    )
