"""Icons: shipped SVG files drawn in a colour of the theme, rendered once per size."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from views.look.resources import resource

SIZES = (16, 20, 24, 32, 40, 48)


def icon(name: str, color: QColor, checked: QColor | None = None) -> QIcon:
    """The icon ``name`` in ``color`` (``checked`` while a button is down), greyed by opacity where disabled."""
    return _icon(name, color.rgba(), checked.rgba() if checked else 0)


def pixmap(name: str, color: QColor, size: int, ratio: float = 2.0) -> QPixmap:
    """The icon ``name`` as a pixmap of ``size`` logical pixels, for labels."""
    return _render(name, color.rgba(), int(size * ratio), 1.0, ratio)


@lru_cache(maxsize=256)
def _icon(name: str, rgba: int, checked_rgba: int) -> QIcon:
    result = QIcon()
    plain = _renderer(name, rgba)
    checked = _renderer(name, checked_rgba) if checked_rgba else None
    for size in SIZES:
        result.addPixmap(_drawn(plain, size, 1.0, 1.0))
        result.addPixmap(_drawn(plain, size, 0.35, 1.0), QIcon.Mode.Disabled)
        if checked is not None:
            result.addPixmap(_drawn(checked, size, 1.0, 1.0), QIcon.Mode.Normal, QIcon.State.On)
    return result


@lru_cache(maxsize=1024)
def _render(name: str, rgba: int, pixels: int, opacity: float, ratio: float) -> QPixmap:
    return _drawn(_renderer(name, rgba), pixels, opacity, ratio)


def _renderer(name: str, rgba: int) -> QSvgRenderer:
    svg = resource("icons", f"{name}.svg").read_bytes()
    color = QColor.fromRgba(rgba).name().encode()
    return QSvgRenderer(QByteArray(svg.replace(b"currentColor", color)))


def _drawn(renderer: QSvgRenderer, pixels: int, opacity: float, ratio: float) -> QPixmap:
    image = QPixmap(QSize(pixels, pixels))
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setOpacity(opacity)
    renderer.render(painter, QRectF(0, 0, pixels, pixels))
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image
