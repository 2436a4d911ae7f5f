"""Reductions of a kernel: in registers where a row fits, else in passes over the row."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from compiler.codegen.domain import Domain
from compiler.codegen.online import online_sums
from compiler.codegen.text import TRITON_TYPES, carrier, literal
from compiler.codegen.values import Scope, Store, ValuePrinter
from compiler.ir import Const, Reduce, Scan, Scatter, Value, children, walk
from compiler.lowering.reducing import identity
from compiler.ops import PRIMITIVES, REDUCTIONS, SCANS


class ReductionPrinter(ValuePrinter):
    """Prints reductions, each in the way that its kernel is laid out."""

    def __init__(self, domain: Domain, stores: Sequence[Store], persistent: bool) -> None:
        below = (v for v in walk(*(store.value for store in stores)) if isinstance(v, Reduce))
        self._online = {} if persistent or domain.r is None else online_sums(below)
        super().__init__(domain, stores, persistent)
        self._accumulators: dict[str, tuple[str, ...]] = {}
        self._openings: list[str] = []  # what has to stand before the loop over r that is being printed

    def _passes(self, reduce: Reduce) -> int:
        """None for a sum that is kept beside the maximum below it."""
        return 0 if id(reduce) in self._online else 1

    # --- looped reductions -----------------------------------------------------------------------------------------

    def _looped(self) -> None:
        """One pass over the row per level of reductions, and one more for what is stored after the last."""
        reduces = self._reduces()
        element_stores = [s for s in self.stores if s.element]
        row_stores = [s for s in self.stores if not s.element]
        last = self.passes()
        for level in range(1, last + 1):
            here = [r for r in reduces if self._level[id(r)] == level]
            stores = [s for s in element_stores if self._level[id(s.value)] == level - 1]
            if here or stores:
                self.last_pass = level == last
                self._pass(here, stores)
        self._print_all(row_stores)
        for store in row_stores:
            self._store(store)

    def _reduces(self) -> list[Reduce]:
        return [v for v in walk(*(store.value for store in self.stores)) if isinstance(v, Reduce)]

    def passes(self) -> int:
        """How often a kernel that does not keep the row passes over it; 0 where nobody reads the reduction that the
        group was made for."""
        levels = [self._level[id(r)] for r in self._reduces()]
        return max([*levels, *(self._level[id(s.value)] + 1 for s in self.stores if s.element)], default=0)

    def _print_all(self, stores: Sequence[Store]) -> None:
        """Print what is stored before any of it is: a store may overwrite what another value is made of."""
        for store in stores:
            for value in children(store.value) if isinstance(store.value, Scatter) else [store.value]:
                self._print(value)

    def _pass(self, reduces: Sequence[Reduce], stores: Sequence[Store]) -> None:
        """One loop over r. Row-level values that it reads are printed before it."""
        beside = {id(self._online[id(r)]): r for r in reduces if id(r) in self._online}  # by the maximum below them
        reduces = [r for r in reduces if id(r) not in self._online]
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
        pending: list[tuple[Reduce, tuple[str, ...]]] = []
        self._openings = []
        sums: list[tuple[Reduce, Reduce, str, str]] = []
        for reduce in reduces:
            self._print(reduce.value)
            if id(reduce) in beside:
                sums.append((reduce, beside[id(reduce)], *self._accumulate_online(reduce)))
                continue
            operand = self._tensor(reduce.value)
            key = f"{reduce.kind if reduce.position is None else reduce.kind[-3:]} {operand} {reduce.position}"
            if key in self._accumulators:
                pending.append((reduce, self._accumulators[key]))
                continue
            names = self._accumulate(reduce, operand, self._openings)
            self._accumulators[key] = names
            pending.append((reduce, names))
        self._print_all(stores)
        for store in stores:
            self._store(store)
        self.indent = outer_indent
        body = self.lines[start:]
        shifted = {n: o for n, o in self.origins.items() if n >= start}
        for n in shifted:
            del self.origins[n]
        head = [f"{self.indent}{text}" for text in self._openings]
        head.append(f"{self.indent}for roffset in range(0, rnumel, RBLOCK):")
        self.lines[start:] = [*head, *body]
        for n, o in shifted.items():
            self.origins[n + len(head)] = o
        self.scope = self.row
        for reduce, names in pending:
            self.row.names[id(reduce)] = self._collapse(reduce, names)
        for high, total, maximum, part in sums:
            self._collapse_online(high, total, maximum, part)
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
            helper = self._first(reduce)
            best, at = self._fresh(), self._fresh()
            index = f"tl.broadcast_to(({place}).to(tl.int64), {shape})"
            self._line(f"{best}, {at} = {helper}({total}, {where}, {value}, {index})", reduce)
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

    def _accumulate_online(self, high: Reduce) -> tuple[str, str]:
        """One step of a maximum and of the sum of exponentials below it; the accumulators of both."""
        shape = self._block_shape()
        kind = TRITON_TYPES[carrier(high.dtype)]
        maximum, part = self._fresh("acc"), self._fresh("acc")
        self._openings.append(f'{maximum} = tl.full({shape}, float("-inf"), {kind})')
        self._openings.append(f"{part} = tl.full({shape}, 0.0, {kind})")
        self.helpers["online_sum"] = None
        operand = f'tl.where(rmask, {self._tensor(high.value)}, float("-inf"))'
        self._line(f"{maximum}, {part} = online_sum({maximum}, {part}, {operand})", high)
        return maximum, part

    def _collapse_online(self, high: Reduce, total: Reduce, maximum: str, part: str) -> None:
        """Combine the accumulators of a maximum and its sum along r: each part is relative to a maximum of its own."""
        axis = len(self.domain.axes) - 1
        top = self.row.names[id(high)] = self._collapse(high, (maximum,))
        name = self.row.names[id(total)] = self._fresh()
        self._line(f"{name} = tl.sum({part} * tl.exp({maximum} - {top}), {axis})[:, None]", total)

    def _collapse(self, reduce: Reduce, names: tuple[str, ...]) -> str:
        """Combine a block of accumulators (or of values) along r into a column."""
        axis = len(self.domain.axes) - 1
        if reduce.position is not None:
            return self._collapse_first(reduce, f"tl.reduce(({', '.join(names)}), {axis}, {self._first(reduce)})")
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
        return self._assign(text, reduce)

    def _first(self, reduce: Reduce) -> str:
        """The function that takes the first of equal extrema."""
        name = f"first_{reduce.kind[-3:]}"
        self.helpers[name] = None
        return name

    def _collapse_first(self, reduce: Reduce, text: str) -> str:
        """An extremum or its position; where both are wanted they are found together."""
        if text not in self.scope.texts:
            best, place = self._fresh(), self._fresh()
            self._line(f"{best}, {place} = {text}", reduce)
            self.scope.texts[text] = best
            self.scope.texts[f"{text} position"] = place
        found = self.scope.texts[f"{text} position" if reduce.kind.startswith("arg") else text]
        return self._assign(f"{found}[:, None]", reduce)

    def _reduction(self, reduce: Reduce) -> str:
        shape = self._block_shape()
        dtype = reduce.value.dtype
        operand = self._tensor(reduce.value)
        start = literal(identity(reduce.kind, dtype).value, dtype)
        block = f"tl.broadcast_to({operand}, {shape})"
        assert self.domain.r is not None
        row = self.domain.r.numel
        full = isinstance(row, int) and row & (row - 1) == 0  # RBLOCK is the row's length: no lane is idle
        filled = block if full else f"tl.where(rmask, {block}, {start})"
        names: tuple[str, ...] = (self._assign(filled, reduce),)
        if reduce.position is not None:
            place = self._index_text(reduce.position)
            index = f"tl.broadcast_to(({place}).to(tl.int64), {shape})"
            where = self._assign(index if full else f"tl.where(rmask, {index}, {2**31 - 1})", reduce)
            names = (names[0], where)
        name = self._collapse(reduce, names)
        # a sum begins with 0.0, as the idle lanes and an accumulator do: of nothing but -0.0 it is 0.0
        unsigned = full and reduce.kind == "sum" and dtype.is_floating_point
        return self._assign(f"{name} + 0.0", reduce) if unsigned else name

    # --- scans -----------------------------------------------------------------------------------------------------

    def _scan(self, scan: Scan) -> str:
        """A scan of the block; in a loop over r it goes on from where the last block ended."""
        kinds = [TRITON_TYPES[carrier(scan.value.dtype)]]
        shape = self._block_shape()
        parts = [f"tl.broadcast_to({self._tensor(scan.value)}, {shape})"]
        starts = [literal(identity(scan.kind, scan.value.dtype).value, scan.value.dtype)]
        if SCANS[scan.kind].combine.startswith("later"):  # an extremum and its position are found together
            place = self._index_text(scan.rvar)
            parts.append(f"tl.broadcast_to(({place}).to(tl.int64), {shape})")
            kinds.append("tl.int64")
            starts.append("0")
        wanted = 1 if scan.position is not None else 0
        key = f"scan {scan.kind} {parts}"
        if key not in self.scope.texts:
            names = self._scanned(scan, parts, list(zip(kinds, starts, strict=True)))
            self.scope.texts.update({f"{key} {number}": name for number, name in enumerate(names)})
            self.scope.texts[key] = names[0]
        return self.scope.texts[f"{key} {wanted}"]

    def _scanned(self, scan: Scan, parts: Sequence[str], carried: Sequence[tuple[str, str]]) -> list[str]:
        """The lines of a scan; ``carried`` has the dtype and the start of each of its parts."""
        combine = SCANS[scan.kind].combine
        self.helpers[combine] = None
        axis = len(self.domain.axes) - 1
        names = [self._fresh() for _ in parts]
        operands = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        self._line(f"{', '.join(names)} = tl.associative_scan({operands}, {axis}, {combine})", scan)
        if self.persistent:
            return names
        carries = [self._fresh("carry") for _ in parts]
        for carry, (kind, start) in zip(carries, carried, strict=True):
            self._openings.append(f"{carry} = tl.full({self._block_shape(False)}, {start}, {kind})")
        totals = [self._fresh() for _ in parts]
        self._line(f"{', '.join(totals)} = {combine}({', '.join([*carries, *names])})", scan)
        for carry, total, (kind, _) in zip(carries, totals, carried, strict=True):
            if "float" in kind:  # beside -inf the last one keeps its sign where it is zero, as it would not in a sum
                self.helpers["max_nan"] = None
                last = f'tl.reduce(tl.where(rbase == RBLOCK - 1, {total}, float("-inf")), {axis}, max_nan)'
            else:
                last = f"tl.sum(tl.where(rbase == RBLOCK - 1, {total}, 0), {axis})"
            self._line(f"{carry} = {last}[:, None].to({kind})", scan)
        return totals
