"""Where an instantiated graph holds the address of an input, and how to make it read the input elsewhere.

Arguments of generated kernels are known by their position. Of a library call only copies and fills are known well
enough: a call that issues nothing else holds the input's address in their two ends and nowhere else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_void_p
from dataclasses import dataclass
from typing import Protocol

from compiler.runtime import driver

_ON_DEVICE = (2, 4)  # CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED


class PatchableNode(Protocol):
    """A node whose addresses can be replaced in an instantiated graph. Not for several threads at once."""

    @property
    def addresses(self) -> Sequence[int]:
        """What it is given now, address or not; a place is a position among these."""

    def point(self, position: int, address: int) -> None:
        """Use another address there from the next ``set`` on."""

    def set(self, executable: int) -> bool:
        """Make the executable graph use what was given from its next launch on; False where the driver refuses."""


@dataclass(frozen=True)
class Place:
    """One place that holds an input's address, or that of the byte ``offset`` of it."""

    node: PatchableNode
    position: int
    offset: int = 0


@dataclass(frozen=True)
class KernelNode:
    """A kernel node with the words that it is given as arguments."""

    node: int
    params: driver.KernelParams
    values: ctypes.Array[ctypes.c_uint64]
    pointers: ctypes.Array[c_void_p]  # params.params points here, and these at the values

    @property
    def addresses(self) -> Sequence[int]:
        return list(self.values)

    def point(self, position: int, address: int) -> None:
        self.values[position] = address

    def set(self, executable: int) -> bool:
        return driver.set_kernel(executable, self.node, self.params)


@dataclass(frozen=True)
class CopyNode:
    """A copy of consecutive bytes. Position 0 is where it reads, 1 where it writes."""

    node: int
    params: driver.MemcpyParams
    context: int

    @property
    def addresses(self) -> Sequence[int]:
        return [end.device or 0 for end in (self.params.source, self.params.target)]

    def point(self, position: int, address: int) -> None:
        (self.params.source, self.params.target)[position].device = address

    def set(self, executable: int) -> bool:
        return driver.set_memcpy(executable, self.node, self.params, self.context)


@dataclass(frozen=True)
class FillNode:
    """A fill of consecutive bytes. Position 0 is where it writes."""

    node: int
    params: driver.MemsetParams
    context: int

    @property
    def addresses(self) -> Sequence[int]:
        return [self.params.target or 0]

    def point(self, position: int, address: int) -> None:
        self.params.target = address

    def set(self, executable: int) -> bool:
        return driver.set_memset(executable, self.node, self.params, self.context)


def patchable_kernel(node: int) -> KernelNode | None:
    """The node, ready to be patched; None unless every argument is a word of 8 bytes, as in generated kernels."""
    params = driver.kernel_params(node) if driver.node_type(node) == driver.KERNEL else None
    if params is None or not params.params:
        return None
    sizes = driver.argument_sizes(params)
    if not sizes or any(size != 8 for size in sizes):
        return None
    values = (ctypes.c_uint64 * len(sizes))()
    pointers = (c_void_p * len(sizes))()
    for index in range(len(sizes)):
        place = params.params[index]
        if not place:
            return None
        values[index] = ctypes.c_uint64.from_address(place).value
        pointers[index] = ctypes.addressof(values) + 8 * index
    params.params = ctypes.cast(pointers, POINTER(c_void_p))
    return KernelNode(node, params, values, pointers)


def patchable_copy(node: int) -> CopyNode | FillNode | None:
    """A copy or fill, ready to be patched; None where it is something else or not of consecutive bytes on the GPU."""
    context = driver.current_context()
    kind = driver.node_type(node)
    if kind == driver.MEMCPY and context is not None:
        copy = driver.memcpy_params(node)
        if copy is None or max(copy.height, copy.depth) > 1 or not all(map(_starts_at_its_address, _ends(copy))):
            return None
        return CopyNode(node, copy, context)
    if kind == driver.MEMSET and context is not None:
        fill = driver.memset_params(node)
        return FillNode(node, fill, context) if fill is not None and fill.height <= 1 else None
    return None


def _ends(copy: driver.MemcpyParams) -> tuple[driver.CopyEnd, driver.CopyEnd]:
    return copy.source, copy.target


def _starts_at_its_address(end: driver.CopyEnd) -> bool:
    return end.memory_type in _ON_DEVICE and not (end.x_bytes or end.y or end.z or end.lod)


def places_in(nodes: Sequence[PatchableNode], address: int, extent: int) -> list[Place]:
    """Where copies and fills read or write the ``extent`` bytes from ``address`` on."""
    return [
        Place(node, position, held - address)
        for node in nodes
        for position, held in enumerate(node.addresses)
        if address <= held < address + extent
    ]


def point_all(moves: Sequence[tuple[Sequence[Place], int]], executable: int) -> bool:
    """Let an instantiated graph use other addresses at the places of each move; False where the driver refuses one.

    After a refusal some nodes may use the new address and some the old: the graph must not run again.
    """
    touched: dict[int, PatchableNode] = {}
    for places, address in moves:
        for place in places:
            place.node.point(place.position, address + place.offset)
            touched[id(place.node)] = place.node
    refused = [node for node in touched.values() if not node.set(executable)]
    return not refused
