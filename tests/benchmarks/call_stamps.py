"""Copies of functions that note the time before each of their statements.

What a call of a microsecond is made of cannot be told by a profiler, which takes longer than that. A copy made from
the function's own source, with a time stamp between its statements, stays true to the function and costs about 0.1 µs
a statement, which is known and taken off.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import statistics
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

_ADD, _NOW = "_stamps_add", "_stamps_now"
LONGEST_LABEL = 90


@dataclass
class Stamps:
    """When each statement began, of one call after another: [(label, nanoseconds), ...] in ``current``."""

    current: list[tuple[str, int]] = field(default_factory=list)

    def copy_of(self, function: FunctionType, inner: str = "") -> FunctionType:
        """``function`` with stamps in its own body, or in that of the function called ``inner`` that it defines."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        outer = tree.body[0]
        assert isinstance(outer, ast.FunctionDef)
        outer.decorator_list = []
        target = outer
        if inner:
            found = (n for n in ast.walk(outer) if isinstance(n, ast.FunctionDef) and n.name == inner)
            target = next(found)
        target.body = _stamped(target.body, f"{inner or outer.name}")
        ast.fix_missing_locations(tree)
        names = {**function.__globals__, _ADD: self.current.append, _NOW: time.perf_counter_ns}
        exec(compile(tree, f"<{outer.name} with stamps>", "exec"), names)
        copy: FunctionType = names[outer.name]
        copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return copy

    def take(self) -> list[tuple[str, int]]:
        """The stamps since the last time this was asked."""
        taken = list(self.current)
        self.current.clear()
        return taken

    def cost_ns(self) -> float:
        """What one stamp takes."""
        add, now, costs = self.current.append, time.perf_counter_ns, []
        self.take()
        for _ in range(500):
            add(("", now()))
            add(("", now()))
            (_, first), (_, second) = self.take()
            costs.append(second - first)
        return statistics.median(costs)


def _stamped(body: Sequence[ast.stmt], where: str) -> list[ast.stmt]:
    """The statements with a stamp before each, in every branch but not in loops."""
    stamped: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        label = f"{where}: {ast.unparse(statement).splitlines()[0]}"[:LONGEST_LABEL]
        stamped.append(_stamp(label))
        for name in ("body", "orelse", "finalbody"):
            branch = getattr(statement, name, None)
            if branch and isinstance(statement, ast.If | ast.With | ast.Try):
                setattr(statement, name, _stamped(branch, where))
        if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Call):
            result = ast.Name("_stamps_result", ast.Store())
            stamped.append(ast.Assign([result], statement.value))
            stamped.append(_stamp(f"{where}: after {label.removeprefix(f'{where}: ')}"[:LONGEST_LABEL]))
            stamped.append(ast.Return(ast.Name("_stamps_result", ast.Load())))
        else:
            stamped.append(statement)
    return stamped


def _stamp(label: str) -> ast.stmt:
    now = ast.Call(ast.Name(_NOW, ast.Load()), [], [])
    pair = ast.Tuple([ast.Constant(label), now], ast.Load())
    return ast.Expr(ast.Call(ast.Name(_ADD, ast.Load()), [pair], []))


@contextlib.contextmanager
def replaced(stamps: Stamps, places: Sequence[tuple[Any, str, str]]) -> Iterator[None]:
    """Functions replaced by their copies with stamps: (module or class, name, name of an inner function or "")."""
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in places]
    try:
        for owner, name, inner in places:
            setattr(owner, name, stamps.copy_of(vars(owner)[name], inner))
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def shares(calls: Sequence[Sequence[tuple[str, int]]], cost_ns: float) -> list[tuple[str, float, float]]:
    """(label, median, least) microseconds from each stamp to the next, of the calls that went the most common way.

    The last stamp of each call says when it ended and has no share.
    """
    ways: dict[tuple[str, ...], list[Sequence[tuple[str, int]]]] = {}
    for call in calls:
        ways.setdefault(tuple(label for label, _ in call), []).append(call)
    way, alike = max(ways.items(), key=lambda item: len(item[1]))
    found = []
    for at, label in enumerate(way[:-1]):
        took = [(call[at + 1][1] - call[at][1] - cost_ns) / 1e3 for call in alike]
        found.append((label, statistics.median(took), min(took)))
    return found
