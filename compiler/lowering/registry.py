"""Where the lowering rules of ATen ops are kept, and what a rule is given.

A rule takes a ``Scope`` and the FX node's own arguments, with tensors as ``Lazy``, and returns the result as a
``Lazy`` (or a tuple of them). It raises ``NotLowered`` where it has no code for these arguments; the op then runs as
an extern call with that reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import torch

from compiler.index import Index
from compiler.ir import Lazy, Value
from compiler.lowering.symbols import Symbols
from compiler.report import ExternReason
from compiler.sizes import Size


class NotLowered(Exception):
    """These arguments have no generated code; ``reason`` and the message say why."""

    def __init__(self, message: str, reason: ExternReason = ExternReason.NO_LOWERING) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class ReductionPlan:
    """What a reduction rule asks for: ``kind`` over ``dims`` of ``source`` with a prologue and an epilogue."""

    kind: str
    source: Lazy
    dims: tuple[int, ...]
    keepdim: bool
    accumulate: torch.dtype
    prologue: Callable[[Value, Index], Value]
    epilogue: Callable[[Value], Value]
    extra_inputs: tuple[Lazy, ...] = ()


@dataclass(frozen=True)
class ScanPlan:
    """What a scan rule asks for: ``kind`` along ``dim`` of ``source`` in ``accumulate``, or its ``positions``."""

    kind: str
    source: Lazy
    dim: int
    accumulate: torch.dtype
    positions: bool = False


@dataclass(frozen=True)
class ScatterPlan:
    """What a scatter rule asks for: ``target``'s elements, and over ``size`` points those that ``at`` places there.

    ``at`` takes a point's index to the value, its index in the target, and a mask or None. ``combine`` is as in
    ``ir.Scatter``. The elements are held in ``accumulate`` meanwhile.
    """

    combine: str
    target: Lazy
    size: tuple[Size, ...]
    accumulate: torch.dtype
    at: Callable[[Index], tuple[Value, Index, Value | None]]
    inputs: tuple[Lazy, ...]


@dataclass(frozen=True)
class PartPlan:
    """A part of a result that has a loop of its own: ``at`` takes each of its ``size`` points to the value and to the
    place of that value in the result."""

    size: tuple[Size, ...]
    at: Callable[[Index], tuple[Value, Index]]
    inputs: tuple[Lazy, ...]


class Scope(Protocol):
    """What a rule may ask of the graph being lowered. ``node`` is the FX node, ``output`` its fake value.

    Sizes in a graph may be symbolic: take them from ``Lazy.size`` and ``shape``, never from the fake value, whose
    comparisons add guards. A rule that cannot do without an int raises ``NotLowered``.
    """

    node: Any
    symbols: Symbols

    @property
    def output(self) -> Any:
        """The fake tensor (or tuple of them) that the node produces."""

    def shape(self, like: torch.Tensor | None = None) -> tuple[Size, ...]:
        """The size of the node's output, or of ``like``: ints, or monomials where it is known only at run time."""

    def pointwise(
        self, inputs: Sequence[Lazy], compute: Callable[[Index], Value], like: torch.Tensor | None = None
    ) -> Lazy:
        """A result computed element by element, shaped like ``like`` (the node's own output by default)."""

    def view(self, base: Lazy, reindex: Callable[[Index], Index], like: torch.Tensor | None = None) -> Lazy:
        """A view laid out as ``like``: its element at an index is the base's at ``reindex(index)``."""

    def reduce(self, plan: ReductionPlan, size: Sequence[Size], dtype: torch.dtype, like: torch.Tensor | None) -> Lazy:
        """A reduction's result in memory, laid out like ``like`` or contiguous where that is None."""

    def scan(self, plan: ScanPlan, like: torch.Tensor) -> Lazy:
        """A scan's result in memory laid out like ``like``, in its dtype."""

    def scatter(self, plan: ScatterPlan, like: torch.Tensor) -> Lazy:
        """The target with elements written at computed places, in memory laid out like ``like``."""

    def assemble(self, parts: Sequence[PartPlan]) -> Lazy:
        """The node's output in memory, written part by part; together the parts are all of it."""

    def overwrite(self, target: Lazy, source: Lazy) -> Lazy:
        """The memory of ``target``, an input, with the elements of ``source``, which has its size."""

    def realize(self, lazy: Lazy) -> Lazy:
        """Make sure that the value lies in memory (many-to-one reads would otherwise compute it many times)."""


Rule = Callable[..., Any]
_RULES: dict[Any, Rule] = {}


def lower(*ops: Any) -> Callable[[Rule], Rule]:
    """Register a rule for ops or for whole packets (every overload)."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            _RULES[op] = rule
        return rule

    return register


FAMILIES = (
    "creation division indexing integers mutation pointwise pools random reductions resample scans scatter search "
    "shapes views"
).split()


@cache
def _load_families() -> None:
    """The families register their rules when imported."""
    for name in FAMILIES:
        importlib.import_module(f"compiler.lowering.{name}")


def family(name: str) -> list[Any]:
    """The ops whose rules the file ``name`` of this package holds."""
    _load_families()
    return [op for op, rule in _RULES.items() if rule.__module__ == f"{__package__}.{name}"]


def rule_for(op: Any) -> Rule | None:
    """The rule of an overload: its own, or its packet's."""
    _load_families()
    found = _RULES.get(op)
    if found is None and isinstance(op, torch._ops.OpOverload):
        found = _RULES.get(op.overloadpacket)
    return found
