"""Integer index algebra: loop variables with their extents, and division and remainder that simplify by them.

Expressions are sympy. Every variable is a non-negative integer, so floor and truncating division agree and Triton's
``//`` and ``%`` print them directly. Extents, strides and divisors are sizes (``compiler/sizes.py``): ints, or
monomials of size variables where they are known only at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy

from compiler.sizes import UNBOUNDED, Size, SizeVar, as_size, divide, hint, known_less, known_nonnegative, size_vars

Expr = Any  # sympy.Expr; sympy ships no types
Index = tuple[Expr, ...]


class LoopVar(sympy.Symbol):  # type: ignore[misc]
    """A loop variable that runs over 0 .. extent - 1."""

    __slots__ = ("extent",)
    extent: Size

    def __new__(cls, name: str, extent: Size) -> LoopVar:
        var: LoopVar = sympy.Symbol.__xnew__(cls, name, integer=True, nonnegative=True)
        var.extent = extent
        return var

    def __getnewargs_ex__(self) -> tuple[tuple[str, Size], dict[str, Any]]:
        return (self.name, self.extent), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.extent)


class IndirectVar(sympy.Symbol):  # type: ignore[misc]
    """An index that a computed value supplies (gather, embedding): 0 <= value < extent, which the kernel checks."""

    __slots__ = ("extent", "value")
    extent: Size
    value: Any

    def __new__(cls, value: Any, extent: Size) -> IndirectVar:
        var: IndirectVar = sympy.Symbol.__xnew__(cls, f"indirect{id(value):x}", integer=True, nonnegative=True)
        var.extent = extent
        var.value = value
        return var

    def __getnewargs_ex__(self) -> tuple[tuple[Any, Size], dict[str, Any]]:
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


INT32_MAX = 2**31 - 1


@lru_cache(maxsize=1 << 16)
def bounds(expr: Expr, largest: int = UNBOUNDED) -> tuple[int, int]:
    """The smallest and the largest value (both inclusive) that interval arithmetic gives ``expr``, where no size is
    more than ``largest``."""
    if expr.is_Integer:
        return int(expr), int(expr)
    if isinstance(expr, SizeVar):
        return expr.low, min(expr.high, largest)
    if isinstance(expr, LoopVar | IndirectVar):
        return 0, max(_highest(expr.extent, largest) - 1, 0)
    if expr.is_Add:
        parts = [bounds(arg, largest) for arg in expr.args]
        return sum(low for low, _ in parts), sum(high for _, high in parts)
    if expr.is_Mul:
        low, high = 1, 1
        for arg in expr.args:
            a, b = bounds(arg, largest)
            corners = (low * a, low * b, high * a, high * b)
            low, high = min(corners), max(corners)
        return low, high
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        low, high = bounds(expr.base, largest)
        return (low ** int(expr.exp), high ** int(expr.exp)) if low >= 0 else (-UNBOUNDED, UNBOUNDED)
    if isinstance(expr, Quotient):
        (low, high), (least, _) = bounds(expr.args[0], largest), bounds(expr.args[1], largest)
        return (low // max(least, 1), high // max(least, 1)) if expr.args[1].is_Integer else (min(low, 0), high)
    if isinstance(expr, Remainder):
        high = bounds(expr.args[0], largest)[1]
        return 0, min(bounds(expr.args[1], largest)[1] - 1, high)
    raise TypeError(f"no bounds for {expr!r}")


def _highest(size: Size, largest: int) -> int:
    return size if isinstance(size, int) else bounds(size, largest)[1]


def fits_int32(expr: Expr) -> bool:
    """Whether ``expr`` and all that it is computed from lie within an int32 as long as every size does."""
    parts = [bounds(part, INT32_MAX) for part in sympy.preorder_traversal(expr)]
    return all(low >= -INT32_MAX and high <= INT32_MAX for low, high in parts)


@lru_cache(maxsize=1 << 14)
def upper(expr: Expr) -> Expr:
    """A bound from above (inclusive) of an index, as a polynomial of the size variables."""
    if isinstance(expr, LoopVar | IndirectVar):
        return sympy.sympify(expr.extent) - 1
    if expr.is_Add:
        return sympy.expand(sympy.Add(*(upper(term) for term in expr.args)))
    if isinstance(expr, Remainder):
        whole = upper(expr.args[0])
        return whole if known_nonnegative(expr.args[1] - 1 - whole) else expr.args[1] - 1
    if isinstance(expr, Quotient):
        whole = upper(expr.args[0])
        quotient, rest = _split_multiples(sympy.expand(whole + 1), as_size(expr.args[1]))
        return quotient - 1 if rest == 0 else whole
    if expr.is_Mul:
        coefficient, factors = expr.as_coeff_Mul()
        if coefficient < 0 and any(not isinstance(s, SizeVar) for s in factors.free_symbols):
            return sympy.Integer(0)  # the variables are never negative
        return sympy.expand(coefficient * sympy.Mul(*(upper(f) for f in sympy.Mul.make_args(factors))))
    return expr  # a number, a size variable, a power of one


def _within(rest: Expr, divisor: Size) -> bool:
    """Whether 0 <= ``rest`` < ``divisor``."""
    low, high = bounds(rest)
    if low < 0:
        return False
    if isinstance(divisor, int):
        return high < divisor or (bool(size_vars(rest)) and known_nonnegative(divisor - 1 - upper(rest)))
    return known_nonnegative(sympy.expand(divisor - 1 - upper(rest)))


def _split_multiples(expr: Expr, divisor: Size) -> tuple[Expr, Expr]:
    """``expr`` as ``(q, rest)`` with ``expr == q * divisor + rest``, taking whole terms only."""
    quotient, rest = [], []
    for term in sympy.Add.make_args(expr):
        whole = divide(term, divisor)
        if whole is None:
            rest.append(term)
        else:
            quotient.append(whole)
    return sympy.Add(*quotient), sympy.Add(*rest)


@lru_cache(maxsize=1 << 16)
def floor_div(expr: Expr, divisor: Size) -> Expr:
    """``expr // divisor`` for ``expr >= 0`` and ``divisor > 0``, simplified by the variables' bounds."""
    expr = sympy.sympify(expr)
    if divisor == 1:
        return expr
    quotient, rest = _split_multiples(expr, divisor)
    if _within(rest, divisor):
        return quotient
    if bounds(rest)[0] < 0:  # splitting would leave a negative remainder behind: keep the division whole
        return Quotient(expr, sympy.sympify(divisor))
    if isinstance(rest, Quotient):
        return quotient + floor_div(rest.args[0], as_size(rest.args[1]) * divisor)
    return quotient + Quotient(rest, sympy.sympify(divisor))


@lru_cache(maxsize=1 << 16)
def mod(expr: Expr, divisor: Size) -> Expr:
    """``expr % divisor`` for ``expr >= 0`` and ``divisor > 0``, simplified by the variables' bounds."""
    expr = sympy.sympify(expr)
    if divisor == 1:
        return sympy.Integer(0)
    _, rest = _split_multiples(expr, divisor)
    if _within(rest, divisor):
        return rest
    if bounds(rest)[0] < 0:
        return Remainder(expr, sympy.sympify(divisor))
    if isinstance(rest, Remainder) and divide(as_size(rest.args[1]), divisor) is not None:
        return mod(rest.args[0], divisor)
    return Remainder(rest, sympy.sympify(divisor))


def substitute(expr: Expr, mapping: Mapping[Any, Expr]) -> Expr:
    """``expr`` with variables replaced, and every division and remainder simplified again."""
    if not mapping or not expr.free_symbols:
        return expr
    result = _substitute(expr, mapping, {})
    return _rejoined(result) if result.is_Add else result


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
        result = floor_div(args[0], as_size(args[1]))
    elif isinstance(expr, Remainder):
        result = mod(args[0], as_size(args[1]))
    else:
        result = expr.func(*args)
        if result.is_Mul and any(arg.is_Add for arg in result.args):
            result = sympy.expand(result)
    memo[expr] = result
    return result


def linear_index(index: Sequence[Expr], strides: Sequence[Size], offset: Size = 0) -> Expr:
    """The memory offset, in elements, of ``index`` in a tensor with these strides."""
    terms = [sympy.expand(i * s) for i, s in zip(index, strides, strict=True)]
    return _rejoined(sympy.Add(sympy.sympify(offset), *terms))


def _rejoined(expr: Expr) -> Expr:
    """``expr`` with every ``n * (e // n) + e % n``, times anything, written as ``e``: an index taken apart and put
    together again is affine again, which coalescing and the choice of loops are judged by."""
    for remainder in expr.atoms(Remainder):
        factor = expr.coeff(remainder)
        whole, divisor = remainder.args
        pair = factor * (remainder + divisor * floor_div(whole, as_size(divisor)))
        if factor != 0 and not set(sympy.Add.make_args(sympy.expand(pair))) - set(sympy.Add.make_args(expr)):
            return _rejoined(sympy.expand(expr - pair + factor * whole))
    return expr


def unflatten(flat: Expr, sizes: Sequence[Size]) -> Index:
    """The row-major index into ``sizes`` that ``flat`` stands for."""
    result: list[Expr] = []
    stride: Size = 1
    for axis in range(len(sizes) - 1, -1, -1):
        quotient = floor_div(flat, stride)
        result.append(quotient if axis == 0 else mod(quotient, sizes[axis]))
        stride = as_size(stride * sizes[axis])
    if sizes and sizes[0] == 1:
        result[-1] = sympy.Integer(0)
    return tuple(reversed(result))


def contiguous_strides(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Row-major strides, in elements."""
    strides: list[Size] = []
    stride: Size = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride = as_size(stride * (max(size, 1) if isinstance(size, int) else size))
    return tuple(reversed(strides))


def split_term(term: Expr) -> tuple[Size, Expr]:
    """A term as (coefficient, rest): numbers and size variables in one, everything that a loop moves in the other."""
    coefficient, factors = term.as_coeff_Mul()
    if not size_vars(factors):
        return int(coefficient), factors
    fixed = [f for f in sympy.Mul.make_args(factors) if all(isinstance(s, SizeVar) for s in f.free_symbols)]
    return as_size(coefficient * sympy.Mul(*fixed)), factors / sympy.Mul(*fixed)


def coefficients(expr: Expr, variables: Sequence[Any]) -> tuple[dict[Any, Size], Expr] | None:
    """``expr`` as ``sum(coefficient * variable) + rest`` with a ``rest`` that no loop moves; None where it is not
    affine."""
    result: dict[Any, Size] = {}
    rest = sympy.Integer(0)
    known = set(variables)
    for term in sympy.Add.make_args(expr):
        coefficient, factor = split_term(term)
        if factor == 1:
            rest += coefficient
        elif factor in known:
            result[factor] = as_size(result.get(factor, 0) + coefficient)
        else:
            return None
    return result, rest


def check_index(expr: Expr) -> None:
    """Make sure that the expression is made of variables, sums, products and the divisions of this module.

    Raises:
        TypeError: it is not; Python's own ``//`` and ``%`` on a symbolic size make such expressions.
    """
    functions = {f for f in expr.atoms(sympy.Function) if not isinstance(f, Quotient | Remainder)}
    symbols = {s for s in expr.free_symbols if not isinstance(s, LoopVar | IndirectVar | SizeVar)}
    if functions or symbols:
        raise TypeError(f"{expr} is no index")


def view_index(index: Index, old: Sequence[Size], new: Sequence[Size]) -> Index:
    """The index into sizes ``old`` of the element that ``index`` names in the same memory order seen as ``new``.

    Runs of dimensions that hold the same number of elements are matched, so that a reshape which only splits or
    merges neighbouring dimensions never divides by anything else. Where sizes known only at run time leave open which
    dimensions match, the rest is one run: both hold the same number of elements, for it is a view.
    """
    result: list[Expr] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first_i, first_j = i, j
        old_count: Size = 1
        new_count: Size = 1
        if i < len(old):
            old_count = old[i]
            i += 1
        if j < len(new):
            new_count = new[j]
            j += 1
        while old_count != new_count:
            smaller = _smaller(old_count, new_count)
            if smaller == "old" and i < len(old):
                old_count = as_size(old_count * old[i])
                i += 1
            elif smaller == "new" and j < len(new):
                new_count = as_size(new_count * new[j])
                j += 1
            elif isinstance(old_count, int) and isinstance(new_count, int):
                raise ValueError(f"cannot view {tuple(old)} as {tuple(new)}")
            else:
                i, j = len(old), len(new)
                break
        news = list(zip(index[first_j:j], new[first_j:j], strict=True))
        strides = contiguous_strides([size for _, size in news])
        flat = sympy.Add(*[sympy.expand(value * s) for (value, _), s in zip(news, strides, strict=True)])
        result.extend(unflatten(flat, old[first_i:i]))
    return tuple(result)


def is_dense(size: Sequence[Size], stride: Sequence[Size]) -> bool:
    """Whether the strides are known to cover memory without gaps or overlaps."""
    expected: Size = 1
    for s, extent in _by_stride(size, stride):
        if s != expected:
            return False
        expected = as_size(expected * extent)
    return True


def has_gaps(size: Sequence[Size], stride: Sequence[Size]) -> bool:
    """Whether elements are known to lie apart in memory, without overlapping."""
    expected: Size = 1
    gaps = False
    for s, extent in _by_stride(size, stride):
        if s != expected:
            if not known_less(expected, s):
                return False
            gaps = True
        expected = as_size(s * extent)
    return gaps


def _by_stride(size: Sequence[Size], stride: Sequence[Size]) -> list[tuple[Size, Size]]:
    """(stride, size) of the dimensions that may have several elements, smallest stride first."""
    dims = [(st, sz) for st, sz in zip(stride, size, strict=True) if not isinstance(sz, int) or sz > 1]
    return sorted(dims, key=lambda dim: (hint(dim[0]), hint(dim[1])))


def _smaller(old: Size, new: Size) -> str:
    """Which of two different counts has to grow for them to meet; "" where that is not known."""
    if isinstance(old, int) and isinstance(new, int):
        return "old" if old < new else "new"
    if divide(new, old) is not None:
        return "old"
    return "new" if divide(old, new) is not None else ""
