"""Scans: cumulative sums, products, extrema with their positions, and log-sum-exp."""

from __future__ import annotations

import torch

from compiler.ir import Lazy
from compiler.lowering.reductions import accumulator
from compiler.lowering.registry import NotLowered, ScanPlan, Scope, lower
from compiler.ops import cast, const, summand
from compiler.report import ExternReason
from compiler.sizes import hint, product

aten = torch.ops.aten
LONG_ROW = 1 << 16  # a program passes over a row alone; beyond this, few rows leave the GPU idle
FEW_ROWS = 64


def _check(x: Lazy, dim: int) -> None:
    length = x.size[dim] if x.size else 1
    if hint(length) > LONG_ROW and hint(product(x.size)) // hint(length) < FEW_ROWS:
        raise NotLowered("a scan of few long rows", ExternReason.LIBRARY_IS_FASTER)


def _scanned(scope: Scope, x: Lazy, kind: str, dim: int, dtype: torch.dtype, like: torch.Tensor) -> Lazy:
    """The scan in its output's dtype; along a dimension of one element it is the tensor itself."""
    if not x.size or x.size[dim % len(x.size)] == 1:
        return scope.pointwise((x,), lambda index: cast(summand(kind, cast(x.load(index), dtype)), like.dtype), like)
    dim %= len(x.size)
    _check(x, dim)
    return scope.scan(ScanPlan(kind, x, dim, dtype), like)


@lower(aten.cumsum, aten.cumprod)
def cumulative(scope: Scope, x: Lazy, dim: int, *, dtype: torch.dtype | None = None) -> Lazy:
    """Sums or products, in float32 for half floats; integers are counted in int64 unless ``dtype`` says otherwise."""
    kind = scope.node.target.overloadpacket.__name__.removeprefix("cum")
    result = scope.output.dtype
    return _scanned(scope, x, kind, dim, accumulator(result), scope.output)


@lower(aten.logcumsumexp)
def logcumsumexp(scope: Scope, x: Lazy, dim: int) -> Lazy:
    """The logarithm of the sum of exponentials so far."""
    return _scanned(scope, x, "logsumexp", dim, accumulator(x.dtype), scope.output)


@lower(aten.cummax, aten.cummin)
def extremum(scope: Scope, x: Lazy, dim: int) -> tuple[Lazy, Lazy]:
    """The extremum so far, and where it last was; NaN, once met, stays."""
    kind = scope.node.target.overloadpacket.__name__.removeprefix("cum")
    if x.dtype is torch.bool:
        raise NotLowered("an extremum of booleans")
    dtype = accumulator(x.dtype) if x.dtype.is_floating_point else x.dtype
    values, positions = scope.output
    found = _scanned(scope, x, kind, dim, dtype, values)
    if not x.size or x.size[dim % len(x.size)] == 1:
        return found, scope.pointwise((), lambda index: const(0, torch.int64), positions)
    return found, scope.scan(ScanPlan(kind, x, dim % len(x.size), dtype, positions=True), positions)
