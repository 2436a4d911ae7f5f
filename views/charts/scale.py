"""From values to pixels and back, with ticks at round numbers. No Qt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_COUNTS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from, size, unit
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


@dataclass(frozen=True)
class Scale:
    """Maps ``low``..``high`` onto ``start``..``end`` pixels, which may run either way; logarithmic with ``log``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False  # counts something, so that there is nothing between two numbers

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
        found = log_ticks(self.low, self.high, room) if self.log else linear_ticks(self.low, self.high, room)
        return [value for value in found if value.is_integer()] if self.whole else found

    def _share(self, value: float) -> float:
        if self.log:
            value = max(value, self.low)
            span = math.log(self.high) - math.log(self.low)
            return (math.log(value) - math.log(self.low)) / (span or 1.0)
        return (value - self.low) / ((self.high - self.low) or 1.0)


def linear_ticks(low: float, high: float, room: int) -> list[float]:
    """About ``room`` round steps between ``low`` and ``high``, and two ticks at least: one alone tells no scale."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    found: list[float] = []
    for steps in range(max(room, 1), max(room, 1) + 4):
        rough = span / steps
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found = [number * step for number in range(first, last + 1)]
        if len(found) > 1:
            break
    return found


def log_ticks(low: float, high: float, room: int) -> list[float]:
    """1, 10, 100 between ``low`` and ``high``, thinned where there is no room; 2 and 5 too where there is a lot."""
    if low <= 0 or high <= low:
        return [low]
    first, last = math.ceil(math.log10(low * 0.999)), math.floor(math.log10(high * 1.001))
    decades = range(first, last + 1)
    stride = max(1, -(-len(decades) // (max(room, 1) + 1)))
    found = [10.0**power for power in decades if power % stride == 0]
    if (last - first + 2) * 3 <= room:
        found = [factor * 10.0**power for power in range(first - 1, last + 2) for factor in (1, 2, 5)]
    inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
    return inside or linear_ticks(low, high, room)


def tick_texts(values: Sequence[float]) -> list[str]:
    """Counts on one axis, all in the same unit: "0", "5k", "10k"."""
    largest = max((abs(value) for value in values), default=0.0)
    size, unit = next(((size, unit) for start, size, unit in _COUNTS if largest >= start * 0.9999), (1.0, ""))
    return [f"{plain}{unit if value else ''}" for value, plain in zip(values, in_unit(values, size), strict=True)]


def log_tick_texts(values: Sequence[float]) -> list[str]:
    """Each as short as it can be, for they are far apart: "0.1", "10", "10k"."""
    return [tick_texts([value])[0] for value in values]


def time_unit(high_us: float, least: float = 1.0) -> tuple[float, str]:
    """(microseconds, name) of the largest unit of which ``high_us`` has ``least``."""
    return next(((size, name) for size, name in _TIMES if abs(high_us) >= size * least), _TIMES[-1])


def time_axis(high_us: float, *, log: bool) -> tuple[str, Callable[[Sequence[float]], list[str]]]:
    """Title and texts of an axis of microseconds that reaches to ``high_us``: in these as long as they are short."""
    size, name = time_unit(high_us, 50.0)
    return ("time", log_time_texts) if log else (name, lambda values: in_unit(values, size))


def log_time_texts(values: Sequence[float]) -> list[str]:
    """Times in microseconds, each in its own unit: "1 µs", "10 ms"."""
    units = [next((one for one in _TIMES if value >= one[0] * 0.9999), _TIMES[-1]) for value in values]
    return [f"{in_unit([value], size)[0]} {name}" for value, (size, name) in zip(values, units, strict=True)]


def in_unit(values: Sequence[float], size: float) -> list[str]:
    """Ticks divided by ``size``, with as many decimals as they need: "0", "2.5", "5"."""
    scaled = [value / size for value in values]
    largest = max((abs(value) for value in scaled), default=0.0)
    exact = (digits for digits in range(9) if all(abs(round(v, digits) - v) <= largest * 1e-9 for v in scaled))
    digits = next(exact, 9)
    return [_plain(value, digits) for value in scaled]


def _plain(value: float, digits: int) -> str:
    text = f"{abs(value):,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if digits else text
    return f"−{text}" if value < 0 else text
