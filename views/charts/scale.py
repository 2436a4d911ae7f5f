"""From values to pixels and back, with ticks at round numbers. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """Maps ``low``..``high`` onto ``start``..``end`` pixels, which may run either way; logarithmic with ``log``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def px(self, value: float) -> float:
        """Where ``value`` is. Below a logarithmic scale's reach everything is at its low end."""
        return self.start + (self.end - self.start) * self._share(value)

    def pixels(self, values: ArrayLike) -> NDArray[np.float64]:
        """``px`` of many values at once."""
        found = np.asarray(values, np.float64)
        low, span = self.low, self.high - self.low
        if self.log:
            found = np.log(np.maximum(found, self.low))
            low, span = math.log(self.low), math.log(self.high) - math.log(self.low)
        return self.start + (self.end - self.start) * ((found - low) / (span or 1.0))

    def value(self, px: float) -> float:
        """What is at a pixel."""
        share = (px - self.start) / ((self.end - self.start) or 1.0)
        if self.log:
            return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        return self.low + share * (self.high - self.low)

    def ticks(self, spacing_px: float = 70.0) -> list[float]:
        """Round values about ``spacing_px`` apart."""
        room = max(1, int(abs(self.end - self.start) / spacing_px))
        return log_ticks(self.low, self.high, room) if self.log else linear_ticks(self.low, self.high, room)

    def _share(self, value: float) -> float:
        if self.log:
            value = max(value, self.low)
            span = math.log(self.high) - math.log(self.low)
            return (math.log(value) - math.log(self.low)) / (span or 1.0)
        return (value - self.low) / ((self.high - self.low) or 1.0)


def linear_ticks(low: float, high: float, room: int) -> list[float]:
    """At most about ``room`` round steps between ``low`` and ``high``."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    rough = span / max(room, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float, room: int) -> list[float]:
    """1, 10, 100 between ``low`` and ``high``, thinned where there is no room; 2 and 5 too where there is a lot."""
    if low <= 0 or high <= low:
        return [low]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = range(first, last + 1)
    stride = max(1, -(-(last - first) // max(room, 1)))
    found = [10.0**power for power in decades if power % stride == 0]
    if (last - first) * 3 <= room:
        found = [factor * 10.0**power for power in decades for factor in (1, 2, 5)]
    inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
    return inside or linear_ticks(low, high, room)


def tick_text(value: float) -> str:
    """A tick's value as short as it can be: "1.5k", "0.02"."""
    size = abs(value)
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit * 0.9999:
            return f"{_plain(value / (1e3 if unit == 'k' else limit))}{unit}"
    return _plain(value)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{round(value, 10):.4g}"
