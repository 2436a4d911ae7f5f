"""What the Run panel knows of iterations: all of them in the order they came, by mode, and their percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.statistics import outliers, percentiles
from compiler.report import Measurement, Percentiles
from views.run.modes import in_order

KEPT = 30_000  # iterations remembered in order
Times = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """Percentiles (p50, p90, p99) in microseconds of one mode. ``speedup`` is None where eager was not run, or this
    takes no time."""

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
    """A stretch in one mode, from iteration ``start`` of the run."""

    start: int
    mode: str
    warmup: bool


@dataclass(frozen=True)
class Series:
    """Iterations of one mode in microseconds. ``first`` is the number of the first one in the mode; the warm-up's
    iterations are numbered with the others.
    """

    mode: str
    first: int
    cpu: Times
    gpu: Times
    warm: NDArray[np.bool_]
    known_far: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # outliers, where a larger series told them

    @property
    def recorded(self) -> tuple[Times, Times]:
        """(CPU, GPU) without the warm-up."""
        return self.cpu[~self.warm], self.gpu[~self.warm]

    @cached_property
    def _far(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions that are far above the rest, by CPU and by GPU time; the warm-up is apart."""
        if self.known_far is not None:
            return self.known_far
        kept = np.flatnonzero(~self.warm)
        cpu, gpu = (np.array(outliers(values[kept]), np.int64) for values in (self.cpu, self.gpu))
        return kept[cpu], kept[gpu]

    @cached_property
    def percentiles(self) -> tuple[tuple[float, float, float], tuple[float, float, float]] | None:
        """p50, p90 and p99 of CPU and of GPU time; None without a recorded iteration."""
        cpu, gpu = self.recorded
        return (percentiles(cpu), percentiles(gpu)) if len(cpu) else None

    def outliers(self, figure: str = "") -> list[int]:
        """Positions of iterations whose "CPU" or "GPU" time (any, for "") is far above the rest's, warm-up apart."""
        cpu, gpu = self._far
        found = cpu if figure == "CPU" else gpu if figure == "GPU" else np.union1d(cpu, gpu)
        return found.tolist()

    def latest(self, count: int) -> Series:
        """The last ``count`` iterations; of a whole recording, its outliers stay what they are in the whole."""
        drop = len(self.cpu) - count
        if drop <= 0:
            return self
        cpu, gpu = (far[far >= drop] - drop for far in self._far)
        return Series(self.mode, self.first + drop, self.cpu[drop:], self.gpu[drop:], self.warm[drop:], (cpu, gpu))


class RunRecord:
    """Samples as they come. A mode may instead stand on a whole recording (``set_measured``)."""

    def __init__(self) -> None:
        self._cpu = np.zeros(2 * KEPT)
        self._gpu = np.zeros(2 * KEPT)
        self._mode = np.zeros(2 * KEPT, np.int16)
        self._warm = np.zeros(2 * KEPT, bool)
        self._filled = 0  # of the arrays
        self._dropped = 0  # iterations that came before those in the arrays
        self._dropped_of: dict[str, int] = {}
        self._modes: list[str] = []
        self._measured: dict[str, Series] = {}
        self._segments: list[Segment] = []

    def add(self, mode: str, cpu_us: Sequence[float], gpu_us: Sequence[float], *, warmup: bool = False) -> None:
        """Append iterations. Those of the warm-up are in no percentile."""
        count = len(cpu_us)
        if not count:
            return
        last = self._segments[-1] if self._segments else None
        if last is None or (last.mode, last.warmup) != (mode, warmup):
            self._segments.append(Segment(self.total, mode, warmup))
        if self._filled + count > len(self._cpu):
            self._make_room(count)
        if mode not in self._modes:
            self._modes.append(mode)
        part = slice(self._filled, self._filled + count)
        self._cpu[part], self._gpu[part] = cpu_us, gpu_us
        self._mode[part], self._warm[part] = self._modes.index(mode), warmup
        self._filled += count
        while len(self._segments) > 1 and self._segments[1].start <= self.first:
            del self._segments[0]

    def restarted(self) -> RunRecord:
        """A record without the iterations that came; whole recordings stay."""
        made = RunRecord()
        made._measured = self._measured
        return made

    def set_measured(self, measurement: Measurement) -> None:
        """Let a whole recording stand for its mode."""
        warm = len(measurement.warmup_cpu_samples)
        cpu = np.array([*measurement.warmup_cpu_samples, *measurement.cpu_samples], np.float64)
        gpu = np.array([*measurement.warmup_gpu_samples, *measurement.gpu_samples], np.float64)
        self._measured[measurement.mode] = Series(measurement.mode, 0, cpu, gpu, np.arange(len(cpu)) < warm)

    @property
    def first(self) -> int:
        """The number of the first iteration that is still known."""
        return self._dropped

    @property
    def total(self) -> int:
        """Iterations seen so far."""
        return self._dropped + self._filled

    @property
    def segments(self) -> list[Segment]:
        """The stretches; the first may begin before the iterations that are still known."""
        return list(self._segments)

    @property
    def modes(self) -> list[str]:
        """Modes with iterations, in the order they are listed."""
        return in_order({*self._modes, *self._measured})

    def window(self, first: int, end: int) -> tuple[int, Times, Times]:
        """(number of the first one, CPU, GPU) of the iterations ``first`` to ``end`` of the run, as far as known."""
        first, end = max(first, self.first), min(end, self.total)
        part = slice(first - self._dropped, max(end, first) - self._dropped)
        return first, self._cpu[part], self._gpu[part]

    def place(self, number: int) -> tuple[str, int, bool] | None:
        """(mode, number in the mode, whether warm-up) of an iteration of the run."""
        at = number - self._dropped
        if not 0 <= at < self._filled:
            return None
        mode = int(self._mode[at])
        name = self._modes[mode]
        inside = int((self._mode[:at] == mode).sum()) + self._dropped_of.get(name, 0)
        return name, inside, bool(self._warm[at])

    def run_number(self, mode: str, number: int) -> int | None:
        """The reverse of ``place``: where in the run the ``number``-th iteration of a mode was."""
        if mode not in self._modes:
            return None
        found = np.flatnonzero(self._mode[: self._filled] == self._modes.index(mode))
        at = number - self._dropped_of.get(mode, 0)
        return int(found[at]) + self._dropped if 0 <= at < len(found) else None

    def series(self, mode: str, latest: int | None = None) -> Series:
        """A mode's iterations; only the ``latest`` ones where that is given."""
        measured = self._measured.get(mode)
        if measured is not None:
            return measured if latest is None else measured.latest(latest)
        number = self._modes.index(mode) if mode in self._modes else -1
        chosen = np.flatnonzero(self._mode[: self._filled] == number)
        first = self._dropped_of.get(mode, 0)
        if latest is not None and len(chosen) > latest:
            first += len(chosen) - latest
            chosen = chosen[-latest:]
        return Series(mode, first, self._cpu[chosen], self._gpu[chosen], self._warm[chosen])

    def rows(self) -> list[Row]:
        """One row a mode with recorded iterations."""
        rows = []
        for mode in self.modes:
            series = self.series(mode)
            if series.percentiles is not None:
                rows.append(Row(mode, int((~series.warm).sum()), *series.percentiles, None))
        eager = next((row.iteration_us for row in rows if row.mode == "eager"), None)
        if eager is None:
            return rows
        return [replace(row, speedup=eager / row.iteration_us if row.iteration_us else None) for row in rows]

    def measurements(self, gpu: str, since: int) -> list[Measurement]:
        """What came of each mode from iteration ``since`` of the run on, as records of ``gpu``."""
        made = []
        begin = max(since - self._dropped, 0)
        for number, mode in enumerate(self._modes):
            at = begin + np.flatnonzero(self._mode[begin : self._filled] == number)
            warm = self._warm[at]
            if warm.all():
                continue
            lead = int(np.argmin(warm))
            cpu, gpu_us = (np.round(values[at[~warm]], 2) for values in (self._cpu, self._gpu))
            all_known = since >= self._dropped
            made.append(
                Measurement(
                    mode,
                    gpu,
                    len(cpu),
                    Percentiles(*percentiles(cpu)),
                    Percentiles(*percentiles(gpu_us)),
                    cpu_samples=cpu.tolist(),
                    gpu_samples=gpu_us.tolist(),
                    warmup=lead if all_known else lead + self._dropped_of.get(mode, 0),
                    warmup_cpu_samples=np.round(self._cpu[at[:lead]], 2).tolist() if all_known else [],
                    warmup_gpu_samples=np.round(self._gpu[at[:lead]], 2).tolist() if all_known else [],
                )
            )
        return made

    def _make_room(self, count: int) -> None:
        """Move the latest KEPT iterations to the front of the arrays."""
        drop = max(self._filled - KEPT, min(self._filled, self._filled + count - len(self._cpu)))
        for number, mode in enumerate(self._modes):
            gone = int((self._mode[:drop] == number).sum())
            self._dropped_of[mode] = self._dropped_of.get(mode, 0) + gone
        for values in (self._cpu, self._gpu, self._mode, self._warm):
            values[: self._filled - drop] = values[drop : self._filled].copy()
        self._filled -= drop
        self._dropped += drop
