"""One fusion group as the source of one Triton kernel.

Values are printed in the order they are needed, each once per scope. A reduction whose row fits in registers is
*persistent*: the row is loaded once. A longer one is *looped*: the kernel passes over the row once per level of
reductions that depend on each other, keeping an accumulator, and computes element-level values anew in every pass.
Where only the call knows the row's length, the length chooses between two kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sympy

from compiler.codegen.domain import Access, Axis, Domain, choose_domain
from compiler.codegen.helpers import HELPERS, with_dependencies
from compiler.codegen.reduction import ReductionPrinter
from compiler.codegen.values import Store, all_symbols
from compiler.fusion import FusionGroup, group_values
from compiler.index import INT32_MAX, Expr, bounds, substitute, upper
from compiler.ir import Buffer, IndexValue, Load, Op, Reduce, Scan, Scatter, Value, rewrite, walk
from compiler.one_hot import sum_of_one_hot
from compiler.ops import PRIMITIVES
from compiler.options import DEFAULTS, Options
from compiler.sizes import Size, as_size, hint, known_nonnegative, multiple_of, product

MAX_GRID_HEIGHT = 65_535  # programs along y, on every GPU
LOWEST_TILE = 16  # the smallest YBLOCK of a configuration
# The longest row of a length known only at run time that stays in registers where a maximum and a sum below it take one
# pass. On an H200 a softmax of 3,000 elements a row took 138.0 us in registers (an RBLOCK of 4,096) and 126.0 in
# passes, one of 8,192 elements 129.6 and 107.3, but one of 1,000 elements 40.7 and 51.9. A layer norm, which has to
# read the row once more, took less in registers at 8,192 elements: 106.8 and 125.7.
MAX_ONLINE_ROW = 2048
MAX_BLOCK = 1 << 20  # the last program's indices go past the end by less than this


@dataclass(frozen=True)
class KernelSource:
    """A kernel before it is named and compiled.

    ``source`` contains ``{name}`` where the kernel's name goes. ``arguments`` are the buffers in the order of the
    pointer parameters, ``stored`` those among them that it writes. ``lines`` maps a line number of the source to the
    FX nodes it computes. ``parts`` are the lengths of the kernels that were joined into this one (``combined.py``).

    ``sizes`` are the numbers known only at run time that follow the pointers: each parameter's name and its value.
    ``largest`` are numbers of which none may exceed an int32 where the kernel computes its indices in that type.

    ``longer`` is the same kernel for rows longer than ``most`` elements, where a persistent one serves rows of a length
    known only at run time: its size parameters are those at the places ``longer_sizes`` of this one's.
    """

    source: str
    arguments: tuple[Buffer, ...]
    stored: tuple[str, ...]
    domain: Domain
    persistent: bool
    lines: dict[int, list[str]]
    flops: int
    bytes: int
    parts: tuple[int, ...] = ()
    sizes: tuple[tuple[str, Size], ...] = ()
    largest: tuple[Expr, ...] = ()
    longer: KernelSource | None = None
    longer_sizes: tuple[int, ...] = ()
    most: int = 0
    single_pass: bool = False  # not persistent, and goes over its rows once

    @property
    def reads_once(self) -> bool:
        """Whether it reads each element once, before it stores anything there, whatever the sizes."""
        return self.domain.r is None or (self.persistent and self.longer is None) or self.single_pass


def generate_kernel(group: FusionGroup, needed: Sequence[str], options: Options = DEFAULTS) -> KernelSource:
    """Print a group's kernel. ``needed`` names the member buffers that must reach memory.

    A row of unknown length that was short in the example has two: one keeps it in registers, one passes over it.
    """
    printer = _Printer(group, frozenset(needed), options)
    if not printer.is_short_for_now():
        return printer.run()
    in_passes = printer.run()
    in_registers = _Printer(group, frozenset(needed), options, short=True)
    source = in_registers.run()
    values = [value for _, value in source.sizes]
    same = source.arguments == in_passes.arguments and {v for _, v in in_passes.sizes} <= set(values)
    if not same:
        return in_passes
    places = tuple(values.index(value) for _, value in in_passes.sizes)
    return replace(source, longer=in_passes, longer_sizes=places, most=printer.limit)


def _fits(numel: Size, limit: int) -> bool:
    """Whether a row of a known length fits in registers."""
    return isinstance(numel, int) and numel <= limit


class _Printer(ReductionPrinter):
    def __init__(self, group: FusionGroup, needed: frozenset[str], options: Options, short: bool = False) -> None:
        """``short``: the row is taken to fit in registers, whatever its length."""
        members = zip(group_values(group), group.maps, strict=True)
        roots = [(loop, value, index, covered) for (loop, value, index), covered in members if loop.name in needed]
        accesses = [Access(index, loop.buffer.dtype.itemsize) for loop, _, index, _ in roots]
        for value in walk(*(value for _, value, _, _ in roots)):
            if isinstance(value, Load):
                accesses.append(Access(value.index, value.dtype.itemsize))
            elif isinstance(value, IndexValue):
                accesses.append(Access(value.expr, 0))
            elif isinstance(value, Reduce | Scan) and value.position is not None:
                accesses.append(Access(value.position, 0))
        domain = choose_domain(group.xvars, group.rvars, accesses)
        memo: dict[int, Value] = {}
        stores = []
        for loop, value, index, covered in roots:
            parts = covered.values() if loop.into else [index]  # a scatter's index need not show all its points
            element = any(part.free_symbols & set(group.rvars) for part in parts)
            index = substitute(index, domain.mapping)
            value = rewrite(value, domain.mapping, memo, reduce=sum_of_one_hot)
            stores.append(Store(loop.buffer, value, index, element))
        self.limit = options.persistent_inner if domain.inner else options.persistent_outer
        persistent = domain.r is not None and (short or _fits(domain.r.numel, self.limit))
        super().__init__(domain, stores, persistent)
        self.symbolic = [a for a in domain.axes if not isinstance(a.numel, int)]
        if self._online and domain.r in self.symbolic:
            self.limit = min(self.limit, MAX_ONLINE_ROW)
        self.largest = self._largest()
        self.wide = self._needs_int64()

    # --- the whole kernel ------------------------------------------------------------------------------------------

    def run(self) -> KernelSource:
        """Print everything."""
        self._collect_pointers()
        if self.domain.r is None or self.persistent:
            self._header()
            self._print_all(self.stores)
            for store in self.stores:
                self._store(store)
        else:
            self._header()
            self._looped()
        return self._finish()

    def is_short_for_now(self) -> bool:
        """Whether a row of unknown length is passed over more than once, and was short in the example."""
        r = self.domain.r
        if r is None or isinstance(r.numel, int) or not self.domain.inner or hint(r.numel) > self.limit:
            return False
        return self.passes() > 1

    def _finish(self) -> KernelSource:
        parameters = [name for name, _ in self.pointers.values()]
        sizes = [(f"{a.prefix}numel", a.numel) for a in self.symbolic]
        sizes += [(name, var) for var, name in self.sizes.items()]
        parameters += [name for name, _ in sizes]
        round_sizes = [name for name, value in sizes if multiple_of(value, 16)]
        if round_sizes:  # said to Triton, so that it belongs to what makes the kernel this one
            self.lines.insert(0, f"    # a multiple of 16, always: {', '.join(round_sizes)}")
            self.origins = {number + 1: nodes for number, nodes in self.origins.items()}
        parameters += [f"{a.prefix.upper()}BLOCK: tl.constexpr" for a in self.domain.axes]
        helpers = [HELPERS[name] for name in with_dependencies(self.helpers)]
        head = ["import triton", "import triton.language as tl"]
        if any("libdevice." in text for text in (*helpers, *self.lines)):
            head.append("from triton.language.extra import libdevice")
        head.append("")
        for helper in helpers:
            head.extend(["", *helper.rstrip().splitlines(), ""])
        head.extend(["", "@triton.jit", f"def {{name}}({', '.join(parameters)}):"])
        start = len(head)
        lines = {start + number + 1: nodes for number, nodes in self.origins.items()}
        flops = sum(
            (PRIMITIVES[v.name].flops if v.name in PRIMITIVES else 0)
            if isinstance(v, Op)
            else isinstance(v, Reduce | Scan)
            for v in walk(*(store.value for store in self.stores))
        )
        points = hint(product(axis.numel for axis in self.domain.axes))
        arguments = tuple(buffer for _, buffer in self.pointers.values())
        return KernelSource(
            "\n".join([*head, *self.lines, ""]),
            arguments,
            tuple(store.buffer.name for store in self.stores),
            self.domain,
            self.persistent,
            lines,
            int(flops) * points,
            self._bytes_moved(),
            sizes=tuple(sizes),
            largest=self.largest,
            single_pass=self.domain.r is not None and not self.persistent and self.passes() <= 1,
        )

    def _bytes_moved(self) -> int:
        """Each read counted once per element it touches (at most the buffer), each write once; broadcasts once."""
        moved = sum(self._bytes_stored(store) for store in self.stores)
        seen: set[tuple[str, Expr]] = set()
        reads: dict[str, int] = {}
        for value in walk(*(store.value for store in self.stores)):
            if isinstance(value, Load) and (value.buffer.name, value.index) not in seen:
                seen.add((value.buffer.name, value.index))
                points = 1
                for axis in self.domain.axes:
                    for var in axis.variables:
                        if var in all_symbols(value.index):
                            points *= hint(var.extent)
                touched = min(points * value.dtype.itemsize, value.buffer.bytes)
                reads[value.buffer.name] = min(value.buffer.bytes, reads.get(value.buffer.name, 0) + touched)
        return moved + sum(reads.values())

    def _bytes_stored(self, store: Store) -> int:
        """An element a point is written, at most all there are; a scatter reads it too unless it just stores."""
        points = hint(product(a.numel for a in self.domain.axes if a.prefix != "r" or store.element))
        once = min(points * store.buffer.dtype.itemsize, store.buffer.bytes)
        just_stores = not isinstance(store.value, Scatter) or store.value.combine == "store"
        return once if just_stores else 2 * once

    def _is_tall(self, axis: Axis) -> bool:
        """Whether the axis may take more programs than a grid is high."""
        return not isinstance(axis.numel, int) or axis.numel > LOWEST_TILE * MAX_GRID_HEIGHT

    def _indices(self) -> list[Expr]:
        exprs = [store.value.index if isinstance(store.value, Scatter) else store.index for store in self.stores]
        for value in walk(*(store.value for store in self.stores)):
            if isinstance(value, Load):
                exprs.append(value.index)
        return exprs

    def _needs_int64(self) -> bool:
        if self.size_vars:
            return False
        return any(bounds(e)[1] > INT32_MAX or bounds(e)[0] < -INT32_MAX for e in self._indices()) or any(
            a.numel > INT32_MAX for a in self.domain.axes
        )

    def _largest(self) -> tuple[Expr, ...]:
        """The largest indices, of those that sizes known only at run time can take beyond an int32."""
        if not self.size_vars:
            return ()
        exprs = [upper(e) for e in self._indices()]
        exprs += [sympy.sympify(n) for n in (*self.size_vars, *(a.numel for a in self.domain.axes))]
        large = list(dict.fromkeys(e for e in exprs if bounds(e)[1] > INT32_MAX - MAX_BLOCK))
        kept: list[Expr] = []
        for expr in sorted(large, key=lambda e: -hint(as_size(e))):
            if not any(known_nonnegative(sympy.expand(other - expr)) for other in kept):
                kept.append(expr)
        return tuple(kept)

    def _collect_pointers(self) -> None:
        loaded: dict[str, Buffer] = {}
        for value in walk(*(store.value for store in self.stores)):
            if isinstance(value, Load):
                loaded.setdefault(value.buffer.name, value.buffer)
        for number, (name, buffer) in enumerate(loaded.items()):
            self.pointers[name] = (f"in_ptr{number}", buffer)
        for number, store in enumerate(self.stores):
            assert store.buffer.name not in self.pointers, "a kernel reads what it writes"
            self.pointers[store.buffer.name] = (f"out_ptr{number}", store.buffer)

    def _slow_lines(self, program: str) -> None:
        """``xslow`` has the slow loops of x: one element where the block's size lets the whole block share them."""
        fast = self.domain.x.variables[-1].extent
        self._line(f"if {fast} % XBLOCK == 0:")
        self._line(f"    xfirst = {program} * XBLOCK")
        self._line("    xslow = tl.full([1, 1], xfirst, xfirst.dtype)")
        self._line("    xslowmask = xslow < xnumel")
        self._line("else:")
        self._line("    xslow = xindex")
        self._line("    xslowmask = xmask")

    def _header(self) -> None:
        wide = ".to(tl.int64)" if self.wide else ""
        if self.size_vars:  # as wide as the sizes that are passed: the kernel is compiled for int32 and for int64
            size = f"{self.symbolic[0].prefix}numel" if self.symbolic else self._size_name(self.size_vars[0])
            wide = f".to({size}.dtype)"
        axes = self.domain.axes
        for axis in axes:
            if isinstance(axis.numel, int):
                self._line(f"{axis.prefix}numel = {axis.numel}")
        programs = [a for a in axes if a.prefix != "r"]
        for number, axis in enumerate(reversed(programs)):
            p, block = axis.prefix, f"{axis.prefix.upper()}BLOCK"
            shape = self._slice_for(axis.prefix)
            program = f"tl.program_id({number}){wide}"
            if number == 1 and self._is_tall(axis):  # the rest of the programs is along z
                program = f"(tl.program_id(1) + tl.program_id(2) * tl.num_programs(1)){wide}"
            self._line(f"{p}index = {program} * {block} + tl.arange(0, {block}){shape}")
            self._line(f"{p}mask = {p}index < {p}numel")
            if axis is self.domain.x and self.slow:
                self._slow_lines(program)
            self._axis_lines(axis)
        if self.domain.r is not None:
            self._line(f"rbase = tl.arange(0, RBLOCK){self._slice_for('r')}{wide}")
            if self.persistent:
                self._line("rindex = rbase")
                self._line("rmask = rindex < rnumel")
                self._axis_lines(self.domain.r)
