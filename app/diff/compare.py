"""The comparison as a whole: regions paired, then nodes, units and kernels within them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from app.diff.kernels import compare_kernels
from app.diff.lineage import both_ways, reasons
from app.diff.nodes import match_nodes
from app.diff.records import Change, Diff, NodeMatch, RegionDiff
from app.diff.units import Costs, compare_units, units_of
from app.roofline import unit_times
from app.titles import title_beside
from compiler.report import NodeKind, Region, Report


def compare(a: Report, b: Report) -> Diff:
    """What differs between two reports: of two compilers, or of one before and after a change."""
    pairs = pair_regions(a.regions, b.regions)
    regions = [_region(one, other, _costs(a, one), _costs(b, other)) for one, other in pairs]
    known = [
        (one, other, region.groups)
        for (one, other), region in zip(pairs, regions, strict=True)
        if one is not None and other is not None
    ]
    return Diff(
        title_a=title_beside(a, b),
        title_b=title_beside(b, a),
        header=_header(a, b),
        regions=regions,
        kernels=compare_kernels(a.kernels, b.kernels, known),
        totals=totals(a, b),
    )


def pair_regions(a: Sequence[Region], b: Sequence[Region]) -> list[tuple[Region | None, Region | None]]:
    """Regions of one name, else of one kind in their order; the rest alone."""
    rest = list(b)
    partner: dict[int, Region] = {}
    for by_name in (True, False):
        for number, region in enumerate(a):
            if number in partner:
                continue
            alike = (other for other in rest if other.kind == region.kind)
            found = next((other for other in alike if other.name == region.name or not by_name), None)
            if found is not None:
                partner[number] = found
                rest = [other for other in rest if other is not found]
    pairs: list[tuple[Region | None, Region | None]] = [
        (region, partner.get(number)) for number, region in enumerate(a)
    ]
    return pairs + [(None, region) for region in rest]


def _costs(report: Report, region: Region | None) -> Costs:
    times = unit_times(report, region) if region is not None else {}
    return Costs({kernel.name: kernel for kernel in report.kernels}, times)


def _region(a: Region | None, b: Region | None, costs_a: Costs, costs_b: Costs) -> RegionDiff:
    empty = Region("", "", [])
    one, other = a or empty, b or empty
    matches = match_nodes(one, other)
    parts_a, parts_b = both_ways(one, other, matches)
    known_a = {match.a for match in matches} | parts_a.keys()
    known_b = {match.b for match in matches} | parts_b.keys()
    only_a = [node.name for node in one.nodes if node.kind is NodeKind.CALL and node.name not in known_a]
    only_b = [node.name for node in other.nodes if node.kind is NodeKind.CALL and node.name not in known_b]
    # a part tells where its op's work went, as the whole does
    linked = [NodeMatch(name, whole, exact=False) for name, whole in parts_a.items()]
    linked += [NodeMatch(whole, name, exact=False) for name, whole in parts_b.items()]
    return RegionDiff(
        a=one.name,
        b=other.name,
        groups=compare_units(one, other, [*matches, *linked], costs_a, costs_b),
        matches=matches,
        only_a=only_a,
        only_b=only_b,
        changes=[change for change in _counts([one], [other]) if change.a != change.b],
        parts_a=parts_a,
        parts_b=parts_b,
        reasons_a=reasons(one, other, only_a),
        reasons_b=reasons(other, one, only_b),
    )


def _header(a: Report, b: Report) -> list[Change]:
    facts_a = {"compiler": a.compiler, "source": a.source, "target": a.target.title, "training": str(a.training)}
    facts_b = {"compiler": b.compiler, "source": b.source, "target": b.target.title, "training": str(b.training)}
    found = [Change(name, facts_a[name], facts_b[name]) for name in facts_a if facts_a[name] != facts_b[name]]
    for kind, ours, theirs in (("", a.versions, b.versions), ("option ", a.options, b.options)):
        found += [
            Change(f"{kind}{name}", ours.get(name), theirs.get(name))
            for name in dict.fromkeys((*ours, *theirs))
            if ours.get(name) != theirs.get(name)
        ]
    return found


def totals(a: Report, b: Report) -> list[Change]:
    """Figures of the whole reports, equal or not."""
    result = [Change("kernels", len(a.kernels), len(b.kernels)), *_counts(a.regions, b.regions)]
    result.append(Change("graph breaks", len(a.graph_breaks), len(b.graph_breaks)))
    result.append(Change("kernel time, estimated (us)", _kernel_us(a, "estimated_us"), _kernel_us(b, "estimated_us")))
    measured = Change("kernel time, measured (us)", _kernel_us(a, "measured_us"), _kernel_us(b, "measured_us"))
    if measured.a is not None or measured.b is not None:
        result.append(measured)
    for name, read in (("spills (bytes per thread)", "spills"), ("most registers", "registers")):
        values = [
            max((value for kernel in report.kernels if (value := getattr(kernel, read)) is not None), default=None)
            for report in (a, b)
        ]
        result.append(Change(name, values[0], values[1]))
    return result + _measurements(a, b)


def _counts(a: Sequence[Region], b: Sequence[Region]) -> list[Change]:
    def count(regions: Sequence[Region]) -> dict[str, int]:
        return {
            "op nodes": sum(node.kind is NodeKind.CALL for region in regions for node in region.nodes),
            "groups": sum(len(region.groups) for region in regions),
            "extern calls": sum(len(region.extern_calls) for region in regions),
            "launches": sum(len(units_of(region)) for region in regions),
            "bytes moved, estimated": sum(unit.estimated_bytes for region in regions for unit in units_of(region)),
            "peak memory of intermediates": sum(region.memory.peak_bytes for region in regions),
            "refusals": sum(len(region.refusals) for region in regions),
        }

    ours, theirs = count(a), count(b)
    return [Change(name, ours[name], theirs[name]) for name in ours]


def _kernel_us(report: Report, field: str) -> float | None:
    """Time of all launches of all generated kernels; None where one has none."""
    total, known = 0.0, bool(report.kernels)
    for kernel in report.kernels:
        us: float | None = getattr(kernel, field)
        known = known and us is not None
        total += (us or 0.0) * kernel.launches
    return round(total, 6) if known else None  # kernels of tiny models take parts of a nanosecond


def _measurements(a: Report, b: Report) -> list[Change]:
    """Median times of modes that both measured on the same GPU."""
    measured: dict[tuple[str, str], list[float | None]] = defaultdict(lambda: [None, None])
    for side, report in enumerate((a, b)):
        for measurement in report.measurements:
            for which, times in (("CPU", measurement.cpu_us), ("GPU", measurement.gpu_us)):
                measured[f"{measurement.mode}, {which} p50 (us)", measurement.gpu][side] = times.p50
    return [Change(name, *values) for (name, _), values in measured.items() if None not in values]
