"""Ops that place elements elsewhere: cat, stack, pad, flip, roll, repeat. They are index arithmetic, not copies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import sympy
import torch

from compiler.index import Index, floor_div, mod
from compiler.ir import IndexValue, Lazy, Load, Value, rewrite
from compiler.lowering.positions import clamped, remainder, wrapped
from compiler.lowering.registry import NotLowered, PartPlan, Scope, lower
from compiler.ops import cast, const, op, scalar
from compiler.report import ExternReason
from compiler.sizes import Size, known_less

aten = torch.ops.aten

MAX_CAT_INPUTS = 8  # that one loop chooses among: past this every element evaluates too many branches


def masked(value: Value, mask: Value, other: bool | int | float = 0) -> Value:
    """``value`` with every memory read done only where ``mask`` holds."""

    def guard(load: Load) -> Value:
        both = mask if load.mask is None else op("logical_and", torch.bool, mask, load.mask)
        return Load(load.dtype, load.buffer, load.index, both, other, origin=load.origin)

    return rewrite(value, {}, {}, guard)


def _all(tests: Sequence[Value]) -> Value:
    """Whether every test holds."""
    result = tests[0] if tests else const(True, torch.bool)
    for test in tests[1:]:
        result = op("logical_and", torch.bool, result, test)
    return result


def _less(expr: Any, limit: Size) -> Value:
    return op("lt", torch.bool, IndexValue(torch.int64, expr), scalar(limit, torch.int64))


def _at_least(expr: Any, limit: Size) -> Value:
    return op("ge", torch.bool, IndexValue(torch.int64, expr), scalar(limit, torch.int64))


@lower(aten.cat)
def cat(scope: Scope, tensors: Sequence[Lazy], dim: int = 0) -> Lazy:
    """Pieces side by side: the piece is chosen by the index, and only that piece is read.

    Of many pieces each loop chooses among a few and writes its part of the result.
    """
    output = scope.output
    pieces = [t for t in tensors if not (len(t.size) == 1 and t.size[0] == 0 and output.dim() != 1)]
    at = dim % output.dim()
    pieces = [t for t in pieces if t.size[at] != 0]
    if len(pieces) <= MAX_CAT_INPUTS:
        return scope.pointwise(pieces, lambda index: _chosen(pieces, at, index, output.dtype))
    runs = _even_runs(pieces, MAX_CAT_INPUTS)
    computed = sum(piece.root().buffer is None for piece in pieces)
    if len(runs) > computed + 1:  # more launches than one for each of those and one for ATen's copy
        raise NotLowered(f"cat of {len(pieces)} tensors that lie in memory", ExternReason.LIBRARY_IS_FASTER)
    parts: list[PartPlan] = []
    start: Size = 0
    for run in runs:
        parts.append(_part(run, at, start, output.dtype))
        start += sum(piece.size[at] for piece in run)
    return scope.assemble(parts)


def _part(pieces: Sequence[Lazy], at: int, start: Size, dtype: torch.dtype) -> PartPlan:
    """Some pieces of a cat, from ``start`` on."""

    def element(index: Index) -> tuple[Value, Index]:
        return _chosen(pieces, at, index, dtype), (*index[:at], index[at] + start, *index[at + 1 :])

    first = pieces[0].size
    return PartPlan((*first[:at], sum(piece.size[at] for piece in pieces), *first[at + 1 :]), element, tuple(pieces))


def _even_runs(pieces: Sequence[Lazy], most: int) -> list[Sequence[Lazy]]:
    """The pieces in order, in the fewest runs of at most ``most``, about equal in length."""
    count = -(-len(pieces) // most)
    bounds = [len(pieces) * number // count for number in range(count + 1)]
    return [pieces[first:end] for first, end in itertools.pairwise(bounds)]


def _chosen(pieces: Sequence[Lazy], at: int, index: Index, dtype: torch.dtype) -> Value:
    """The element at ``index`` of pieces that lie side by side along dimension ``at``."""
    ends = list(itertools.accumulate(piece.size[at] for piece in pieces))
    result: Value | None = None
    for number in reversed(range(len(pieces))):
        start = ends[number - 1] if number else 0
        shifted = (*index[:at], index[at] - start, *index[at + 1 :])
        inside = [_at_least(index[at], start)] if number else []
        if number + 1 < len(pieces):
            inside.append(_less(index[at], ends[number]))
        value = cast(pieces[number].load(shifted), dtype)
        if inside:
            value = masked(value, _all(inside))
        result = value if result is None else op("where", dtype, _less(index[at], ends[number]), value, result)
    assert result is not None
    return result


@lower(aten.constant_pad_nd)
def constant_pad(scope: Scope, x: Lazy, pad: Sequence[int], value: float = 0) -> Lazy:
    """x with a border of ``value`` (negative widths cut)."""
    rank = len(x.size)
    before, after = [0] * rank, [0] * rank
    for pair in range(len(pad) // 2):
        before[rank - 1 - pair], after[rank - 1 - pair] = pad[2 * pair], pad[2 * pair + 1]
    dtype = scope.output.dtype

    def compute(index: Index) -> Value:
        source = tuple(i - b for i, b in zip(index, before, strict=True))
        tests = []
        for dim in range(rank):
            if not isinstance(before[dim], int) or before[dim] > 0:
                tests.append(_at_least(source[dim], 0))
            if not isinstance(after[dim], int) or after[dim] > 0:
                tests.append(_less(source[dim], x.size[dim]))
        if not tests:
            return x.load(source)
        inside = _all(tests)
        return op("where", dtype, inside, masked(x.load(source), inside), const(value, dtype))

    return scope.pointwise((x,), compute)


@lower(aten.diagonal_scatter)
def diagonal_scatter(scope: Scope, x: Lazy, source: Lazy, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Lazy:
    """``x`` with a diagonal replaced."""
    first, second = dim1 % len(x.size), dim2 % len(x.size)
    dtype = scope.output.dtype

    def compute(index: Index) -> Value:
        along = index[first] - max(-offset, 0)
        rest = tuple(i for d, i in enumerate(index) if d not in (first, second))
        apart = IndexValue(torch.int64, index[second] - index[first])
        here = op("eq", torch.bool, apart, const(offset, torch.int64))
        return op("where", dtype, here, masked(cast(source.load((*rest, along)), dtype), here), x.load(index))

    return scope.pointwise((x, source), compute)


@lower(aten.flip)
def flip(scope: Scope, x: Lazy, dims: Sequence[int]) -> Lazy:
    """Dimensions read backwards."""
    flipped = {d % len(x.size) for d in dims} if x.size else set()
    return scope.pointwise(
        (x,), lambda index: x.load(tuple(x.size[d] - 1 - i if d in flipped else i for d, i in enumerate(index)))
    )


@lower(aten.roll)
def roll(scope: Scope, x: Lazy, shifts: Sequence[int], dims: Sequence[int] = ()) -> Lazy:
    """Dimensions rotated."""
    if not dims:
        raise NotLowered("roll of the flattened tensor")
    shift = {d % len(x.size): remainder(-s, x.size[d]) for s, d in zip(shifts, dims, strict=True)}

    def compute(index: Index) -> Value:
        return x.load(tuple(mod(i + shift.get(d, 0), x.size[d]) for d, i in enumerate(index)))

    return scope.pointwise((x,), compute)


@lower(aten.repeat)
def repeat(scope: Scope, x: Lazy, repeats: Sequence[int]) -> Lazy:
    """Copies along every dimension."""

    def compute(index: Index) -> Value:
        trailing = index[len(index) - len(x.size) :]
        return x.load(
            tuple(mod(i, s) if s not in (0, 1) else sympy.Integer(0) for i, s in zip(trailing, x.size, strict=True))
        )

    return scope.pointwise((x,), compute)


@lower(aten.tril, aten.triu)
def triangle(scope: Scope, x: Lazy, diagonal: int = 0) -> Lazy:
    """The lower or upper triangle, zeros elsewhere."""
    lower_triangle = scope.node.target.overloadpacket is aten.tril
    dtype = scope.output.dtype

    def compute(index: Index) -> Value:
        row, column = index[-2], index[-1]
        keep = op(
            "le" if lower_triangle else "ge",
            torch.bool,
            IndexValue(torch.int64, column - row),
            scalar(diagonal, torch.int64),
        )
        return op("where", dtype, keep, x.load(index), const(0, dtype))

    return scope.pointwise((x,), compute)


@lower(aten.slice_scatter)
def slice_scatter(
    scope: Scope, x: Lazy, piece: Lazy, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Lazy:
    """x with every ``step``-th element from ``start`` on taken from ``piece``."""
    at = dim % len(x.size)
    first = clamped(0 if start is None else start, x.size[at])
    dtype = scope.output.dtype

    def compute(index: Index) -> Value:
        inner = index[at] - first
        count = piece.size[at]
        tests = [_at_least(inner, 0)] if first != 0 else []
        if not known_less(x.size[at] - 1, first + count * step):
            tests.append(_less(inner, (count - 1) * step + 1))
        if step > 1:
            tests.append(op("eq", torch.bool, IndexValue(torch.int64, mod(inner, step)), const(0, torch.int64)))
        place = (*index[:at], floor_div(inner, step), *index[at + 1 :])
        return _instead(x, index, piece, place, tests, dtype)

    return scope.pointwise((x, piece), compute)


@lower(aten.select_scatter)
def select_scatter(scope: Scope, x: Lazy, piece: Lazy, dim: int, position: int) -> Lazy:
    """x with one index of a dimension taken from ``piece``."""
    at = dim % len(x.size)
    chosen = wrapped(position, x.size[at])
    dtype = scope.output.dtype

    def compute(index: Index) -> Value:
        here = op("eq", torch.bool, IndexValue(torch.int64, index[at]), scalar(chosen, torch.int64))
        return _instead(x, index, piece, (*index[:at], *index[at + 1 :]), [here], dtype)

    return scope.pointwise((x, piece), compute)


def _instead(x: Lazy, index: Index, piece: Lazy, place: Index, tests: Sequence[Value], dtype: torch.dtype) -> Value:
    """The piece's element where all tests hold (only there it is read), else x's."""
    value = cast(piece.load(place), dtype)
    if not tests:
        return value
    inside = _all(tests)
    return op("where", dtype, inside, masked(value, inside), x.load(index))
