"""Laid-out texts, kept between frames: laying text out costs more than drawing it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QStaticText

_MOST_TEXTS = 20_000


class TextCache:
    """Static texts of one font, elided to the width they are given."""

    def __init__(self, font: QFont) -> None:
        self.font = font
        self.metrics = QFontMetricsF(font)
        self._texts: dict[tuple[str, int], tuple[QStaticText, float]] = {}

    def get(self, text: str, width: float) -> tuple[QStaticText, float]:
        """The text elided to ``width`` pixels, and its own width."""
        key = (text, int(width))
        found = self._texts.get(key)
        if found is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            shown = text
            if self.metrics.horizontalAdvance(text) > width:
                shown = self.metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, width)
            static = QStaticText(shown)
            static.setTextFormat(Qt.TextFormat.PlainText)
            static.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
            static.prepare(font=self.font)
            found = self._texts[key] = (static, self.metrics.horizontalAdvance(shown))
        return found

    def draw_centred(self, painter: QPainter, text: str, box: QRectF) -> None:
        """Draws in the middle of a box; the painter has this cache's font."""
        static, width = self.get(text, box.width())
        top = box.center().y() - self.metrics.height() / 2
        painter.drawStaticText(QPointF(box.center().x() - width / 2, top), static)

    def draw_left(self, painter: QPainter, text: str, box: QRectF) -> float:
        """Draws at a box's left side and returns the width used."""
        static, width = self.get(text, box.width())
        painter.drawStaticText(QPointF(box.left(), box.center().y() - self.metrics.height() / 2), static)
        return width


def canvas_font(base: QFont, pixels: float, bold: bool = False) -> QFont:
    """The theme's font at a pixel size, without hinting so that it scales evenly."""
    font = QFont(base)
    font.setPixelSize(max(round(pixels), 1))
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font
