"""Sizes, some of them known only at run time.

A size is a Python int, or where it is symbolic a *monomial*: an integer times powers of size variables. A sum such as
``s0 + 1`` is a size variable of its own, so that every stride, extent and divisor is one product, and whether one
divides another can be read off. Nothing here guesses: what cannot be proved for every value is answered with no.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import sympy

Expr = Any  # sympy.Expr; sympy ships no types
Size = Any  # int, or a monomial of SizeVars

UNBOUNDED = 1 << 62  # no size of a tensor is larger
UNKNOWN_HINT = 4096  # what a size is taken to be, for estimates, where no example shows one (a count of non-zeros)


class SizeVar(sympy.Symbol):  # type: ignore[misc]
    """A number known only at run time: ``low <= value <= high``, and ``hint`` in the example it was captured with.

    ``definition`` is what the wrapper computes it from: torch's own expression over the symbols of the capture.
    """

    __slots__ = ("definition", "high", "hint", "low")
    low: int
    high: int
    hint: int
    definition: Expr

    def __new__(cls, name: str, low: int, high: int, hint: int, definition: Expr = None) -> SizeVar:
        assumptions = {"nonnegative": True} if low >= 0 else {}
        var: SizeVar = sympy.Symbol.__xnew__(cls, name, integer=True, **assumptions)
        var.low, var.high, var.hint, var.definition = low, high, hint, definition
        return var

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.name, self.low, self.high, self.hint, self.definition), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        # sympy caches results by equality, and a variable of another capture may have the same name
        return (*super()._hashable_content(), self.low, self.high, self.hint)


def as_size(value: Any) -> Size:
    """A number as a Python int where it is one."""
    return int(value) if isinstance(value, int) or value.is_Integer else value


def is_static(size: Size) -> bool:
    """Whether the size is known at compile time."""
    return isinstance(size, int)


def size_vars(expr: Any) -> set[SizeVar]:
    """The size variables in a size or an index."""
    return set() if isinstance(expr, int) else {s for s in expr.free_symbols if isinstance(s, SizeVar)}


def product(sizes: Iterable[Size]) -> Size:
    """The number of elements."""
    result: Size = 1
    for size in sizes:
        result = size * result
    return as_size(result)


def hint(size: Size) -> int:
    """The size in the example that was captured. For estimates and choices of speed only."""
    if isinstance(size, int):
        return size
    return int(size.xreplace({var: sympy.Integer(var.hint) for var in size_vars(size)}))


def hints(sizes: Sequence[Size]) -> tuple[int, ...]:
    """``hint`` of each."""
    return tuple(hint(size) for size in sizes)


def at_least(size: Size, limit: int) -> bool:
    """Whether the size is known to be ``limit`` or more."""
    return size >= limit if isinstance(size, int) else lowest(size) >= limit


def lowest(size: Size) -> int:
    """The smallest value that a size can have."""
    if isinstance(size, int):
        return size
    result = 1
    for factor in sympy.Mul.make_args(size):
        base, exponent = factor.as_base_exp()
        result *= (int(base) if base.is_Integer else base.low) ** int(exponent)
    return result


def multiple_of(size: Size, number: int) -> bool:
    """Whether the size is known to be a multiple of ``number``."""
    return size % number == 0 if isinstance(size, int) else int(size.as_coeff_Mul()[0]) % number == 0


@lru_cache(maxsize=1 << 14)
def divide(dividend: Expr, divisor: Size) -> Expr | None:
    """``dividend / divisor`` where the division of these monomials leaves nothing; None otherwise.

    The factors of ``dividend`` may be any symbols, those of ``divisor`` are size variables.
    """
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor if divisor and dividend % divisor == 0 else None
    coefficient, rest = sympy.sympify(dividend).as_coeff_Mul()
    number, factors = sympy.sympify(divisor).as_coeff_Mul()
    if factors.is_Add or not number or int(coefficient) % int(number):
        return None
    have = rest.as_powers_dict()
    for base, exponent in factors.as_powers_dict().items():
        if base != 1 and have.get(base, 0) < exponent:
            return None
    return as_size(sympy.Integer(int(coefficient) // int(number)) * (rest / factors))


@lru_cache(maxsize=1 << 14)
def known_nonnegative(expr: Expr) -> bool:
    """Whether a polynomial of size variables is >= 0 whatever their values: every variable is written as its lowest
    value and a remainder, and no coefficient may then be negative."""
    if isinstance(expr, int) or expr.is_Integer:
        return bool(expr >= 0)
    variables = size_vars(expr)
    if any(var.low <= -UNBOUNDED for var in variables):
        return False
    rests = {var: var.low + sympy.Symbol(f"{var.name}'", nonnegative=True) for var in variables}
    expanded = sympy.expand(expr.xreplace(rests))
    return all(term.as_coeff_Mul()[0] >= 0 for term in sympy.Add.make_args(expanded))


def known_less(a: Size, b: Size) -> bool:
    """Whether ``a < b`` whatever the sizes."""
    return bool(known_nonnegative(as_size(sympy.expand(sympy.sympify(b) - a - 1))))
