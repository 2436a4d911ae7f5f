"""The bodies of conditional nodes, as the driver prints them.

No call of the driver tells what a conditional node runs; its description of a graph for debugging does. Taken from
there are only handles and what waits for what: a node is then asked for its parameters as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_CLUSTER = re.compile(r'label="(graph_\d+)"')
_NODE = re.compile(r'^"(graph_\d+)_node_(\d+)"\[(.*?)"\];', re.MULTILINE | re.DOTALL)
_EDGE = re.compile(r'^"(graph_\d+)_node_(\d+)"\s*->\s*"graph_\d+_node_(\d+)"', re.MULTILINE)
_HANDLE = re.compile(r"node handle\W+0x([0-9A-Fa-f]+)")
_TYPE = re.compile(r"Conditional Type\s*\|\s*(\w+)")
_BODY = re.compile(r"\{\s*([^{}|]+?)\s*\|\s*(graph_\d+)\s*\}")


@dataclass
class Body:
    """A graph inside another: its nodes' handles, and (node, the node that waits for it) for every dependency."""

    nodes: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Conditional:
    """What decides (IF, WHILE, SWITCH), and what runs in each case, by the driver's name of the case."""

    kind: str
    bodies: dict[str, Body]


def conditionals(dot: str) -> Mapping[int, Conditional]:
    """The conditional nodes in the driver's description of a graph, by handle. It must have been made with handles."""
    graphs: dict[str, Body] = {name: Body() for name in _CLUSTER.findall(dot)}
    handles: dict[tuple[str, str], int] = {}
    found: dict[int, tuple[str, list[tuple[str, str]]]] = {}
    for graph, node, text in _NODE.findall(dot):
        handle = _HANDLE.search(text)
        if handle is None:
            continue
        number = handles[graph, node] = int(handle[1], 16)
        graphs.setdefault(graph, Body()).nodes.append(number)
        kind = _TYPE.search(text)
        if kind is not None:
            found[number] = kind[1], _BODY.findall(text)
    for graph, before, after in _EDGE.findall(dot):
        if (graph, before) in handles and (graph, after) in handles:
            graphs[graph].edges.append((handles[graph, before], handles[graph, after]))
    return {
        handle: Conditional(kind, {case: graphs.get(name, Body()) for case, name in bodies})
        for handle, (kind, bodies) in found.items()
    }
