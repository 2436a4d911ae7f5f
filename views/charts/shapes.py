"""Arrays as Qt's shapes: a Python object for each point or rectangle would cost more than painting it."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPolygonF
from shiboken6 import Shiboken


def polygon(x: ArrayLike, y: ArrayLike) -> QPolygonF:
    """The points (``x``, ``y``) in their order."""
    points = np.stack([np.asarray(x, np.float64), np.asarray(y, np.float64)], axis=-1)
    made = QPolygonF()
    made.resize(len(points))
    if len(points):
        (address,) = Shiboken.getCppPointer(made.data())
        ctypes.memmove(address, points.ctypes.data, points.nbytes)
    return made


def rectangles(left: ArrayLike, top: ArrayLike, width: ArrayLike, height: ArrayLike) -> list[QRectF]:
    """One rectangle a row; what is one number holds for all rows."""
    columns = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (left, top, width, height)))
    return [QRectF(*row) for row in np.stack(columns, axis=-1).tolist()]


def steps(edges: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners (x, y) of a staircase: ``values[i]`` from ``edges[i]`` to ``edges[i + 1]``."""
    return np.repeat(edges, 2)[1:-1], np.repeat(values, 2)
