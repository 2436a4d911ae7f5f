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


class ShapeBuffer(Generic[Shape]):
    """Rows of four doubles and the Qt objects over them.

    QRectF rows are left, top, width, height; QLineF rows are x1, y1, x2, y2.
    """

    def __init__(self, kind: type[Shape]) -> None:
        self._kind: type[Shape] = kind
        self._rows: NDArray[np.float64] = np.zeros((0, 4))
        self._objects: list[Shape] = []

    def fill(self, values: NDArray[np.floating[Any]]) -> list[Shape]:
        """Objects with the given (n, 4) numbers; valid until the next call."""
        count = len(values)
        if count > len(self._objects):
            capacity = max(count, 2 * len(self._objects), 256)
            self._rows = np.zeros((capacity, 4))
            address, size = self._rows.ctypes.data, 4 * self._rows.itemsize
            wrapped = [Shiboken.wrapInstance(address + i * size, self._kind) for i in range(capacity)]
            self._objects = cast(list[Shape], wrapped)
        self._rows[:count] = values
        return self._objects[:count]
