"""Values as lines of Triton: each printed once a scope, in the order it is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from compiler.codegen.domain import Axis, Domain, axis_variables, fold_axes, slow_variables
from compiler.codegen.text import FLOAT8, TRITON_TYPES, carrier, code_of, index_text, is_half, literal, size_text
from compiler.index import Expr, IndirectVar, LoopVar, fits_int32
from compiler.ir import (
    Buffer,
    Const,
    IndexValue,
    Load,
    Op,
    Reduce,
    Scan,
    Scatter,
    Value,
    children,
    indirect_values,
    walk,
)
from compiler.ops import PRIMITIVES
from compiler.sizes import SizeVar, size_vars

LITERAL_TYPES = frozenset({torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.bool})


@dataclass(frozen=True)
class Store:
    """Where a value goes. ``element``: once an element (else once a row, which for reductions is less)."""

    buffer: Buffer
    value: Value
    index: Expr
    element: bool


@dataclass
class Scope:
    """Where values are printed: their names by identity, and by text so that equal expressions are one variable."""

    names: dict[int, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


class ValuePrinter:
    """The lines of one kernel. Subclasses print what surrounds the values, and reductions."""

    def __init__(self, domain: Domain, stores: Sequence[Store], persistent: bool) -> None:
        """``stores`` are in the variables of ``domain``."""
        self.domain = domain
        self.stores = stores
        self.persistent = persistent
        self.size_vars = _size_vars(domain, stores)
        self.sizes: dict[SizeVar, str] = {}  # the parameters that hold them, in the order of first use
        self.xvars = frozenset(v for a in domain.axes if a.prefix != "r" for v in a.variables)
        self.rvars = frozenset(domain.r.variables) if domain.r else frozenset()
        loads = [value.index for value in walk(*(store.value for store in stores)) if isinstance(value, Load)]
        self.slow = slow_variables(domain, loads)
        self.lines: list[str] = []
        self.origins: dict[int, list[str]] = {}
        self.indent = "    "
        self.row = Scope()
        self.scope = self.row
        self.helpers: dict[str, None] = {}
        self.pointers: dict[str, tuple[str, Buffer]] = {}
        self.count = 0
        self.last_pass = False
        self._element: dict[int, bool] = {}
        self._level: dict[int, int] = {}
        self._analyse()

    def _analyse(self) -> None:
        """Per value: whether it varies along r, and how many reductions lie one above the other below it."""
        for value in walk(*(store.value for store in self.stores)):
            below = list(children(value))
            level = max((self._level[id(c)] for c in below), default=0)
            if isinstance(value, Reduce):
                self._element[id(value)], self._level[id(value)] = False, level + self._passes(value)
                continue
            element = any(self._element[id(c)] for c in below)
            if isinstance(value, Load):
                element = element or bool(value.index.free_symbols & self.rvars)
            elif isinstance(value, IndexValue):
                element = element or bool(value.expr.free_symbols & self.rvars)
            elif isinstance(value, Scan):
                element = True
            self._element[id(value)], self._level[id(value)] = element, level

    def _passes(self, reduce: Reduce) -> int:
        """How many passes over the row a reduction needs beyond those of the reductions below it."""
        return 1

    def _axis_lines(self, axis: Axis) -> None:
        for var, text in axis_variables(axis, self._name_in_number, self.slow):
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

    # --- values ----------------------------------------------------------------------------------------------------

    def _print(self, root: Value) -> str:
        """Print everything below ``root`` that the scope does not have yet; the name (or literal) of ``root``."""
        if isinstance(root, Const):
            return self._constant(root)
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
        return self._constant(value) if isinstance(value, Const) else self.scope.names[id(value)]

    def _constant(self, value: Const) -> str:
        """A literal; -0.0 is computed, for Triton takes every literal that equals zero for +0.0."""
        return self._tensor(value) if _is_negative_zero(value) else literal(value.value, value.dtype)

    def _print_one(self, value: Value) -> str:
        if isinstance(value, Load):
            return self._assign(self._load_text(value), value)
        if isinstance(value, IndexValue):
            return self._assign(self._number_text(value.expr), value)
        if isinstance(value, Reduce):
            return self._reduction(value)
        if isinstance(value, Scan):
            return self._scan(value)
        assert isinstance(value, Op)
        if value.name == "cast":
            return self._cast(value)
        template = PRIMITIVES[value.name].triton
        helper = PRIMITIVES[value.name].helper
        if helper:
            self.helpers[helper] = None
        # These make a literal float32 or int32, comparisons also beside a float64.
        typed = bool(helper) or "tl." in template or "libdevice." in template
        typed |= value.dtype is torch.bool and value.args[0].dtype is torch.float64
        names = [self._operand(arg) if typed else self._name(arg) for arg in value.args]
        if helper or all(isinstance(arg, Const) for arg in value.args):
            names[0] = self._tensor(value.args[0])
        return self._assign(template.format(*names), value)

    def _number_text(self, expr: Expr) -> str:
        """An index expression as an int64. Indices are computed as int32 where every address fits into one; what is no
        address may not."""
        folded = fold_axes(expr, self.domain.axes)
        wide = "" if fits_int32(expr) else ".to(tl.int64)"
        if wide:
            loops = [s for s in folded.free_symbols if isinstance(s, LoopVar)]
            folded = folded.xreplace({s: sympy.Symbol(f"{s.name}{wide}", integer=True) for s in loops})
        text = index_text(folded, lambda var: f"{self._name_in_number(var)}{wide}")
        varies = any(not isinstance(s, SizeVar) for s in expr.free_symbols)
        return f"({text}).to(tl.int64)" if varies else self._full(text, "tl.int64")

    def _operand(self, value: Value) -> str:
        """As ``_name``, but literals keep their dtype where Triton would take them for float32 or int32."""
        return self._name(value) if value.dtype in LITERAL_TYPES else self._tensor(value)

    def _tensor(self, value: Value) -> str:
        """As ``_name``, but a literal is a tensor of one element that broadcasts against the block."""
        if not isinstance(value, Const):
            return self._name(value)
        kind = TRITON_TYPES[carrier(value.dtype)]
        if _is_negative_zero(value):
            return f"({self._full('0.0', kind)} * -1.0)"
        return self._full(literal(value.value, value.dtype), kind)

    def _full(self, text: str, dtype: str) -> str:
        return f"tl.full([{', '.join('1' * len(self.domain.axes))}], {text}, {dtype})"

    def _cast(self, value: Op) -> str:
        (arg,) = value.args
        source, target = arg.dtype, value.dtype
        name = self._tensor(arg)
        if target is torch.bool:
            return self._assign(f"{name} != 0", value)
        if target in FLOAT8:
            wide = "" if carrier(source) is torch.float32 else ".to(tl.float32)"
            return self._assign(self._decoded(self._encoded(f"{name}{wide}", target), target), value)
        if is_half(target):
            # torch, too, goes through float32; from float64 or integers Triton has no direct way
            wide = "" if carrier(source) is torch.float32 else ".to(tl.float32)"
            return self._assign(f"{name}{wide}.to({TRITON_TYPES[target]}).to(tl.float32)", value)
        if carrier(source) is target:
            return name
        if target is torch.uint8 and source.is_floating_point:  # -1.0 becomes 255, as in torch
            return self._assign(f"{name}.to(tl.int64).to(tl.uint8)", value)
        if source.is_floating_point and not target.is_floating_point and target.itemsize < 4:
            # a number that is too large loses its high bits, as in torch; a direct conversion would saturate on a GPU
            return self._assign(f"{name}.to(tl.int32).to({TRITON_TYPES[target]})", value)
        return self._assign(f"{name}.to({TRITON_TYPES[target]})", value)

    def _reduction(self, reduce: Reduce) -> str:
        """Print a reduction of values that are all there; its name."""
        raise NotImplementedError

    def _scan(self, scan: Scan) -> str:
        """Print a scan along r; its name."""
        raise NotImplementedError

    def _encoded(self, text: str, dtype: torch.dtype) -> str:
        """A float32 as the code of a dtype of ``FLOAT8``."""
        self.helpers[f"to_{FLOAT8[dtype]}"] = None
        return f"to_{FLOAT8[dtype]}({text}, {code_of(float('inf'), dtype)})"

    def _decoded(self, text: str, dtype: torch.dtype) -> str:
        self.helpers[f"from_{FLOAT8[dtype]}"] = None
        return f"from_{FLOAT8[dtype]}({text})"

    def _load_text(self, load: Load) -> str:
        pointer = self.pointers[load.buffer.name][0]
        index = self._index_text(load.index, load.mask)
        masks = self._masks(load.index)
        options = ""
        if load.mask is not None:
            masks = [self._name(load.mask), *self._masks_of_value(load.mask), *masks]
        masks = list(dict.fromkeys(masks))
        if masks:
            other = code_of(load.other, load.dtype) if load.dtype in FLOAT8 else literal(load.other, load.dtype)
            options += f", {' & '.join(masks)}, other={other}"
        if self.domain.r is not None and not self.persistent and load.index.free_symbols & self.rvars:
            # a row that is read again in a later pass should stay in cache
            options += f', eviction_policy="evict_{"first" if self.last_pass else "last"}"'
        address = f"({index})" if " " in index else index
        wider = not set(masks[1:]) <= set(self._masks(load.index))  # the mask varies along more axes
        if load.mask is not None and (wider or not all_symbols(load.index)):
            address = _spread(index, load.index, self._block_shape(self._element[id(load)]))
        text = f"tl.load({pointer} + {address}{options})"
        if load.dtype in FLOAT8:
            text = self._decoded(text, load.dtype)
        elif is_half(load.dtype):
            text += ".to(tl.float32)"
        elif load.dtype is torch.bool:
            text += ".to(tl.int1)"
        return text

    def _masks(self, index: Expr) -> list[str]:
        """The tail masks of the axes that an index moves along."""
        return self._masks_along(all_symbols(index))

    def _masks_of_value(self, value: Value) -> list[str]:
        return self._masks_along(_varies_along(value))

    def _masks_along(self, variables: set[LoopVar]) -> list[str]:
        moved = ((axis.prefix, variables.intersection(axis.variables)) for axis in self.domain.axes)
        return [f"{prefix}slowmask" if along <= self.slow else f"{prefix}mask" for prefix, along in moved if along]

    def _store(self, store: Store) -> None:
        if isinstance(store.value, Scatter):
            self._scatter(store, store.value)
            return
        self._print(store.value)
        name = self._operand(store.value)
        if store.buffer.dtype in FLOAT8:
            name = self._encoded(self._tensor(store.value), store.buffer.dtype)
        text = self._index_text(store.index)
        axes = self.domain.axes
        masks = [f"{a.prefix}mask" for a in axes if a.prefix != "r" or store.element]
        varies = all(
            any(v in all_symbols(store.index) for v in axis.variables)
            for axis in axes
            if axis.prefix != "r" or store.element
        )
        address = f"({text})" if varies and " " in text else text
        if not varies:  # an output with one element along an axis: the block still has that axis
            address = _spread(text, store.index, self._block_shape(store.element))
        pointer = self.pointers[store.buffer.name][0]
        self._line(f"tl.store({pointer} + {address}, {name}, {' & '.join(masks)})", store.value)

    def _scatter(self, store: Store, write: Scatter) -> None:
        """A write at a computed place; the order of the points that share a place does not matter to ``combine``."""
        for value in children(write):
            self._print(value)
        shape = self._block_shape(store.element)
        masks = [f"{a.prefix}mask" for a in self.domain.axes if a.prefix != "r" or store.element]
        if write.mask is not None:
            masks.append(self._operand(write.mask))
        place = _spread(self._index_text(write.index, write.mask), write.index, shape)
        address = f"{self.pointers[store.buffer.name][0]} + {place}"
        function = "tl.store" if write.combine == "store" else f"tl.atomic_{write.combine}"
        order = "" if write.combine == "store" else ', sem="relaxed"'
        name = self._tensor(write.value)
        name = self._encoded(name, write.dtype) if write.dtype in FLOAT8 else name
        text = f"tl.broadcast_to({name}, {shape})"
        self._line(f"{function}({address}, {text}, {' & '.join(masks)}{order})", write)

    def _index_text(self, index: Expr, mask: Value | None = None) -> str:
        """An address, of which only the points inside ``mask`` are read or written."""

        def name_of(var: IndirectVar | SizeVar) -> str:
            return self._size_name(var) if isinstance(var, SizeVar) else self._position_name(var, mask)

        return index_text(fold_axes(index, self.domain.axes), name_of)

    def _name_in_number(self, var: IndirectVar | SizeVar) -> str:
        """For an index that is a number and no address. Positions of the user's are checked here too; one that a mask
        already keeps to some points, or that is computed from the loops, is checked only where it is an address."""
        if isinstance(var, SizeVar):
            return self._size_name(var)
        users = any(isinstance(v, Load) and v.mask is None for v in _same_point(var.value))
        return self._position_name(var) if users else self._name(var.value)

    def _size_name(self, var: SizeVar) -> str:
        return self.sizes.setdefault(var, f"ks{len(self.sizes)}")

    def _position_name(self, var: IndirectVar, mask: Value | None = None) -> str:
        """The position's name; where it is first used, a check that it lies within its dimension.

        Points outside ``mask`` touch no memory there, so their positions may be anything.
        """
        name = self._tensor(var.value)
        if isinstance(var.value, Reduce):
            return name  # a position that a reduction found lies in what it searched
        extent = size_text(var.extent, self._name_in_number)
        check = f"({name} >= 0) & ({name} < {extent})"
        guard = f"{check} within {self._name(mask)}" if mask is not None else check
        if check not in self.scope.texts and guard not in self.scope.texts:
            self.scope.texts[guard] = name
            masks = self._masks_of_value(var.value)
            if mask is not None:
                masks += [self._name(mask), *self._masks_of_value(mask)]
            masks = list(dict.fromkeys(masks))
            idle = f" | ~({' & '.join(masks)})" if masks else ""
            self._line(f'tl.device_assert(({check}){idle}, "index out of range for size {extent}")', var.value)
        return name

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


def _size_vars(domain: Domain, stores: Sequence[Store]) -> tuple[SizeVar, ...]:
    """The numbers known only at run time that the kernel has to do with."""
    numbers: list[Any] = [var.extent for axis in domain.axes for var in axis.variables]
    numbers += [store.index for store in stores]
    for value in walk(*(store.value for store in stores)):
        if isinstance(value, Load | Scatter):
            numbers.append(value.index)
        elif isinstance(value, IndexValue):
            numbers.append(value.expr)
        elif isinstance(value, Reduce) and value.position is not None:
            numbers.append(value.position)
    return tuple(dict.fromkeys(var for number in numbers for var in sorted(size_vars(number), key=str)))


def _spread(text: str, index: Expr, shape: str) -> str:
    """An address as a block of ``shape``."""
    if index.free_symbols:
        return f"tl.broadcast_to({text}, {shape})"
    return f"tl.full({shape}, {text}, tl.int32)"


def all_symbols(index: Expr) -> set[LoopVar]:
    """The loop variables an index depends on, through indirect indices too."""
    return _loop_variables(index).union(*(_varies_along(value) for value in indirect_values(index)))


def _varies_along(root: Value) -> set[LoopVar]:
    """The loop variables that a value depends on: a scan on the one it runs along too, whatever is scanned, and a
    reduction on all of its operand's but those reduced over."""
    found: dict[int, set[LoopVar]] = {}
    for value in walk(root):
        along: set[LoopVar] = set().union(*(found[id(child)] for child in children(value)))
        if isinstance(value, Load):
            along |= _loop_variables(value.index)
        elif isinstance(value, IndexValue):
            along |= _loop_variables(value.expr)
        elif isinstance(value, Scan):
            along.add(value.rvar)
        elif isinstance(value, Reduce):
            along.difference_update(value.rvars)
        found[id(value)] = along
    return found[id(root)]


def _loop_variables(expr: Expr) -> set[LoopVar]:
    return {s for s in expr.free_symbols if isinstance(s, LoopVar)}


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


def _is_negative_zero(value: Const) -> bool:
    return isinstance(value.value, float) and value.value == 0 and math.copysign(1, value.value) < 0
