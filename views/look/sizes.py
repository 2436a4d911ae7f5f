"""How large texts are, and by how much what must hold them grows where the system's font is large."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from PySide6.QtCore import QEvent, QObject, Signal
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


def fitted(owner: QObject, fit: Callable[[], object]) -> None:
    """Call ``fit``, which gives ``owner`` a size in ``px``; again whenever these are others."""
    fit()
    _Fit(owner, fit)


def fit_again() -> None:
    """The application's font is another: give what was ``fitted`` its new size."""
    _fonts().changed.emit()


class SystemText(QObject):
    """How large the system's texts are, in points and in dots to an inch, asked again when its settings change."""

    changed = Signal()

    def __init__(self, window: QObject) -> None:
        super().__init__(window)
        self.size = (system_points(), dots())
        window.installEventFilter(self)
        QGuiApplication.primaryScreen().logicalDotsPerInchChanged.connect(self._ask)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Other settings of the system's look, its font among them."""
        if event.type() == QEvent.Type.ThemeChange:
            self._ask()
        return super().eventFilter(watched, event)

    def _ask(self) -> None:
        size = (system_points(), dots())
        if size != self.size:
            self.size = size
            self.changed.emit()


class _Fonts(QObject):
    """Tells of the application's font."""

    changed = Signal()


@cache
def _fonts() -> _Fonts:
    """The one of the process. To look for it among the application's children would make classes of all of them."""
    return _Fonts()


class _Fit(QObject):
    """One size that is set again; it goes with its owner."""

    def __init__(self, owner: QObject, fit: Callable[[], object]) -> None:
        super().__init__(owner)
        self._fit = fit
        _fonts().changed.connect(self._again)

    def _again(self) -> None:
        self._fit()
