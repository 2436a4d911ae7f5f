"""Drives a real window for benchmarks: makes it, waits for it, sends it real key and mouse events."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QEventLoop, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.settings import Settings
from app.worker.client import WorkerClient
from views.app import make_application
from views.main_window import MainWindow

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier


def make_window(width: int, height: int) -> MainWindow:
    """A window on screen, without a worker, with its panels made."""
    window = show_window(width, height)
    assert window.workspace is not None
    settle(0.2)
    return window


def show_window(width: int, height: int) -> MainWindow:
    """A window that has just come on screen, without a worker; its panels are made from now on."""
    make_application()
    window = MainWindow(WorkerClient, Settings(theme="light"), start_worker=False)
    window.resize(width, height)
    window.show()
    wait(lambda: window.isVisible())
    return window


def wait(done: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Let events through until ``done``.

    Raises:
        TimeoutError: it did not become so.
    """
    loop = QEventLoop()
    end = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("the window did not get there")
        loop.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 2)


def settle(seconds: float) -> None:
    """Let events through for a while."""
    end = time.monotonic() + seconds
    wait(lambda: time.monotonic() > end)


def button(among: QWidget, name: str) -> QAbstractButton:
    """The button in sight whose name for a screen reader begins with ``name``.

    Raises:
        LookupError: there is none, or more than one.
    """
    found = [
        one for one in among.findChildren(QAbstractButton) if one.isVisible() and one.accessibleName().startswith(name)
    ]
    if len(found) != 1:
        raise LookupError(f"{len(found)} buttons are called {name}")
    return found[0]


def key(widget: QWidget, which: Qt.Key, modifier: Qt.KeyboardModifier = NONE) -> None:
    """Press a key."""
    QTest.keyClick(widget, which, modifier)


def click(widget: QWidget, at: QPoint | None = None) -> None:
    """Press and release the left button, in the middle where no place is given."""
    QTest.mouseClick(widget, LEFT, NONE, at or widget.rect().center())


def move(widget: QWidget, at: QPoint) -> None:
    """Move the mouse."""
    QTest.mouseMove(widget, at)


def wheel(widget: QWidget, at: QPoint, steps: int, modifier: Qt.KeyboardModifier = NONE) -> None:
    """Turn the wheel."""
    where = QPointF(at)
    event = QWheelEvent(
        where, QPointF(widget.mapToGlobal(at)), QPoint(), QPoint(0, 120 * steps), Qt.MouseButton.NoButton, modifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
