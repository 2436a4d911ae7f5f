"""How the windows of a pooling op lie over one dimension: those of a kernel and a stride, or an adaptive pool's.

A window has at most ``kernel`` elements, an element lies in at most ``overlaps`` windows. Which elements and which
windows these are is index arithmetic, with a test where a place may lie outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
import torch

from compiler.index import Expr, floor_div
from compiler.ir import IndexValue, Value
from compiler.ops import const, op, scalar
from compiler.sizes import Size, known_less

INT = torch.int64


@dataclass(frozen=True)
class Windows:
    """Windows of ``kernel`` elements over a dimension of ``size``; there are ``count`` of them."""

    size: Size
    count: Size
    kernel: int
    stride: int
    padding: int
    dilation: int

    @property
    def inside(self) -> bool:
        """Whether every window lies within the dimension."""
        last = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation
        return self.padding == 0 and known_less(last, self.size)

    @property
    def overlaps(self) -> int:
        """The most windows that an element lies in."""
        return -(-((self.kernel - 1) * self.dilation + 1) // self.stride)

    def tap(self, at: Expr, offset: int) -> tuple[Expr, list[Value]]:
        """The place of an element of the window at ``at``, and what has to hold for it to lie within."""
        place = self._start(at) + offset * self.dilation
        if self.inside:
            return place, []
        return place, _between(place, 0 if self.padding else None, self.size)

    def cover(self, place: Expr, step: int) -> tuple[Expr, list[Value]]:
        """The number of a window over the element at ``place``, and what has to hold for it to be one."""
        nth = floor_div(place + self.padding, self.stride) - step
        if self.stride == self.kernel and self.count * self.stride == self.size + self.padding:
            return nth, []
        tests = _between(nth, 0 if step else None, self.count)
        if self.kernel % self.stride or self.kernel < self.stride:
            tests += _between(self._start(nth) + self.kernel - place, 1, None)
        return nth, tests

    def first_inside(self, at: Expr) -> Value:
        """The first element of a window that lies within: where the maximum is if all are the lowest number there
        is."""
        start = IndexValue(INT, self._start(at))
        if not self.padding:
            return start
        zero = const(0, INT)
        if self.dilation == 1:
            return op("where", INT, op("lt", torch.bool, start, zero), zero, start)
        step = const(self.dilation, INT)
        short = op("sub", INT, const(self.dilation - 1, INT), start)
        steps = op("mul", INT, op("trunc_div", INT, short, step), step)
        return op("where", INT, op("lt", torch.bool, start, zero), op("add", INT, start, steps), start)

    def is_whole(self, padded: bool) -> bool:
        """Whether ``length`` is ``kernel`` for every window."""
        within = known_less((self.count - 1) * self.stride + self.kernel - 1, self.size + 2 * self.padding)
        return self.inside or (padded and within)

    def length(self, at: Expr, padded: bool) -> Value:
        """How many elements of a window count; with ``padded`` those of the border do, too."""
        start = self._start(at)
        low = 0 if not padded else -self.padding
        high = self.size + (self.padding if padded else 0)
        first = op("maximum", INT, IndexValue(INT, start), const(low, INT))
        return op("sub", INT, op("minimum", INT, IndexValue(INT, start + self.kernel), scalar(high, INT)), first)

    def _start(self, at: Expr) -> Expr:
        return sympy.expand(at * self.stride) - self.padding


@dataclass(frozen=True)
class UnevenWindows:
    """As many windows as asked for, as even as whole numbers allow: neighbours may share an element."""

    size: int
    count: int

    @property
    def kernel(self) -> int:
        """The most elements that a window has."""
        return max(_lengths(self.size, self.count))

    @property
    def overlaps(self) -> int:
        """The most windows that an element lies in."""
        return max(_lengths(self.count, self.size))

    def tap(self, at: Expr, offset: int) -> tuple[Expr, list[Value]]:
        """See Windows."""
        place = self._start(at) + offset
        always = offset < min(_lengths(self.size, self.count))
        return place, [] if always else [_less(place, self._end(at, self.size, self.count))]

    def cover(self, place: Expr, step: int) -> tuple[Expr, list[Value]]:
        """See Windows."""
        nth = floor_div(place * self.count, self.size) + step
        return nth, [_less(nth, self._end(place, self.count, self.size))] if step else []

    def first_inside(self, at: Expr) -> Value:
        """See Windows."""
        return IndexValue(INT, self._start(at))

    def is_whole(self, padded: bool) -> bool:
        """See Windows."""
        return False

    def length(self, at: Expr, padded: bool) -> Value:
        """See Windows."""
        return op("sub", INT, IndexValue(INT, self._end(at, self.size, self.count)), IndexValue(INT, self._start(at)))

    def _start(self, at: Expr) -> Expr:
        return floor_div(sympy.expand(at * self.size), self.count)

    @staticmethod
    def _end(at: Expr, size: int, count: int) -> Expr:
        """``(at + 1) * size / count`` rounded up."""
        return floor_div(sympy.expand((at + 1) * size) + count - 1, count)


def _lengths(size: int, count: int) -> list[int]:
    """The lengths of ``count`` windows over ``size`` elements."""
    return [-(-(at + 1) * size // count) - at * size // count for at in range(count)]


Window = Windows | UnevenWindows


def _less(a: Expr, b: Expr) -> Value:
    return op("lt", torch.bool, IndexValue(INT, a), IndexValue(INT, b))


def _between(expr: Expr, low: int | None, high: Size | None) -> list[Value]:
    place = IndexValue(INT, expr)
    tests = []
    if low is not None:
        tests.append(op("ge", torch.bool, place, const(low, INT)))
    if high is not None:
        tests.append(op("lt", torch.bool, place, scalar(high, INT)))
    return tests
