"""What filters leave of what is not a node itself: stages, source lines, the GPU work of an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.filters import Kept
from app.roofline import points
from compiler.report import Report, SourceLine, Stage

Line = tuple[str, int]  # file, line (1-based)
_CPU_LANE = "cpu"


@dataclass(frozen=True)
class KeptLines:
    """Source lines: of any node of a report, and of those that the filters leave."""

    every: frozenset[Line]
    left: frozenset[Line]

    def hides(self, source: SourceLine | None) -> bool:
        """Whether nodes come from a line and the filters leave none of them. What no node comes from stays."""
        line = (source.file, source.line) if source is not None else None
        return line in self.every and line not in self.left


@dataclass(frozen=True)
class Work:
    """GPU time of an iteration in microseconds: all of it, and of the units that the filters leave."""

    mode: str  # of the trace that measured it; "" where it adds up what single kernels take
    left_us: float
    every_us: float
    measured: bool


def hides_stage(stage: Stage, kept: Mapping[str, Kept] | None) -> bool:
    """Whether a stage works on one region alone, and the filters leave nothing of that."""
    return kept is not None and stage.region in kept and not kept[stage.region].nodes


def kept_lines(report: Report, kept: Mapping[str, Kept]) -> KeptLines:
    """The lines that nodes come from, through every frame of their calls."""
    every: set[Line] = set()
    left: set[Line] = set()
    for region in report.regions:
        names = kept[region.name].nodes if region.name in kept else frozenset()
        for node in region.nodes:
            lines = [(frame.file, frame.line) for frame in node.provenance.frames]
            every.update(lines)
            if node.name in names:
                left.update(lines)
    return KeptLines(frozenset(every), frozenset(left))


def gpu_work(report: Report, kept: Mapping[str, Kept]) -> list[Work]:
    """The share of each traced mode's GPU time; of single kernels' times where nothing was traced."""
    traced = []
    for trace in report.traces:
        events = [event for event in trace.events if event.lane != _CPU_LANE]
        left = sum(event.duration_us for event in events if _is_left(event.unit, kept))
        traced.append(Work(trace.mode, left, sum(event.duration_us for event in events), measured=True))
    if any(work.left_us for work in traced):  # eager's kernels are of no unit: its trace alone would say nothing
        return [work for work in traced if work.left_us]
    times = [(region.name, point) for region in report.regions for point in points(report, region)]
    left = sum(point.time.us for name, point in times if _is_left(f"{name}/{point.unit}", kept))
    measured = bool(times) and all(point.time.measured for _, point in times)
    return [Work("", left, sum(point.time.us for _, point in times), measured)]


def _is_left(unit: str, kept: Mapping[str, Kept]) -> bool:
    region, _, name = unit.partition("/")
    return region in kept and name in kept[region].units
