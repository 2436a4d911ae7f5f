"""Compiling again where CPython, and not the source, was at fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

ATTEMPTS = 5

T = TypeVar("T")


def attempt(work: Callable[[], T]) -> T:
    """What ``work`` returns, which is done again where a parser failed.

    CPython 3.11 can fail to parse in one thread while another collects garbage ("AST constructor recursion depth
    mismatch"); the next attempt goes through. Triton parses helpers while it compiles what calls them and reports their
    errors as its own, with the first as cause.

    Raises:
        whatever ``work`` raises at its last attempt, or for another reason at any.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return work()
        except Exception as error:
            if not is_parser_failure(error):
                raise
    return work()


def is_parser_failure(error: BaseException | None) -> bool:
    """Whether the error, or one that it was raised from, is the interpreter's own."""
    while error is not None:
        if isinstance(error, SystemError):
            return True
        error = error.__cause__ or error.__context__
    return False
