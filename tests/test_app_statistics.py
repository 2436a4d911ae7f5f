"""Statistics of iteration times: the interval covers what it claims, and noise is called noise."""

from __future__ import annotations

import numpy as np
import pytest

from app.statistics import block_length, common_bins, compare_medians, outliers, percentiles, shares


def series(seed: int, level: float, likeness: float = 0.0, count: int = 400) -> np.ndarray:
    """Times around ``level`` with a long tail; ``likeness`` is the correlation of neighbours."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=count)
    for i in range(1, count):
        noise[i] = likeness * noise[i - 1] + (1 - likeness**2) ** 0.5 * noise[i]
    return level + 2.0 * noise + np.where(random.random(count) < 0.02, 50.0, 0.0)


def test_a_clear_difference_is_told_with_its_direction() -> None:
    found = compare_medians(series(1, 100.0), series(2, 80.0))
    assert found is not None
    assert found.verdict == "faster"
    assert found.low < found.difference < found.high < 0
    assert found.difference == pytest.approx(-20.0, abs=0.6)
    back = compare_medians(series(2, 80.0), series(1, 100.0))
    assert back is not None
    assert back.verdict == "slower"


def test_equal_modes_are_called_noise() -> None:
    same = series(3, 100.0)
    found = compare_medians(same, same)
    assert found is not None
    assert found.verdict == "noise"
    assert found.low <= 0.0 <= found.high


@pytest.mark.parametrize("likeness", [0.0, 0.8])
def test_the_interval_covers_no_difference_about_as_often_as_it_says(likeness: float) -> None:
    trials = 60
    noise = 0
    for trial in range(trials):
        a, b = (series(1000 + 2 * trial + i, 100.0, likeness, 300) for i in (0, 1))
        found = compare_medians(a, b)
        assert found is not None
        noise += found.verdict == "noise"
    assert noise >= 0.85 * trials  # 95 % claimed; a bootstrap of single iterations has 50 % with likeness 0.8


def test_blocks_grow_with_the_likeness_of_neighbours() -> None:
    assert block_length(series(4, 100.0, 0.0)) <= 3
    assert block_length(series(4, 100.0, 0.9)) > 15
    assert block_length(np.full(100, 7.0)) == 1


def test_too_few_iterations_say_nothing() -> None:
    assert compare_medians([1.0] * 7, [2.0] * 100) is None


def test_outliers_are_far_above_and_never_below() -> None:
    values = [100.0, 101.0, 99.0, 100.5] * 20
    values[13], values[40], values[41] = 300.0, 10.0, 118.0
    assert outliers(values) == [13]
    assert outliers([5.0] * 50) == []
    assert len(outliers([100.0 + i % 3 for i in range(800)] + [200.0 + i for i in range(200)])) <= 20
    assert outliers([1.0, 100.0]) == []


def test_percentiles_are_linear_between_ranks() -> None:
    assert percentiles([float(v) for v in range(101)]) == (50.0, 90.0, 99.0)


@pytest.mark.parametrize("log", [False, True])
def test_bins_hold_every_sample_but_the_tail(log: bool) -> None:
    fast, slow = [10.0, 11.0, 12.0] * 50, [*[100.0] * 149, 5000.0]
    edges = common_bins([fast, slow], 40, log=log)
    assert len(edges) == 41
    assert (np.diff(edges) > 0).all()
    inside, beyond = shares(fast, edges)
    assert inside.sum() == pytest.approx(1.0)
    assert beyond == 0.0
    inside, beyond = shares(slow, edges)
    assert inside.sum() + beyond == pytest.approx(1.0)
    assert beyond <= 0.01


def test_bins_of_nothing_are_still_bins() -> None:
    assert len(common_bins([[], []], 10)) == 11
    assert shares([], common_bins([[]], 10))[0].sum() == 0.0
