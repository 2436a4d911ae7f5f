"""What the Run panel knows of iterations: a rolling window for the plot, everything recorded for the percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compiler.report import Measurement

WINDOW = 1000  # iterations on the plot
KEPT = 20_000  # iterations a mode keeps for its percentiles
MODE_TITLES = {
    "eager": "Eager",
    "compiled": "Compiled",
    "graph": "Graph replay",
    "inductor": "Inductor",
    "inductor-graph": "Inductor replay",
}


def mode_key(mode: str, replay: bool) -> str:
    """The measured mode for the panel's two controls: replay turns "compiled" into "graph"."""
    return "graph" if replay and mode == "compiled" else mode


@dataclass(frozen=True)
class Row:
    """Percentiles (p50, p90, p99) in microseconds of one mode. ``speedup`` is None where eager was not run."""

    mode: str
    iterations: int
    cpu: tuple[float, float, float]
    gpu: tuple[float, float, float]
    speedup: float | None

    @property
    def iteration_us(self) -> float:
        """What bounds an iteration when many are submitted in a row: the longer of the two medians."""
        return max(self.cpu[0], self.gpu[0])


@dataclass(frozen=True)
class Segment:
    """A stretch of the plot in one mode, from iteration ``start``."""

    start: int
    mode: str
    warmup: bool


@dataclass
class _Samples:
    cpu: list[float] = field(default_factory=list)
    gpu: list[float] = field(default_factory=list)

    row: Row | None = None  # made at the first question after a change

    def extend(self, cpu: Sequence[float], gpu: Sequence[float]) -> None:
        self.cpu = [*self.cpu, *cpu][-KEPT:]
        self.gpu = [*self.gpu, *gpu][-KEPT:]
        self.row = None


class RunRecord:
    """Samples as they come, by mode and in order."""

    def __init__(self) -> None:
        self._modes: dict[str, _Samples] = {}
        self._cpu: list[float] = []
        self._gpu: list[float] = []
        self._segments: list[Segment] = []
        self._total = 0

    def add(self, mode: str, cpu_us: Sequence[float], gpu_us: Sequence[float], *, warmup: bool = False) -> None:
        """Append iterations. Those of the warm-up are on the plot but in no percentile."""
        self.show(mode, cpu_us, gpu_us, warmup=warmup)
        if cpu_us and not warmup:
            self._modes.setdefault(mode, _Samples()).extend(cpu_us, gpu_us)

    def show(self, mode: str, cpu_us: Sequence[float], gpu_us: Sequence[float], *, warmup: bool = False) -> None:
        """Append iterations to the plot alone."""
        if not cpu_us:
            return
        last = self._segments[-1] if self._segments else None
        if last is None or (last.mode, last.warmup) != (mode, warmup):
            self._segments.append(Segment(self._total, mode, warmup))
        self._cpu = [*self._cpu, *cpu_us][-WINDOW:]
        self._gpu = [*self._gpu, *gpu_us][-WINDOW:]
        self._total += len(cpu_us)
        first = self.first
        while len(self._segments) > 1 and self._segments[1].start <= first:
            del self._segments[0]

    def set_measured(self, measurement: Measurement) -> None:
        """Let a whole recording stand for its mode in the table."""
        self._modes[measurement.mode] = _Samples(list(measurement.cpu_samples), list(measurement.gpu_samples))

    @property
    def first(self) -> int:
        """The number of the first iteration on the plot."""
        return self._total - len(self._cpu)

    @property
    def window(self) -> tuple[list[float], list[float]]:
        """(CPU, GPU) microseconds on the plot."""
        return self._cpu, self._gpu

    @property
    def segments(self) -> list[Segment]:
        """The stretches on the plot; the first may begin before it."""
        return list(self._segments)

    @property
    def total(self) -> int:
        """Iterations seen so far."""
        return self._total

    def rows(self) -> list[Row]:
        """One row a mode, in the order eager, compiled, graph, then others."""
        order = list(MODE_TITLES)
        modes = sorted(self._modes, key=lambda mode: order.index(mode) if mode in order else len(order))
        rows = [self._row(mode) for mode in modes if self._modes[mode].cpu]
        eager = next((row.iteration_us for row in rows if row.mode == "eager"), None)
        if eager is None:
            return rows
        return [Row(row.mode, row.iterations, row.cpu, row.gpu, eager / row.iteration_us) for row in rows]

    def _row(self, mode: str) -> Row:
        samples = self._modes[mode]
        if samples.row is None:
            samples.row = Row(mode, len(samples.cpu), percentiles(samples.cpu), percentiles(samples.gpu), None)
        return samples.row


def percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    """p50, p90 and p99 of a non-empty sequence, linear between ranks."""
    import numpy as np

    p50, p90, p99 = np.percentile(np.asarray(values), (50, 90, 99))
    return float(p50), float(p90), float(p99)
