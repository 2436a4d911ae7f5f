"""What the graph can be coloured by: each unit gets a level, or each node a category."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from app.roofline import Point, points
from app.unit_errors import unit_errors
from compiler.report import NodeKind, Region, Report

LEVELS = 8  # steps of the colour ramp
OVERLAYS = {
    "decision": "Compiler decision",
    "time": "Time",
    "bytes": "Bytes",
    "wasted": "Wasted time",
    "error": "Numerical error",
    "dtype": "Dtype",
}


_VALUES: dict[str, Callable[[Point], float]] = {
    "time": lambda point: point.time.us,
    "bytes": lambda point: float(point.bytes),
    "wasted": lambda point: point.wasted_us,
}


@dataclass(frozen=True)
class Overlay:
    """Levels 0 to LEVELS - 1 by unit, or categories by FX node; what has neither is drawn plain.

    ``keys`` are the legend's texts: (lowest, highest) of a ramp, or the categories in the order of their numbers.
    """

    kind: str
    is_ramp: bool
    units: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    largest: float = 0.0  # of the ramp: microseconds, bytes, or a relative error
    smallest: float = 0.0  # of the ramp, where it is logarithmic
    is_measured: bool = False
    keys: list[str] = field(default_factory=list)


def overlay(report: Report, region: Region, kind: str) -> Overlay | None:
    """The overlay called ``kind``; None for "decision", which is how the graph is drawn anyway.

    Raises:
        KeyError: no such overlay.
    """
    if kind == "decision":
        return None
    if kind == "dtype":
        return _dtypes(region)
    if kind == "error":
        return _errors(report, region)
    found = points(report, region)
    if kind == "wasted":
        found = [point for point in found if point.time.measured]
    return _ramp(kind, [(point, _VALUES[kind](point)) for point in found])


def _ramp(kind: str, values: list[tuple[Point, float]]) -> Overlay:
    largest = max((value for _, value in values), default=0.0)
    # the square root keeps small units apart where one is far larger than all others
    levels = {
        point.unit: min(int((value / largest) ** 0.5 * LEVELS), LEVELS - 1) if largest > 0 else 0
        for point, value in values
    }
    measured = kind != "bytes" and bool(values) and all(point.time.measured for point, _ in values)
    return Overlay(kind, True, units=levels, largest=largest, is_measured=measured)


def _errors(report: Report, region: Region) -> Overlay:
    """Errors span powers of ten, so levels go by their logarithm; one of nothing is the lowest."""
    errors = {unit: check.error for unit, check in unit_errors(report, region.name).items()}
    seen = [error for error in errors.values() if error > 0 and math.isfinite(error)]
    low, high = min(seen, default=0.0), max(seen, default=0.0)
    span = math.log(high / low) if high > low else 0.0

    def level(error: float) -> int:
        if not math.isfinite(error):
            return LEVELS - 1
        if error <= low or not span:
            return 0
        return min(int(math.log(error / low) / span * LEVELS), LEVELS - 1)

    levels = {unit: level(error) for unit, error in errors.items()}
    return Overlay("error", True, units=levels, largest=high, smallest=low, is_measured=True)


def _dtypes(region: Region) -> Overlay:
    of_node = {node.name: node.outputs[0].dtype for node in region.nodes if node.outputs and _computes(node.kind)}
    order = [dtype for dtype, _ in Counter(of_node.values()).most_common()]
    return Overlay("dtype", False, nodes={name: order.index(dtype) for name, dtype in of_node.items()}, keys=order)


def _computes(kind: NodeKind) -> bool:
    return kind is NodeKind.CALL
