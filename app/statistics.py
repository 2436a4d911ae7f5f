"""Statistics of iteration times: percentiles, outliers, histograms, and whether two modes really differ.

Times of neighbouring iterations resemble each other (clocks and caches drift), so the interval of a difference comes
from a bootstrap of blocks, not of single iterations: those would promise too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Verdict = Literal["faster", "slower", "noise"]

LATEST = 4000  # iterations that a comparison looks at; more add little and cost time
_RESAMPLES = 1000
_LEAST = 8  # iterations of each below which nothing can be said
_MAD_TO_SIGMA = 1.4826  # of a normal distribution


@dataclass(frozen=True)
class Comparison:
    """Medians of two modes and the interval that holds their difference (``b - a``) with ``confidence``."""

    median_a: float
    median_b: float
    low: float
    high: float
    confidence: float
    iterations: tuple[int, int]

    @property
    def difference(self) -> float:
        """How much longer ``b`` takes than ``a``, in the unit of the values."""
        return self.median_b - self.median_a

    @property
    def verdict(self) -> Verdict:
        """What may be said of ``b`` against ``a``."""
        if self.low > 0.0:
            return "slower"
        return "faster" if self.high < 0.0 else "noise"


def percentiles(values: Sequence[float] | Values) -> tuple[float, float, float]:
    """p50, p90 and p99 of a non-empty sequence, linear between ranks."""
    p50, p90, p99 = np.percentile(np.asarray(values, np.float64), (50, 90, 99))
    return float(p50), float(p90), float(p99)


def compare_medians(
    a: Sequence[float] | Values, b: Sequence[float] | Values, *, confidence: float = 0.95, seed: int = 0
) -> Comparison | None:
    """Compare two modes by the medians of their latest iterations; None where either has too few."""
    first, second = np.asarray(a, np.float64)[-LATEST:], np.asarray(b, np.float64)[-LATEST:]
    if min(len(first), len(second)) < _LEAST:
        return None
    random = np.random.default_rng(seed)
    differences = _resampled_medians(second, random) - _resampled_medians(first, random)
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(differences, (tail, 1.0 - tail))
    return Comparison(
        float(np.median(first)), float(np.median(second)), float(low), float(high), confidence,
        (len(first), len(second)),
    )


def block_length(values: Values) -> int:
    """Iterations to a block of the bootstrap: more where neighbours resemble each other more.

    The rule of Politis and White for a first-order autoregression, with its coefficient taken from ranks, so that
    outliers do not decide it.
    """
    count = len(values)
    ranks = np.unique(values, return_inverse=True)[1].astype(np.float64)
    ranks -= ranks.mean()
    spread = float(ranks @ ranks)
    likeness = float(ranks[:-1] @ ranks[1:]) / spread if spread else 0.0
    likeness = min(max(likeness, 0.0), 0.98)
    length = (6.0 * likeness**2 / (1.0 - likeness**2) ** 2 * count) ** (1 / 3)
    return int(min(max(round(length), 1), max(count // 4, 1)))


def _resampled_medians(values: Values, random: np.random.Generator) -> Values:
    """Medians of resamples made of blocks, which may run around the end."""
    count, block = len(values), block_length(values)
    blocks = -(-count // block)
    medians = np.empty(_RESAMPLES)
    part = max(1, 2_000_000 // count)  # resamples at a time, to stay small in memory
    for start in range(0, _RESAMPLES, part):
        number = min(part, _RESAMPLES - start)
        starts = random.integers(0, count, (number, blocks, 1))
        picked = (starts + np.arange(block)).reshape(number, -1)[:, :count] % count
        medians[start : start + number] = np.median(values[picked], axis=1)
    return medians


def outliers(values: Sequence[float] | Values, *, sigmas: float = 6.0) -> list[int]:
    """Positions of values far above the rest: beyond ``sigmas`` robust deviations and a quarter of the median.

    At most a fiftieth of the values: what happens more often is a second level, and no outlier.
    """
    times = np.asarray(values, np.float64)
    if len(times) < _LEAST:
        return []
    middle = float(np.median(times))
    deviation = _MAD_TO_SIGMA * float(np.median(np.abs(times - middle)))
    limit = max(middle + max(sigmas * deviation, 0.25 * middle), float(np.quantile(times, 0.98)))
    return [int(i) for i in np.flatnonzero(times > limit)]


def common_bins(samples: Sequence[Sequence[float]], count: int, *, log: bool = False) -> Values:
    """Edges of ``count`` bins that suit all of ``samples``; the slowest hundredth may lie beyond the last one."""
    filled = [np.asarray(values, np.float64) for values in samples if len(values)]
    if not filled:
        return np.linspace(0.0, 1.0, count + 1)
    low = min(float(values.min()) for values in filled)
    high = max(float(np.quantile(values, 0.99)) for values in filled)
    if log and low > 0.0:
        return np.geomspace(low * 0.95, max(high, low * 1.05) * 1.05, count + 1)
    margin = max((high - low) * 0.06, high * 0.01, 1e-3)
    return np.linspace(max(low - margin, 0.0), high + margin, count + 1)


def shares(values: Sequence[float], edges: Values) -> tuple[Values, float]:
    """The share (0..1) of ``values`` in each bin, and the share beyond the last edge."""
    times = np.asarray(values, np.float64)
    counts, _ = np.histogram(times, edges)
    total = max(len(times), 1)
    return counts / total, float((times > edges[-1]).sum()) / total
