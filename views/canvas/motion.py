"""Smooth camera moves of at most 200 ms."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEasingCurve, QObject, QVariantAnimation

from views.canvas.camera import Camera

GLIDE_MS = 180
ZOOM_MS = 110


class Motion(QObject):
    """Moves a camera to where it is wanted, and knows where that is while it moves."""

    def __init__(self, parent: QObject, apply: Callable[[Camera, bool], None]) -> None:
        """``apply`` takes each camera on the way, and whether more follow."""
        super().__init__(parent)
        self._apply = apply
        self._start = self._goal = Camera()
        self._animation = QVariantAnimation(self)
        self._animation.setStartValue(0.0)
        self._animation.setEndValue(1.0)
        self._animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._animation.valueChanged.connect(self._step)

    @property
    def goal(self) -> Camera | None:
        """Where the running move ends; None at rest."""
        return self._goal if self._animation.state() == QVariantAnimation.State.Running else None

    def go(self, start: Camera, goal: Camera, duration_ms: int) -> None:
        """Moves from one camera to another; replaces the running move."""
        self._animation.stop()
        self._start, self._goal = start, goal
        self._animation.setDuration(duration_ms)
        self._animation.start()

    def stop(self) -> None:
        """Stays where the camera is."""
        self._animation.stop()

    def _step(self, share: float) -> None:
        self._apply(self._start.between(self._goal, share), share < 1.0)
