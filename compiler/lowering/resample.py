"""Gradients of changed resolutions: each element of the small image reads the elements of the large one made from it.

The forward ops are taken apart before lowering (``compiler/passes/decompositions.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy
import torch

from compiler.index import Index
from compiler.ir import IndexValue, Lazy, Value
from compiler.lowering.pools import MAX_TAPS
from compiler.lowering.reductions import accumulator
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.lowering.shapes import masked
from compiler.ops import cast, const, op
from compiler.report import ExternReason
from compiler.sizes import product

aten = torch.ops.aten


def _ratios(large: Sequence[int], small: Sequence[int], scales: Sequence[float | None]) -> list[int]:
    """How many elements of the large image one of the small stands for, a dimension; only whole numbers."""
    ratios = []
    given = [*scales, *[None] * (len(small) - len(scales))]
    for big, little, scale in zip(large, small, given, strict=True):
        ratio = big // little
        if ratio * little != big or (scale is not None and scale != ratio):
            raise NotLowered("a resolution that is no multiple")
        ratios.append(ratio)
    return ratios


@lower(aten.upsample_nearest1d_backward.default, aten.upsample_nearest2d_backward.default)
def nearest_backward(scope: Scope, grad: Lazy, out: Any, size: Sequence[int], *scales: float | None) -> Lazy:
    """The gradients of all copies of an element, added up."""
    rank = len(size) - 2
    ratios = _ratios(grad.size[2:], size[2:], scales)
    if product(ratios) > MAX_TAPS:
        raise NotLowered(
            f"{product(ratios)} copies of an element, more than {MAX_TAPS}", ExternReason.LIBRARY_IS_FASTER
        )
    for big, ratio in zip(grad.size[2:], ratios, strict=True):
        places = np.arange(big, dtype=np.float32) * np.float32(1 / ratio)  # as ATen finds an element's source
        if not np.array_equal(places.astype(np.int64), np.arange(big) // ratio):
            raise NotLowered("a resolution that float32 rounds")
    dtype = accumulator(grad.dtype)
    output = scope.output

    def compute(index: Index) -> Value:
        total: Value | None = None
        for offsets in np.ndindex(*ratios):
            places = [sympy.expand(i * r) + o for i, r, o in zip(index[-rank:], ratios, offsets, strict=True)]
            part = cast(grad.load((*index[:-rank], *places)), dtype)
            total = part if total is None else op("add", dtype, total, part)
        assert total is not None
        return cast(total, output.dtype)

    return scope.pointwise((grad,), compute)


@lower(aten.upsample_bilinear2d_backward.default)
def bilinear_backward(
    scope: Scope, grad: Lazy, out: Any, size: Sequence[int], align_corners: bool, *scales: float | None
) -> Lazy:
    """The gradients of the elements that lie between this one and its neighbours, by their weights."""
    ratios = _ratios(grad.size[2:], size[2:], scales)
    if align_corners or any(r not in (2, 3) for r in ratios):
        raise NotLowered("a resolution that is not two or three times as high")
    source = scope.realize(grad)
    dtype = accumulator(grad.dtype)
    output = scope.output

    def weights(at: Any, ratio: int, small: int, large: int) -> list[tuple[Any, Value, Value]]:
        """The elements between which ``at`` lies: place, whether there is one, and the weight, as ATen finds them."""
        found = []
        here = IndexValue(torch.int64, at)
        for offset in range(-1, ratio + 1):
            place = sympy.expand(at * ratio) + offset
            number = IndexValue(torch.int64, place)
            exists = op(
                "logical_and",
                torch.bool,
                op("ge", torch.bool, number, const(0, torch.int64)),
                op("lt", torch.bool, number, const(large, torch.int64)),
            )
            middle = op("add", dtype, cast(number, dtype), const(0.5, dtype))
            scaled = op("sub", dtype, op("mul", dtype, middle, const(1 / ratio, dtype)), const(0.5, dtype))
            scaled = op("maximum", dtype, scaled, const(0, dtype))
            first = cast(scaled, torch.int64)
            last = op("lt", torch.bool, first, const(small - 1, torch.int64))
            second = op("add", torch.int64, first, cast(last, torch.int64))
            upper = op("sub", dtype, scaled, cast(first, dtype))
            lower_part = op("sub", dtype, const(1, dtype), upper)
            zero = const(0, dtype)
            weight = op(
                "add",
                dtype,
                op("where", dtype, op("eq", torch.bool, first, here), lower_part, zero),
                op("where", dtype, op("eq", torch.bool, second, here), upper, zero),
            )
            found.append((place, exists, weight))
        return found

    def compute(index: Index) -> Value:
        rows, columns = (weights(index[2 + d], ratios[d], size[2 + d], grad.size[2 + d]) for d in range(2))
        total: Value = const(0, dtype)
        for row, row_exists, row_weight in rows:
            line: Value = const(0, dtype)
            for column, exists, weight in columns:
                inside = op("logical_and", torch.bool, row_exists, exists)
                part = cast(masked(source.load((*index[:2], row, column)), inside), dtype)
                line = op("add", dtype, line, op("mul", dtype, part, weight))
            total = op("add", dtype, total, op("mul", dtype, line, row_weight))
        return cast(total, output.dtype)

    return scope.pointwise((source,), compute)
