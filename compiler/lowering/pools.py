"""Pooling over small windows, and its gradients: each output reads its window, each input the windows it lies in.

A window's elements stand in the kernel one by one, so only small ones are generated; nothing is written twice, so
gradients need no atomic operations and come out the same every time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch

from compiler.index import Index
from compiler.ir import IndexValue, Lazy, Value
from compiler.lowering.pointwise import divide as quotient
from compiler.lowering.reducing import identity
from compiler.lowering.reductions import accumulator
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.lowering.shapes import masked
from compiler.lowering.windows import UnevenWindows, Window, Windows
from compiler.ops import cast, const, op, scalar
from compiler.report import ExternReason
from compiler.sizes import Size, divide, product

aten = torch.ops.aten
MAX_TAPS = 25  # elements of a window, or windows over an element, that a kernel reads one by one


def _each(value: Any, rank: int) -> list[int]:
    """One number a dimension from what ATen's ops take: a number, a list of one, or all of them."""
    values = list(value) if isinstance(value, Sequence) else [value]
    return values * rank if len(values) == 1 else values


def _windows(
    x: Sequence[Size], out: Sequence[Size], kernel: Any, stride: Any, padding: Any, dilation: Any, rank: int
) -> list[Windows]:
    kernels = _each(kernel, rank)
    strides = _each(stride, rank) if stride is not None and stride != [] else kernels
    parts = zip(x[-rank:], out[-rank:], kernels, strides, _each(padding, rank), _each(dilation, rank), strict=True)
    return [Windows(*part) for part in parts]


def _limit(taps: int, what: str) -> None:
    if taps > MAX_TAPS:
        raise NotLowered(f"{taps} {what}, more than {MAX_TAPS}", ExternReason.LIBRARY_IS_FASTER)


def _all(tests: Sequence[Value]) -> Value | None:
    result: Value | None = None
    for test in tests:
        result = test if result is None else op("logical_and", torch.bool, result, test)
    return result


def _taps(windows: Sequence[Window], out: Index) -> Iterator[tuple[Index, Value | None]]:
    """The elements of the window at ``out`` in row-major order: index, and whether that lies within (None: always)."""
    for offsets in itertools.product(*(range(w.kernel) for w in windows)):
        found = [window.tap(at, offset) for window, at, offset in zip(windows, out, offsets, strict=True)]
        yield tuple(place for place, _ in found), _all([test for _, tests in found for test in tests])


def _covering(windows: Sequence[Window], at: Index) -> Iterator[tuple[Index, Value | None]]:
    """The windows that the element at ``at`` lies in: each one's number, and whether it is one (None: always)."""
    for steps in itertools.product(*(range(w.overlaps) for w in windows)):
        found = [window.cover(place, step) for window, place, step in zip(windows, at, steps, strict=True)]
        yield tuple(nth for nth, _ in found), _all([test for _, tests in found for test in tests])


def _read(x: Lazy, index: Index, inside: Value | None, other: float) -> Value:
    return x.load(index) if inside is None else masked(x.load(index), inside, other)


def _windowed_source(scope: Scope, x: Lazy, windows: Sequence[Window]) -> Lazy:
    """What windows read: memory where they overlap, else the value computed in place."""
    return scope.realize(x) if any(w.overlaps > 1 for w in windows) else x


# --- maxima --------------------------------------------------------------------------------------------------------


@lower(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool(
    scope: Scope,
    x: Lazy,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Lazy, Lazy]:
    """The largest element of each window and its position in the plane; NaN counts as the largest, the last one."""
    rank = 2 if scope.node.target.overloadpacket is aten.max_pool2d_with_indices else 3
    windows = _windows(x.size, scope.shape(scope.output[0]), kernel, stride, padding, dilation, rank)
    return _maximum(scope, x, windows)


def _maximum(scope: Scope, x: Lazy, windows: Sequence[Window]) -> tuple[Lazy, Lazy]:
    _limit(product([w.kernel for w in windows]), "elements in a window")
    values, positions = scope.output
    rank = len(windows)
    source = _windowed_source(scope, x, windows)
    dtype = accumulator(x.dtype) if x.dtype.is_floating_point else x.dtype
    lowest = identity("max", x.dtype)

    def best(index: Index) -> tuple[Value, Value]:
        plane, out = index[:-rank], index[-rank:]
        found: Value = cast(lowest, dtype)
        where = _flat([w.first_inside(at) for w, at in zip(windows, out, strict=True)], windows)
        for nth, (place, inside) in enumerate(_taps(windows, out)):
            value = cast(_read(source, (*plane, *place), inside, lowest.value), dtype)
            here = _flat([IndexValue(torch.int64, p) for p in place], windows)
            if nth == 0 and inside is None:
                found, where = value, here
                continue
            larger = op("gt", torch.bool, value, found)
            if dtype.is_floating_point:
                larger = op("logical_or", torch.bool, larger, op("isnan", torch.bool, value))
            found, where = op("where", dtype, larger, value, found), op("where", torch.int64, larger, here, where)
        return found, where

    largest = scope.pointwise((source,), lambda index: cast(best(index)[0], values.dtype), values)
    return largest, scope.pointwise((source,), lambda index: best(index)[1], positions)


def _flat(places: Sequence[Value], windows: Sequence[Window]) -> Value:
    """A position in the plane as one number."""
    result = places[0]
    for place, window in zip(places[1:], windows[1:], strict=True):
        if isinstance(result, IndexValue) and isinstance(place, IndexValue):
            result = IndexValue(torch.int64, sympy.expand(result.expr * window.size) + place.expr)
        else:
            scaled = op("mul", torch.int64, result, scalar(window.size, torch.int64))
            result = op("add", torch.int64, scaled, place)
    return result


@lower(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def max_pool_backward(
    scope: Scope,
    grad: Lazy,
    x: Lazy,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    positions: Lazy,
) -> Lazy:
    """The gradients of the windows whose maximum an element is, added up."""
    rank = 2 if scope.node.target.overloadpacket is aten.max_pool2d_with_indices_backward else 3
    windows = _windows(x.size, grad.size, kernel, stride, padding, dilation, rank)
    if any(w.dilation != 1 for w in windows):
        raise NotLowered("the gradient of windows with gaps")
    return _spread_maximum(scope, grad, positions, windows)


def _spread_maximum(scope: Scope, grad: Lazy, positions: Lazy, windows: Sequence[Window]) -> Lazy:
    _limit(product([w.overlaps for w in windows]), "windows over an element")
    rank = len(windows)
    sources = [scope.realize(t) if any(w.overlaps > 1 for w in windows) else t for t in (grad, positions)]
    dtype = accumulator(grad.dtype)
    output = scope.output

    def compute(index: Index) -> Value:
        plane, at = index[:-rank], index[-rank:]
        here = _flat([IndexValue(torch.int64, p) for p in at], windows)
        parts = []
        for window, valid in _covering(windows, at):
            chosen = op("eq", torch.bool, _read(sources[1], (*plane, *window), valid, -1), here)
            part = cast(_read(sources[0], (*plane, *window), valid, 0), dtype)
            parts.append(op("where", dtype, chosen, part, const(0, dtype)))
        return cast(_sum(parts), output.dtype)

    return scope.pointwise(sources, compute)


def _sum(values: Sequence[Value]) -> Value:
    """Of at least one value, added up in order in their dtype, from 0 on."""
    total: Value = const(0, values[0].dtype)
    for value in values:
        total = op("add", value.dtype, total, value)
    return total


# --- means ---------------------------------------------------------------------------------------------------------

def _divisor(
    windows: Sequence[Window], padded: bool, fixed: int | None, dtype: torch.dtype
) -> Callable[[Index], Value]:
    """What the sum of the window at an index is divided by: the elements that count."""
    if fixed is not None or all(w.is_whole(padded) for w in windows):
        count = fixed if fixed is not None else product([w.kernel for w in windows])
        return lambda out: const(count, dtype)

    def counted(out: Index) -> Value:
        lengths = [window.length(at, padded) for window, at in zip(windows, out, strict=True)]
        return cast(functools.reduce(lambda a, b: op("mul", torch.int64, a, b), lengths), dtype)

    return counted


_AVERAGES = {aten.avg_pool1d: 1, aten.avg_pool2d: 2, aten.avg_pool3d: 3}


@lower(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(
    scope: Scope,
    x: Lazy,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Lazy:
    """The mean of each window."""
    rank = _AVERAGES[scope.node.target.overloadpacket]
    windows = _windows(x.size, scope.shape(), kernel, stride, padding, 1, rank)
    return _mean(scope, x, windows, count_include_pad, divisor_override)


def _mean(scope: Scope, x: Lazy, windows: Sequence[Window], padded: bool, fixed: int | None) -> Lazy:
    if not x.dtype.is_floating_point:
        raise NotLowered("a mean of integers")
    _limit(product([w.kernel for w in windows]), "elements in a window")
    rank = len(windows)
    source = _windowed_source(scope, x, windows)
    dtype = accumulator(x.dtype)
    divisor = _divisor(windows, padded, fixed, dtype)
    output = scope.output

    def compute(index: Index) -> Value:
        plane, out = index[:-rank], index[-rank:]
        total = _sum([cast(_read(source, (*plane, *place), inside, 0), dtype) for place, inside in _taps(windows, out)])
        return cast(quotient(dtype, total, divisor(out)), output.dtype)

    return scope.pointwise((source,), compute)


@lower(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def avg_pool_backward(
    scope: Scope,
    grad: Lazy,
    x: Lazy,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Lazy:
    """The gradients of the windows that an element lies in, each its part."""
    rank = 2 if scope.node.target.overloadpacket is aten.avg_pool2d_backward else 3
    windows = _windows(x.size, grad.size, kernel, stride, padding, 1, rank)
    return _spread_mean(scope, grad, windows, count_include_pad, divisor_override)


def _spread_mean(scope: Scope, grad: Lazy, windows: Sequence[Window], padded: bool, fixed: int | None) -> Lazy:
    _limit(product([w.overlaps for w in windows]), "windows over an element")
    rank = len(windows)
    source = _windowed_source(scope, grad, windows)
    dtype = accumulator(grad.dtype)
    divisor = _divisor(windows, padded, fixed, dtype)
    output = scope.output

    def compute(index: Index) -> Value:
        plane, at = index[:-rank], index[-rank:]
        shares = []
        for window, valid in _covering(windows, at):
            part = cast(_read(source, (*plane, *window), valid, 0), dtype)
            share = quotient(dtype, part, divisor(window))
            if valid is not None:  # there a divisor may be 0
                share = op("where", dtype, valid, share, const(0, dtype))
            shares.append(share)
        return cast(_sum(shares), output.dtype)

    return scope.pointwise((source,), compute)


# --- as many windows as asked for ----------------------------------------------------------------------------------


def _adaptive(x: Sequence[Size], out: Sequence[Size], rank: int) -> list[Window]:
    """The windows of an adaptive pool: side by side where they are equal."""
    found: list[Window] = []
    for size, count in zip(x[-rank:], out[-rank:], strict=True):
        length = divide(size, count) if count != 0 else None
        if isinstance(length, int):
            found.append(Windows(size, count, length, length, 0, 1))
        elif isinstance(size, int) and isinstance(count, int) and count:
            found.append(UnevenWindows(size, count))
        else:
            raise NotLowered("windows whose sizes are known only at run time")
    return found


@lower(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool(scope: Scope, x: Lazy, out: Sequence[int]) -> Lazy:
    """Means of as many windows as asked for."""
    rank = 2 if scope.node.target.overloadpacket is aten._adaptive_avg_pool2d else 3
    return _mean(scope, x, _adaptive(x.size, scope.shape(), rank), True, None)


@lower(aten._adaptive_avg_pool2d_backward.default, aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool_backward(scope: Scope, grad: Lazy, x: Lazy) -> Lazy:
    """The gradients of the windows that an element lies in, each its part."""
    rank = 2 if scope.node.target.overloadpacket is aten._adaptive_avg_pool2d_backward else 3
    return _spread_mean(scope, grad, _adaptive(x.size, grad.size, rank), True, None)


@lower(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(scope: Scope, x: Lazy, out: Sequence[int]) -> tuple[Lazy, Lazy]:
    """The largest elements of as many windows as asked for, and their positions in the plane."""
    rank = 2 if scope.node.target.overloadpacket is aten.adaptive_max_pool2d else 3
    return _maximum(scope, x, _adaptive(x.size, scope.shape(scope.output[0]), rank))


@lower(aten.adaptive_max_pool2d_backward.default, aten.adaptive_max_pool3d_backward.default)
def adaptive_max_pool_backward(scope: Scope, grad: Lazy, x: Lazy, positions: Lazy) -> Lazy:
    """The gradients of the windows whose maximum an element is, added up."""
    rank = 2 if scope.node.target.overloadpacket is aten.adaptive_max_pool2d_backward else 3
    return _spread_maximum(scope, grad, positions, _adaptive(x.size, grad.size, rank))
