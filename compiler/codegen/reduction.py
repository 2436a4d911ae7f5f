"""Reductions of a kernel: in registers where a row fits, else in passes over the row."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from compiler.codegen.domain import Domain
from compiler.codegen.text import TRITON_TYPES, carrier, literal
from compiler.codegen.values import Scope, Store, ValuePrinter
from compiler.ir import Const, Reduce, Value, children, walk
from compiler.lowering.graph import identity
from compiler.ops import PRIMITIVES, REDUCTIONS


class ReductionPrinter(ValuePrinter):
    """Prints reductions, each in the way that its kernel is laid out."""

    def __init__(self, domain: Domain, stores: Sequence[Store], persistent: bool) -> None:
        super().__init__(domain, stores, persistent)
        self._accumulators: dict[str, tuple[str, ...]] = {}

    # --- looped reductions -----------------------------------------------------------------------------------------

    def _looped(self) -> None:
        """One pass over the row per level of reductions, and one more for what is stored after the last."""
        reduces = [v for v in walk(*(store.value for store in self.stores)) if isinstance(v, Reduce)]
        element_stores = [s for s in self.stores if s.element]
        row_stores = [s for s in self.stores if not s.element]
        levels = [self._level[id(r)] for r in reduces] + [self._level[id(s.value)] + 1 for s in element_stores]
        last = max(levels, default=0)  # 0 where nobody reads the reduction that the group was made for
        for level in range(1, last + 1):
            here = [r for r in reduces if self._level[id(r)] == level]
            stores = [s for s in element_stores if self._level[id(s.value)] == level - 1]
            if here or stores:
                self.last_pass = level == last
                self._pass(here, stores)
        for store in row_stores:
            self._store(store)

    def _pass(self, reduces: Sequence[Reduce], stores: Sequence[Store]) -> None:
        """One loop over r. Row-level values that it reads are printed before it."""
        for root in (*(r.value for r in reduces), *(store.value for store in stores)):
            self._print_row_level(root)
        start = len(self.lines)
        outer_indent = self.indent
        self.indent += "    "
        self.scope = Scope(dict(self.row.names), dict(self.row.texts))
        self._line("rindex = roffset + rbase")
        self._line("rmask = rindex < rnumel")
        assert self.domain.r is not None
        self._axis_lines(self.domain.r)
        pending: list[tuple[Reduce, str, tuple[str, ...]]] = []
        openings: list[str] = []
        for reduce in reduces:
            self._print(reduce.value)
            operand = self._tensor(reduce.value)
            key = f"{reduce.kind} {operand} {reduce.position}"
            if key in self._accumulators:
                pending.append((reduce, key, self._accumulators[key]))
                continue
            names = self._accumulate(reduce, operand, openings)
            self._accumulators[key] = names
            pending.append((reduce, key, names))
        for store in stores:
            self._store(store)
        self.indent = outer_indent
        body = self.lines[start:]
        shifted = {n: o for n, o in self.origins.items() if n >= start}
        for n in shifted:
            del self.origins[n]
        head = [f"{self.indent}{text}" for text in openings]
        head.append(f"{self.indent}for roffset in range(0, rnumel, RBLOCK):")
        self.lines[start:] = [*head, *body]
        for n, o in shifted.items():
            self.origins[n + len(head)] = o
        self.scope = self.row
        finished: dict[str, str] = {}
        for reduce, key, names in pending:
            if key not in finished:
                finished[key] = self._collapse(reduce, names)
            self.row.names[id(reduce)] = finished[key]
        self._accumulators.clear()

    def _print_row_level(self, root: Value) -> None:
        """Print the parts of ``root`` that do not vary along r, so that they stand before the loop."""
        stack = [root]
        seen: set[int] = set()
        while stack:
            value = stack.pop()
            if id(value) in seen or id(value) in self.row.names:
                continue
            seen.add(id(value))
            if self._element[id(value)]:
                stack.extend(children(value))
            elif not isinstance(value, Const):
                self._print(value)

    def _accumulate(self, reduce: Reduce, operand: str, openings: list[str]) -> tuple[str, ...]:
        """Print one step of a reduction inside the loop; ``openings`` collects what has to stand before it."""
        shape = self._block_shape()
        dtype = reduce.value.dtype
        value = self._fresh()
        self._line(f"{value} = tl.broadcast_to({operand}, {shape})", reduce)
        start = literal(identity(reduce.kind, dtype).value, dtype)
        total = self._fresh("acc")
        if reduce.position is not None:
            where = self._fresh("where")
            openings.append(f"{total} = tl.full({shape}, {start}, {TRITON_TYPES[carrier(dtype)]})")
            openings.append(f"{where} = tl.full({shape}, {2**31 - 1}, tl.int64)")
            place = self._index_text(reduce.position)
            self.helpers["first_" + reduce.kind[3:]] = None
            best, at = self._fresh(), self._fresh()
            index = f"tl.broadcast_to(({place}).to(tl.int64), {shape})"
            self._line(f"{best}, {at} = first_{reduce.kind[3:]}({total}, {where}, {value}, {index})", reduce)
            self._line(f"{total} = tl.where(rmask, {best}, {total})", reduce)
            self._line(f"{where} = tl.where(rmask, {at}, {where})", reduce)
            return total, where
        if dtype is torch.bool:
            openings.append(f"{total} = tl.full({shape}, {start}, tl.int1)")
        else:
            openings.append(f"{total} = tl.full({shape}, {start}, {TRITON_TYPES[carrier(dtype)]})")
        combined = PRIMITIVES[REDUCTIONS[reduce.kind].combine].triton.format(total, value)
        self._line(f"{total} = tl.where(rmask, {combined}, {total})", reduce)
        return (total,)

    def _collapse(self, reduce: Reduce, names: tuple[str, ...]) -> str:
        """Combine a block of accumulators (or of values) along r into a column."""
        name = self._fresh()
        axis = len(self.domain.axes) - 1
        if reduce.position is not None:
            helper = "first_" + reduce.kind[3:]
            self.helpers[helper] = None
            best, place = self._fresh(), self._fresh()
            self._line(f"{best}, {place} = tl.reduce(({names[0]}, {names[1]}), {axis}, {helper})", reduce)
            self._line(f"{name} = {place}[:, None]", reduce)
            return name
        total = names[0]
        dtype = reduce.value.dtype
        if dtype is torch.bool:
            function = "tl.max" if reduce.kind == "any" else "tl.min"
            text = f"{function}({total}.to(tl.int32), {axis})[:, None] != 0"
        elif reduce.kind == "sum":
            text = f"tl.sum({total}, {axis})[:, None]"
        elif reduce.kind == "prod":
            self.helpers["multiply"] = None
            text = f"tl.reduce({total}, {axis}, multiply)[:, None]"
        elif dtype.is_floating_point:
            self.helpers[f"{reduce.kind}_nan"] = None
            text = f"tl.reduce({total}, {axis}, {reduce.kind}_nan)[:, None]"
        else:
            text = f"tl.{reduce.kind}({total}, {axis})[:, None]"
        self._line(f"{name} = {text}", reduce)
        return name

    def _reduction(self, reduce: Reduce) -> str:
        shape = self._block_shape()
        dtype = reduce.value.dtype
        operand = self._tensor(reduce.value)
        start = literal(identity(reduce.kind, dtype).value, dtype)
        block = f"tl.broadcast_to({operand}, {shape})"
        assert self.domain.r is not None
        full = self.domain.r.numel & (self.domain.r.numel - 1) == 0  # RBLOCK is the row's length: no lane is idle
        filled = block if full else f"tl.where(rmask, {block}, {start})"
        key = f"reduce {reduce.kind} {filled} {reduce.position}"
        if key in self.scope.texts:
            return self.scope.texts[key]
        total = self._fresh()
        self._line(f"{total} = {filled}", reduce)
        names: tuple[str, ...] = (total,)
        if reduce.position is not None:
            where = self._fresh()
            place = self._index_text(reduce.position)
            index = f"tl.broadcast_to(({place}).to(tl.int64), {shape})"
            self._line(f"{where} = {index if full else f'tl.where(rmask, {index}, {2**31 - 1})'}", reduce)
            names = (total, where)
        name = self._collapse(reduce, names)
        self.scope.texts[key] = name
        return name
