"""What must hold of every report of Inductor's: that it has no faults, and the structure of any other's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.diff import compare
from compiler.inductor.kernels import kernels_in, launches_in
from compiler.report import Region, Report

# What the structure of two reports of one model may differ in. This machine's target says that it is, and how many
# registers it has, which a named one's record leaves to the default; what was compiled without its GPU has notes on it.
ONLY_ON_GPU = {".target.local", ".target.registers"}
ONLY_WITHOUT_GPU = {".notes", ".notes[]", ".target.source"}
MEASURED = (".measurements", ".traces", ".regions[].cuda_graph.", ".kernels[].measured_us")  # only runs fill them


def shape_of(value: object, path: str = "") -> set[str]:
    """The paths of all fields in a report's plain data, whatever their values: lists and maps by name as one."""
    if isinstance(value, dict):
        by_name = path.endswith((".line_nodes", ".ir_lines", ".config", ".versions"))
        return {path}.union(*(shape_of(v, path if by_name else f"{path}.{k}") for k, v in value.items()))
    if isinstance(value, list):
        return {path}.union(*(shape_of(v, f"{path}[]") for v in value))
    return {path}


def faults(report: Report) -> list[str]:
    """Every fault in a sentence."""
    return [*_kernels(report), *(fault for region in report.regions for fault in _region(region)), *_diff(report)]


def _kernels(report: Report) -> Iterator[str]:
    known = {kernel.name: kernel for kernel in report.kernels}
    defined = {name: kernel for region in report.regions for name, kernel in kernels_in(region.wrapper).items()}
    counted = sum(len(re.findall(r"^\w+ = async_compile\.\w+\(", x.wrapper, re.M)) for x in report.regions)
    if counted < len(defined):
        yield f"{counted} definitions in the wrappers, {len(defined)} read"
    for name in defined.keys() - known.keys():
        yield f"kernel {name} of a wrapper is not in the report"
    for name in known.keys() - defined.keys():
        yield f"kernel {name} of the report is in no wrapper"
    for name in defined.keys() & known.keys():
        if known[name].source.strip() != defined[name].source.strip():
            yield f"kernel {name} has another source in the report"
    for kernel in report.kernels:
        launches = sum(group.kernel == kernel.name for region in report.regions for group in region.groups)
        if kernel.launches != launches:
            yield f"kernel {kernel.name} has {kernel.launches} launches, its groups are {launches}"


def _region(region: Region) -> Iterator[str]:
    groups = [group.kernel for group in sorted(region.groups, key=lambda group: group.order)]
    if launches_in(region.wrapper) != groups:
        yield f"{region.name}: the wrapper launches {len(launches_in(region.wrapper))} kernels, {len(groups)} groups"
    position = {node.name: i for i, node in enumerate(region.nodes)}
    for refusal in region.refusals:
        if refusal.a not in position or refusal.b not in position:
            yield f"{region.name}: a refusal of {refusal.a} and {refusal.b} names a node that is not there"
        elif refusal.a == refusal.b or not refusal.detail:
            yield f"{region.name}: a refusal of {refusal.a} and {refusal.b} says nothing"
    for unit in (*region.groups, *region.extern_calls):
        if not unit.nodes or not set(unit.nodes) <= position.keys():
            yield f"{region.name}: {unit.name} has no nodes, or some that are not there"
    for call in region.extern_calls:
        if call.runs_as not in region.wrapper:
            yield f"{region.name}: {call.name} calls {call.runs_as}, and the wrapper does not"


def _diff(report: Report) -> Iterator[str]:
    if not compare(report, report).is_empty:
        yield "the report and itself differ"
