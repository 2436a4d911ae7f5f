"""Look-ups over one region of a report, made once: who computes a node, who reads it, why neighbours are apart."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from app.filters import Kept
from app.roofline import Point, points
from app.unit_errors import unit_errors
from compiler.report import ExternCall, Group, Kernel, Node, NodeCheck, Refusal, Region, Report
from views.refusals.index import RefusalIndex

Unit = Group | ExternCall  # what the schedule launches


@dataclass(frozen=True)
class Neighbour:
    """A node next to a unit that is not in it, and why. ``refusal`` is None where none was recorded."""

    inside: str
    outside: str
    unit: str
    refusal: Refusal | None


def group_colors(groups: list[Group]) -> dict[str, int]:
    """Group -> the number of its colour in every view. Groups that share a kernel share the colour."""
    numbers: dict[str, int] = {}
    return {group.name: numbers.setdefault(group.kernel or group.name, len(numbers)) for group in groups}


class RegionIndex:
    """Look-ups by name over ``region``; the report's kernels are shared by its regions."""

    def __init__(self, report: Report, region: Region) -> None:
        self.report = report
        self.region = region
        self.nodes: dict[str, Node] = {node.name: node for node in region.nodes}
        self.kernels: dict[str, Kernel] = {kernel.name: kernel for kernel in report.kernels}
        units: list[Unit] = [*region.groups, *region.extern_calls]
        self.units: dict[str, Unit] = {unit.name: unit for unit in units}
        self.kept: Kept | None = None  # what the filters leave; None shows everything

    def keeping(self, kept: Kept | None) -> RegionIndex:
        """The same look-ups, showing only what ``kept`` has."""
        made = copy.copy(self)
        made.kept = kept
        return made

    def shows_node(self, node: str) -> bool:
        """Whether the filters leave a node."""
        return self.kept is None or node in self.kept.nodes

    def shows_unit(self, unit: str) -> bool:
        """Whether the filters leave any node of a unit."""
        return self.kept is None or unit in self.kept.units

    @cached_property
    def group_colors(self) -> dict[str, int]:
        """Group -> its colour's number."""
        return group_colors(self.region.groups)

    @cached_property
    def schedule(self) -> list[Unit]:
        """Groups and extern calls in launch order."""
        return sorted(self.units.values(), key=lambda unit: unit.order)

    @cached_property
    def units_of(self) -> dict[str, list[str]]:
        """Node -> the units that compute it; the one that owns it comes before those that recompute it."""
        found: dict[str, list[str]] = defaultdict(list)
        for unit in self.schedule:
            recomputed = set(unit.recomputed) if isinstance(unit, Group) else set()
            for node in unit.nodes:
                if node in recomputed:
                    found[node].append(unit.name)
                else:
                    found[node].insert(0, unit.name)
        return dict(found)

    @cached_property
    def points(self) -> dict[str, Point]:
        """Unit -> its place on the target's roofline; units that move nothing have none."""
        return {point.unit: point for point in points(self.report, self.region)}

    @cached_property
    def errors(self) -> dict[str, NodeCheck]:
        """Unit -> its value that is farthest from float64; empty where the numbers were not checked."""
        return unit_errors(self.report, self.region.name)

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        """Node -> the nodes that read it."""
        found: dict[str, list[str]] = defaultdict(list)
        for node in self.region.nodes:
            for source in node.inputs:
                found[source].append(node.name)
        return dict(found)

    @cached_property
    def refusals(self) -> RefusalIndex:
        """Why units are apart."""
        return RefusalIndex(self.region, {node: units[0] for node, units in self.units_of.items()})

    def unit_of(self, node: str) -> str:
        """The unit that computes ``node``, or "" for inputs and outputs."""
        units = self.units_of.get(node)
        return units[0] if units else ""

    def has_call(self, nodes: Iterable[str]) -> bool:
        """Whether an extern call computes any of ``nodes``."""
        return any(isinstance(self.units.get(self.unit_of(node)), ExternCall) for node in nodes)

    def kernel_of(self, unit: str) -> Kernel | None:
        """The kernel of a group; None for extern calls and unknown names."""
        found = self.units.get(unit)
        return self.kernels.get(found.kernel) if isinstance(found, Group) else None

    def neighbours(self, nodes: list[str]) -> list[Neighbour]:
        """The edges that leave ``nodes`` towards other units, those with a recorded refusal first, one per unit."""
        inside = set(nodes)
        best: dict[str, Neighbour] = {}
        for name in nodes:
            beside = [*(self.nodes[name].inputs if name in self.nodes else ()), *self.readers.get(name, ())]
            for other in beside:
                unit = self.unit_of(other)
                if other in inside or not unit:
                    continue
                refusal = self.refusals.between(name, other)
                if unit not in best or (best[unit].refusal is None and refusal is not None):
                    best[unit] = Neighbour(name, other, unit, refusal)
        return sorted(best.values(), key=lambda n: (n.refusal is None, -(n.refusal.bytes_lost if n.refusal else 0)))

    def line_nodes(self, kernel: Kernel, line: int) -> list[str]:
        """The nodes of this region that a line of a kernel's source computes."""
        prefix = f"{self.region.name}/"
        return [name.removeprefix(prefix) for name in kernel.line_nodes.get(line, ()) if name.startswith(prefix)]

    def node_lines(self, kernel: Kernel, nodes: frozenset[str]) -> list[int]:
        """The lines of a kernel's source that compute any of ``nodes``."""
        wanted = {f"{self.region.name}/{node}" for node in nodes}
        return sorted(line for line, names in kernel.line_nodes.items() if not wanted.isdisjoint(names))

    def prepare(self) -> None:
        """Make every look-up now, as on another thread before the region is shown."""
        for made in (self.group_colors, self.units_of, self.readers, self.refusals, self.points):
            assert made is not None


def indexes_of(report: Report) -> dict[str, RegionIndex]:
    """The index of each region, with every look-up made."""
    made = {region.name: RegionIndex(report, region) for region in report.regions}
    for index in made.values():
        index.prepare()
    return made
