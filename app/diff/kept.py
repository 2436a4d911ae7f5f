"""What the filters leave of a comparison, where they are about one of the two reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.diff.records import Diff, GroupDiff, RegionDiff
from app.filters import Kept
from compiler.report import Report


@dataclass(frozen=True)
class KeptDiff:
    """Entries that are left: groups as (region's number, entry's number), kernels by their number."""

    groups: frozenset[tuple[int, int]]
    kernels: frozenset[int]


def kept_of_diff(diff: Diff, a: Report, b: Report, *, shown: str, kept: Mapping[str, Kept]) -> KeptDiff:
    """``kept`` is of report ``shown`` ("a" or "b"); the other's units are left where the nodes are that they compute.

    A kernel is left where it does the work of a unit that is.
    """
    groups: set[tuple[int, int]] = set()
    names_a: set[str] = set()
    names_b: set[str] = set()
    kernels_a, kernels_b = _kernels(a), _kernels(b)
    for number, region in enumerate(diff.regions):
        found = kept.get(region.a if shown == "a" else region.b)
        for entry, group in enumerate(region.groups):
            if found is not None and not found.nodes.isdisjoint(nodes_shown(region, group, shown)):
                groups.add((number, entry))
                names_a |= {kernels_a.get((region.a, unit), "") for unit in group.a}
                names_b |= {kernels_b.get((region.b, unit), "") for unit in group.b}
    left = {
        number
        for number, kernel in enumerate(diff.kernels)
        if (kernel.a and kernel.a in names_a) or (kernel.b and kernel.b in names_b)
    }
    return KeptDiff(frozenset(groups), frozenset(left))


def nodes_shown(region: RegionDiff, group: GroupDiff, shown: str) -> list[str]:
    """The nodes of the report shown behind an entry: its own, else those that the other report's match."""
    own, other = (group.nodes_a, group.nodes_b) if shown == "a" else (group.nodes_b, group.nodes_a)
    if own or not other:
        return own
    wanted = set(other)
    if shown == "a":
        return [match.a for match in region.matches if match.b in wanted]
    return [match.b for match in region.matches if match.a in wanted]


def _kernels(report: Report) -> dict[tuple[str, str], str]:
    return {(region.name, group.name): group.kernel for region in report.regions for group in region.groups}
