"""Icons: shipped SVG files drawn in a colour of the theme, each size when it is first on screen."""

from __future__ import annotations

from functools import cache, lru_cache

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from views.look.resources import resource

_OFF = 0.35  # opacity of an icon whose button is disabled


def icon(name: str, color: QColor, checked: QColor | None = None) -> QIcon:
    """The icon ``name`` in ``color`` (``checked`` while a button is down), greyed by opacity where disabled."""
    return _icon(name, color.rgba(), (checked or color).rgba())


def pixmap(name: str, color: QColor, size: int, ratio: float = 2.0) -> QPixmap:
    """The icon ``name`` as a pixmap of ``size`` logical pixels, for labels."""
    pixels = int(size * ratio)
    image = QPixmap(_render(name, color.rgba(), pixels, pixels, 1.0))
    image.setDevicePixelRatio(ratio)
    return image


@lru_cache(maxsize=256)
def _icon(name: str, rgba: int, checked_rgba: int) -> QIcon:
    return QIcon(_Engine(name, rgba, checked_rgba))


class _Engine(QIconEngine):
    """Draws an icon at the size that is asked for, and no other."""

    def __init__(self, name: str, rgba: int, checked_rgba: int) -> None:
        super().__init__()
        self._name = name
        self._rgba = {QIcon.State.Off: rgba, QIcon.State.On: checked_rgba}
        self._clones: list[QIconEngine] = []  # Qt owns them, which PySide does not know

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """The icon at ``size`` device pixels."""
        opacity = _OFF if mode == QIcon.Mode.Disabled else 1.0
        return _render(self._name, self._rgba[state], size.width(), size.height(), opacity)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """The same at a place, in all the pixels that a screen of high density has there."""
        ratio = painter.deviceTransform().m11()  # of the device: to ask which it is would make every class of one
        image = QPixmap(self.pixmap(rect.size() * ratio, mode, state))
        image.setDevicePixelRatio(ratio)
        painter.drawPixmap(QPoint(rect.x(), rect.y()), image)

    def clone(self) -> QIconEngine:
        """For an icon that is about to be changed."""
        made = _Engine(self._name, self._rgba[QIcon.State.Off], self._rgba[QIcon.State.On])
        self._clones.append(made)
        return made


@lru_cache(maxsize=1024)
def _render(name: str, rgba: int, width: int, height: int, opacity: float) -> QPixmap:
    image = QPixmap(QSize(width, height))
    image.fill(Qt.GlobalColor.transparent)
    side = min(width, height)
    painter = QPainter(image)
    painter.setOpacity(opacity)
    _renderer(name, rgba).render(painter, QRectF((width - side) / 2, (height - side) / 2, side, side))
    painter.end()
    return image


def _renderer(name: str, rgba: int) -> QSvgRenderer:
    color = QColor.fromRgba(rgba).name().encode()
    return QSvgRenderer(QByteArray(_svg(name).replace(b"currentColor", color)))


@cache
def _svg(name: str) -> bytes:
    return resource("icons", f"{name}.svg").read_bytes()
