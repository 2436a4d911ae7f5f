"""Fills of a captured graph as kernels, so that the CPU submits the graph in a time that does not grow with it.

Since CUDA 12.6 the driver launches a straight line of kernel nodes in constant time. One memset among them and it
goes over all nodes at every launch: on an H200 that took 24 microseconds for GPT-2, 136 nodes with 13 of the fills of
a few bytes that cuDNN and cuBLAS issue, and 7 with kernels in their place. The GPU is no slower for it, and mostly
faster, since it waits longer around a memset than for a kernel: 597 and 576 microseconds there
(``tests/benchmarks/results/fills_h200.md``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from compiler.runtime import driver
from compiler.runtime.observe import NO_STEP, Units

_DTYPES = {1: torch.uint8, 2: torch.int16, 4: torch.int32}  # by bytes of what a memset repeats


@dataclass(frozen=True)
class Fill:
    """``count`` values of ``dtype`` from ``address`` on."""

    address: int
    dtype: torch.dtype
    count: int
    value: int


# Parameters of kernel nodes that do what the fills say, in their order; others where that cannot be had. They must
# last until they have been used.
MakeKernels = Callable[[Sequence[Fill]], Sequence[driver.KernelParams]]


def as_kernels(graph: int, units: Units, make_kernels: MakeKernels) -> int:
    """Replace fills by kernels in a graph that is not instantiated yet; how many were.

    Only those of steps that launch kernels as well: a step of fills and copies alone is known by its nodes, which
    follow an input that moves (``patching``), and what no step issued is another compiler's, and stays as it was
    captured. ``units`` are told of the new nodes.
    """
    nodes = [node for node in driver.nodes(graph) if units.get(node, NO_STEP) != NO_STEP]
    kinds = {node: driver.node_type(node) for node in nodes}
    launching = {units[node] for node, kind in kinds.items() if kind == driver.KERNEL}
    found = {
        node: fill
        for node, kind in kinds.items()
        if kind == driver.MEMSET and units[node] in launching and (fill := _fill(node)) is not None
    }
    edges = driver.edges(graph)
    # Steps that launch kernels beside their fills have edges: none are those of a driver that does not tell.
    kernels = make_kernels(list(found.values())) if found and edges else ()
    if len(kernels) != len(found):
        return 0
    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for first, second in edges:
        before[second].append(first)
        after[first].append(second)
    made: dict[int, int] = {}
    for node, kernel in zip(found, kernels, strict=True):
        neighbours = ([made.get(other, other) for other in side[node]] for side in (before, after))
        new = _replace(graph, node, kernel, *neighbours)
        if new is not None:
            made[node] = new
            units[new] = units.pop(node)
    return len(made)


def write(fills: Sequence[Fill], device: torch.device) -> None:
    """Do what the fills say on the current stream, a kernel each."""
    for fill in fills:
        size = fill.count * fill.dtype.itemsize
        storage = torch._C._construct_storage_from_data_pointer(fill.address, device, size)
        memory = torch.empty(0, dtype=fill.dtype, device=device).set_(storage, 0, (fill.count,), (1,))
        memory.fill_(fill.value)


def _fill(node: int) -> Fill | None:
    """What a memset node fills; None where it is not of consecutive elements."""
    params = driver.memset_params(node)
    if params is None or params.height > 1 or params.element_bytes not in _DTYPES:
        return None
    if not (params.target and params.width):
        return None
    bits = 8 * params.element_bytes
    value = params.value & ((1 << bits) - 1)
    if bits > 8 and value >> (bits - 1):  # as the signed dtype has it
        value -= 1 << bits
    return Fill(params.target, _DTYPES[params.element_bytes], params.width, value)


def _replace(
    graph: int, node: int, kernel: driver.KernelParams, before: Sequence[int], after: Sequence[int]
) -> int | None:
    """Put a kernel in a node's place between its neighbours; None, and the graph as it was, where the driver
    refuses."""
    made = driver.add_kernel(graph, before, kernel)
    if made is None:
        return None
    if driver.add_edges(graph, [(made, other) for other in after]) and driver.remove_node(node):
        return made
    driver.remove_node(made)
    return None
