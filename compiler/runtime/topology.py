"""The nodes of a captured CUDA Graph and what waits for what, as the driver tells it.

``read`` turns a graph into records. Each node is joined to the fusion group or extern call that issued it, exactly
where the capture was observed (``observe.NodeLog``). ``with_times`` adds measured durations and the longest path.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

import msgspec

from compiler.report import GraphNode, GraphNodeKind
from compiler.runtime import driver
from compiler.runtime.conditional import Body, Conditional, conditionals
from compiler.runtime.observe import NO_STEP, Units

_KINDS = {
    driver.KERNEL: GraphNodeKind.KERNEL,
    driver.MEMCPY: GraphNodeKind.MEMCPY,
    driver.MEMSET: GraphNodeKind.MEMSET,
    driver.HOST: GraphNodeKind.HOST,
    driver.CHILD_GRAPH: GraphNodeKind.CHILD_GRAPH,
    driver.EMPTY: GraphNodeKind.EMPTY,
    driver.EVENT_WAIT: GraphNodeKind.EVENT_WAIT,
    driver.EVENT_RECORD: GraphNodeKind.EVENT_RECORD,
    driver.MEM_ALLOC: GraphNodeKind.MEM_ALLOC,
    driver.MEM_FREE: GraphNodeKind.MEM_FREE,
    driver.CONDITIONAL: GraphNodeKind.CONDITIONAL,
}
_NAMES = {
    GraphNodeKind.HOST: "Function on the CPU",
    GraphNodeKind.CHILD_GRAPH: "Child graph",
    GraphNodeKind.EMPTY: "Nothing (joins branches)",
    GraphNodeKind.EVENT_WAIT: "Wait for an event",
    GraphNodeKind.EVENT_RECORD: "Record an event",
    GraphNodeKind.CONDITIONAL: "Conditional",
    GraphNodeKind.OTHER: "Node of another kind",
}
_MEMORY_TYPES = {1: "host", 2: "device", 3: "array", 4: "unified"}  # CUmemorytype


_CASES = {"IF": "If", "WHILE": "While", "SWITCH": "Switch"}


def read(graph: int, units: Units) -> list[GraphNode]:
    """The graph's nodes in an order in which they can run: every node after those that it waits for.

    ``units`` maps a node's handle to the region and step that issued it.
    """
    handles = driver.nodes(graph)
    inside: Mapping[int, Conditional] = {}
    if any(driver.node_type(handle) == driver.CONDITIONAL for handle in handles):
        inside = conditionals(driver.description(graph))
    return _read(Body(handles, driver.edges(graph)), units, inside)


def _read(body: Body, units: Units, inside: Mapping[int, Conditional]) -> list[GraphNode]:
    waits_for: dict[int, list[int]] = defaultdict(list)
    for before, after in body.edges:
        waits_for[after].append(before)
    ordered = in_order(body.nodes, waits_for)
    ids = {handle: number for number, handle in enumerate(ordered)}
    allocated: dict[int, int] = {}  # address -> bytes
    nodes = []
    for handle in ordered:
        node = _describe(handle, allocated)
        node.id = ids[handle]
        node.dependencies = sorted(ids[before] for before in waits_for[handle])
        node.region, node.unit = units.get(handle, NO_STEP)
        if handle in inside:
            _add_bodies(node, inside[handle], units, inside)
        nodes.append(node)
    return nodes


def _add_bodies(node: GraphNode, conditional: Conditional, units: Units, inside: Mapping[int, Conditional]) -> None:
    """What a conditional node runs: the nodes of its one body, or a graph for each case."""
    node.name = _CASES.get(conditional.kind, conditional.kind.title())
    bodies = [(case, _read(body, units, inside)) for case, body in conditional.bodies.items()]
    if len(bodies) == 1:
        ((_, node.children),) = bodies
        return
    node.children = [
        GraphNode(id=number, kind=GraphNodeKind.CHILD_GRAPH, name=f"Case {case}", children=children)
        for number, (case, children) in enumerate(bodies)
    ]


def in_order(handles: Sequence[int], waits_for: Mapping[int, Sequence[int]]) -> list[int]:
    """``handles`` so that each comes after those that it waits for; otherwise as they were."""
    position = {handle: number for number, handle in enumerate(handles)}
    if all(position[before] < position[after] for after in handles for before in waits_for.get(after, ())):
        return list(handles)
    left = {handle: len(waits_for.get(handle, ())) for handle in handles}
    followers: dict[int, list[int]] = defaultdict(list)
    for after in handles:
        for before in waits_for.get(after, ()):
            followers[before].append(after)
    ready = deque(handle for handle in handles if left[handle] == 0)
    ordered = []
    while ready:
        handle = ready.popleft()
        ordered.append(handle)
        for after in followers[handle]:
            left[after] -= 1
            if left[after] == 0:
                ready.append(after)
    return ordered


def _describe(handle: int, allocated: dict[int, int]) -> GraphNode:
    """One node but for its place among the others."""
    kind = _KINDS.get(driver.node_type(handle), GraphNodeKind.OTHER)
    node = GraphNode(id=0, kind=kind, name=_NAMES.get(kind, ""))
    if kind is GraphNodeKind.KERNEL:
        kernel = driver.kernel_params(handle)
        node.name = "Kernel"
        if kernel is not None:
            node.name = driver.demangled(driver.kernel_name(kernel)) or "Kernel"
            node.grid, node.block = list(kernel.grid), list(kernel.block)
            node.shared_bytes = kernel.shared_bytes
    elif kind is GraphNodeKind.MEMCPY:
        copy = driver.memcpy_params(handle)
        node.name = "Copy"
        if copy is not None:
            ends = [_MEMORY_TYPES.get(end.memory_type, "memory") for end in (copy.source, copy.target)]
            node.name = f"Copy {ends[0]} to {ends[1]}"
            node.bytes = copy.width_bytes * max(copy.height, 1) * max(copy.depth, 1)
    elif kind is GraphNodeKind.MEMSET:
        fill = driver.memset_params(handle)
        node.name = "Fill"
        if fill is not None:
            node.name = f"Fill with {fill.value:#x}" if fill.value else "Fill with zero"
            node.bytes = fill.element_bytes * fill.width * max(fill.height, 1)
    elif kind is GraphNodeKind.MEM_ALLOC:
        node.name = "Allocate"
        found = driver.allocation(handle)
        if found is not None:
            allocated[found[0]] = node.bytes = found[1]
    elif kind is GraphNodeKind.MEM_FREE:
        node.name = "Free"
        node.bytes = allocated.get(driver.freed_address(handle) or 0, 0)
    elif kind is GraphNodeKind.CHILD_GRAPH:
        child = driver.child_graph(handle)
        if child is not None:
            node.children = read(child, {})
    return node


def with_times(nodes: Sequence[GraphNode], times: Mapping[int, float]) -> list[GraphNode]:
    """The nodes with measured durations in microseconds by their ids, and the longest path by them marked."""
    critical = longest_path(nodes, times)
    return [
        msgspec.structs.replace(node, measured_us=times.get(node.id), critical=node.id in critical) for node in nodes
    ]


def longest_path(nodes: Sequence[GraphNode], times: Mapping[int, float]) -> set[int]:
    """Ids on the path of dependencies that takes longest. Nodes come after those they wait for."""
    if not times:
        return set()
    end: dict[int, float] = {}
    came_from: dict[int, int] = {}
    for node in nodes:
        begin = 0.0
        for before in node.dependencies:
            if end[before] > begin or node.id not in came_from:
                begin, came_from[node.id] = max(begin, end[before]), before
        end[node.id] = begin + times.get(node.id, 0.0)
    path = set()
    here: int | None = max(end, key=lambda number: end[number])
    while here is not None:
        path.add(here)
        here = came_from.get(here)
    return path
