"""Placement of one layer: positions nearest to the wished ones that keep order and distance (isotonic regression)."""

from __future__ import annotations

from collections.abc import Sequence


def place_in_order(wished: Sequence[float], weight: Sequence[float], offset: Sequence[float]) -> list[float]:
    """Centres x minimising sum(weight * (x - wished)**2) with x[i + 1] - x[i] >= offset[i + 1] - offset[i].

    Subtracting the offsets turns the constraint into "never falling", which the pool-adjacent-violators algorithm
    solves exactly in linear time.
    """
    goals = [wish - distance for wish, distance in zip(wished, offset, strict=True)]
    if goals == sorted(goals):
        return list(wished)
    values: list[float] = []  # mean of each pool
    weights: list[float] = []
    sizes: list[int] = []
    for value, mass in zip(goals, weight, strict=True):
        size = 1
        while values and values[-1] > value:
            total = mass + weights[-1]
            value = (value * mass + values.pop() * weights.pop()) / total
            mass = total
            size += sizes.pop()
        values.append(value)
        weights.append(mass)
        sizes.append(size)
    result: list[float] = []
    for value, size in zip(values, sizes, strict=True):
        start = len(result)
        result.extend([value + distance for distance in offset[start : start + size]])
    return result
