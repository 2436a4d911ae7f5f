"""How large texts are, and by how much what must hold them grows where the system's font is large."""

from __future__ import annotations

from PySide6.QtGui import QFontDatabase, QGuiApplication

POINTS = 10.0  # of the font that every figure of pixels was chosen for
LEAST_POINTS = 8.0
_DOTS = 96.0  # to an inch, on the screens that they were chosen on
_WITHOUT_SCREEN = ("offscreen", "minimal")


def system_points() -> float:
    """The size of the system's font; that of our own where there is no desktop, so that pictures are alike anywhere."""
    if QGuiApplication.platformName() in _WITHOUT_SCREEN:
        return POINTS
    points = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).pointSizeF()
    return max(points, LEAST_POINTS) if points > 0 else POINTS  # a font that is set in pixels has none


def dots() -> float:
    """Points of the screen to an inch as texts are measured: 96, or 72 on macOS."""
    return QGuiApplication.primaryScreen().logicalDotsPerInch()


def enlarged(points: float, dots: float) -> float:
    """By how much texts of ``points`` are higher than those drawn for. 1 where they are lower: room is left then."""
    return max(points * dots / (POINTS * _DOTS), 1.0)


def px(pixels: float) -> int:
    """Pixels that texts fit into at the usual size, for the font that the application has now."""
    return round(pixels * enlarged(QGuiApplication.font().pointSizeF(), dots()))
