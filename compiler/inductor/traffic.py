"""Bytes that Inductor's scheduler nodes move, buffer by buffer.

What a node reads and writes is taken from its dependencies as plain numbers while Inductor runs; everything else is
arithmetic on these. Symbolic sizes are those of the example inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compiler.sizes import UNKNOWN_HINT


@dataclass(frozen=True)
class Access:
    """One way in which a node goes over a buffer.

    ``loops``: stride and size of each loop that moves through the buffer, from ``offset`` on; None where the index is
    no sum of these (a library call's, one read from a tensor, a division), and only the number of elements is known.
    """

    count: int
    offset: int = 0
    loops: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Touched:
    """What a node does with one buffer of ``numel`` elements of ``width`` bytes."""

    numel: int
    width: int
    accesses: tuple[Access, ...]

    @property
    def bytes(self) -> int:
        """Bytes that go through memory: every element once, however often it is used."""
        apart: list[Access] = []
        for access in sorted(self.accesses, key=lambda access: -access.count):
            if all(disjoint(access, other) for other in apart):
                apart.append(access)
        return min(self.numel, sum(access.count for access in apart)) * self.width


def touched_by(node: Any) -> dict[str, Touched]:
    """What a scheduler node reads and writes in memory, by buffer; called while its graph is lowered."""
    from torch._inductor.virtualized import V

    inside = set(node.get_buffer_names()) & never_stored(V.graph)
    by_buffer: dict[str, list[Any]] = {}
    for dep in (*node.read_writes.reads, *node.read_writes.writes):
        if moves(dep):
            by_buffer.setdefault(dep.name, []).append(dep)
    found = {}
    for name, deps in by_buffer.items():
        if name in inside:
            continue
        memory = node.scheduler.mutation_real_name.get(name, name)  # the buffer that it is after a write into that
        try:
            numel, width = example_size(V.graph.get_numel(memory)), V.graph.get_dtype(memory).itemsize
        except (KeyError, AttributeError, NotImplementedError):
            continue  # no tensor: a random seed's generator, a symbol
        accesses = dict.fromkeys(access_of(dep, numel) for dep in deps)
        found[name] = Touched(numel, width, tuple(accesses))
    return found


def never_stored(lowering: Any) -> set[str]:
    """Buffers that live and die in one kernel, in registers: those without memory, and those whose memory the kernel
    uses for another of its values."""
    return {*lowering.removed_buffers, *lowering.inplaced_to_remove}


def moves(dep: Any) -> bool:
    """Whether a dependency is on a buffer's elements, and not on the order of two nodes alone."""
    return type(dep).__name__ != "WeakDep"


def access_of(dep: Any, numel: int) -> Access:
    """A dependency as plain numbers; one on a whole buffer of ``numel`` elements (a library call's) covers it."""
    if not hasattr(dep, "var_names"):
        return Access(numel)
    index, ranges = dep.index, dict(zip(dep.var_names, map(example_size, dep.size), strict=True))
    if any(str(symbol).startswith(_READ_FROM_A_TENSOR) for symbol in index.free_symbols):
        return Access(math.prod(ranges.values()))  # as many elements as there are iterations
    count = math.prod(ranges[symbol] for symbol in index.free_symbols & ranges.keys())
    terms = {term: static_size(factor) for term, factor in index.as_coefficients_dict().items()}
    offset = terms.pop(1, 0)
    if not all(term in ranges and isinstance(factor, int) for term, factor in terms.items()):
        return Access(count)
    loops = sorted((int(factor), ranges[term]) for term, factor in terms.items() if ranges[term] != 1)
    return Access(count, int(offset), tuple(loops))


def disjoint(a: Access, b: Access) -> bool:
    """Whether it is certain that two accesses to one buffer have no element in common."""
    if a.loops is None or b.loops is None:
        return False
    (first_a, last_a), (first_b, last_b) = _span(a), _span(b)
    if last_a < first_b or last_b < first_a:
        return True
    return a.loops == b.loops and not _reaches(a.loops, b.offset - a.offset)


def _span(access: Access) -> tuple[int, int]:
    assert access.loops is not None
    ends = [stride * (size - 1) for stride, size in access.loops]
    return access.offset + sum(e for e in ends if e < 0), access.offset + sum(e for e in ends if e > 0)


def _reaches(loops: Sequence[tuple[int, int]], distance: int) -> bool:
    """Whether two positions of the loops lie ``distance`` apart: of two slices of one tensor, whether they overlap."""
    if not loops:
        return distance == 0
    *rest, (stride, size) = sorted(loops, key=lambda loop: abs(loop[0]))
    stride = abs(stride)
    if stride == 0:
        return _reaches(rest, distance)
    within = sum(abs(s) * (n - 1) for s, n in rest)
    least, most = -((within - distance) // stride), (distance + within) // stride
    return any(
        _reaches(rest, distance - steps * stride)
        for steps in range(max(least, 1 - size), min(most, size - 1) + 1)
    )


def shared_bytes(a: Touched, b: Touched) -> int:
    """Bytes of one buffer that both of two nodes use; 0 where they certainly use other parts of it."""
    if all(disjoint(one, other) for one in a.accesses for other in b.accesses):
        return 0
    return min(a.bytes, b.bytes)


def example_size(value: Any) -> int:
    """``value`` as a number; where it is symbolic, what it is with the example's sizes. Called while its graph is
    lowered."""
    from torch._inductor.virtualized import V

    size = static_size(value)
    if isinstance(size, int):
        return size
    sizevars: Any = V.graph.sizevars
    hint = getattr(sizevars, "optimization_hint", None) or sizevars.size_hint  # the older name, up to torch 2.11
    return int(hint(value, fallback=UNKNOWN_HINT))


def static_size(value: Any) -> int | str:
    """``value`` as a number, or as text where it is an expression of sizes known only at run time."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return str(value)


_READ_FROM_A_TENSOR = ("tmp", "indirect")  # names of the numbers that Inductor's loops index by
