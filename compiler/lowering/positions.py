"""Positions along a dimension whose size may be known only at run time."""

from __future__ import annotations

from typing import Any

from compiler.lowering.registry import NotLowered
from compiler.lowering.symbols import derived, torch_expr
from compiler.sizes import Size, at_least, known_nonnegative


def clamped(position: Any, size: Size) -> Any:
    """Where a slice that is asked to start at ``position`` does start; negative positions count from the end."""
    if isinstance(position, int) and isinstance(size, int):
        return max(0, position + size) if position < 0 else min(position, size)
    if isinstance(position, int):
        if position >= 0:
            return position  # past the end there is no element, and nothing is read
        if at_least(size, -position):
            return size + position
    elif known_nonnegative(position):
        return position
    raise NotLowered("a slice whose start is known only at run time")


def wrapped(position: Any, size: Size) -> Any:
    """A position that may count from the end, from the start."""
    if isinstance(position, int):
        return position % size if isinstance(size, int) else position if position >= 0 else size + position
    if known_nonnegative(position):
        return position
    raise NotLowered("a position known only at run time")


def remainder(number: int, size: Size) -> Any:
    """``number % size`` as Python has it: never negative."""
    from torch.utils._sympy.functions import PythonMod

    if isinstance(number, int) and isinstance(size, int):
        return number % size if size else 0
    if number == 0:
        return 0
    return derived(PythonMod(torch_expr(number), torch_expr(size)), size)
