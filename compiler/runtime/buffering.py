"""Which inputs a graph reads where they are, and which from buffers of its own into which they are copied."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True)
class InputUse:
    """Who reads or writes an input of a region: generated kernels, each with the input's position among its arguments,
    and library calls that return none of its memory.

    ``traced``: nobody else does, so that a graph holds the address nowhere but in the arguments of ``kernels`` and in
    what ``calls`` issue. Whether it can be replaced there the graph tells, where there are calls.
    """

    name: str
    kernels: tuple[tuple[str, int], ...] = ()
    calls: tuple[str, ...] = ()
    traced: bool = False


class Buffering(IntEnum):
    """Which inputs a graph reads from buffers of its own, into which they are copied at every call."""

    NONE = 0  # it reads every input where it was at the capture
    MOVED = 1  # those whose address in the graph cannot be replaced, as far as they have moved
    UNPATCHABLE = 2  # those whose address in the graph cannot be replaced
    ALL = 3  # all that are not static


WHY_COPIED: Mapping[Buffering, str] = {
    Buffering.MOVED: "It moved, and a library call that does more than copy reads it.",
    Buffering.UNPATCHABLE: "A library call that does more than copy reads it, and such inputs moved more than once.",
    Buffering.ALL: "Inputs moved that the graph could not follow, or the graph holds collectives.",
}


class Variant(Protocol):
    """A graph for the same signature that could not serve the inputs."""

    @property
    def buffering(self) -> Buffering: ...
    @property
    def copied(self) -> frozenset[int]: ...
    @property
    def movable(self) -> Collection[int]: ...
    def has_moved(self, index: int, value: Tensor) -> bool: ...


def least_buffering(
    inputs: Sequence[Any],
    variants: Sequence[Variant],
    static: Collection[int],
    uses: Sequence[InputUse],
    least: Buffering = Buffering.NONE,
) -> tuple[Buffering, list[int]]:
    """The fewest inputs to copy, from ``least`` on, that none of ``variants``, the graphs that could not serve them,
    copies."""
    level = Buffering(min(max((graph.buffering + 1 for graph in variants), default=least), Buffering.ALL))
    buffered = _buffered(inputs, level, variants, static, uses)
    while level < Buffering.ALL and any(graph.copied == frozenset(buffered) for graph in variants):
        level = Buffering(level + 1)
        buffered = _buffered(inputs, level, variants, static, uses)
    return level, buffered


def _buffered(
    inputs: Sequence[Any],
    buffering: Buffering,
    variants: Sequence[Variant],
    static: Collection[int],
    uses: Sequence[InputUse],
) -> list[int]:
    """Positions of the inputs that are copied."""
    if buffering is Buffering.NONE:
        return []
    free = [i for i, value in enumerate(inputs) if isinstance(value, Tensor) and i not in static]
    if buffering is Buffering.ALL:
        return free
    followed = {i for graph in variants for i in graph.movable}
    followed |= {i for i, use in enumerate(uses) if use.traced and not use.calls}
    fixed = [i for i in free if i not in followed]
    if buffering is Buffering.UNPATCHABLE:
        return fixed
    return [i for i in fixed if any(graph.has_moved(i, inputs[i]) for graph in variants)]


def parts_shared_memory(inputs: Sequence[Any], copied: Collection[int], mutated: frozenset[int]) -> bool:
    """Whether a mutated input shares its storage with another input, and one of the two is in ``copied``."""
    if not mutated or not copied:
        return False
    storages: dict[int, list[int]] = {}
    for index, value in enumerate(inputs):
        if isinstance(value, Tensor) and value.numel():
            storages.setdefault(value.untyped_storage().data_ptr(), []).append(index)
    return any(
        len(indices) > 1 and not mutated.isdisjoint(indices) and any(index in copied for index in indices)
        for indices in storages.values()
    )
