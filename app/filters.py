"""The filter stack: which nodes and units of a report are shown, in every panel alike.

Filters of one kind widen each other (op A or op B), filters of different kinds narrow (op A, and bfloat16). A unit (a
group or extern call) is shown where it has a node that is. No filter shows everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.roofline import points
from compiler.report import ExternCall, Group, Node, NodeKind, Region, Report


class FilterKind(StrEnum):
    """What a filter looks at."""

    OP = "op"
    DTYPE = "dtype"
    MODULE = "module"
    GROUP = "group"
    TIME = "time"


@dataclass(frozen=True)
class Filter:
    """One filter. ``value`` is an op, a dtype, a module path, a unit's name, or microseconds as text."""

    kind: FilterKind
    value: str

    @property
    def title(self) -> str:
        """What its chip says."""
        if self.kind is FilterKind.TIME:
            return f"time ≥ {self.value} µs"
        return f"{self.kind.value}: {self.value.removeprefix('aten.')}"


@dataclass(frozen=True)
class Kept:
    """What of a region the filters leave: FX nodes, and the units that have one of them."""

    nodes: frozenset[str]
    units: frozenset[str]


def kept_of(report: Report, filters: Iterable[Filter]) -> dict[str, Kept] | None:
    """Region -> what is shown of it; None where there is no filter."""
    by_kind: dict[FilterKind, list[str]] = {}
    for one in filters:
        by_kind.setdefault(one.kind, []).append(one.value)
    return {region.name: _kept(report, region, by_kind) for region in report.regions} if by_kind else None


def choices(report: Report) -> list[tuple[Filter, str]]:
    """Every filter that would leave something and not everything, with what it leaves in words."""
    counts: Counter[tuple[FilterKind, str]] = Counter()
    nodes = [node for region in report.regions for node in region.nodes]
    for node in nodes:
        if node.kind is NodeKind.CALL:
            counts[FilterKind.OP, node.op] += 1
        for dtype in {info.dtype for info in node.outputs}:
            counts[FilterKind.DTYPE, dtype] += 1
        path = node.provenance.module_path
        parts = path.split(".") if path else []
        for depth in range(1, len(parts) + 1):
            counts[FilterKind.MODULE, ".".join(parts[:depth])] += 1
    order = list(FilterKind)
    found = [
        (Filter(kind, value), f"{count:,} of {len(nodes):,} nodes")
        for (kind, value), count in sorted(counts.items(), key=lambda item: (order.index(item[0][0]), -item[1]))
        if count < len(nodes)
    ]
    for region in report.regions:
        found += [(Filter(FilterKind.GROUP, unit.name), f"{len(unit.nodes):,} nodes") for unit in _units(region)]
    return found + _time_choices(report)


def _time_choices(report: Report) -> list[tuple[Filter, str]]:
    times = [us for region in report.regions for us in _times(report, region).values()]
    found = []
    for step in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        left = sum(1 for us in times if us >= step)
        if 0 < left < len(times):
            found.append((Filter(FilterKind.TIME, f"{step:g}"), f"{left:,} of {len(times):,} groups and calls"))
    return found


def _units(region: Region) -> list[Group | ExternCall]:
    return [*region.groups, *region.extern_calls]


def _times(report: Report, region: Region) -> dict[str, float]:
    """Unit -> microseconds of one iteration: measured where it was, else estimated."""
    return {point.unit: point.time.us for point in points(report, region)}


def _kept(report: Report, region: Region, by_kind: Mapping[FilterKind, list[str]]) -> Kept:
    units = _units(region)
    wanted = by_kind.get(FilterKind.GROUP)
    if wanted is not None:
        units = [unit for unit in units if unit.name in wanted]
    if FilterKind.TIME in by_kind:
        least = min(float(value) for value in by_kind[FilterKind.TIME])
        times = _times(report, region)
        units = [unit for unit in units if times.get(unit.name, 0.0) >= least]
    passing = {node.name for node in region.nodes if _passes(node, by_kind)}
    if FilterKind.GROUP in by_kind or FilterKind.TIME in by_kind:
        passing &= {node for unit in units for node in unit.nodes}
    return Kept(frozenset(passing), frozenset(unit.name for unit in units if not passing.isdisjoint(unit.nodes)))


def _passes(node: Node, by_kind: Mapping[FilterKind, list[str]]) -> bool:
    ops, dtypes = by_kind.get(FilterKind.OP), by_kind.get(FilterKind.DTYPE)
    modules = by_kind.get(FilterKind.MODULE)
    if ops is not None and node.op not in ops:
        return False
    if dtypes is not None and not any(info.dtype in dtypes for info in node.outputs):
        return False
    path = node.provenance.module_path
    return modules is None or any(path == module or path.startswith(f"{module}.") for module in modules)
