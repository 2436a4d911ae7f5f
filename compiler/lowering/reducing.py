"""How a reduction is computed: in one step, or in two where it has too few outputs to fill the GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import sympy
import torch

from compiler.index import Index, IndirectVar, LoopVar, contiguous_strides, linear_index, unflatten
from compiler.ir import Buffer, Const, IndexValue, Lazy, Loop, Op, Reduce, Step, Value, rewrite, tag
from compiler.lowering.registry import ReductionPlan
from compiler.lowering.shapes import masked
from compiler.lowering.symbols import derived, torch_expr
from compiler.one_hot import sum_of_one_hot
from compiler.ops import FIRST_EXTREMA, REDUCTIONS, SCANS, const, scalar, summand
from compiler.report import Target
from compiler.sizes import Size, product

OUTPUTS_ACROSS = 64  # outputs that one program of a reduction across rows computes
LEAST_CHUNK = 1024  # elements that a part of a split reduction combines: fewer are not worth a second kernel
LEAST_CHUNK_ACROSS = 128  # the same of each output's, where one program computes many outputs
LEAST_SPLIT = 1 << 18  # elements: fewer are done before a second kernel is launched
ALIGNED_ELEMENTS = 16  # of one byte: wide loads begin at multiples of 16 bytes


class Reducing(ABC):
    """The part of a ``LoopMaker`` that reduces; what it uses of the rest is named here."""

    node: Any
    target: Target
    _steps: list[Step]

    @abstractmethod
    def _var(self, extent: Size) -> LoopVar:
        ...

    @abstractmethod
    def _origins(self, inputs: Sequence[Lazy]) -> tuple[str, ...]:
        ...

    @abstractmethod
    def _new_buffer(
        self, size: Sequence[Size], dtype: torch.dtype, device: torch.device, like: Any, fx_node: str
    ) -> Buffer:
        ...

    def _split_count(self, xnumel: int, rnumel: int, across: bool) -> int:
        """Into how many partial results each output is split: enough that every multiprocessor has work.

        ``across``: the reduction runs across rows, so that a program takes many outputs side by side.
        A program of the second step reads at most 1024 partial results.
        """
        programs = max(xnumel // OUTPUTS_ACROSS, 1) if across else xnumel
        wanted = (8 if across else 4) * self.target.multiprocessors
        chunk = LEAST_CHUNK_ACROSS if across else LEAST_CHUNK
        if rnumel < 4 * chunk or programs >= wanted // 2 or xnumel * rnumel < LEAST_SPLIT:
            return 1
        return _even_parts(rnumel, max(1, min(wanted // max(programs, 1), rnumel // chunk, 1024)))

    def _one_hot(
        self, plan: ReductionPlan, xvars: dict[int, LoopVar], dims: list[int], rsizes: list[Size]
    ) -> Value | None:
        """The result where at most one element of each row counts, which asks for no second step, and for no first."""
        reduced = self._reduced(plan, *self._rows(plan, xvars, dims, rsizes))
        value = sum_of_one_hot(reduced) if isinstance(reduced, Reduce) else reduced
        return plan.epilogue(value) if value is not reduced else None

    def _rows(
        self, plan: ReductionPlan, xvars: dict[int, LoopVar], dims: list[int], rsizes: list[Size]
    ) -> tuple[Value, tuple[LoopVar, ...]]:
        """What is reduced, and the loops over it."""
        rvars = tuple(self._var(s) for s in rsizes)
        at = self._source_index(plan.source, xvars, dict(zip(dims, rvars, strict=True)))
        return plan.prologue(plan.source.load(at), at), rvars

    def _chunked(
        self, plan: ReductionPlan, xvars: dict[int, LoopVar], dims: list[int], rsizes: list[Size], count: int
    ) -> tuple[Value, LoopVar, LoopVar, Any]:
        """What is reduced, in ``count`` chunks: the value, the loop over chunks, that within one, and the position."""
        source = plan.source
        rnumel = product(rsizes)
        chunk = -(-rnumel // count) if isinstance(rnumel, int) else derived(_divide_up(rnumel, count), rnumel)
        part, inner = self._var(count), self._var(chunk)
        flat = part * chunk + inner
        if chunk * count != rnumel:  # the last chunk runs past the end: read nothing there
            inside = Op(torch.bool, "lt", (IndexValue(torch.int64, flat), scalar(rnumel, torch.int64)))
            flat_var = LoopVar("clipped", rnumel)
            at = self._source_index(source, xvars, dict(zip(dims, unflatten(flat_var, rsizes), strict=True)))
            value = plan.prologue(source.load(at), at)
            return _masked_to_identity(value, inside, plan, {flat_var: flat}), part, inner, flat
        at = self._source_index(source, xvars, dict(zip(dims, unflatten(flat, rsizes), strict=True)))
        return plan.prologue(source.load(at), at), part, inner, flat

    def _part(self, plan: ReductionPlan, value: Value, xs: tuple[LoopVar, ...], rvar: LoopVar) -> Lazy:
        """A loop that reduces ``value`` along ``rvar``; its result, one a chunk."""
        size = tuple(v.extent for v in xs)
        buffer = self._new_buffer(size, value.dtype, plan.source.device, None, self.node.name)
        tag(value, self.node.name)
        origins = self._origins((plan.source, *plan.extra_inputs))
        self._steps.append(Loop(buffer, xs, (rvar,), value, linear_index(xs, buffer.stride), origins))
        return Lazy(self.node.name, size, buffer.stride, 0, value.dtype, plan.source.device, buffer=buffer)

    def _partial(
        self, plan: ReductionPlan, xvars: dict[int, LoopVar], dims: list[int], rsizes: list[int], count: int
    ) -> tuple[Value, tuple[LoopVar, ...], tuple[str, ...]]:
        """The first step as a loop of its own; returns the second step's value over the partial results."""
        value, part, inner, _ = self._chunked(plan, xvars, dims, rsizes, count)
        xs = tuple(xvars.values())
        partial = self._part(plan, self._reduced(plan, value, (inner,)), (*xs, part), inner)
        again = self._var(count)
        return self._reduced(plan, partial.load((*xs, again)), (again,)), (again,), (self.node.name,)

    def _split_first(
        self, plan: ReductionPlan, xvars: dict[int, LoopVar], dims: list[int], rsizes: list[int], count: int
    ) -> tuple[Value, tuple[LoopVar, ...], tuple[str, ...]]:
        """As ``_partial`` for first extrema: each chunk's and where it is; then the first chunk's of the best."""
        value, part, inner, flat = self._chunked(plan, xvars, dims, rsizes, count)
        xs, again = tuple(xvars.values()), self._var(count)
        extreme = plan.kind[-3:]
        best = Reduce(plan.accumulate, f"first{extreme}", value, (inner,), flat)
        extrema = self._part(plan, best, (*xs, part), inner)
        found = self._first(plan, extrema.load((*xs, again)), (again,), again)
        if plan.kind.startswith("arg"):
            places = self._part(plan, Reduce(torch.int64, plan.kind, value, (inner,), flat), (*xs, part), inner)
            found = places.load((*xs, IndirectVar(found, count)))
        return plan.epilogue(found), (again,), (self.node.name,)

    def _reduced(self, plan: ReductionPlan, value: Value, rvars: tuple[LoopVar, ...]) -> Value:
        if not rvars and plan.kind.startswith("arg"):
            return const(0, torch.int64)
        if not rvars:
            return summand(plan.kind, value)
        if plan.kind not in FIRST_EXTREMA:
            return Reduce(plan.accumulate, plan.kind, value, rvars)
        return self._first(plan, value, rvars, linear_index(rvars, contiguous_strides([v.extent for v in rvars])))

    def _first(self, plan: ReductionPlan, value: Value, rvars: tuple[LoopVar, ...], place: Any) -> Value:
        dtype = torch.int64 if plan.kind.startswith("arg") else plan.accumulate
        return Reduce(dtype, plan.kind, value, rvars, place)

    def _source_index(self, source: Lazy, xvars: dict[int, LoopVar], reduced: dict[int, Any]) -> Index:
        zero = sympy.Integer(0)
        return tuple(xvars.get(d, reduced.get(d, zero)) for d in range(len(source.size)))


def _even_parts(rnumel: int, count: int) -> int:
    """``count`` or fewer, down to half, so that the parts are of one size and begin at aligned addresses."""
    even = (c for c in range(count, count // 2, -1) if rnumel % (c * ALIGNED_ELEMENTS) == 0)
    return next(even, count)


def _divide_up(size: Size, count: int) -> Any:
    """``size / count`` rounded up, in torch's terms."""
    from torch.utils._sympy.functions import FloorDiv

    return FloorDiv(torch_expr(size) + count - 1, count)


def _masked_to_identity(value: Value, inside: Value, plan: ReductionPlan, mapping: dict[LoopVar, Any]) -> Value:
    """``value`` where ``inside`` holds, read only there, and the combination's neutral element elsewhere."""
    rewritten = masked(rewrite(value, mapping, {}), inside)
    return Op(plan.accumulate, "where", (inside, rewritten, identity(plan.kind, plan.accumulate)))


def identity(kind: str, dtype: torch.dtype) -> Const:
    """The neutral element of a reduction or a scan."""
    neutral = REDUCTIONS[kind].identity if kind in REDUCTIONS else SCANS[kind].identity
    if isinstance(neutral, int):
        return const(neutral, dtype)
    if dtype.is_floating_point:
        return const(float("-inf") if neutral == "lowest" else float("inf"), dtype)
    info = torch.iinfo(dtype)
    return const(info.min if neutral == "lowest" else info.max, dtype)
