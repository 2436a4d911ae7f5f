"""Tooltips and screen-reader sentences for what is on the canvas."""

from __future__ import annotations

from html import escape

from app.layout.labels import dtype_text, shape_text
from compiler.report import Node
from views.canvas.module_scene import ModuleScene
from views.canvas.scene import Scene
from views.look import format as fmt
from views.refusals.index import lost_text, refusal_text, unrecorded_text

_MOST_LISTED = 6  # tensors of a bundled edge


def node_tip(scene: Scene, index: int) -> str:
    """A node's name, op, tensors, and where and why it runs, as rich text."""
    node = scene.nodes[index]
    lines = [f"{_strong(node.name)} &nbsp;{escape(node.op)}"]
    lines += [escape(tensor) for tensor in _tensors(node)]
    where = _where(scene, index)
    if where:
        lines.append(escape(where))
    if node.provenance.module_path:
        lines.append(f"<i>{escape(node.provenance.module_path)}</i> ({escape(node.provenance.module_type)})")
    return _rich(lines)


def group_tip(scene: Scene, name: str) -> str:
    """A group's kind, size and reason, or an extern call's, as rich text."""
    if isinstance(scene, ModuleScene) and name not in scene.groups and name not in scene.calls:
        return _box_tip(scene, scene.group_index[name])
    group = scene.groups.get(name)
    if group is not None:
        head = f"{_strong(name)} &nbsp;{group.kind.value}, {_count(len(group.nodes), 'node')}"
        return _rich([head, escape(group.reason)])
    call = scene.calls[name]
    return _rich([f"{_strong(name)} &nbsp;{escape(call.op)}", escape(call.detail or call.reason.value)])


def edge_tip(scene: Scene, edge: int) -> str:
    """Why the units at an edge's ends are apart, as rich text: the rule, its numbers, the bytes it costs."""
    if isinstance(scene, ModuleScene):
        return _bundle_tip(scene, edge)
    a, b = scene.ends(edge)
    units = f"{scene.unit_of[a]} → {scene.unit_of[b]}"
    head = f"{_strong(units)} &nbsp;{escape(scene.edge_label(int(scene.layout.edges[edge, 0])))}"
    refusal = scene.refusals.between(a, b)
    if refusal is None:
        has_call = not scene.calls.keys().isdisjoint((scene.unit_of[a], scene.unit_of[b]))
        return _rich([head, f"Kept apart: {unrecorded_text(has_call)}"])
    lines = [head, f"Kept apart: {escape(refusal_text(refusal))}", escape(lost_text(refusal))]
    return _rich([line for line in lines if line])


def _box_tip(scene: ModuleScene, number: int) -> str:
    """A module's path and type, how large it is, and what it is computed by."""
    box = scene.boxes[number]
    lines = [f"{_strong(box.title)} &nbsp;{escape(box.type_name if box.type_name not in box.title else '')}"]
    lines.append(f"<i>{escape(box.key)}</i>, {_count(len(box.members), 'node')}")
    units = {scene.unit_of[name] for i in box.members if (name := scene.nodes[i].name) in scene.unit_of}
    kernels = sum(unit in scene.groups for unit in units)
    lines.append(f"{_count(kernels, 'fusion group')}, {_count(len(units) - kernels, 'extern call')}")
    if box.count > 1 and not box.is_open:
        lines.append("Click the mark to open one for all, with Shift to open all.")
    return _rich(lines)


def _bundle_tip(scene: ModuleScene, edge: int) -> str:
    """What a bundled edge carries: its tensors and their bytes."""
    values = scene.values_of(edge)
    total = sum(tensor.bytes for node in values for tensor in node.outputs[:1])
    ends = (_shown_name(scene, int(end)) for end in scene.layout.edges[edge])
    lines = [f"{_strong(' → '.join(ends))}", f"{_count(len(values), 'tensor')}, {fmt.size(total)}"]
    for node in values[:_MOST_LISTED]:
        lines.append(escape(", ".join([node.name, *_tensors(node)[:1]])))
    if len(values) > _MOST_LISTED:
        lines.append(f"and {len(values) - _MOST_LISTED:,} more")
    return _rich(lines)


def _shown_name(scene: ModuleScene, node: int) -> str:
    box = scene.box_of(node)
    return scene.boxes[box].title if box >= 0 else scene.nodes[node].name


def spoken_box(scene: Scene, number: int) -> str:
    """One sentence about a box for a screen reader."""
    name = scene.layout.group_names[number]
    if isinstance(scene, ModuleScene):
        box = scene.boxes[number]
        state = "open" if box.is_open else "closed, Enter opens it"
        is_unit = name in scene.groups or name in scene.calls
        kind = f"fusion group, {box.type_name}" if is_unit else f"module {box.key}, {box.type_name}"
        return f"{box.title}, {kind}, {_count(len(box.members), 'node')}, {state}"
    group = scene.groups.get(name)
    kind = f"fusion group, {group.kind.value}" if group is not None else "extern call"
    return f"{name}, {kind}, {_count(len(scene.members(number)), 'node')}. Enter goes into it."


def stub_tip(scene: Scene, stub: int) -> str:
    """What a stub stands for."""
    layout = scene.layout
    owner, peer = scene.nodes[layout.stub_owner[stub]].name, int(layout.stub_peer[stub])
    if peer < 0:
        return _rich([f"{_strong(layout.stub_labels[stub])}", f"at {escape(owner)}; listed in the inspector"])
    return _rich([f"{_strong(scene.nodes[peer].name)}", "Too far away for a line. Click to go there."])


def spoken(scene: Scene, index: int) -> str:
    """One sentence about a node for a screen reader."""
    node = scene.nodes[index]
    parts = [node.name, node.op, *_tensors(node)[:1]]
    where = _where(scene, index)
    if where:
        parts.append(where)
    parts.append(_count(len(scene.producers(index)), "input"))
    parts.append(_count(len(scene.consumers(index)), "consumer"))
    return ", ".join(parts)


def _tensors(node: Node) -> list[str]:
    return [f"{shape_text(tensor)} {dtype_text(tensor.dtype)}" for tensor in node.outputs[:4]]


def _where(scene: Scene, index: int) -> str:
    node = scene.nodes[index]
    call = scene.call_of_node.get(node.name)
    if call is not None:
        return f"Extern call: {call.detail or call.reason.value}"
    box = int(scene.layout.node_group[index])
    if isinstance(scene, ModuleScene):
        unit = scene.unit_of.get(node.name, "")
        return f"In {unit}: {scene.groups[unit].reason}" if unit in scene.groups else ""
    if box >= 0:
        name = scene.layout.group_names[box]
        return f"In {name}: {scene.groups[name].reason}" if name in scene.groups else f"In {name}"
    return ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _strong(text: str) -> str:
    """In the weight that the font has: <b> would be drawn twice over."""
    return f"<span style='font-weight:600'>{escape(text)}</span>"


def _rich(lines: list[str]) -> str:
    return f"<div style='max-width:420px'>{'<br>'.join(lines)}</div>"
