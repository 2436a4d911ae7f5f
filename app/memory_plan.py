"""A region's memory plan, counted out: what is live at each step, and which buffers share a storage one after another.

Arrays throughout, so that plans of many thousand buffers cost milliseconds. No Qt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.report import BufferPlan, Memory


@dataclass(frozen=True)
class PlanRows:
    """The buffers that hold anything, ordered by storage (the largest first) and within it by first use."""

    buffers: list[BufferPlan]
    start: NDArray[np.float64]  # step of the first use
    end: NDArray[np.float64]  # the step after the last use
    row: NDArray[np.int64]  # which storage a buffer lives in
    share: NDArray[np.float64]  # of its storage's bytes, 0..1
    before: NDArray[np.int64]  # the buffer whose storage it takes over, -1 for none
    storage_bytes: NDArray[np.float64]  # of each storage

    @property
    def nodes(self) -> list[str]:
        """The FX node of each buffer."""
        return [buffer.node for buffer in self.buffers]


def live_bytes(memory: Memory) -> NDArray[np.int64]:
    """Bytes live at each step: every buffer from its first use to its last, both included. One that is written over
    an operand counts once that has ended."""
    if not memory.buffers:
        return np.zeros(0, np.int64)
    ends = {buffer.name: buffer.last_use for buffer in memory.buffers}
    first = np.array([max(buffer.first_use, ends.get(buffer.reuses, -1) + 1) for buffer in memory.buffers])
    last = np.array([buffer.last_use for buffer in memory.buffers])
    size = np.array([buffer.bytes for buffer in memory.buffers], np.int64)
    changes = np.zeros(int(last.max()) + 2, np.int64)
    np.add.at(changes, first, size)
    np.add.at(changes, last + 1, -size)
    live: NDArray[np.int64] = np.cumsum(changes)[:-1]
    return live


def plan_rows(memory: Memory) -> PlanRows:
    """The plan's buffers as rows; one that reuses another's storage shares its row."""
    filled = sorted((b for b in memory.buffers if b.bytes), key=lambda buffer: buffer.first_use)
    home: dict[str, int] = {}
    storage: list[int] = []
    sizes: list[int] = []
    for buffer in filled:
        place = home.get(buffer.reuses)
        if place is None:
            place = len(sizes)
            sizes.append(buffer.bytes)
        home[buffer.name] = place
        storage.append(place)
    bytes_ = np.array(sizes, np.float64)
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-bytes_, kind="stable")] = np.arange(len(sizes))
    row = rank[np.array(storage, np.int64)]
    order = np.argsort(row, kind="stable")
    ordered = [filled[int(i)] for i in order]
    row = row[order]
    storage_bytes = np.sort(bytes_)[::-1]
    place_of = {buffer.name: place for place, buffer in enumerate(ordered)}
    size = np.array([buffer.bytes for buffer in ordered], np.float64)
    return PlanRows(
        ordered,
        np.array([buffer.first_use for buffer in ordered], np.float64),
        np.array([buffer.last_use + 1 for buffer in ordered], np.float64),
        row,
        size / storage_bytes[row],
        np.array([place_of.get(buffer.reuses, -1) for buffer in ordered], np.int64),
        storage_bytes,
    )


def live_at(memory: Memory, step: int) -> list[BufferPlan]:
    """Buffers that live at a step, the largest first."""
    found = [buffer for buffer in memory.buffers if buffer.first_use <= step <= buffer.last_use]
    return sorted(found, key=lambda buffer: -buffer.bytes)
