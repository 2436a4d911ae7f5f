"""The glyphs of a fixed-width font, put on the grid without shaping the text again each time it is painted."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QFont, QFontMetricsF, QGlyphRun, QRawFont

_ASCII = 128
_FIRST_SIGN = 32  # what is below is drawn as a blank


class Glyphs:
    """What ``font`` needs to paint plain text: a glyph for each character of ASCII, and the size of a cell."""

    def __init__(self, font: QFont) -> None:
        metrics = QFontMetricsF(font)
        self.advance = metrics.horizontalAdvance("0" * 64) / 64
        self.height = max(round(metrics.lineSpacing()), 1)
        self.ascent = metrics.ascent()
        self._raw = QRawFont.fromFont(font)
        signs = self._raw.glyphIndexesForString("".join(map(chr, range(_FIRST_SIGN, _ASCII - 1))))
        self._has_all = len(signs) == _ASCII - 1 - _FIRST_SIGN and all(signs)  # else some come from another font
        self._indexes = [signs[0]] * _FIRST_SIGN + signs + signs[:1] if self._has_all else []
        self._points: list[list[QPointF]] = []  # of each row of a block, by cell

    def can_draw(self, text: str) -> bool:
        """Whether every character has a glyph here."""
        return self._has_all and text.isascii()

    def indexes(self, text: str) -> list[int]:
        """The glyph of each character of ``text``."""
        return list(map(self._indexes.__getitem__, text.encode("ascii")))

    def points(self, row: int, end: int) -> list[QPointF]:
        """Where the cells of a block's row are drawn, those before ``end`` at least; the block's first at (0, 0)."""
        while len(self._points) <= row:
            self._points.append([])
        known = self._points[row]
        if len(known) < end:
            down = float(row * self.height)
            known += [QPointF(cell * self.advance, down) for cell in range(len(known), end + 64)]
        return known

    def run(self, indexes: list[int], points: list[QPointF]) -> QGlyphRun:
        """Glyphs at points, to be drawn at once."""
        made = QGlyphRun()
        made.setRawFont(self._raw)
        made.setGlyphIndexes(indexes)
        made.setPositions(points)
        return made
