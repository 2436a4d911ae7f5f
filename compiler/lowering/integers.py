"""Whole-number arithmetic beyond one primitive: shifts by any amount, powers with exponents known at run time."""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir import Const, Lazy, Value
from compiler.lowering.pointwise import KIND, elementwise
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.ops import const, op

aten = torch.ops.aten


def _shifted(scope: Scope, a: Any, b: Any, left: bool) -> Lazy:
    """All bits go where the amount is negative or no less than the dtype's bits; a sign fills from the left."""
    if scope.output.dtype.is_floating_point or scope.output.dtype is torch.bool:
        raise NotLowered("a shift of numbers that are not whole")

    def body(dtype: torch.dtype, x: Value, amount: Value) -> Value:
        bits = torch.iinfo(dtype).bits
        zero = const(0, dtype)
        if left:
            empty: Value = zero
        else:
            empty = op("where", dtype, op("lt", torch.bool, x, zero), const(-1, dtype), zero)
        if isinstance(amount, Const) and not 0 <= amount.value < bits:
            return op("mul", dtype, x, zero) if left else empty
        moved = op("shift_left" if left else "shift_right", dtype, x, amount)
        if isinstance(amount, Const):
            return moved
        high, low = op("ge", torch.bool, amount, const(bits, dtype)), op("lt", torch.bool, amount, zero)
        return op("where", dtype, op("logical_or", torch.bool, low, high), empty, moved)

    return elementwise(scope, body, KIND.DEFAULT, (a, b))


@lower(aten.__lshift__, aten.bitwise_left_shift)
def shift_left(scope: Scope, a: Any, b: Any) -> Lazy:
    """a << b."""
    return _shifted(scope, a, b, True)


@lower(aten.__rshift__, aten.bitwise_right_shift)
def shift_right(scope: Scope, a: Any, b: Any) -> Lazy:
    """a >> b."""
    return _shifted(scope, a, b, False)
