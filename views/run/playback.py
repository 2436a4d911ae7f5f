"""Plays recorded iterations back: batches of measurements, taking turns, at a pace that can be watched."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from compiler.report import Measurement

TICK_MS = 50
TURN_TICKS = 6  # how long a mode plays before the next one's turn
SHORTEST_S = 12.0  # a recording takes at least this long; a shorter one is slowed down and says so


class Player(QObject):
    """Emits ``samples(mode, cpu_us, gpu_us)`` from recordings until stopped; at its end each begins again."""

    samples = Signal(str, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._measurements: list[Measurement] = []
        self._positions: dict[str, int] = {}
        self._ticks = 0
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)

    @property
    def is_playing(self) -> bool:
        """Whether batches come."""
        return self._timer.isActive()

    def play(self, measurements: list[Measurement]) -> None:
        """Play these from now on; one that played before goes on where it was."""
        self._measurements = [m for m in measurements if m.cpu_samples]
        self._ticks = 0
        self._timer.start()
        self.tick()

    def stop(self) -> None:
        """No more batches."""
        self._timer.stop()

    def tick(self) -> None:
        """Emit the iterations of the next twentieth of a second."""
        if not self._measurements:
            return
        m = self._measurements[self._ticks // TURN_TICKS % len(self._measurements)]
        self._ticks += 1
        count = max(1, round(len(m.cpu_samples) * TICK_MS / 1000 / duration_s(m)))
        start = self._positions.get(m.mode, 0)
        part = slice(start, start + count)
        self._positions[m.mode] = part.stop if part.stop < len(m.cpu_samples) else 0
        self.samples.emit(m.mode, m.cpu_samples[part], m.gpu_samples[part])


def recorded_s(measurement: Measurement) -> float:
    """How long the recorded iterations took: each its CPU or GPU time, whichever is longer."""
    pairs = zip(measurement.cpu_samples, measurement.gpu_samples, strict=True)
    return sum(max(cpu, gpu) for cpu, gpu in pairs) / 1e6


def duration_s(measurement: Measurement) -> float:
    """How long playing it takes."""
    return max(recorded_s(measurement), SHORTEST_S)


def pace_text(measurement: Measurement) -> str:
    """How the playback's pace compares with the recorded one."""
    factor = duration_s(measurement) / max(recorded_s(measurement), 1e-9)
    return "at recorded speed" if factor < 1.05 else f"slowed down {factor:,.0f}×"
