"""Division with its roundings, and what it leaves over."""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir import Lazy, Value
from compiler.lowering.pointwise import KIND, divide, elementwise
from compiler.lowering.registry import Scope, lower
from compiler.ops import const, op

aten = torch.ops.aten


def floor_divide(dtype: torch.dtype, a: Value, b: Value) -> Value:
    """Division rounded towards minus infinity; integers correct the truncated quotient by the remainder's sign."""
    if dtype.is_floating_point:
        return _float_floor_divide(dtype, a, b)
    quotient = op("trunc_div", dtype, a, b)
    above = _is_above(dtype, op("trunc_rem", dtype, a, b), b)
    return op("where", dtype, above, op("sub", dtype, quotient, const(1, dtype)), quotient)


def _is_above(dtype: torch.dtype, rest: Value, b: Value) -> Value:
    """Whether a quotient rounded towards zero, which leaves ``rest``, is above the one towards minus infinity."""
    zero = const(0, dtype)
    differs = op("ne", dtype, op("lt", dtype, rest, zero), op("lt", dtype, b, zero))
    return op("logical_and", torch.bool, op("ne", dtype, rest, zero), differs)


def _float_floor_divide(dtype: torch.dtype, a: Value, b: Value) -> Value:
    """torch's rule (c10 div_floor_floating): through fmod, so that the result is exact where a / b would round up."""
    zero = const(0, dtype)
    rest = op("fmod", dtype, a, b)
    quotient = divide(dtype, op("sub", dtype, a, rest), b, exact=True)
    quotient = op("where", dtype, _is_above(dtype, rest, b), op("sub", dtype, quotient, const(1, dtype)), quotient)
    floor = op("floor", dtype, quotient)
    above = op("gt", dtype, op("sub", dtype, quotient, floor), const(0.5, dtype))
    floor = op("where", dtype, above, op("add", dtype, floor, const(1, dtype)), floor)
    plain = divide(dtype, a, b, exact=True)
    floor = op("where", dtype, op("eq", dtype, quotient, zero), op("copysign", dtype, zero, plain), floor)
    return op("where", dtype, op("eq", dtype, b, zero), plain, floor)


@lower(aten.div, aten.true_divide)
def div(scope: Scope, a: Any, b: Any, rounding_mode: str | None = None) -> Lazy:
    """Division: true, or rounded towards zero or minus infinity."""
    if rounding_mode is None:
        return elementwise(scope, divide, KIND.INT_TO_FLOAT, (a, b))
    if rounding_mode == "floor":
        return elementwise(scope, floor_divide, KIND.DEFAULT, (a, b))

    def truncate(dtype: torch.dtype, x: Value, y: Value) -> Value:
        if not dtype.is_floating_point:
            return op("trunc_div", dtype, x, y)
        return op("trunc", dtype, divide(dtype, x, y, exact=True))

    return elementwise(scope, truncate, KIND.DEFAULT, (a, b))


@lower(aten.floor_divide)
def floor_div(scope: Scope, a: Any, b: Any) -> Lazy:
    """a / b rounded towards minus infinity."""
    return elementwise(scope, floor_divide, KIND.DEFAULT, (a, b))


def _rest(dtype: torch.dtype, a: Value, b: Value) -> Value:
    return op("fmod" if dtype.is_floating_point else "trunc_rem", dtype, a, b)


@lower(aten.fmod)
def fmod(scope: Scope, a: Any, b: Any) -> Lazy:
    """a - trunc(a / b) * b: the result has the dividend's sign."""
    return elementwise(scope, _rest, KIND.DEFAULT, (a, b), rounded=True)


@lower(aten.remainder)
def remainder(scope: Scope, a: Any, b: Any) -> Lazy:
    """a - floor(a / b) * b: the result has the divisor's sign."""

    def body(dtype: torch.dtype, x: Value, y: Value) -> Value:
        rest = _rest(dtype, x, y)
        return op("where", dtype, _is_above(dtype, rest, y), op("add", dtype, rest, y), rest)

    return elementwise(scope, body, KIND.DEFAULT, (a, b), rounded=True)
