"""The copies of functions that benchmarks time statement by statement."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

from call_stamps import Stamps, replaced, shares


def maker(base: int) -> types.FunctionType:
    """Makes a function of two ways."""

    def call(x: int) -> int:
        total = base
        if x > 1:
            total += x
            return total
        for _ in range(3):
            total += 1
        return abs(total)

    return call  # type: ignore[return-value]


def test_a_copy_computes_what_the_function_does_and_stamps_each_statement_of_the_way_it_took() -> None:
    stamps = Stamps()
    copy = stamps.copy_of(maker, "call")(10)
    assert [copy(5), copy(0)] == [maker(10)(5), maker(10)(0)]
    labels = [label for label, _ in stamps.take()]
    assert labels == [
        *("call: total = base", "call: if x > 1:", "call: total += x", "call: return total"),
        *("call: total = base", "call: if x > 1:", "call: for _ in range(3):"),
        *("call: return abs(total)", "call: after return abs(total)"),
    ]
    assert stamps.take() == []


def test_replaced_functions_are_back_afterwards() -> None:
    here = sys.modules[__name__]
    before, stamps = maker, Stamps()
    with replaced(stamps, [(here, "maker", "call")]):
        assert maker is not before
        assert maker(1)(2) == 3
    assert maker is before


def test_shares_are_of_the_way_that_most_calls_took() -> None:
    common = [[("a", 0), ("b", 3000), ("", 4000)], [("a", 0), ("b", 5100), ("", 7100)]]
    assert shares([*common, [("a", 0), ("", 9000)]], 100) == [("a", pytest.approx(3.95), 2.9), ("b", 1.4, 0.9)]
