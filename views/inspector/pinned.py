"""What is pinned beside what is selected: the facts of both in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.report import ExternCall, Group, Node
from views.inspector.sections import Page
from views.look import format as fmt
from views.selection.index import RegionIndex, Unit
from views.selection.selection import Selection

Fact = tuple[str, str, float | None]  # what, as text, and as a number where two of them have a ratio


def pin_title(selection: Selection) -> str:
    """What a selection is called: its node, its unit, or how many nodes it has."""
    if selection.node or selection.unit:
        return selection.node or selection.unit
    return fmt.plural(len(selection.nodes), "node") if selection.nodes else selection.region


def comparison_page(page: Page, first: RegionIndex, pinned: Selection, second: RegionIndex, chosen: Selection) -> None:
    """Put the table on top of the inspector's ``page`` of ``chosen``; ``first`` is of the region of what is pinned.

    Estimates are marked ~, as in the tables; what is measured has no mark.
    """
    a, b = facts_of(first, pinned), facts_of(second, chosen)
    rows: list[tuple[str, ...]] = []
    for what in dict.fromkeys([*a, *b]):
        one, other = a.get(what), b.get(what)
        rows.append((what, one[0] if one else "–", _beside(one, other)))
    page.put_first(f"{pin_title(pinned)} (pinned) and {pin_title(chosen)}", ("", "Pinned", "Selected"), rows)


def facts_of(index: RegionIndex, selection: Selection) -> dict[str, tuple[str, float | None]]:
    """Every fact of a node, a unit or several nodes."""
    node, unit = index.nodes.get(selection.node), index.units.get(selection.unit)
    found = _node_facts(node) if node is not None else []
    if unit is not None:
        found += _unit_facts(index, unit, alone=node is None)
    if node is None and unit is None:
        nodes = [index.nodes[name] for name in selection.nodes if name in index.nodes]
        found = [_figure("Bytes, run alone", sum(n.estimated_bytes for n in nodes), fmt.size, "~")]
    return {what: (text, value) for what, text, value in found if text}


def _node_facts(node: Node) -> list[Fact]:
    where = node.provenance
    return [
        ("Op", node.op, None),
        ("Output", ", ".join(map(fmt.tensor, node.outputs)), None),
        _figure("Bytes, run alone", node.estimated_bytes, fmt.size, "~"),
        ("Module", where.module_path, None),
    ]


def _unit_facts(index: RegionIndex, unit: Unit, *, alone: bool) -> list[Fact]:
    """Of a group or extern call; ``alone`` where none of its nodes is meant."""
    kind = unit.kind.value if isinstance(unit, Group) else f"extern call, {unit.op}"
    point, kernel = index.points.get(unit.name), index.kernel_of(unit.name)
    facts: list[Fact] = [("Unit", unit.name if not alone else "", None), ("Kind", kind, None)]
    facts += [
        ("Ops", str(len(unit.nodes)), float(len(unit.nodes))),
        _figure("Memory traffic", unit.estimated_bytes, fmt.size, "~"),
        _figure("FLOPs", unit.estimated_flops, fmt.flops, "~"),
    ]
    if point is not None:
        facts.append(_figure("Time", point.time.us, fmt.microseconds, "" if point.time.measured else "~"))
        if point.time.measured:
            facts.append(_figure("Beyond the roof", round(point.wasted_us, 2), fmt.microseconds, ""))
            facts.append(("Of roof", f"{point.share_of_roof:.0%}", None))
    if kernel is not None:
        numbers = (("Registers", kernel.registers), ("Spilled bytes", kernel.spills), ("Shared", kernel.shared_bytes))
        facts += [("Kernel", kernel.name, None), ("Grid", " × ".join(map(str, kernel.grid)), None)]
        facts += [(what, f"{value:,}", float(value)) for what, value in numbers if value is not None]
        if kernel.occupancy is not None:
            facts.append(("Occupancy", f"{kernel.occupancy:.0%}", None))
    if isinstance(unit, ExternCall):
        facts.append(("Why extern", unit.reason.value.replace("_", " "), None))
    return facts


def _figure(what: str, value: float, text: Callable[[Any], str], mark: str) -> Fact:
    """``mark`` is "~" before what is estimated."""
    return (what, f"{mark}{text(value)}" if value else "", float(value))


def _beside(one: tuple[str, float | None] | None, other: tuple[str, float | None] | None) -> str:
    """The selected one's fact, with how many times the pinned one's it is."""
    if other is None:
        return "–"
    if one is None or not one[1] or other[1] is None or one[1] == other[1]:
        return other[0]
    return f"{other[0]}  {fmt.ratio(other[1] / one[1])}"
