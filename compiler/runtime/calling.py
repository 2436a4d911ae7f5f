"""How AOTAutograd calls what its compilers return: with a list of inputs, emptied so that they can be freed."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from compiler.specializing import Region


def boxed(run: Region) -> Region:
    """``run``, which empties the list that it is given, marked so that AOTAutograd gives it one.

    The mark is on a function because Dynamo wraps the callable once more and copies no attributes of a class.
    """
    if isinstance(run, FunctionType):
        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def call(args: list[Any]) -> Any:
        return run(args)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def emptying(run: Region) -> Region:
    """``run``, which only reads its inputs, emptying the list that they come in."""

    def call(args: list[Any]) -> Any:
        inputs = list(args)
        args.clear()
        return run(inputs)

    return call
