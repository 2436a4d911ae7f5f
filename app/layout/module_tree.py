"""The nn.Module hierarchy of a region as a tree of containers, with runs of identical modules recognised as stacks.

A container is a module, or a stack of modules that compute the same ("12 x Block"). Containers of a level never wait
for each other: a module that runs again later in the graph is a container for each of its runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.layout.ranks import Cancelled, poll, polled
from compiler.report import Node, NodeKind, Region

_FEWEST_NODES = 2  # of a container; a module of one op is that op
_MOST_RESULTS = (
    6  # drawn into the output node; of more, only the first: what the model returns comes before what it saves
)
_NUMBERED = re.compile(r"(.*?)(\d+)$")

Path = tuple[str, ...]
Ints = NDArray[np.int32]


class Inner(NamedTuple):
    """A line between two children: out of ``source`` (where it is a container, from its child ``way``) into ``target``
    (where it is a container, by its input ``port``). Children are numbered within their container."""

    source: int
    way: int
    target: int
    port: int


class Entry(NamedTuple):
    """A line from a container's input to a child."""

    number: int
    target: int
    port: int


class Exit(NamedTuple):
    """A line from a child out of the container."""

    source: int
    way: int


Line = Inner | Entry | Exit


@dataclass(frozen=True)
class Routes:
    """The lines that each edge of the graph runs along, wherever boxes are open. Edges are in the order of
    ``ModuleTree.inputs``; the n lines of container c are ``first_line[c]`` and the following.

    - ``edges`` (e, 2): producer and consumer.
    - ``start`` (e + 1,): edge i runs along ``lines[start[i]:start[i + 1]]``, out of the boxes around its producer,
      across, and into those around its consumer. One that is not drawn at all has none.
    - ``meeting`` (e,): the innermost container around both ends, which is where it runs across.
    """

    edges: Ints
    start: Ints
    lines: Ints
    meeting: Ints
    first_line: Ints


@dataclass(slots=True)
class Container:
    """A module or a stack. Children >= 0 are FX nodes, ~i is container i. ``members`` are all nodes inside; those of
    the modules of one stack correspond by their places in it.
    """

    key: str
    title: str
    type_name: str
    parent: int
    children: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    is_stack: bool = False
    inputs: dict[int, int] = field(default_factory=dict)  # source beside it or further out -> number
    lines: dict[Line, int] = field(default_factory=dict)  # everything that is drawn in it, numbered


@dataclass(frozen=True)
class ModuleTree:
    """Containers, the region itself first, and where each node is: its container and its place among the children."""

    containers: list[Container]
    parent_of: list[int]
    place_of: list[int]
    place_of_container: list[int]
    inputs: list[list[int]]  # of each node, as node numbers
    routes: Routes

    def ancestors(self, node: int) -> list[int]:
        """Containers around a node, the innermost first and the region last."""
        found = [self.parent_of[node]]
        while found[-1]:
            found.append(self.containers[found[-1]].parent)
        return found

    def one_node(self, child: int) -> int:
        """A node for a child: itself, or the first of a container."""
        return child if child >= 0 else self.containers[~child].members[0]


def build_module_tree(region: Region, cancelled: Cancelled | None = None) -> ModuleTree:
    """The tree of a region. Raises LayoutCancelled."""
    return TreeBuilder(region, cancelled).build()


class TreeBuilder:
    """Grows a tree over a region; this one by modules."""

    def __init__(self, region: Region, cancelled: Cancelled | None) -> None:
        self.region = region
        self.nodes = region.nodes
        self.cancelled = cancelled
        index = {node.name: i for i, node in enumerate(region.nodes)}
        self.inputs = [
            [index[name] for name in dict.fromkeys(node.inputs) if index.get(name, i) < i]
            for i, node in enumerate(polled(region.nodes, cancelled))
        ]
        self.containers: list[Container] = [Container("", region.name, "", -1)]
        self.parent_of = [0] * len(self.nodes)
        self.place_of = [0] * len(self.nodes)
        self.place_of_container: list[int] = []

    def _paths(self) -> list[Path]:
        """Each node's module. An op of none (gradients that are added up) goes beside its latest producer; an input to
        what its readers have in common."""
        paths: list[Path] = [()] * len(self.nodes)
        known = [False] * len(self.nodes)
        for number, node in enumerate(polled(self.nodes, self.cancelled)):
            if node.kind is NodeKind.CALL:
                path = node.provenance.module_path
                near = max((producer for producer in self.inputs[number] if known[producer]), default=-1)
                if path or near >= 0:
                    paths[number], known[number] = tuple(path.split(".")) if path else paths[near][:-1], True
        readers: list[list[int]] = [[] for _ in self.nodes]
        for consumer, producers in enumerate(self.inputs):
            if self.nodes[consumer].kind is not NodeKind.OUTPUT:
                for producer in producers:
                    readers[producer].append(consumer)
        for number, node in reversed(list(enumerate(self.nodes))):
            if not known[number] and node.kind is not NodeKind.OUTPUT:
                near_paths = [paths[reader] for reader in readers[number] if known[reader]]
                if near_paths:
                    paths[number], known[number] = _common(near_paths), True
        return paths

    # Who is in what

    def build(self) -> ModuleTree:
        """The tree. Raises LayoutCancelled."""
        self.grow()
        routes = self.connect()
        return ModuleTree(self.containers, self.parent_of, self.place_of, self.place_of_container, self.inputs, routes)

    def grow(self) -> None:
        """Makes the containers, from the region inwards."""
        self.paths = self._paths()
        self.types = {
            node.provenance.module_path: node.provenance.module_type for node in self.nodes if node.provenance
        }
        self.looks = [self._look(node) for node in polled(self.nodes, self.cancelled)]
        everything = list(range(len(self.nodes)))
        self.containers[0].members = everything
        self._fill(0, everything, ())
        self.number_children()

    def number_children(self) -> None:
        """Notes where everything is, once all containers are made, and gives them keys of their own."""
        self.place_of_container = [0] * len(self.containers)
        taken: set[str] = set()
        for number, container in enumerate(self.containers):
            key, again = container.key, 1
            while container.key in taken:
                again += 1
                container.key = f"{key} ({again})"
            taken.add(container.key)
            for place, child in enumerate(container.children):
                if child >= 0:
                    self.parent_of[child], self.place_of[child] = number, place
                else:
                    self.place_of_container[~child] = place

    def _fill(self, number: int, nodes: list[int], prefix: Path) -> None:
        """Sorts ``nodes`` (ascending, all below ``prefix``) into children of a container."""
        poll(self.cancelled)
        depth = len(prefix)
        parts: dict[str, list[int]] = {}
        own: list[int] = []
        for node in nodes:
            path = self.paths[node]
            if len(path) > depth:
                parts.setdefault(path[depth], []).append(node)
            else:
                own.append(node)
        if not own and len(parts) == 1:
            name, nodes = next(iter(parts.items()))
            if number:  # a namespace around one module says nothing
                self.containers[number].key = ".".join((*prefix, name))
                self._name(number, (*prefix, name))
            self._fill(number, nodes, (*prefix, name))
            return
        found: list[tuple[str, list[int]]] = [("", [node]) for node in own]
        for name, inside in parts.items():
            found += [("", [node]) for node in inside] if len(inside) < _FEWEST_NODES else [(name, inside)]
        found = self._without_cycles(found)
        found.sort(key=lambda item: self._first_call(item[1]))
        runs = self._runs(found, prefix)
        for run in runs:
            if len(run) == 1:
                self._add(number, *found[run[0]], prefix)
                continue
            # a list of layers that are all alike is the stack itself
            is_whole = len(runs) == 1 and number > 0 and not self.containers[number].type_name
            stack = number if is_whole else self._make(number, "", prefix, True)
            self.containers[stack].is_stack = True
            for place in run:
                self._add(stack, *found[place], prefix)
            inside = [~child for child in self.containers[stack].children]
            one, last = self.containers[inside[0]], self.containers[inside[-1]]
            made = self.containers[stack]
            made.key, made.type_name = f"{one.key} … {last.key}", one.type_name
            made.title = f"{len(run)} × {one.type_name or one.title}"
            made.members = [node for child in inside for node in self.containers[child].members]

    def _add(self, parent: int, name: str, nodes: list[int], prefix: Path) -> None:
        if not name:
            self.containers[parent].children.append(nodes[0])
            return
        path = (*prefix, name)
        child = self._make(parent, ".".join(path), path, False)
        self.containers[child].members = self._canonical(nodes)
        self._fill(child, sorted(nodes), path)

    def _make(self, parent: int, key: str, path: Path, is_stack: bool) -> int:
        number = self.add_box(parent, key, "", "", is_stack=is_stack)
        self._name(number, path)
        return number

    def add_box(self, parent: int, key: str, title: str, type_name: str, *, is_stack: bool = False) -> int:
        """Appends an empty container to the children of another one, and returns its number."""
        number = len(self.containers)
        self.containers.append(Container(key, title, type_name, parent, is_stack=is_stack))
        self.containers[parent].children.append(~number)
        return number

    def _name(self, number: int, path: Path) -> None:
        container = self.containers[number]
        container.type_name = self.types.get(".".join(path), "")
        short = len(path) - 1
        while short > 0 and path[short].isdigit():
            short -= 1
        container.title = ".".join(path[short:])

    def _first_call(self, nodes: Sequence[int]) -> int:
        return min((node for node in nodes if self.nodes[node].kind is not NodeKind.PLACEHOLDER), default=min(nodes))

    def _without_cycles(self, found: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
        """The items, with modules that wait for what waits for them split into their runs."""
        tangled = self._tangled([nodes for _, nodes in found])
        if not tangled:
            return found
        owner = {node: place for place, (_, nodes) in enumerate(found) for node in nodes}
        runs: dict[int, list[list[int]]] = {place: [] for place in tangled}
        last = -1
        for node in sorted(owner):
            place = owner[node]
            if self.nodes[node].kind is NodeKind.PLACEHOLDER:
                continue
            if place in runs:
                if place != last:
                    runs[place].append([])
                runs[place][-1].append(node)
            last = place
        made = [item for place, item in enumerate(found) if place not in runs]
        for place, pieces in runs.items():
            name, nodes = found[place]
            run_of = {node: run for run, piece in enumerate(pieces) for node in piece}
            serves: dict[int, int] = {}
            for node in sorted(run_of):
                for producer in self.inputs[node]:
                    serves.setdefault(producer, run_of[node])
            for node in nodes:
                if node not in run_of:
                    pieces[serves.get(node, 0)].append(node)
            made += [(name, piece) if len(piece) >= _FEWEST_NODES else ("", piece) for piece in pieces if piece]
        return made

    def _tangled(self, items: list[list[int]]) -> set[int]:
        """Items of several nodes that are in, or between, cycles."""
        if not any(len(nodes) > 1 for nodes in items):
            return set()
        owner = {node: place for place, nodes in enumerate(items) for node in nodes}
        pairs: set[tuple[int, int]] = set()
        for node, place in owner.items():
            for producer in self.inputs[node]:
                source = owner.get(producer, place)
                if source != place:
                    pairs.add((source, place))
        begins = [self._first_call(nodes) for nodes in items]
        if all(begins[source] < begins[place] for source, place in pairs):
            return set()
        ahead: list[set[int]] = [set() for _ in items]
        behind: list[set[int]] = [set() for _ in items]
        for source, place in pairs:
            ahead[source].add(place)
            behind[place].add(source)
        left = set(range(len(items)))
        for one, other in ((behind, ahead), (ahead, behind)):
            free = [place for place in left if not one[place] & left]
            while free:
                place = free.pop()
                left.discard(place)
                for near in other[place]:
                    one[near].discard(place)
                    if near in left and not one[near] & left:
                        free.append(near)
        return {place for place in left if len(items[place]) > 1}

    # Stacks

    def _runs(self, found: list[tuple[str, list[int]]], prefix: Path) -> list[list[int]]:
        """The items in order, with identical modules that follow one another in one list."""
        runs: list[list[int]] = []
        last: tuple[str, object] | None = None
        for place, (name, nodes) in enumerate(found):
            numbered = _NUMBERED.match(name)
            kind = (numbered[1], self._signature(nodes, len(prefix) + 1)) if numbered else None
            if kind is not None and kind == last:
                runs[-1].append(place)
            else:
                runs.append([place])
            if kind is not None or name:
                last = kind
        if all(len(run) == 1 for run in runs):
            return runs
        merged = [[node for place in run for node in found[place][1]] for run in runs]
        tangled = {number for number in self._tangled(merged) if len(runs[number]) > 1}
        return [part for n, run in enumerate(runs) for part in ([[place] for place in run] if n in tangled else [run])]

    def _canonical(self, nodes: Sequence[int]) -> list[int]:
        """Calls in order, each input before the first call that reads it: equal modules list equal nodes."""
        inside, order = set(nodes), dict[int, None]()
        for node in sorted(nodes):
            if self.nodes[node].kind is not NodeKind.PLACEHOLDER:
                order.update(dict.fromkeys(p for p in self.inputs[node] if p in inside))
                order[node] = None
        order.update(dict.fromkeys(nodes))
        return list(order)

    def _signature(self, nodes: Sequence[int], depth: int) -> object:
        """What a module computes, whatever its name: equal for identical layers."""
        order = self._canonical(nodes)
        local = {node: place for place, node in enumerate(order)}
        outside: dict[int, int] = {}
        parts: list[object] = []
        for node in order:
            reads = tuple(
                local[p] if p in local else -1 - outside.setdefault(p, len(outside)) for p in self.inputs[node]
            )
            parts.append((self.looks[node], self.paths[node][depth:], reads))
        return tuple(parts)

    def _look(self, node: Node) -> object:
        return node.kind, node.op, tuple((tuple(tensor.shape), tensor.dtype) for tensor in node.outputs)

    # Who reads whom

    def connect(self) -> Routes:
        """Notes every line that a level draws: between its children, from its inputs, to its outside."""
        chains: dict[int, list[int]] = {}
        edges: list[tuple[int, int]] = []
        start, steps, meeting = [0], list[tuple[int, int]](), list[int]()
        for consumer, producers in enumerate(polled(self.inputs, self.cancelled, 512)):
            drawn = len(producers)
            if self.nodes[consumer].kind is NodeKind.OUTPUT and drawn > _MOST_RESULTS:
                drawn = 1
            below = self._chain(self.parent_of[consumer], chains)
            for number, producer in enumerate(producers):
                edges.append((producer, consumer))
                above = self._chain(self.parent_of[producer], chains)
                level = 1
                while level < len(above) and level < len(below) and above[level] == below[level]:
                    level += 1
                meeting.append(below[level - 1])
                if number < drawn:
                    self._connect(producer, consumer, above[level:], below[level - 1 :], steps)
                start.append(len(steps))
        first_line = np.cumsum([0, *(len(container.lines) for container in self.containers)])
        boxes, lines = np.array(steps, np.int64).reshape(-1, 2).T
        return Routes(
            np.array(edges, np.int32).reshape(-1, 2),
            np.array(start, np.int32),
            (first_line[boxes] + lines).astype(np.int32),
            np.array(meeting, np.int32),
            first_line.astype(np.int32),
        )

    def _chain(self, container: int, chains: dict[int, list[int]]) -> list[int]:
        """Containers from the region to one."""
        known = chains.get(container)
        if known is None:
            parent = self.containers[container].parent
            known = chains[container] = [*(self._chain(parent, chains) if parent >= 0 else []), container]
        return known

    def _connect(
        self, producer: int, consumer: int, leaves: list[int], below: list[int], steps: list[tuple[int, int]]
    ) -> None:
        """Draws one edge out of the containers that it leaves, across the first of ``below``, and into the others.
        Appends its lines to ``steps``, as container and number in it."""

        def step(container: int, line: Line) -> None:
            lines = self.containers[container].lines
            steps.append((container, lines.setdefault(line, len(lines))))

        way, place = 0, self.place_of[producer]
        for container in reversed(leaves):
            step(container, Exit(place, way))
            way, place = place, self.place_of_container[container]
        source = ~leaves[0] if leaves else producer
        inside = below[1:]
        ports = [self.containers[c].inputs.setdefault(source, len(self.containers[c].inputs)) for c in inside]
        targets = [*(self.place_of_container[c] for c in inside), self.place_of[consumer]]
        ports.append(0)
        step(below[0], Inner(place, way, targets[0], ports[0]))
        for depth, container in enumerate(inside):
            step(container, Entry(ports[depth], targets[depth + 1], ports[depth + 1]))


def _common(paths: list[Path]) -> Path:
    """The longest beginning of all paths."""
    low, high = min(paths), max(paths)
    for place, part in enumerate(low):
        if place >= len(high) or high[place] != part:
            return low[:place]
    return low
