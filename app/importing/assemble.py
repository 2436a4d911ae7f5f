"""Regions that were read, as one report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.importing.region import ReadRegion, RegionTexts, read_region
from app.importing.target import target_of
from compiler.report import Kernel, Region, Report, Stage, Target


def read_regions(found: Sequence[RegionTexts]) -> list[ReadRegion]:
    """The regions of one process, named in the order of their graphs: a backward has its forward's number."""
    regions: list[ReadRegion] = []
    numbers: dict[str, int] = {}
    graphs = 0
    for texts in found:
        backward = texts.kind == "backward"
        if backward and texts.compile_id in numbers:
            number = numbers[texts.compile_id]
        else:
            number = graphs
            graphs += 1
            numbers[texts.compile_id] = number
        regions.append(read_region(texts, number))
    return regions


def make_report(
    regions: Sequence[ReadRegion],
    *,
    source: str,
    written: float,
    versions: Mapping[str, str],
    options: Mapping[str, str],
    stages: Sequence[Stage],
    notes: Sequence[str],
) -> Report:
    """One report of all regions. ``written``: when the log was, in seconds since the epoch."""
    kernels = merge_kernels(regions)
    target = target_of(kernel.source for kernel in kernels)
    _fill_kernels(kernels, [read.region for read in regions], target)
    unknown = sum(read.unknown for read in regions)
    told = list(notes)
    if unknown:
        told.append(
            f"Of {unknown} kernels and calls the log does not say which ops they compute; more of them are told where "
            "it is written with INDUCTOR_PROVENANCE=1."
        )
    if within := sum(not kernel.launches for kernel in kernels):
        told.append(
            f"{within} kernels are launched in graphs that a graph calls (branches, loops): they are listed and in no "
            "group, and their launches are not counted."
        )
    return Report(
        compiler="inductor",
        source=source,
        target=target,
        versions=dict(versions),
        options=dict(options),
        training=any(read.region.kind == "backward" for read in regions),
        regions=[read.region for read in regions],
        kernels=kernels,
        stages=list(stages),
        created=datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds"),
        notes=told,
    )


def merge_kernels(regions: Sequence[ReadRegion]) -> list[Kernel]:
    """The kernels of all regions. A name that stands for another source in a later region gets that region's name."""
    kernels: dict[str, Kernel] = {}
    for read in regions:
        for name, (language, source) in read.sources.items():
            shown = name
            if name in kernels and kernels[name].source != source:
                shown = f"{name}_{read.region.name}"
                _rename(read.region, name, shown)
                source = re.sub(rf"\b{re.escape(name)}\b", shown, source)
            kernels.setdefault(shown, Kernel(shown, language, source))
    return list(kernels.values())


def _rename(region: Region, name: str, shown: str) -> None:
    region.wrapper = re.sub(rf"\b{re.escape(name)}\b", shown, region.wrapper)
    for group in region.groups:
        if group.kernel == name:
            group.kernel = shown


def _fill_kernels(kernels: Sequence[Kernel], regions: Sequence[Region], target: Target) -> None:
    """Launches, and bytes and FLOPs of the first one; a time only where the target's rates are known."""
    for kernel in kernels:
        groups = [group for region in regions for group in region.groups if group.kernel == kernel.name]
        kernel.launches = len(groups)  # none where it is launched in a branch or a loop
        if groups:
            kernel.estimated_bytes, kernel.estimated_flops = groups[0].estimated_bytes, groups[0].estimated_flops
            if kernel.language != "cpp":
                kernel.estimated_us = target.shortest_us(kernel.estimated_bytes, kernel.estimated_flops)


_OPTION = re.compile(r"^torch\._inductor\.config\.(?P<name>[\w.]+) = (?P<value>.+)$", re.M)


def options_in(runnable: str) -> dict[str, str]:
    """The options of Inductor that differ from their defaults, as the reproducer it writes sets them."""
    head = runnable.partition("class Repro")[0]
    return {match["name"]: match["value"].strip("'\"") for match in _OPTION.finditer(head)}


def log_name(path: Path) -> str:
    """What a report of a log is called."""
    return f"trace:{path.name}"
