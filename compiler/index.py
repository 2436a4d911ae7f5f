"""Integer index algebra: loop variables with known extents, and division and remainder that simplify by them.

Expressions are sympy. Every variable is a non-negative integer, so floor and truncating division agree and Triton's
``//`` and ``%`` print them directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy

Expr = Any  # sympy.Expr; sympy ships no types
Index = tuple[Expr, ...]


class LoopVar(sympy.Symbol):  # type: ignore[misc]
    """A loop variable that runs over 0 .. extent - 1."""

    __slots__ = ("extent",)
    extent: int

    def __new__(cls, name: str, extent: int) -> LoopVar:
        var: LoopVar = sympy.Symbol.__xnew__(cls, name, integer=True, nonnegative=True)
        var.extent = extent
        return var

    def __getnewargs_ex__(self) -> tuple[tuple[str, int], dict[str, Any]]:
        return (self.name, self.extent), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.extent)


class IndirectVar(sympy.Symbol):  # type: ignore[misc]
    """An index that a computed value supplies (gather, embedding): 0 <= value < extent, which the kernel checks."""

    __slots__ = ("extent", "value")
    extent: int
    value: Any

    def __new__(cls, value: Any, extent: int) -> IndirectVar:
        var: IndirectVar = sympy.Symbol.__xnew__(cls, f"indirect{id(value):x}", integer=True, nonnegative=True)
        var.extent = extent
        var.value = value
        return var

    def __getnewargs_ex__(self) -> tuple[tuple[Any, int], dict[str, Any]]:
        return (self.value, self.extent), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), id(self.value))


class Quotient(sympy.Function):  # type: ignore[misc]
    """``a // b`` with a >= 0 and b > 0, kept as it stands. Build it with ``floor_div``."""

    nargs = (2,)
    is_integer = True
    is_nonnegative = True


class Remainder(sympy.Function):  # type: ignore[misc]
    """``a % b`` with a >= 0 and b > 0, kept as it stands. Build it with ``mod``."""

    nargs = (2,)
    is_integer = True
    is_nonnegative = True


@lru_cache(maxsize=1 << 16)
def bounds(expr: Expr) -> tuple[int, int]:
    """The smallest and the largest value (both inclusive) that interval arithmetic gives ``expr``."""
    if expr.is_Integer:
        return int(expr), int(expr)
    if isinstance(expr, LoopVar | IndirectVar):
        return 0, max(expr.extent - 1, 0)
    if expr.is_Add:
        parts = [bounds(arg) for arg in expr.args]
        return sum(low for low, _ in parts), sum(high for _, high in parts)
    if expr.is_Mul:
        low, high = 1, 1
        for arg in expr.args:
            a, b = bounds(arg)
            corners = (low * a, low * b, high * a, high * b)
            low, high = min(corners), max(corners)
        return low, high
    if isinstance(expr, Quotient):
        (low, high), divisor = bounds(expr.args[0]), int(expr.args[1])
        return low // divisor, high // divisor
    if isinstance(expr, Remainder):
        high = bounds(expr.args[0])[1]
        return 0, min(int(expr.args[1]) - 1, high)
    raise TypeError(f"no bounds for {expr!r}")


def _split_multiples(expr: Expr, divisor: int) -> tuple[Expr, Expr]:
    """``expr`` as ``(q, rest)`` with ``expr == q * divisor + rest``, taking whole terms only."""
    quotient, rest = [], []
    for term in sympy.Add.make_args(expr):
        coefficient, factors = term.as_coeff_Mul()
        if int(coefficient) % divisor == 0:
            quotient.append((int(coefficient) // divisor) * factors)
        else:
            rest.append(term)
    return sympy.Add(*quotient), sympy.Add(*rest)


@lru_cache(maxsize=1 << 16)
def floor_div(expr: Expr, divisor: int) -> Expr:
    """``expr // divisor`` for ``expr >= 0`` and ``divisor > 0``, simplified by the variables' bounds."""
    expr = sympy.sympify(expr)
    if divisor == 1:
        return expr
    quotient, rest = _split_multiples(expr, divisor)
    low, high = bounds(rest)
    if low >= 0 and high < divisor:
        return quotient
    if low < 0:  # splitting would leave a negative remainder behind: keep the division whole
        return Quotient(expr, sympy.Integer(divisor))
    if isinstance(rest, Quotient):
        return quotient + floor_div(rest.args[0], int(rest.args[1]) * divisor)
    return quotient + Quotient(rest, sympy.Integer(divisor))


@lru_cache(maxsize=1 << 16)
def mod(expr: Expr, divisor: int) -> Expr:
    """``expr % divisor`` for ``expr >= 0`` and ``divisor > 0``, simplified by the variables' bounds."""
    expr = sympy.sympify(expr)
    if divisor == 1:
        return sympy.Integer(0)
    _, rest = _split_multiples(expr, divisor)
    low, high = bounds(rest)
    if low >= 0 and high < divisor:
        return rest
    if low < 0:
        return Remainder(expr, sympy.Integer(divisor))
    if isinstance(rest, Remainder) and int(rest.args[1]) % divisor == 0:
        return mod(rest.args[0], divisor)
    return Remainder(rest, sympy.Integer(divisor))


def substitute(expr: Expr, mapping: Mapping[Any, Expr]) -> Expr:
    """``expr`` with variables replaced, and every division and remainder simplified again."""
    if not mapping or not expr.free_symbols:
        return expr
    return _substitute(expr, mapping, {})


def _substitute(expr: Expr, mapping: Mapping[Any, Expr], memo: dict[Any, Expr]) -> Expr:
    if expr in mapping:
        return mapping[expr]
    if expr.is_Symbol or expr.is_Integer:
        return expr
    if expr in memo:
        return memo[expr]
    args = [_substitute(arg, mapping, memo) for arg in expr.args]
    result: Expr
    if isinstance(expr, Quotient):
        result = floor_div(args[0], int(args[1]))
    elif isinstance(expr, Remainder):
        result = mod(args[0], int(args[1]))
    else:
        result = expr.func(*args)
        if result.is_Mul and any(arg.is_Add for arg in result.args):
            result = sympy.expand(result)
    memo[expr] = result
    return result


def linear_index(index: Sequence[Expr], strides: Sequence[int], offset: int = 0) -> Expr:
    """The memory offset, in elements, of ``index`` in a tensor with these strides."""
    terms = [sympy.expand(i * s) for i, s in zip(index, strides, strict=True)]
    return _rejoined(sympy.Add(sympy.Integer(offset), *terms))


def _rejoined(expr: Expr) -> Expr:
    """``expr`` with every ``n * (e // n) + e % n``, times anything, written as ``e``: an index taken apart and put
    together again is affine again, which coalescing and the choice of loops are judged by."""
    for remainder in expr.atoms(Remainder):
        factor = expr.coeff(remainder)
        whole, divisor = remainder.args
        pair = factor * (remainder + divisor * floor_div(whole, divisor))
        if factor != 0 and not set(sympy.Add.make_args(sympy.expand(pair))) - set(sympy.Add.make_args(expr)):
            return _rejoined(sympy.expand(expr - pair + factor * whole))
    return expr


def unflatten(flat: Expr, sizes: Sequence[int]) -> Index:
    """The row-major index into ``sizes`` that ``flat`` stands for."""
    result: list[Expr] = []
    stride = 1
    for axis in range(len(sizes) - 1, -1, -1):
        quotient = floor_div(flat, stride)
        result.append(quotient if axis == 0 else mod(quotient, sizes[axis]))
        stride *= sizes[axis]
    if sizes and sizes[0] == 1:
        result[-1] = sympy.Integer(0)
    return tuple(reversed(result))


def contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides: list[int] = []
    stride = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))


def product(sizes: Sequence[int]) -> int:
    """The number of elements."""
    result = 1
    for size in sizes:
        result *= size
    return result


def coefficients(expr: Expr, variables: Sequence[Any]) -> tuple[dict[Any, int], Expr] | None:
    """``expr`` as ``sum(coefficient * variable) + rest`` with a constant ``rest``; None where it is not affine."""
    result: dict[Any, int] = {}
    rest = sympy.Integer(0)
    known = set(variables)
    for term in sympy.Add.make_args(expr):
        coefficient, factor = term.as_coeff_Mul()
        if factor == 1:
            rest += coefficient
        elif factor in known:
            result[factor] = result.get(factor, 0) + int(coefficient)
        else:
            return None
    return result, rest


def view_index(index: Index, old: Sequence[int], new: Sequence[int]) -> Index:
    """The index into sizes ``old`` of the element that ``index`` names in the same memory order seen as ``new``.

    Runs of dimensions that hold the same number of elements are matched, so that a reshape which only splits or
    merges neighbouring dimensions never divides by anything else.
    """
    result: list[Expr] = []
    i = j = 0
    while i < len(old) or j < len(new):
        olds, news = [], []
        old_count = new_count = 1
        if i < len(old):
            olds.append(old[i])
            old_count = old[i]
            i += 1
        if j < len(new):
            news.append((new[j], index[j]))
            new_count = new[j]
            j += 1
        while old_count != new_count:
            if old_count < new_count:
                if i >= len(old):
                    raise ValueError(f"cannot view {tuple(old)} as {tuple(new)}")
                olds.append(old[i])
                old_count *= old[i]
                i += 1
            else:
                if j >= len(new):
                    raise ValueError(f"cannot view {tuple(old)} as {tuple(new)}")
                news.append((new[j], index[j]))
                new_count *= new[j]
                j += 1
        strides = contiguous_strides([size for size, _ in news])
        flat = sympy.Add(*[sympy.expand(value * s) for (_, value), s in zip(news, strides, strict=True)])
        result.extend(unflatten(flat, olds))
    return tuple(result)


def is_dense(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the strides cover memory without gaps or overlaps."""
    expected = 1
    for s, extent in sorted((st, sz) for st, sz in zip(stride, size, strict=True) if sz > 1):
        if s != expected:
            return False
        expected *= extent
    return True


def has_gaps(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements lie apart in memory, without overlapping."""
    expected = 1
    gaps = False
    for s, extent in sorted((st, sz) for st, sz in zip(stride, size, strict=True) if sz > 1):
        if s < expected:
            return False
        gaps |= s != expected
        expected = s * extent
    return gaps
