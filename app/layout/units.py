"""The upper level's units: one per fusion group, per extern call of several nodes, and per stack of lone nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.layout.graph_layout import NodeStyle
from app.layout.group_shape import GroupShape, GroupStructure, lay_out_group, stack_shape
from app.layout.labels import Size, node_size, title_width
from app.layout.ranks import Cancelled, poll, polled
from compiler.report import Node, NodeKind, Region

_HIGHEST_STACK = 4  # nodes; higher ones would make their row high for everything else in it


@dataclass(slots=True)
class Unit:
    """One box of the upper level. ``name`` is empty for lone nodes: one, or a short stack of them without a frame."""

    name: str
    members: list[int]
    shape: GroupShape | None = None
    width: float = 0.0
    height: float = 0.0
    head: float = 0.0  # width of the top side, where edges arrive
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
    poll(cancelled)
    units, unit_of = _assign(region, index, cancelled)
    poll(cancelled)
    local_of = [0] * len(nodes)
    for unit in units:
        for place, member in enumerate(unit.members):
            local_of[member] = place
    read_outside: list[bool] = [False] * len(nodes)
    for consumer, node in enumerate(polled(nodes, cancelled)):
        target = units[unit_of[consumer]]
        inputs = node.inputs
        for name in dict.fromkeys(inputs) if len(inputs) > 1 else inputs:
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
    poll(cancelled)
    styles = [_style(node, extern) for node in polled(nodes, cancelled, 4096)]
    sizes = _sizes(nodes, styles, cancelled)
    units = _stacked(units, unit_of, local_of, styles, cancelled)
    shapes: dict[GroupStructure, GroupShape] = {}
    stacks: dict[tuple[Size, ...], GroupShape] = {}
    for unit in polled(units, cancelled, 256):
        if not unit.name:
            unit.head = sizes[unit.members[0]].width
            unit.width, unit.height = sizes[unit.members[0]]
            if len(unit.members) > 1:
                stack = tuple(sizes[member] for member in unit.members)
                unit.shape = stacks.get(stack) or stacks.setdefault(stack, stack_shape(stack))
                unit.width, unit.height = unit.shape.width, unit.shape.height
            continue
        unit.input_number = {producer: i for i, producer in enumerate(unit.inputs)}
        structure = GroupStructure(
            sizes=tuple(sizes[member] for member in unit.members),
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
        unit.shape, unit.width, unit.height, unit.head = shape, shape.width, shape.height, shape.width
    return UnitGraph(units, unit_of, local_of, styles)


def _assign(region: Region, index: dict[str, int], cancelled: Cancelled | None) -> tuple[list[Unit], list[int]]:
    """A node recomputed in several groups belongs to the first of them."""
    owner: dict[int, str] = {}
    members: dict[str, list[int]] = {}
    boxes = [(group.name, group.nodes) for group in region.groups]
    boxes += [(call.name, call.nodes) for call in region.extern_calls if len(call.nodes) > 1]
    for box, names in polled(boxes, cancelled, 2048):
        for name in names:
            node = index.get(name)
            if node is not None and node not in owner:
                owner[node] = box
                members.setdefault(box, []).append(node)
    units: list[Unit] = []
    unit_of = [-1] * len(region.nodes)
    for node in polled(range(len(region.nodes)), cancelled, 4096):
        if unit_of[node] >= 0:
            continue
        box = owner.get(node, "")
        unit = Unit(box, sorted(members[box]) if box else [node])
        for member in unit.members:
            unit_of[member] = len(units)
        units.append(unit)
    return units, unit_of


def _stacked(
    units: list[Unit],
    unit_of: list[int],
    local_of: list[int],
    styles: list[NodeStyle],
    cancelled: Cancelled | None,
) -> list[Unit]:
    """The units, with lone nodes joined to the lone node that is all they read and that only they read.

    A weight and its transpose, or a row of views, then take one place in the upper level instead of several.
    """
    readers = [0] * len(unit_of)
    for unit in units:
        for producer, consumers in unit.inputs.items():
            readers[producer] += len(consumers)
    kept: list[Unit] = []
    for unit in polled(units, cancelled, 4096):
        if not unit.name and len(unit.inputs) == 1 and styles[unit.members[0]] is not NodeStyle.OUTPUT:
            member, producer = unit.members[0], next(iter(unit.inputs))
            above = units[unit_of[producer]]
            joins = not above.name and above.members[-1] == producer and readers[producer] == 1
            if joins and producer < member and len(above.members) < _HIGHEST_STACK:
                local_of[member] = len(above.members)
                unit_of[member] = unit_of[producer]
                above.members.append(member)
                above.inner.append((producer, member))
                continue
        kept.append(unit)
    for number, unit in enumerate(kept):
        for member in unit.members:
            unit_of[member] = number
    return kept


def _sizes(nodes: list[Node], styles: list[NodeStyle], cancelled: Cancelled | None) -> list[Size]:
    """The boxes of all nodes; calls of the same op with outputs of the same shapes are measured once."""
    known: dict[tuple[object, ...], Size] = {}
    sizes: list[Size] = []
    for node, style in polled(zip(nodes, styles, strict=True), cancelled, 4096):
        if node.kind is not NodeKind.CALL or not node.outputs:
            sizes.append(node_size(node, style))
            continue
        key = (node.op, style, len(node.outputs), *node.outputs[0].shape)
        size = known.get(key)
        if size is None:
            size = known[key] = node_size(node, style)
        sizes.append(size)
    return sizes


def _style(node: Node, extern: set[str]) -> NodeStyle:
    if node.kind is NodeKind.OUTPUT:
        return NodeStyle.OUTPUT
    if node.kind is not NodeKind.CALL:
        return NodeStyle.PILL
    return NodeStyle.EXTERN if node.name in extern else NodeStyle.OP
