"""Which lines of the user's model the GPU's time goes to.

A unit's time is split over its FX nodes by the bytes that each would move alone (an estimate), and counted for the
innermost line of the user's own files that a node comes from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.filters import Kept
from app.roofline import points
from compiler.report import Node, Region, Report, SourceLine


@dataclass
class LineHeat:
    """Time of one line in microseconds, as far as measured and as far as estimated, the bytes that it moves (an
    estimate), and the FX nodes behind it."""

    measured_us: float = 0.0
    estimated_us: float = 0.0
    bytes: float = 0.0
    nodes: list[tuple[str, str]] = field(default_factory=list)  # region, FX node

    @property
    def us(self) -> float:
        """Both together."""
        return self.measured_us + self.estimated_us


Heat = dict[str, dict[int, LineHeat]]  # file -> line -> its heat


def source_heat(report: Report, kept: Mapping[str, Kept] | None = None) -> Heat:
    """Every line that any node of the report comes from; with ``kept``, of the nodes that the filters leave."""
    heat: Heat = defaultdict(lambda: defaultdict(LineHeat))
    for region in report.regions:
        for node in region.nodes:
            line = user_line(report, node)
            if line is not None and (kept is None or node.name in kept[region.name].nodes):
                heat[line.file][line.line].nodes.append((region.name, node.name))
        _spread(report, region, heat, kept[region.name].nodes if kept is not None else None)
    return {file: dict(lines) for file, lines in heat.items()}


def user_line(report: Report, node: Node) -> SourceLine | None:
    """The innermost frame of a node that is in a file whose text the report has."""
    return next((frame for frame in node.provenance.frames if frame.file in report.sources), None)


def _spread(report: Report, region: Region, heat: Heat, kept: frozenset[str] | None) -> None:
    nodes = {node.name: node for node in region.nodes}
    members = {group.name: group.nodes for group in region.groups}
    members |= {call.name: call.nodes for call in region.extern_calls}
    for point in points(report, region):
        inside = [nodes[name] for name in members[point.unit] if name in nodes]
        weights = [float(max(node.estimated_bytes, 1)) for node in inside]
        total = sum(weights)
        for node, weight in zip(inside, weights, strict=True):
            line = user_line(report, node)
            if line is None or (kept is not None and node.name not in kept):
                continue
            found = heat[line.file][line.line]
            found.bytes += point.bytes * weight / total
            if point.time.measured:
                found.measured_us += point.time.us * weight / total
            else:
                found.estimated_us += point.time.us * weight / total
