"""Rectangles and lines for QPainter's array calls, written by numpy into memory that Qt objects look at.

Making thousands of QRectF objects a frame costs more than drawing them. Here the objects are made once, over one numpy
buffer, and each frame only rewrites the numbers.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF
from shiboken6 import Shiboken

Shape = TypeVar("Shape", QRectF, QLineF)
_BLOCK = 256


class ShapeBuffer(Generic[Shape]):
    """Rows of four doubles and the Qt objects over them.

    QRectF rows are left, top, width, height; QLineF rows are x1, y1, x2, y2.
    """

    def __init__(self, kind: type[Shape]) -> None:
        self._kind: type[Shape] = kind
        self._blocks: list[NDArray[np.float64]] = []  # of _BLOCK rows each: an object stays where its row is
        self._objects: list[Shape] = []

    def fill(self, values: NDArray[np.floating[Any]]) -> list[Shape]:
        """Objects with the given (n, 4) numbers; valid until the next call."""
        count = len(values)
        while count > len(self._objects):
            self._grow()
        for first, rows in zip(range(0, count, _BLOCK), self._blocks, strict=False):
            part = values[first : first + _BLOCK]
            rows[: len(part)] = part
        return self._objects[:count]

    def _grow(self) -> None:
        rows = np.zeros((_BLOCK, 4))
        address, size = rows.ctypes.data, 4 * rows.itemsize
        wrapped = [Shiboken.wrapInstance(address + i * size, self._kind) for i in range(_BLOCK)]
        self._blocks.append(rows)
        self._objects += cast(list[Shape], wrapped)
