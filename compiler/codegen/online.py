"""The maximum of a row and the sum of exponentials below it, in one pass instead of two.

A softmax or a loss by class wants ``sum(exp(x - max(x)))``. Where the row does not stay in registers, the sum can be
kept relative to the maximum so far, and be scaled whenever that grows.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from compiler.ir import Const, IndexValue, Load, Op, Reduce, Value


def online_sums(reduces: Iterable[Reduce]) -> dict[int, Reduce]:
    """``id`` of each sum that can be kept beside a maximum -> that maximum, which has no other sum."""
    found: dict[int, Reduce] = {}
    taken: set[int] = set()
    for total in reduces:
        high = _maximum_below(total)
        if high is not None and id(high) not in taken:
            taken.add(id(high))
            found[id(total)] = high
    return found


def _maximum_below(total: Reduce) -> Reduce | None:
    """The maximum of ``x`` where ``total`` is the sum of ``exp(x - maximum)`` over the same loops."""
    if total.kind != "sum" or total.dtype not in (torch.float32, torch.float64):
        return None
    exponential = total.value
    if not (isinstance(exponential, Op) and exponential.name == "exp"):
        return None
    (less,) = exponential.args
    if not (isinstance(less, Op) and less.name == "sub"):
        return None
    x, high = less.args
    if not (isinstance(high, Reduce) and high.kind == "max" and high.dtype is total.dtype):
        return None
    return high if high.rvars == total.rvars and same(high.value, x) else None


def same(a: Value, b: Value) -> bool:
    """Whether two values are computed alike."""
    pairs = [(a, b)]
    seen: set[tuple[int, int]] = set()
    while pairs:
        a, b = pairs.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        if a.dtype is not b.dtype:
            return False
        if isinstance(a, Const) and isinstance(b, Const):
            if a.value != b.value:
                return False
        elif isinstance(a, IndexValue) and isinstance(b, IndexValue):
            if a.expr != b.expr:
                return False
        elif isinstance(a, Load) and isinstance(b, Load):
            if (a.buffer.name, a.index, a.other) != (b.buffer.name, b.index, b.other):
                return False
            if (a.mask is None) != (b.mask is None):
                return False
            if a.mask is not None and b.mask is not None:
                pairs.append((a.mask, b.mask))
        elif isinstance(a, Op) and isinstance(b, Op):
            if a.name != b.name or len(a.args) != len(b.args):
                return False
            pairs.extend(zip(a.args, b.args, strict=True))
        else:
            return False
    return True
