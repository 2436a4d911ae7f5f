"""Loops of a lowered graph: results realized in memory, reductions, scans, and writes in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from compiler.index import (
    Expr,
    Index,
    LoopVar,
    contiguous_strides,
    is_dense,
    linear_index,
)
from compiler.ir import (
    Buffer,
    Lazy,
    Load,
    Loop,
    Scan,
    Scatter,
    Step,
    Value,
    indirect_values,
    tag,
    walk,
)
from compiler.lowering import extern
from compiler.lowering.reducing import Reducing
from compiler.lowering.registry import NotLowered, PartPlan, ReductionPlan, ScanPlan, ScatterPlan
from compiler.lowering.symbols import Symbols
from compiler.ops import FIRST_EXTREMA, cast, summand
from compiler.report import ExternReason, Target
from compiler.sizes import Size, as_size, hint, product


class LoopMaker(Reducing):
    """The part of a ``Scope`` that makes loops. What the graph is, its subclass knows and sets."""

    node: Any
    target: Target
    symbols: Symbols
    _env: dict[torch.fx.Node, Any]
    _steps: list[Step]
    _inside_inputs: dict[str, str]
    _pending: dict[torch.fx.Node, Lazy]
    _memory: dict[int, frozenset[str]]
    _loops: int
    _buffers: int
    _place: dict[str, int]
    _consumers: dict[torch.fx.Node, set[torch.fx.Node]]

    @property
    def output(self) -> Any:
        """The node's fake value."""
        return self.node.meta["val"]

    def shape(self, like: torch.Tensor | None = None) -> tuple[Size, ...]:
        """See Scope."""
        return self.symbols.sizes((self.output if like is None else like).shape)

    def pointwise(
        self, inputs: Sequence[Lazy], compute: Callable[[Index], Value], like: torch.Tensor | None = None
    ) -> Lazy:
        """See Scope."""
        lazy = self._lazy_for(self.output if like is None else like, self.node.name)
        lazy.compute = compute
        lazy.inputs = tuple(inputs)
        return lazy

    def view(self, base: Lazy, reindex: Callable[[Index], Index], like: torch.Tensor | None = None) -> Lazy:
        """See Scope."""
        lazy = self._lazy_for(self.output if like is None else like, self.node.name)
        lazy.base = base
        lazy.inputs = (base,)
        lazy.compute = lambda index: base.load(reindex(index))
        return lazy

    def _lazy_for(self, value: torch.Tensor, name: str) -> Lazy:
        size, stride = self.symbols.sizes(value.shape), self.symbols.strides(value)
        return Lazy(name, size, stride, self.symbols.offset(value), value.dtype, value.device)

    def _in_memory(self, buffer: Buffer, like: torch.Tensor | None) -> Lazy:
        """This node's value where it lies in memory. Its strides are those that the capture saw, for by them its views
        are known; they may be others than the memory's."""
        if like is None:
            return Lazy(self.node.name, buffer.size, buffer.stride, 0, buffer.dtype, buffer.device, buffer=buffer)
        lazy = self._lazy_for(like, self.node.name)
        lazy.buffer = buffer
        return lazy

    def _fresh_index(self, size: Sequence[Size]) -> Index:
        """A loop variable for every dimension that is not known to have one element."""
        return tuple(self._var(s) if s != 1 else sympy.Integer(0) for s in size)

    def realize(self, lazy: Lazy) -> Lazy:
        """See Scope."""
        root = lazy.root()
        if root.buffer is None:
            self._realize_root(root)
        return lazy

    def reduce(self, plan: ReductionPlan, size: Sequence[Size], dtype: torch.dtype, like: torch.Tensor | None) -> Lazy:
        """See Scope. A reduction with too few outputs to fill the GPU is done in two steps (``_split_count``)."""
        source = plan.source
        dims = [d for d in plan.dims if source.size[d] != 1]
        kept = [d for d in range(len(source.size)) if d not in plan.dims]
        xvars = {d: self._var(source.size[d]) for d in kept if source.size[d] != 1}
        rsizes = [source.size[d] for d in dims]
        xnumel = hint(product([v.extent for v in xvars.values()]))
        across = any(source.stride[d] == 1 for d in xvars)  # neighbours in memory belong to different outputs
        count = self._split_count(xnumel, hint(product(rsizes)), across)
        one_hot = self._one_hot(plan, xvars, dims, rsizes) if count > 1 else None
        rvars: tuple[LoopVar, ...] = ()
        if one_hot is not None:
            value, origins = one_hot, self._origins((source, *plan.extra_inputs))
        elif count > 1 and plan.kind in FIRST_EXTREMA:
            value, rvars, origins = self._split_first(plan, xvars, dims, rsizes, count)
        elif count > 1:
            reduce_value, rvars, origins = self._partial(plan, xvars, dims, rsizes, count)
            value = plan.epilogue(reduce_value)
        else:
            inner, rvars = self._rows(plan, xvars, dims, rsizes)
            origins = self._origins((source, *plan.extra_inputs))
            value = plan.epilogue(self._reduced(plan, inner, rvars))
        zero = sympy.Integer(0)
        kept_index = {d: xvars.get(d, zero) for d in kept}
        out_index = (
            tuple(kept_index.get(d, zero) for d in range(len(source.size)))
            if plan.keepdim
            else tuple(kept_index[d] for d in kept)
        )
        buffer = self._new_buffer(size, dtype, source.device, like, self.node.name)
        lazy = self._in_memory(buffer, like)
        tag(value, self.node.name)
        index = linear_index(out_index, buffer.stride)
        order = _outermost_first(xvars.values(), index)
        self._steps.append(Loop(buffer, order, tuple(rvars), value, index, origins))
        return lazy

    def scan(self, plan: ScanPlan, like: torch.Tensor) -> Lazy:
        """See Scope."""
        source = plan.source
        rvar = self._var(source.size[plan.dim])
        xvars = {d: self._var(s) for d, s in enumerate(source.size) if s != 1 and d != plan.dim}
        at = self._source_index(source, xvars, {plan.dim: rvar})
        inner = summand(plan.kind, cast(source.load(at), plan.accumulate))
        if plan.positions:
            value: Value = Scan(torch.int64, plan.kind, inner, rvar, rvar)
        else:
            value = cast(Scan(plan.accumulate, plan.kind, inner, rvar), like.dtype)
        tag(value, self.node.name)
        size = self.shape(like)
        buffer = self._new_buffer(size, like.dtype, source.device, like, self.node.name)
        index = linear_index(at, buffer.stride)
        order = _outermost_first(xvars.values(), index)
        self._steps.append(Loop(buffer, order, (rvar,), value, index, self._origins((source,))))
        return self._in_memory(buffer, like)

    def scatter(self, plan: ScatterPlan, like: torch.Tensor) -> Lazy:
        """See Scope. The target is written in place where nobody else reads it, else into a copy."""
        point = self._fresh_index(plan.size)
        value, place, mask = plan.at(point)
        read = {v.buffer.name for v in walk(value, *indirect_values(sympy.Tuple(*place))) if isinstance(v, Load)}
        held = self._input_to_write(plan.target, plan.accumulate)
        held = held or self._own_memory(plan.target, plan.accumulate, like)
        if held is None or held.name in read:
            held = self._copied(plan.target, plan.accumulate, like)
        index = linear_index(place, held.stride)
        write = Scatter(plan.accumulate, plan.combine, cast(value, plan.accumulate), index, mask)
        tag(write, self.node.name)
        buffer = replace(self._new_buffer(held.size, held.dtype, held.device, None, self.node.name), stride=held.stride)
        xvars = tuple(v for v in point if isinstance(v, LoopVar))
        over = held.name if held.kind == "input" else self._inside_inputs.get(held.name, "")
        if held.kind == "input":
            self._evaluate_pending_reads(self.node, held)
        if over:
            self._inside_inputs[buffer.name] = over
        origins = self._origins(plan.inputs)
        self._steps.append(Loop(buffer, xvars, (), write, index, origins, into=held.name, over=over))
        if buffer.dtype is like.dtype:
            return self._in_memory(buffer, like)
        result = self._in_memory(buffer, None)
        return self.pointwise((result,), lambda at: cast(result.load(at), like.dtype), like)

    def assemble(self, parts: Sequence[PartPlan]) -> Lazy:
        """See Scope. The first part's loop makes the memory, the others go on with it."""
        like, size = self.output, self.shape()
        held: Buffer | None = None
        for part in parts:
            point = self._fresh_index(part.size)
            value, place = part.at(point)
            buffer = self._new_buffer(size, like.dtype, like.device, like, self.node.name)
            index = linear_index(place, buffer.stride)
            if held is not None:
                value = Scatter(like.dtype, "store", value, index, None)
            tag(value, self.node.name)
            into = held.name if held is not None else ""
            self._steps.append(
                Loop(buffer, _outermost_first(point, index), (), value, index, self._origins(part.inputs), into)
            )
            held = buffer
        assert held is not None
        return self._in_memory(held, like)

    def overwrite(self, target: Lazy, source: Lazy) -> Lazy:
        """See Scope. A source that reads the target elsewhere than where it is written is computed first."""
        held = target.buffer
        assert held is not None
        made = source.buffer
        if made is not None and source.base is None and self._inside_inputs.get(made.name) == held.name:
            return target  # it was written there already
        self._evaluate_pending_reads(self.node, held)
        index = self._fresh_index(target.size)
        place = linear_index(index, held.stride)
        for _ in range(2):
            value = cast(source.load(index), target.dtype)
            reads = [v.index for v in walk(value) if isinstance(v, Load) and v.buffer is held]
            if all(read == place for read in reads):
                break
            if source.root().buffer is not None:
                raise NotLowered(f"{self.node.name} moves elements within one tensor", ExternReason.MUTATION)
            self.realize(source)
        tag(value, self.node.name)
        buffer = replace(self._new_buffer(held.size, held.dtype, held.device, None, source.fx_node), stride=held.stride)
        origins = self._origins((source,))
        xvars = _outermost_first(index, place)
        self._steps.append(Loop(buffer, xvars, (), value, place, origins, over=held.name))
        return target  # whoever gets this as a result gets the input itself

    def _input_to_write(self, target: Lazy, dtype: torch.dtype) -> Buffer | None:
        """The memory of a target that is an input, if this node's result is copied into it and nothing reads what is
        there in between (a cache that grows): then the elements are written there at once."""
        held = target.buffer
        if held is None or held.kind != "input" or target.base is not None or target.dtype is not dtype:
            return None
        if any(user.op == "output" for user in self._consumers[self.node]):
            return None  # the caller gets a tensor of its own
        for copy in self.node.users:
            if copy.args[1:2] != (self.node,) or not extern.copies_into_input(copy):
                continue
            others = [r for r in extern.readers(copy.args[0]) if r not in (copy, self.node) and r.op != "output"]
            if self._env[copy.args[0]] is target and all(reader < self.node for reader in others):
                return held
        return None

    def _own_memory(self, target: Lazy, dtype: torch.dtype, like: torch.Tensor) -> Buffer | None:
        """The memory of a target that is of no further use once this node has run, or but one of its steps, where it is
        laid out like ``like``: eager's result, a copy of a permuted target, is not permuted."""
        if target.base is not None or target.dtype is not dtype:
            return None
        mine = {self.node}  # a target that no node stands for was made by this one's rule
        consumers = next((self._consumers[n] for n, lazy in self._env.items() if lazy is target), mine)
        if consumers != {self.node}:
            return None
        buffer = self.realize(target).buffer
        if buffer is None or buffer.kind != "computed" or self._reads_twice(buffer):
            return None
        return buffer if buffer.stride == self.symbols.strides(like) else None

    def _reads_twice(self, buffer: Buffer) -> bool:
        """Whether several of the node's operands are read from the buffer: a rule of several steps writes in one and
        reads in the next."""
        leaves = pytree.tree_leaves((self.node.args, self.node.kwargs))
        operands = [self._env[leaf] for leaf in leaves if isinstance(leaf, torch.fx.Node)]
        lazies = [operand for operand in operands if isinstance(operand, Lazy)]
        return sum(buffer.name in self._memory_below(lazy) for lazy in lazies) > 1

    def _copied(self, target: Lazy, dtype: torch.dtype, like: torch.Tensor) -> Buffer:
        """A copy of the target in memory of its own."""
        size, stride = self.shape(like), self.symbols.strides(like)
        copy = Lazy(target.fx_node, size, stride, 0, dtype, target.device)
        copy.compute = lambda index: cast(target.load(index), dtype)
        copy.inputs = (target,)
        self._realize_root(copy)
        assert copy.buffer is not None
        return copy.buffer

    # --- memory ----------------------------------------------------------------------------------------------------

    def _realize_root(self, lazy: Lazy, index: Index | None = None) -> None:
        if index is None:
            index = self._fresh_index(lazy.size)
        value = lazy.load(index)
        origins = tuple(sorted(lazy.origins(), key=self._order))
        buffer = self._new_buffer(lazy.size, lazy.dtype, lazy.device, lazy, lazy.fx_node)
        lazy.buffer = buffer
        lazy.memo.clear()
        store = linear_index(index, buffer.stride)
        self._steps.append(Loop(buffer, _outermost_first(index, store), (), value, store, origins))

    def _order(self, name: str) -> int:
        return self._place[name]

    def _origins(self, inputs: Sequence[Lazy]) -> tuple[str, ...]:
        found = {self.node.name}
        for lazy in inputs:
            if lazy.base is not None or lazy.buffer is None:
                found |= lazy.origins()
        return tuple(sorted(found, key=self._order))

    def _new_buffer(
        self, size: Sequence[Size], dtype: torch.dtype, device: torch.device, like: Any, fx_node: str
    ) -> Buffer:
        """Fresh memory laid out like ``like`` where that is dense, else contiguous."""
        stride = contiguous_strides(size)
        if like is not None:
            given = like.stride if isinstance(like, Lazy) else self.symbols.strides(like)
            if is_dense(size, given):
                stride = given
        name = f"buf{self._buffers}"
        self._buffers += 1
        return Buffer(name, tuple(size), stride, dtype, device, "computed", fx_node)

    def _var(self, extent: Size) -> LoopVar:
        self._loops += 1
        return LoopVar(f"i{self._loops}", extent)

    def _evaluate_pending_reads(self, node: torch.fx.Node, held: Buffer | None = None) -> None:
        """Before memory is overwritten, compute whatever is still unevaluated and has readers to come.

        With ``held`` only that memory is, so that only what reads it has to be.
        """
        here = self._place[node.name]
        self._pending = {
            earlier: lazy
            for earlier, lazy in self._pending.items()
            if lazy.root().buffer is None and self._last_reader(earlier) >= here
        }
        for earlier, lazy in list(self._pending.items()):
            if held is not None and held.name not in self._memory_below(lazy):
                continue
            later = (user for user in self._consumers[earlier] if user is not node or held is None)
            if any(self._place[user.name] > here or user is node for user in later):
                self.realize(lazy)

    def _last_reader(self, node: torch.fx.Node) -> int:
        """The place of the last node that reads this one's value, seen through views."""
        return max((self._place[user.name] for user in self._consumers[node]), default=-1)

    def _memory_below(self, lazy: Lazy) -> frozenset[str]:
        """The buffers that computing the value reads; at most too many, where some of it has been computed since."""
        known = self._memory.get(id(lazy))
        if known is None:
            found, stack, seen = set(), [lazy], {id(lazy)}
            while stack:
                below = stack.pop()
                if below.buffer is not None:
                    found.add(below.buffer.name)
                    continue
                fresh = [x for x in below.inputs if id(x) not in seen]
                seen.update(id(x) for x in fresh)
                stack.extend(fresh)
            known = self._memory[id(lazy)] = frozenset(found)
        return known


def _outermost_first(point: Iterable[Any], index: Expr) -> tuple[LoopVar, ...]:
    """The loop variables of a point in the order in which the memory at ``index`` has them."""
    return tuple(sorted((v for v in point if isinstance(v, LoopVar)), key=lambda v: -hint(as_size(index.coeff(v)))))
