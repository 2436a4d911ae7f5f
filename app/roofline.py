"""The roofline of a target: the least time that a unit's bytes and FLOPs allow, and how far from it a unit is.

Bytes and FLOPs are the report's estimates; a time is measured where something measured it. The two are never mixed:
every figure here says which it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.joining import own_trace
from compiler.report import ExternCall, ExternReason, GraphNode, Group, Region, Report, Target

_HALF = ("float16", "bfloat16")
_CPU_LANE = "cpu"


@dataclass(frozen=True)
class UnitTime:
    """Microseconds that one run of a unit takes, and where the figure comes from."""

    us: float
    measured: bool
    origin: str  # "CUDA Graph nodes", "trace", "kernel", "estimate"
    exact: bool = True  # False where it was inferred that what was timed is the unit's

    @property
    def kind(self) -> str:
        """What the figure is worth, in words."""
        return ("measured" if self.exact else "measured, joined by order") if self.measured else "estimated"


@dataclass(frozen=True)
class Point:
    """A unit on the roofline plot."""

    unit: str
    bytes: int
    flops: int
    time: UnitTime
    roof_us: float
    bound: str  # "memory" or "compute"

    @property
    def wasted_us(self) -> float:
        """Time beyond the roof; 0 where the time is itself an estimate from the roof."""
        return max(self.time.us - self.roof_us, 0.0) if self.time.measured else 0.0

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def share_of_roof(self) -> float:
        """How much of what the roof allows is reached, 0..1 where bytes and FLOPs are right."""
        return self.roof_us / self.time.us if self.time.us > 0 else 0.0


def peak_tflops(target: Target, dtype: str, *, library: bool) -> float:
    """The peak rate that a unit can reach: libraries multiply in half precision on tensor cores, our kernels do not."""
    return target.tflops_fp16 if library and dtype in _HALF else target.tflops_fp32


def roof_us(target: Target, bytes_: int, flops: int, tflops: float) -> tuple[float, str]:
    """(least microseconds, "memory" or "compute")."""
    memory = bytes_ / (target.bandwidth_gbs * 1e3) if target.bandwidth_gbs else 0.0
    compute = flops / (tflops * 1e6) if tflops else 0.0
    return (memory, "memory") if memory >= compute else (compute, "compute")


def measured_units(report: Report, region: Region) -> dict[str, UnitTime]:
    """Unit -> its measured time: of the captured graph's nodes, else of a traced iteration, else of its kernel."""
    found: dict[str, UnitTime] = {}
    kernels = {kernel.name: kernel for kernel in report.kernels}
    for group in region.groups:
        kernel = kernels.get(group.kernel)
        if kernel is not None and kernel.measured_us is not None:
            found[group.name] = UnitTime(kernel.measured_us, True, "kernel")
    trace = own_trace(report)
    traced: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for event in trace.events if trace is not None else ():
        name, _, unit = event.unit.partition("/")
        if event.lane != _CPU_LANE and name == region.name and unit:
            traced[unit].append((event.us, event.exact))
    graph: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for node in _all_nodes([node for one in report.regions for node in one.cuda_graph.topology]):
        if node.region == region.name and node.unit and node.measured_us is not None:
            graph[node.unit].append((node.measured_us, node.exact))
    return found | _together(traced, "trace") | _together(graph, "CUDA Graph nodes")


def _together(parts: Mapping[str, Sequence[tuple[float, bool]]], origin: str) -> dict[str, UnitTime]:
    return {
        unit: UnitTime(sum(us for us, _ in found), True, origin, all(exact for _, exact in found))
        for unit, found in parts.items()
    }


def _all_nodes(nodes: list[GraphNode]) -> list[GraphNode]:
    return [one for node in nodes for one in (node, *_all_nodes(node.children))]


def unit_times(report: Report, region: Region) -> dict[str, UnitTime]:
    """Unit -> its time, measured or estimated; none for a unit that was not measured and moves and computes nothing."""
    return measured_units(report, region) | {point.unit: point.time for point in points(report, region)}


def points(report: Report, region: Region) -> list[Point]:
    """Every unit of a region that moves bytes or computes, in launch order; none for a target of unknown rates.

    What works on the CPU is under no roof of the target's.
    """
    if not (report.target.bandwidth_gbs and report.target.tflops_fp32):
        return []
    measured = measured_units(report, region)
    units: list[Group | ExternCall] = [*region.groups, *region.extern_calls]
    last = {call.nodes[-1] for call in region.extern_calls if call.nodes}
    dtypes = {node.name: node.outputs[0].dtype for node in region.nodes if node.name in last and node.outputs}
    in_cpp = {kernel.name for kernel in report.kernels if kernel.language == "cpp"}
    made = []
    for unit in sorted(units, key=lambda unit: unit.order):
        if not unit.estimated_bytes and not unit.estimated_flops:
            continue
        if unit.kernel in in_cpp if isinstance(unit, Group) else unit.reason is ExternReason.CPU_TENSOR:
            continue
        dtype = dtypes.get(unit.nodes[-1], "") if unit.nodes else ""
        tflops = peak_tflops(report.target, dtype, library=isinstance(unit, ExternCall))
        least, bound = roof_us(report.target, unit.estimated_bytes, unit.estimated_flops, tflops)
        time = measured.get(unit.name) or UnitTime(least, False, "estimate")
        made.append(Point(unit.name, unit.estimated_bytes, unit.estimated_flops, time, least, bound))
    return made
