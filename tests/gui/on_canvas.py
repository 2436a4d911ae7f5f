"""What tests do on a canvas: real mouse and wheel events, and a look at its pictures."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from views.canvas.canvas import GraphCanvas

NO_KEYS = Qt.KeyboardModifier.NoModifier


def settle(qtbot: QtBot, canvas: GraphCanvas) -> None:
    """Waits until no animation moves the canvas."""
    qtbot.wait(20)
    qtbot.waitUntil(lambda: canvas._motion.goal is None)


def show(qtbot: QtBot, canvas: GraphCanvas, name: str) -> QPoint:
    canvas.center_on(name)
    settle(qtbot, canvas)
    return canvas.view_position(name)


def wheel(canvas: GraphCanvas, at: QPoint, notches: int, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    event = QWheelEvent(
        QPointF(at), QPointF(canvas.viewport().mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas.viewport(), event)


def click(canvas: GraphCanvas, at: QPoint) -> None:
    QTest.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, at)


def group_background(canvas: GraphCanvas, name: str) -> QPoint:
    """A point on a group's title."""
    assert canvas.scene is not None
    rect = canvas.scene.locate(name)
    assert rect is not None
    x, y = canvas.camera.to_view(rect[0] + 30, rect[1] + 10)
    return QPoint(round(x), round(y))


def difference(a: object, b: object) -> float:
    """Share of pixels that differ visibly."""
    arrays = []
    for image in (a, b):
        image = image.convertToFormat(image.Format.Format_RGB32)  # type: ignore[attr-defined]
        data = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
        arrays.append(data[:, :, :3].astype(int))
    return float((np.abs(arrays[0] - arrays[1]).max(axis=2) > 24).mean())
