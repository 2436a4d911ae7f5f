"""What the tabs over the graph say of a region."""

from __future__ import annotations

from compiler.report import GraphBreak, Region, Report


def region_title(region: Region) -> str:
    """The region's name, with its kind where the name does not say it."""
    return region.name if region.kind in region.name else f"{region.name}  {region.kind}"


def break_before(report: Report, position: int) -> GraphBreak | None:
    """The graph break that this region begins after, where forward regions and breaks pair up one to one."""
    starts = [region for region in report.regions if region.kind != "backward"]
    region = report.regions[position]
    if region.kind == "backward" or len(report.graph_breaks) != len(starts) - 1:
        return None
    place = starts.index(region)
    return report.graph_breaks[place - 1] if place > 0 else None


def region_tip(report: Report, position: int) -> str:
    """What a region is, and the graph break that it begins after."""
    region = report.regions[position]
    tip = f"{region.name}: {region.kind}, {len(region.nodes):,} nodes"
    found = break_before(report, position)
    return f"{tip}\nGraph break before it: {found.reason}" if found else tip
