"""Which of many rectangles touch a window: whole blocks are passed over before any rectangle is looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 256

Floats = NDArray[np.float32]
Window = tuple[float, float, float, float]  # left, top, right, bottom


class BlockIndex:
    """Rectangles sorted by their tops, in blocks with common bounds. Graphs are tall, so few blocks are ever near."""

    def __init__(self, left: Floats, top: Floats, right: Floats, bottom: Floats) -> None:
        self._order = np.argsort(top, kind="stable")
        self._left, self._top = left[self._order], top[self._order]
        self._right, self._bottom = right[self._order], bottom[self._order]
        starts = np.arange(0, len(top), _BLOCK)
        self._starts = starts
        if len(starts):
            self._block_left = np.minimum.reduceat(self._left, starts)
            self._block_top = np.minimum.reduceat(self._top, starts)
            self._block_right = np.maximum.reduceat(self._right, starts)
            self._block_bottom = np.maximum.reduceat(self._bottom, starts)

    @classmethod
    def of_rects(cls, rects: Floats) -> BlockIndex:
        """Over rows of left, top, width, height."""
        return cls(rects[:, 0], rects[:, 1], rects[:, 0] + rects[:, 2], rects[:, 1] + rects[:, 3])

    def touching(self, window: Window) -> NDArray[np.int64]:
        """Indices of the rectangles that touch a window, in rising order."""
        if not len(self._starts):
            return np.zeros(0, np.int64)
        left, top, right, bottom = window
        blocks = np.flatnonzero(
            (self._block_left <= right)
            & (self._block_right >= left)
            & (self._block_top <= bottom)
            & (self._block_bottom >= top)
        )
        if not len(blocks):
            return np.zeros(0, np.int64)
        rows = slice(int(self._starts[blocks[0]]), int(self._starts[blocks[-1]]) + _BLOCK)
        inside = (
            (self._left[rows] <= right)
            & (self._right[rows] >= left)
            & (self._top[rows] <= bottom)
            & (self._bottom[rows] >= top)
        )
        found: NDArray[np.int64] = np.sort(self._order[rows][inside])
        return found
