"""One fusion group as the source of one Triton kernel.

Values are printed in the order they are needed, each once per scope. A reduction whose row fits in registers is
*persistent*: the row is loaded once. A longer one is *looped*: the kernel passes over the row once per level of
reductions that depend on each other, keeping an accumulator, and computes element-level values anew in every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from compiler.codegen.domain import Access, Axis, Domain, axis_variables, choose_domain, fold_axes
from compiler.codegen.helpers import HELPERS
from compiler.codegen.text import TRITON_TYPES, carrier, index_text, is_half, literal
from compiler.fusion import FusionGroup, group_values
from compiler.index import Expr, IndirectVar, LoopVar, bounds, substitute
from compiler.ir import Buffer, Const, IndexValue, Load, Op, Reduce, Value, children, indirect_values, rewrite, walk
from compiler.lowering.graph import identity
from compiler.ops import PRIMITIVES, REDUCTIONS
from compiler.options import DEFAULTS, Options

LITERAL_TYPES = frozenset({torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.bool})


@dataclass(frozen=True)
class KernelSource:
    """A kernel before it is named and compiled.

    ``source`` contains ``{name}`` where the kernel's name goes. ``arguments`` are the buffers in the order of the
    pointer parameters, ``stored`` those among them that it writes. ``lines`` maps a line number of the source to the
    FX nodes it computes.
    """

    source: str
    arguments: tuple[Buffer, ...]
    stored: tuple[str, ...]
    domain: Domain
    persistent: bool
    lines: dict[int, list[str]]
    flops: int
    bytes: int


@dataclass
class _Scope:
    """Where values are printed: their names by identity, and by text so that equal expressions are one variable."""

    names: dict[int, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def generate_kernel(group: FusionGroup, needed: Sequence[str], options: Options = DEFAULTS) -> KernelSource:
    """Print a group's kernel. ``needed`` names the member buffers that must reach memory."""
    return _Printer(group, frozenset(needed), options).run()


class _Printer:
    def __init__(self, group: FusionGroup, needed: frozenset[str], options: Options) -> None:
        members = [(loop, value, index) for loop, value, index in group_values(group)]
        roots = [(loop, value, index) for loop, value, index in members if loop.name in needed]
        accesses = [Access(index, loop.buffer.dtype.itemsize) for loop, _, index in roots]
        for value in walk(*(value for _, value, _ in roots)):
            if isinstance(value, Load):
                accesses.append(Access(value.index, value.dtype.itemsize))
            elif isinstance(value, IndexValue):
                accesses.append(Access(value.expr, 0))
            elif isinstance(value, Reduce) and value.position is not None:
                accesses.append(Access(value.position, 0))
        self.domain = choose_domain(group.xvars, group.rvars, accesses)
        mapping = self.domain.mapping
        memo: dict[int, Value] = {}
        self.stores = [
            (loop.buffer, rewrite(value, mapping, memo), substitute(index, mapping)) for loop, value, index in roots
        ]
        self.xvars = frozenset(v for a in self.domain.axes if a.prefix != "r" for v in a.variables)
        self.rvars = frozenset(self.domain.r.variables) if self.domain.r else frozenset()
        limit = options.persistent_inner if self.domain.inner else options.persistent_outer
        self.persistent = self.domain.r is not None and self.domain.r.numel <= limit
        self.wide = self._needs_int64()
        self.lines: list[str] = []
        self.origins: dict[int, list[str]] = {}
        self.indent = "    "
        self.row = _Scope()
        self.scope = self.row
        self.helpers: dict[str, None] = {}
        self.pointers: dict[str, tuple[str, Buffer]] = {}
        self.count = 0
        self._element: dict[int, bool] = {}
        self._level: dict[int, int] = {}
        self._accumulators: dict[str, tuple[str, ...]] = {}
        self.last_pass = False

    # --- the whole kernel ------------------------------------------------------------------------------------------

    def run(self) -> KernelSource:
        """Print everything."""
        self._analyse()
        self._collect_pointers()
        if self.domain.r is None or self.persistent:
            self._header()
            for buffer, value, index in self.stores:
                self._store(buffer, value, index)
        else:
            self._header()
            self._looped()
        return self._finish()

    def _finish(self) -> KernelSource:
        parameters = [name for name, _ in self.pointers.values()]
        parameters += [f"{a.prefix.upper()}BLOCK: tl.constexpr" for a in self.domain.axes]
        body_text = "\n".join(self.lines)
        head = ["import triton", "import triton.language as tl"]
        if "libdevice." in body_text:
            head.append("from triton.language.extra import libdevice")
        head.append("")
        for helper in self.helpers:
            head.extend(["", *HELPERS[helper].rstrip().splitlines(), ""])
        head.extend(["", "@triton.jit", f"def {{name}}({', '.join(parameters)}):"])
        start = len(head)
        lines = {start + number + 1: nodes for number, nodes in self.origins.items()}
        flops = sum(
            (PRIMITIVES[v.name].flops if v.name in PRIMITIVES else 0) if isinstance(v, Op) else isinstance(v, Reduce)
            for v in walk(*(value for _, value, _ in self.stores))
        )
        points = 1
        for axis in self.domain.axes:
            points *= axis.numel
        arguments = tuple(buffer for _, buffer in self.pointers.values())
        return KernelSource(
            "\n".join([*head, *self.lines, ""]),
            arguments,
            tuple(buffer.name for buffer, _, _ in self.stores),
            self.domain,
            self.persistent,
            lines,
            int(flops) * points,
            self._bytes_moved(),
        )

    def _bytes_moved(self) -> int:
        """Each read counted once per element it touches (at most the buffer), each write once; broadcasts once."""
        moved = sum(buffer.bytes for buffer, _, _ in self.stores)
        seen: set[tuple[str, Expr]] = set()
        reads: dict[str, int] = {}
        for value in walk(*(value for _, value, _ in self.stores)):
            if isinstance(value, Load) and (value.buffer.name, value.index) not in seen:
                seen.add((value.buffer.name, value.index))
                points = 1
                for axis in self.domain.axes:
                    for var in axis.variables:
                        if var in _all_symbols(value.index):
                            points *= var.extent
                touched = min(points * value.dtype.itemsize, value.buffer.bytes)
                reads[value.buffer.name] = min(value.buffer.bytes, reads.get(value.buffer.name, 0) + touched)
        return moved + sum(reads.values())

    def _analyse(self) -> None:
        """Per value: whether it varies along r, and how many reductions lie one above the other below it."""
        for value in walk(*(value for _, value, _ in self.stores)):
            below = list(children(value))
            level = max((self._level[id(c)] for c in below), default=0)
            if isinstance(value, Reduce):
                self._element[id(value)], self._level[id(value)] = False, level + 1
                continue
            element = any(self._element[id(c)] for c in below)
            if isinstance(value, Load):
                element = element or bool(value.index.free_symbols & self.rvars)
            elif isinstance(value, IndexValue):
                element = element or bool(value.expr.free_symbols & self.rvars)
            self._element[id(value)], self._level[id(value)] = element, level

    def _needs_int64(self) -> bool:
        limit = 2**31 - 1
        exprs = [index for _, _, index in self.stores]
        for value in walk(*(value for _, value, _ in self.stores)):
            if isinstance(value, Load):
                exprs.append(value.index)
        return any(bounds(e)[1] > limit or bounds(e)[0] < -limit for e in exprs) or any(
            a.numel > limit for a in self.domain.axes
        )

    def _collect_pointers(self) -> None:
        loaded: dict[str, Buffer] = {}
        for value in walk(*(value for _, value, _ in self.stores)):
            if isinstance(value, Load):
                loaded.setdefault(value.buffer.name, value.buffer)
        for number, (name, buffer) in enumerate(loaded.items()):
            self.pointers[name] = (f"in_ptr{number}", buffer)
        for number, (buffer, _, _) in enumerate(self.stores):
            assert buffer.name not in self.pointers, "a kernel reads what it writes"
            self.pointers[buffer.name] = (f"out_ptr{number}", buffer)

    def _header(self) -> None:
        wide = ".to(tl.int64)" if self.wide else ""
        axes = self.domain.axes
        for axis in axes:
            self._line(f"{axis.prefix}numel = {axis.numel}")
        programs = [a for a in axes if a.prefix != "r"]
        for number, axis in enumerate(reversed(programs)):
            p, block = axis.prefix, f"{axis.prefix.upper()}BLOCK"
            shape = self._slice_for(axis.prefix)
            self._line(f"{p}index = tl.program_id({number}){wide} * {block} + tl.arange(0, {block}){shape}")
            self._line(f"{p}mask = {p}index < {p}numel")
            self._axis_lines(axis)
        if self.domain.r is not None:
            self._line(f"rbase = tl.arange(0, RBLOCK){self._slice_for('r')}{wide}")
            if self.persistent:
                self._line("rindex = rbase")
                self._line("rmask = rindex < rnumel")
                self._axis_lines(self.domain.r)

    def _axis_lines(self, axis: Axis) -> None:
        for var, text in axis_variables(axis):
            self._line(f"{var.name} = {text}")

    def _slice_for(self, prefix: str) -> str:
        axes = self.domain.axes
        if len(axes) == 1:
            return ""
        return "[:, None]" if axes[0].prefix == prefix else "[None, :]"

    def _block_shape(self, element: bool = True) -> str:
        """The shape of a block of elements, or of the rows that a reduction leaves."""
        sizes = [f"{a.prefix.upper()}BLOCK" if a.prefix != "r" or element else "1" for a in self.domain.axes]
        return f"[{', '.join(sizes)}]"

    # --- looped reductions -----------------------------------------------------------------------------------------

    def _looped(self) -> None:
        """One pass over the row per level of reductions, and one more for what is stored after the last."""
        reduces = [v for v in walk(*(value for _, value, _ in self.stores)) if isinstance(v, Reduce)]
        element_stores = [s for s in self.stores if self._is_element_store(s)]
        row_stores = [s for s in self.stores if not self._is_element_store(s)]
        levels = [self._level[id(r)] for r in reduces] + [self._level[id(v)] + 1 for _, v, _ in element_stores]
        last = max(levels, default=0)  # 0 where nobody reads the reduction that the group was made for
        for level in range(1, last + 1):
            here = [r for r in reduces if self._level[id(r)] == level]
            stores = [s for s in element_stores if self._level[id(s[1])] == level - 1]
            if here or stores:
                self.last_pass = level == last
                self._pass(here, stores)
        for buffer, value, index in row_stores:
            self._store(buffer, value, index)

    def _is_element_store(self, store: tuple[Buffer, Value, Expr]) -> bool:
        _, value, index = store
        return self._element[id(value)] or bool(index.free_symbols & self.rvars)

    def _pass(self, reduces: Sequence[Reduce], stores: Sequence[tuple[Buffer, Value, Expr]]) -> None:
        """One loop over r. Row-level values that it reads are printed before it."""
        for root in (*(r.value for r in reduces), *(value for _, value, _ in stores)):
            self._print_row_level(root)
        start = len(self.lines)
        outer_indent = self.indent
        self.indent += "    "
        self.scope = _Scope(dict(self.row.names), dict(self.row.texts))
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
        for buffer, value, index in stores:
            self._store(buffer, value, index)
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

    # --- values ----------------------------------------------------------------------------------------------------

    def _print(self, root: Value) -> str:
        """Print everything below ``root`` that the scope does not have yet; the name (or literal) of ``root``."""
        if isinstance(root, Const):
            return literal(root.value, root.dtype)
        stack: list[tuple[Value, bool]] = [(root, False)]
        while stack:
            value, ready = stack.pop()
            if isinstance(value, Const) or id(value) in self.scope.names:
                continue
            if not ready:
                stack.append((value, True))
                stack.extend((child, False) for child in children(value))
                continue
            self.scope.names[id(value)] = self._print_one(value)
        return self.scope.names[id(root)]

    def _name(self, value: Value) -> str:
        return literal(value.value, value.dtype) if isinstance(value, Const) else self.scope.names[id(value)]

    def _print_one(self, value: Value) -> str:
        if isinstance(value, Load):
            return self._assign(self._load_text(value), value)
        if isinstance(value, IndexValue):
            text = self._index_text(value.expr)
            whole = f"({text}).to(tl.int64)" if value.expr.free_symbols else self._full(text, "tl.int64")
            return self._assign(whole, value)
        if isinstance(value, Reduce):
            return self._persistent_reduce(value)
        assert isinstance(value, Op)
        if value.name == "cast":
            return self._cast(value)
        template = PRIMITIVES[value.name].triton
        typed = "tl." in template or "libdevice." in template  # a call, which makes a literal float32 or int32
        names = [self._operand(arg) if typed else self._name(arg) for arg in value.args]
        if all(isinstance(arg, Const) for arg in value.args):
            names[0] = self._tensor(value.args[0])
        return self._assign(template.format(*names), value)

    def _operand(self, value: Value) -> str:
        """As ``_name``, but literals keep their dtype where Triton would take them for float32 or int32."""
        return self._name(value) if value.dtype in LITERAL_TYPES else self._tensor(value)

    def _tensor(self, value: Value) -> str:
        """As ``_name``, but a literal is a tensor of one element that broadcasts against the block."""
        name = self._name(value)
        return self._full(name, TRITON_TYPES[carrier(value.dtype)]) if isinstance(value, Const) else name

    def _full(self, text: str, dtype: str) -> str:
        return f"tl.full([{', '.join('1' * len(self.domain.axes))}], {text}, {dtype})"

    def _cast(self, value: Op) -> str:
        (arg,) = value.args
        source, target = arg.dtype, value.dtype
        name = self._tensor(arg)
        if target is torch.bool:
            return self._assign(f"{name} != 0", value)
        if is_half(target):
            # torch, too, goes through float32; from float64 or integers Triton has no direct way
            wide = "" if carrier(source) is torch.float32 else ".to(tl.float32)"
            return self._assign(f"{name}{wide}.to({TRITON_TYPES[target]}).to(tl.float32)", value)
        if carrier(source) is target:
            return name
        return self._assign(f"{name}.to({TRITON_TYPES[target]})", value)

    def _persistent_reduce(self, reduce: Reduce) -> str:
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

    def _load_text(self, load: Load) -> str:
        pointer = self.pointers[load.buffer.name][0]
        index = self._index_text(load.index)
        masks = self._masks(load.index)
        options = ""
        if load.mask is not None:
            masks = [self._name(load.mask), *self._masks_of_value(load.mask), *masks]
        masks = list(dict.fromkeys(masks))
        if masks:
            other = literal(load.other, load.dtype)
            options += f", {' & '.join(masks)}, other={other}"
        if self.domain.r is not None and not self.persistent and load.index.free_symbols & self.rvars:
            # a row that is read again in a later pass should stay in cache
            options += f', eviction_policy="evict_{"first" if self.last_pass else "last"}"'
        address = f"({index})" if " " in index else index
        wider = not set(masks[1:]) <= set(self._masks(load.index))  # the mask varies along more axes
        if load.mask is not None and (wider or not _all_symbols(load.index)):
            address = _spread(index, load.index, self._block_shape(self._element[id(load)]))
        text = f"tl.load({pointer} + {address}{options})"
        if is_half(load.dtype):
            text += ".to(tl.float32)"
        elif load.dtype is torch.bool:
            text += ".to(tl.int1)"
        return text

    def _masks(self, index: Expr) -> list[str]:
        """The tail masks of the axes that an index moves along."""
        symbols = _all_symbols(index)
        result = []
        for axis in self.domain.axes:
            if any(v in symbols for v in axis.variables):
                result.append(f"{axis.prefix}mask")
        return result

    def _masks_of_value(self, value: Value) -> list[str]:
        found: list[str] = []
        for v in _same_point(value):
            if isinstance(v, Load):
                found.extend(self._masks(v.index))
            elif isinstance(v, IndexValue):
                found.extend(self._masks(v.expr))
        return found

    def _store(self, buffer: Buffer, value: Value, index: Expr) -> None:
        self._print(value)
        name = self._operand(value)
        pointer = self.pointers[buffer.name][0]
        text = self._index_text(index)
        axes = self.domain.axes
        element = self.domain.r is None or self._is_element_store((buffer, value, index))
        masks = [f"{a.prefix}mask" for a in axes if a.prefix != "r" or element]
        varies = all(
            any(v in _all_symbols(index) for v in axis.variables) for axis in axes if axis.prefix != "r" or element
        )
        address = f"({text})" if varies and " " in text else text
        if not varies:  # an output with one element along an axis: the block still has that axis
            address = _spread(text, index, self._block_shape(element))
        self._line(f"tl.store({pointer} + {address}, {name}, {' & '.join(masks)})", value)

    def _index_text(self, index: Expr) -> str:
        return index_text(fold_axes(index, self.domain.axes), self._indirect_name)

    def _indirect_name(self, var: IndirectVar) -> str:
        return self._name(var.value)

    # --- lines -----------------------------------------------------------------------------------------------------

    def _assign(self, text: str, value: Value) -> str:
        known = self.scope.texts.get(text)
        if known is not None:
            return known
        name = self._fresh()
        self.scope.texts[text] = name
        self._line(f"{name} = {text}", value)
        return name

    def _fresh(self, stem: str = "tmp") -> str:
        self.count += 1
        return f"{stem}{self.count - 1}"

    def _line(self, text: str, value: Value | None = None) -> None:
        if value is not None and value.origin:
            self.origins[len(self.lines)] = [value.origin]
        self.lines.append(self.indent + text)


def _spread(text: str, index: Expr, shape: str) -> str:
    """An address as a block of ``shape``."""
    if index.free_symbols:
        return f"tl.broadcast_to({text}, {shape})"
    return f"tl.full({shape}, {text}, tl.int32)"


def _all_symbols(index: Expr) -> set[LoopVar]:
    """The loop variables an index depends on, through indirect indices too."""
    found: set[LoopVar] = set()
    for part in _index_parts(index):
        found |= {s for s in part.free_symbols if isinstance(s, LoopVar)}
    return found


def _index_parts(index: Expr) -> Iterator[Expr]:
    yield index
    for value in indirect_values(index):
        for below in _same_point(value):
            if isinstance(below, Load):
                yield below.index
            elif isinstance(below, IndexValue):
                yield below.expr


def _same_point(root: Value) -> Iterator[Value]:
    """The values below ``root`` that vary as it does: what a reduction is made of varies along r, its result not."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if not isinstance(value, Reduce):
            stack.extend(children(value))
