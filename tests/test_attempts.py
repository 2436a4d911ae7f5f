"""Work that a failing parser interrupted is done again, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.codegen.attempts import ATTEMPTS, attempt


def wrapped() -> None:
    """As Triton reports a helper that could not be parsed."""
    try:
        raise SystemError("AST constructor recursion depth mismatch (before=267, after=35)")
    except SystemError as error:
        raise ValueError("at 9:11: uniform(tmp1, tmp0, 24)") from error


def bare() -> None:
    raise SystemError("AST constructor recursion depth mismatch (before=1, after=2)")


@pytest.mark.parametrize("fail", [bare, wrapped])
def test_a_failing_parser_is_asked_again(fail: Callable[[], None]) -> None:
    tried: list[int] = []

    def work() -> str:
        tried.append(1)
        if len(tried) < ATTEMPTS:
            fail()
        return "compiled"

    assert attempt(work) == "compiled"
    assert len(tried) == ATTEMPTS


@pytest.mark.parametrize("fail", [bare, wrapped])
def test_not_for_ever(fail: Callable[[], None]) -> None:
    tried: list[int] = []

    def work() -> None:
        tried.append(1)
        fail()

    with pytest.raises((SystemError, ValueError)):
        attempt(work)
    assert len(tried) == ATTEMPTS


def test_an_error_of_the_source_is_raised_at_once() -> None:
    tried: list[int] = []

    def work() -> None:
        tried.append(1)
        raise ValueError("unsupported")

    with pytest.raises(ValueError, match="unsupported"):
        attempt(work)
    assert tried == [1]
