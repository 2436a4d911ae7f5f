"""Icons have all the pixels that a screen has for them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from views.look.icons import icon


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_a_painted_icon_is_as_sharp_as_the_screen(qtbot: QtBot, ratio: float) -> None:
    side = int(16 * ratio)
    picture = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    picture.fill(Qt.GlobalColor.transparent)
    picture.setDevicePixelRatio(ratio)
    group = icon("group", QColor("black"))
    with QPainter(picture) as painter:
        group.paint(painter, QRect(0, 0, 16, 16))
    wanted = group.pixmap(QSize(side, side), 1.0).toImage().convertToFormat(picture.format())
    picture.setDevicePixelRatio(1.0)
    wanted.setDevicePixelRatio(1.0)
    assert picture == wanted
