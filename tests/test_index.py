"""Index algebra against brute force: whatever is simplified must agree at every value of the loops."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.index import (
    Expr,
    IndirectVar,
    LoopVar,
    Quotient,
    Remainder,
    bounds,
    coefficients,
    contiguous_strides,
    floor_div,
    linear_index,
    mod,
    substitute,
    unflatten,
    view_index,
)
from compiler.sizes import product

Point = dict[LoopVar, int]


def points(variables: Sequence[LoopVar]) -> Iterator[Point]:
    """Every combination of the variables' values."""
    for values in itertools.product(*(range(v.extent) for v in variables)):
        yield dict(zip(variables, values, strict=True))


def value_at(expr: Expr, point: Point) -> int:
    """The expression's value, computed with Python's integers."""
    if expr.is_Integer:
        return int(expr)
    if isinstance(expr, LoopVar):
        return point[expr]
    parts = [value_at(arg, point) for arg in expr.args]
    if isinstance(expr, Quotient):
        return parts[0] // parts[1]
    if isinstance(expr, Remainder):
        return parts[0] % parts[1]
    return sum(parts) if expr.is_Add else product(parts)


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Expr, list[LoopVar]]:
    """A non-negative expression of a few loops: sums of multiples, divided or reduced, one inside the other."""
    variables = [LoopVar(f"i{n}", draw(st.integers(1, 6))) for n in range(draw(st.integers(1, 3)))]
    expr: Expr = sympy.Integer(draw(st.integers(0, 7)))
    for _ in range(draw(st.integers(1, 4))):
        expr += draw(st.sampled_from(variables)) * draw(st.integers(1, 12))
        kind = draw(st.sampled_from(["keep", "keep", "divide", "remainder"]))
        if kind != "keep":
            expr = (floor_div if kind == "divide" else mod)(expr, draw(st.integers(1, 12)))
    return expr, variables


@settings(max_examples=120, deadline=None)
@given(expressions(), st.integers(1, 24))
def test_division_and_remainder_agree_with_pythons(made: tuple[Expr, list[LoopVar]], divisor: int) -> None:
    expr, variables = made
    quotient, rest = floor_div(expr, divisor), mod(expr, divisor)
    low, high = bounds(expr)
    for point in points(variables):
        value = value_at(expr, point)
        assert low <= value <= high
        assert value_at(quotient, point) == value // divisor
        assert value_at(rest, point) == value % divisor


@settings(max_examples=60, deadline=None)
@given(expressions(), st.data())
def test_substitution_commutes_with_evaluation(made: tuple[Expr, list[LoopVar]], data: st.DataObject) -> None:
    """A loop is replaced by ``a * n + b``, as when it is split in two."""
    expr, variables = made
    old = variables[0]
    n = data.draw(st.sampled_from([d for d in range(1, old.extent + 1) if old.extent % d == 0]))
    a, b = LoopVar("a", old.extent // n), LoopVar("b", n)
    changed = substitute(expr, {old: a * n + b})
    assert old not in changed.free_symbols
    for point in points([a, b, *variables[1:]]):
        assert value_at(changed, point) == value_at(expr, {**point, old: point[a] * n + point[b]})


sizes = st.lists(st.integers(1, 5), min_size=0, max_size=4)


@given(sizes)
def test_unflatten_inverts_linear_index(size: list[int]) -> None:
    flat = LoopVar("f", product(size))
    index = unflatten(flat, size)
    for value, expected in enumerate(itertools.product(*(range(s) for s in size))):
        assert tuple(value_at(i, {flat: value}) for i in index) == expected
    if size:
        assert value_at(linear_index(index, contiguous_strides(size)), {flat: product(size) - 1}) == product(size) - 1


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two sizes of the same number of elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), min_size=1, max_size=5))

    def grouped(order: list[int]) -> list[int]:
        size = [1]
        for factor in order:
            if draw(st.booleans()):
                size.append(factor)
            else:
                size[-1] *= factor
        return size

    return grouped(factors), grouped(draw(st.permutations(factors)))


@settings(max_examples=120, deadline=None)
@given(reshapes())
def test_a_view_names_the_same_element(shapes: tuple[list[int], list[int]]) -> None:
    old, new = shapes
    variables = [LoopVar(f"i{n}", size) for n, size in enumerate(new)]
    index = view_index(tuple(variables), old, new)
    assert len(index) == len(old)
    for point in points(variables):
        values = [value_at(i, point) for i in index]
        assert all(0 <= v < s for v, s in zip(values, old, strict=True))
        there = sum(v * s for v, s in zip(values, contiguous_strides(old), strict=True))
        assert there == sum(point[v] * s for v, s in zip(variables, contiguous_strides(new), strict=True))


def test_views_that_split_or_merge_neighbours_do_not_divide() -> None:
    i, j, k = LoopVar("i", 4), LoopVar("j", 6), LoopVar("k", 5)
    assert view_index((i, j, k), (24, 5), (4, 6, 5)) == (6 * i + j, k)
    flat = LoopVar("f", 24)
    assert view_index((flat, k), (4, 6, 5), (24, 5)) == (floor_div(flat, 6), mod(flat, 6), k)
    assert view_index((i * 6 + j, k), (4, 6, 5), (24, 5)) == (i, j, k)


def test_views_between_different_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot view"):
        view_index((LoopVar("i", 4),), (3,), (4,))


def test_negative_terms_keep_the_division_whole() -> None:
    """A flipped index: 7 - i over 8 values; splitting it term by term would round the wrong way."""
    i = LoopVar("i", 8)
    for divisor in (2, 3, 4, 7, 8):
        quotient, rest = floor_div(7 - i, divisor), mod(7 - i, divisor)
        for value in range(8):
            assert value_at(quotient, {i: value}) == (7 - value) // divisor
            assert value_at(rest, {i: value}) == (7 - value) % divisor


def test_coefficients_of_affine_and_other_expressions() -> None:
    i, j = LoopVar("i", 4), LoopVar("j", 6)
    assert coefficients(12 * i + j + 3, [i, j]) == ({i: 12, j: 1}, 3)
    assert coefficients(sympy.Integer(5), [i]) == ({}, 5)
    assert coefficients(floor_div(j, 4) + i, [i, j]) is None
    assert coefficients(i * j, [i, j]) is None
    assert coefficients(i + j, [i]) is None


def test_variables_of_one_name_but_other_extents_differ() -> None:
    assert LoopVar("i", 4) != LoopVar("i", 5)
    assert LoopVar("i", 4) == LoopVar("i", 4)
    copy = pickle.loads(pickle.dumps(LoopVar("i", 4)))
    assert copy == LoopVar("i", 4)
    assert copy.extent == 4
    first, second = object(), object()
    assert IndirectVar(first, 4) != IndirectVar(second, 4)
    assert bounds(IndirectVar(first, 4) * 3) == (0, 9)


def test_strides_of_empty_dimensions_are_those_of_torch() -> None:
    assert contiguous_strides((3, 0, 4)) == (4, 4, 1)
    assert contiguous_strides(()) == ()


@pytest.mark.parametrize("sizes", [(6,), (4, 5), (3, 4, 5), (2, 1, 7), (3, 2, 2, 3)])
def test_an_index_taken_apart_and_put_together_is_itself_again(sizes: tuple[int, ...]) -> None:
    flat = LoopVar("flat", product(sizes))
    assert linear_index(unflatten(flat, sizes), contiguous_strides(sizes)) == flat
    doubled = [2 * stride for stride in contiguous_strides(sizes)]
    assert linear_index(unflatten(flat, sizes), doubled, 3) == 2 * flat + 3


@given(expressions(), st.lists(st.integers(1, 5), min_size=1, max_size=3), st.lists(st.integers(0, 9), min_size=3))
def test_a_linear_index_is_the_sum_that_it_stands_for(
    drawn: tuple[Expr, list[LoopVar]], sizes: list[int], strides: list[int]
) -> None:
    expr, variables = drawn
    flat = mod(expr, product(sizes))
    index = unflatten(flat, sizes)
    joined = linear_index(index, strides[: len(sizes)])
    for point in itertools.islice(points(variables), 50):
        parts = [value_at(i, point) * s for i, s in zip(index, strides, strict=False)]
        assert value_at(joined, point) == sum(parts)
