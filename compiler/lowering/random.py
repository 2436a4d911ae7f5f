"""Random numbers from a seed and an element's place, as ``compiler/passes/random_numbers.py`` defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch

from compiler.index import Index, contiguous_strides, linear_index
from compiler.ir import IndexValue, Lazy, Value
from compiler.lowering.registry import Scope, lower
from compiler.ops import cast, const, op
from compiler.passes.random_numbers import DOUBLE_DIGITS, ops


def _drawn(scope: Scope, seeds: Lazy, number: int, draw: Callable[[Value, Value], Value]) -> Lazy:
    """``draw(seed, place)`` for every element; its place is its row-major number, however it is stored."""
    strides = contiguous_strides(scope.shape())

    def compute(index: Index) -> Value:
        seed = seeds.load((sympy.Integer(number),))
        return draw(seed, IndexValue(torch.int64, linear_index(index, strides)))

    return scope.pointwise((seeds,), compute)


@lower(ops.uniform.default)
def uniform(
    scope: Scope,
    seeds: Lazy,
    number: int,
    size: Sequence[int],
    like: Any,
    digits: int,
    dtype: torch.dtype,
) -> Lazy:
    """Multiples of 2**-digits in [0, 1)."""

    def draw(seed: Value, place: Value) -> Value:
        if digits == DOUBLE_DIGITS:
            return cast(op("uniform_double", torch.float64, seed, place), dtype)
        return cast(op("uniform", torch.float32, seed, place, const(digits, torch.int32)), dtype)

    return _drawn(scope, seeds, number, draw)


@lower(ops.normal.default)
def normal(scope: Scope, seeds: Lazy, number: int, size: Sequence[int], like: Any, dtype: torch.dtype) -> Lazy:
    """The standard normal distribution."""

    def draw(seed: Value, place: Value) -> Value:
        if dtype is torch.float64:
            return op("normal_double", dtype, seed, place)
        return cast(op("normal", torch.float32, seed, place), dtype)

    return _drawn(scope, seeds, number, draw)


@lower(ops.integers.default)
def integers(
    scope: Scope,
    seeds: Lazy,
    number: int,
    size: Sequence[int],
    like: Any,
    low: int,
    high: int,
    dtype: torch.dtype,
) -> Lazy:
    """Whole numbers of low .. high - 1."""

    def draw(seed: Value, place: Value) -> Value:
        span, first = const(high - low, torch.int64), const(low, torch.int64)
        return cast(op("random_integer", torch.int64, seed, place, span, first), dtype)

    return _drawn(scope, seeds, number, draw)
