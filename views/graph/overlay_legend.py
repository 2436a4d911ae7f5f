"""What the colours of an overlay mean, in a line below the graph, where it covers nothing of it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.overlays import LEVELS, OVERLAYS, Overlay
from app.unit_errors import error_text
from views.canvas.palette import category_color, ramp_color
from views.look import format as fmt
from views.look.sizes import fitted, px
from views.look.theme import Theme

_HEIGHT, _PAD, _APART = 26, 14, 8  # pixels: of the line, before its first text, between its parts
_RAMP, _KEY = 176, 11  # pixels of a ramp and of a category's square
_POINTS = 9.0
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


class OverlayLegend(QWidget):
    """Hidden while there is no overlay."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._overlay: Overlay | None = None
        fitted(self, lambda: self.setFixedHeight(px(_HEIGHT)))
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.update()

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Explain another overlay."""
        self._overlay = overlay
        self.setVisible(overlay is not None)
        if overlay is not None:
            self.setAccessibleName(f"Colours: {OVERLAYS[overlay.kind]}. {' '.join(_texts(overlay))}")
            self.update()

    @property
    def kind(self) -> str:
        """The overlay that is explained; "decision" for none."""
        return self._overlay.kind if self._overlay is not None else "decision"

    def paintEvent(self, event: QPaintEvent) -> None:
        """A title, then the ramp between its ends, or the categories."""
        overlay, zoom = self._overlay, self._theme.zoom
        if overlay is None:
            return
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), self._theme.surface)
            painter.scale(zoom, zoom)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            _Line(painter, self._theme.unzoomed(), self.width() / zoom, self.height() / zoom).draw(overlay)


class _Line:
    """One line drawn from left to right, as far as there is room."""

    def __init__(self, painter: QPainter, theme: Theme, width: float, height: float) -> None:
        self._painter, self._theme = painter, theme
        self._left, self._right, self._height = float(_PAD), width - _PAD, height
        painter.setFont(theme.ui_font(_POINTS))
        self._measure = QFontMetricsF(painter.font()).horizontalAdvance

    def draw(self, overlay: Overlay) -> None:
        """What an overlay's colours mean; its title, which the bar over the graph has too, where there is room."""
        texts, is_ramp = _texts(overlay), overlay.is_ramp and bool(overlay.units)
        keys = _RAMP + _APART if is_ramp else 0 if overlay.is_ramp else (_KEY + _APART) * len(texts)
        length = sum(map(self._measure, texts)) + keys + _APART * (len(texts) - 1)
        if self._left + self._measure(_title(overlay)) + 2 * _APART + length <= self._right:
            self._text(_title(overlay), is_title=True)
            self._left += _APART
        if is_ramp:
            self._text(texts[0])
            self._ramp()
            self._text(texts[1])
        elif overlay.is_ramp:
            self._text(texts[0])
        else:
            self._keys(texts)

    def _text(self, text: str, *, is_title: bool = False) -> None:
        self._painter.setPen(self._theme.text if is_title else self._theme.muted)
        width = self._measure(text)
        self._painter.drawText(QRectF(self._left, 0, width + 1, self._height), _MIDDLE, text)
        self._left += width + _APART

    def _ramp(self) -> None:
        width = _RAMP / LEVELS
        for level in range(LEVELS):
            where = QRectF(self._left + level * width, self._height / 2 - 5, width, 10)
            self._painter.fillRect(where, ramp_color(level, self._theme))
        self._left += _RAMP + _APART

    def _keys(self, texts: list[str]) -> None:
        for number, text in enumerate(texts):
            rest = f"+{len(texts) - number - 1}" if number + 1 < len(texts) else ""
            needed = _KEY + _APART + self._measure(text) + (_APART + self._measure(rest) if rest else 0.0)
            if self._left + needed > self._right:
                self._text(f"+{len(texts) - number}")
                return
            self._painter.setPen(QPen(Qt.PenStyle.NoPen))
            self._painter.setBrush(category_color(number, self._theme))
            self._painter.drawRoundedRect(QRectF(self._left, (self._height - _KEY) / 2, _KEY, _KEY), 3, 3)
            self._left += _KEY + _APART
            self._text(text)


def _texts(overlay: Overlay) -> list[str]:
    """The ends of a ramp, or the categories; why there is no ramp."""
    if not overlay.is_ramp:
        return overlay.keys
    if not overlay.units:
        return ["not checked yet" if overlay.kind == "error" else "nothing was measured"]
    if overlay.kind == "error":
        return [error_text(overlay.smallest), error_text(overlay.largest)]
    if overlay.kind == "bytes":
        return ["0 B", fmt.size(overlay.largest)]
    return ["0 µs", fmt.microseconds(round(overlay.largest, 2))]


def _title(overlay: Overlay) -> str:
    """What the colours tell, and how that is known."""
    return OVERLAYS[overlay.kind] + (" against float64" if overlay.kind == "error" else _how(overlay))


def _how(overlay: Overlay) -> str:
    if not overlay.is_ramp or not overlay.units:
        return ""
    return " (measured)" if overlay.is_measured else " (estimated)"
