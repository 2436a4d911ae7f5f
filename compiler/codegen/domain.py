"""The shape of a kernel: in which order its loops run, which of them are one, and how they are tiled.

The order decides coalescing: the loop along which most traffic has stride one runs fastest. Where two loops compete
(a transpose) the kernel tiles both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sympy

from compiler.codegen.text import NameOf, size_text
from compiler.index import Expr, IndirectVar, LoopVar, contiguous_strides
from compiler.sizes import Size, SizeVar, as_size, hint, product

MIN_TILE = 16  # a loop shorter than this is not worth a tile dimension of its own


@dataclass(frozen=True)
class Access:
    """One read or write: its index over the group's variables, and the bytes it moves per element."""

    index: Expr
    itemsize: int


@dataclass(frozen=True)
class Axis:
    """A block dimension: loops flattened into one index, slowest first. ``prefix`` is "x", "y" or "r"."""

    prefix: str
    variables: tuple[LoopVar, ...]

    @property
    def numel(self) -> Size:
        """Points along the axis."""
        return product([v.extent for v in self.variables])


@dataclass(frozen=True)
class Domain:
    """A kernel's axes and how the group's variables are spelled in theirs.

    ``r`` is None for pointwise kernels, ``y`` for all but tiled ones. ``inner`` says that the reduction runs along the
    contiguous direction.
    """

    x: Axis
    y: Axis | None
    r: Axis | None
    mapping: dict[LoopVar, Expr]
    inner: bool

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the block's dimensions."""
        return tuple(a for a in (self.y, self.x, self.r) if a is not None)


def weight_of_unit_stride(var: LoopVar, accesses: Sequence[Access]) -> int:
    """Bytes that move with stride one along ``var``; each access counts the elements it touches."""
    return sum(_footprint(a) for a in accesses if var in a.index.free_symbols and _stride(a.index, var) == 1)


def _footprint(access: Access) -> int:
    extents = [v.extent for v in access.index.free_symbols if isinstance(v, LoopVar | IndirectVar)]
    return access.itemsize * hint(product(extents))


def _stride(index: Expr, var: LoopVar) -> Size | None:
    """The coefficient of ``var`` where the index is affine in it, else None."""
    coefficient = index.coeff(var)
    rest = sympy.expand(index - coefficient * var)
    if var in rest.free_symbols or not all(isinstance(s, SizeVar) for s in coefficient.free_symbols):
        return None
    return as_size(coefficient)


def _ordered(variables: Sequence[LoopVar], accesses: Sequence[Access], fastest: LoopVar | None) -> list[LoopVar]:
    """Slowest first: by the stride of the widest access that knows them all, ``fastest`` last."""

    def strides(var: LoopVar) -> int:
        found = [abs(hint(s)) * a.itemsize for a in accesses if (s := _stride(a.index, var)) is not None]
        return max(found, default=0)

    place = {v: i for i, v in enumerate(variables)}
    return sorted(variables, key=lambda v: (v is fastest, -strides(v), place[v]))


def choose_domain(xvars: Sequence[LoopVar], rvars: Sequence[LoopVar], accesses: Sequence[Access]) -> Domain:
    """Order, tile and merge the loops of a group."""
    weights = {v: weight_of_unit_stride(v, accesses) for v in (*xvars, *rvars)}
    best_x = max(xvars, key=lambda v: weights[v], default=None)
    best_r = max(rvars, key=lambda v: weights[v], default=None)
    inner = bool(rvars) and (best_x is None or (best_r is not None and weights[best_r] >= weights[best_x]))
    order = _ordered(xvars, accesses, best_x if best_x is not None and weights[best_x] else None)
    tiled: list[LoopVar] = []
    if not rvars and best_x is not None and hint(best_x.extent) >= MIN_TILE:
        rivals = [v for v in order if v is not best_x and hint(v.extent) >= MIN_TILE]
        rivals = [v for v in rivals if weights[v] * 4 >= weights[best_x]]
        rivals = [v for v in rivals if weights[v] and _is_transposed(v, best_x, accesses)]
        if rivals:
            tiled = [max(rivals, key=lambda v: weights[v])]
    # the slow loops ride along with the tile's slow axis
    x_order = [v for v in order if v not in tiled] if not tiled else [best_x]
    y_order = [v for v in order if v is not best_x and v not in tiled] + tiled if tiled else []
    r_order = _ordered(rvars, accesses, best_r if best_r is not None and weights[best_r] else None)
    mapping: dict[LoopVar, Expr] = {}
    x = _merge("x", [v for v in x_order if v is not None], accesses, mapping)
    y = _merge("y", y_order, accesses, mapping) if y_order else None
    r = _merge("r", r_order, accesses, mapping) if rvars else None
    return Domain(x, y, r, mapping, inner)


def _is_transposed(slow: LoopVar, fast: LoopVar, accesses: Sequence[Access]) -> bool:
    """Whether some access runs with stride one along ``slow`` while also moving along ``fast``."""
    return any(_stride(a.index, slow) == 1 and fast in a.index.free_symbols for a in accesses)


def _merge(prefix: str, order: Sequence[LoopVar], accesses: Sequence[Access], mapping: dict[LoopVar, Expr]) -> Axis:
    """Neighbouring loops that every access treats as one become one."""
    runs: list[list[LoopVar]] = []
    for var in order:
        if runs and all(_continues(a.index, runs[-1][-1], var) for a in accesses):
            runs[-1].append(var)
        else:
            runs.append([var])
    merged = [LoopVar(f"{prefix}{len(runs) - 1 - i}", product([v.extent for v in run])) for i, run in enumerate(runs)]
    for run, whole in zip(runs, merged, strict=True):
        # every access takes the run as one, so the slower variables cancel out of it
        strides = contiguous_strides([v.extent for v in run])
        slower = [sympy.expand(var * stride) for var, stride in zip(run[:-1], strides[:-1], strict=True)]
        mapping[run[-1]] = whole - sympy.Add(*slower)
    return Axis(prefix, tuple(merged))


def _continues(index: Expr, outer: LoopVar, inner: LoopVar) -> bool:
    """Whether ``index`` moves along ``outer`` as if ``inner`` had simply gone on past its end."""
    symbols = index.free_symbols
    if outer not in symbols and inner not in symbols:
        return True
    a, b = _stride(index, outer), _stride(index, inner)
    return a is not None and b is not None and a == b * inner.extent


def axis_variables(axis: Axis, name_of: NameOf, slow: Collection[LoopVar] = ()) -> list[tuple[LoopVar, str]]:
    """Each loop of an axis with its text in terms of the axis' flat index, e.g. ``x0 = xindex % 64``; the loops in
    ``slow`` in terms of ``xslow``."""
    result = []
    strides = contiguous_strides([v.extent for v in axis.variables])
    for position, (var, stride) in enumerate(zip(axis.variables, strides, strict=True)):
        flat = f"{axis.prefix}slow" if var in slow else f"{axis.prefix}index"
        divided = f"{flat} // {size_text(stride, name_of)}"
        text = flat if stride == 1 else f"({divided})" if position else divided
        result.append((var, text if position == 0 else f"{text} % {size_text(var.extent, name_of)}"))
    return result


def slow_variables(domain: Domain, reads: Sequence[Expr]) -> frozenset[LoopVar]:
    """The loops along x that a block need not move along, where that saves reading: all but the fastest, of which a
    block is to hold a part.

    So it is in a sum across rows that is cut in parts. A number of each row (its mean, say) would be read once for
    every column, in another order than the block's, and be turned around in shared memory.
    """
    if domain.r is None or domain.inner or len(domain.x.variables) < 2:
        return frozenset()
    *slow, fast = domain.x.variables
    if not isinstance(fast.extent, int) or fast.extent % MIN_TILE:
        return frozenset()
    rows = frozenset(domain.r.variables)
    along = [index.free_symbols for index in reads]
    saves = any(not rows.isdisjoint(s) and not s.isdisjoint(slow) and fast not in s for s in along)
    return frozenset(slow) if saves else frozenset()


def fold_axes(index: Expr, axes: Sequence[Axis]) -> Expr:
    """``index`` with loops that it walks as one contiguous run written as the axis' flat index.

    The compiler then sees a plain ``xindex`` where it would have to undo a division and a remainder.
    """
    for axis in axes:
        if len(axis.variables) < 2:
            continue
        strides = contiguous_strides([v.extent for v in axis.variables])
        found = [_stride(index, v) for v in axis.variables]
        unit = found[-1]
        if unit not in (None, 0) and all(f == unit * s for f, s in zip(found, strides, strict=True)):
            flat = LoopVar(f"{axis.prefix}index", axis.numel)
            walked = sympy.Add(*(sympy.expand(v * f) for v, f in zip(axis.variables, found, strict=True)))
            index = index - walked + unit * flat
    return index
