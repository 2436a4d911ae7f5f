"""The upper level's units: one per fusion group, per extern call of several nodes, and per node that stands alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.layout.graph_layout import NodeStyle
from app.layout.group_shape import GroupShape, GroupStructure, lay_out_group
from app.layout.labels import node_size, title_width
from app.layout.ranks import Cancelled, poll
from compiler.report import Node, NodeKind, Region


@dataclass
class Unit:
    """One box of the upper level. ``name`` is empty for a node that stands alone."""

    name: str
    members: list[int]
    shape: GroupShape | None = None
    width: float = 0.0
    height: float = 0.0
    inputs: dict[int, list[int]] = field(default_factory=dict)  # producer outside -> consumers inside
    input_number: dict[int, int] = field(default_factory=dict)  # producer outside -> its number in the shape
    inner: list[tuple[int, int]] = field(default_factory=list)
    late_edges: list[tuple[int, int]] = field(default_factory=list)  # inside, but against the order of the nodes


@dataclass(frozen=True)
class UnitGraph:
    """The units in the order of their first nodes, and where each node is."""

    units: list[Unit]
    unit_of: list[int]
    local_of: list[int]  # a node's place in its unit's members
    styles: list[NodeStyle]


def build_units(region: Region, cancelled: Cancelled | None) -> UnitGraph:
    """Assigns nodes to units, edges to insides or borders, and lays out every inside."""
    nodes = region.nodes
    index = {node.name: i for i, node in enumerate(nodes)}
    units, unit_of = _assign(region, index)
    local_of = [0] * len(nodes)
    for unit in units:
        for place, member in enumerate(unit.members):
            local_of[member] = place
    read_outside: list[bool] = [False] * len(nodes)
    for consumer, node in enumerate(nodes):
        target = units[unit_of[consumer]]
        for name in dict.fromkeys(node.inputs):
            producer = index.get(name)
            if producer is None or producer == consumer:
                continue
            if unit_of[producer] != unit_of[consumer]:
                target.inputs.setdefault(producer, []).append(consumer)
                read_outside[producer] = True
            elif producer < consumer:
                target.inner.append((producer, consumer))
            else:
                target.late_edges.append((producer, consumer))
    extern = {name for call in region.extern_calls for name in call.nodes}
    styles = [_style(node, extern) for node in nodes]
    shapes: dict[GroupStructure, GroupShape] = {}
    for count, unit in enumerate(units):
        if not count % 64:
            poll(cancelled)
        if not unit.name:
            member = unit.members[0]
            unit.width, unit.height = node_size(nodes[member], styles[member])
            continue
        unit.input_number = {producer: i for i, producer in enumerate(unit.inputs)}
        structure = GroupStructure(
            sizes=tuple(node_size(nodes[member], styles[member]) for member in unit.members),
            inner=tuple((local_of[a], local_of[b]) for a, b in unit.inner),
            inputs=tuple(
                (unit.input_number[p], local_of[c]) for p, consumers in unit.inputs.items() for c in consumers
            ),
            outputs=tuple(local_of[member] for member in unit.members if read_outside[member]),
            title_width=title_width(unit.name),
        )
        shape = shapes.get(structure)
        if shape is None:
            shape = shapes[structure] = lay_out_group(structure, cancelled)
        unit.shape, unit.width, unit.height = shape, shape.width, shape.height
    return UnitGraph(units, unit_of, local_of, styles)


def _assign(region: Region, index: dict[str, int]) -> tuple[list[Unit], list[int]]:
    """A node recomputed in several groups belongs to the first of them."""
    owner: dict[int, str] = {}
    members: dict[str, list[int]] = {}
    boxes = [(group.name, group.nodes) for group in region.groups]
    boxes += [(call.name, call.nodes) for call in region.extern_calls if len(call.nodes) > 1]
    for box, names in boxes:
        for name in names:
            node = index.get(name)
            if node is not None and node not in owner:
                owner[node] = box
                members.setdefault(box, []).append(node)
    units: list[Unit] = []
    unit_of = [-1] * len(region.nodes)
    for node in range(len(region.nodes)):
        if unit_of[node] >= 0:
            continue
        box = owner.get(node, "")
        unit = Unit(box, sorted(members[box]) if box else [node])
        for member in unit.members:
            unit_of[member] = len(units)
        units.append(unit)
    return units, unit_of


def _style(node: Node, extern: set[str]) -> NodeStyle:
    if node.kind is NodeKind.OUTPUT:
        return NodeStyle.OUTPUT
    if node.kind is not NodeKind.CALL:
        return NodeStyle.PILL
    return NodeStyle.EXTERN if node.name in extern else NodeStyle.OP
