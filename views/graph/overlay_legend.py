"""What the colours of an overlay mean, in a corner of the graph."""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.overlays import LEVELS, OVERLAYS, Overlay
from app.unit_errors import error_text
from views.canvas.palette import category_color, ramp_color
from views.look import format as fmt
from views.look.sizes import px
from views.look.theme import Theme

_ROW, _PAD = 18, 10
_KEY, _RAMP, _SHORT = 20, 176, 90  # pixels before a category's name, of a ramp, of one between its ends' texts
_LOW = 320  # pixels of the graph's height below which a ramp is a line of its own, for it would cover what it explains
_POINTS = 9.0


class OverlayLegend(QWidget):
    """Hidden while there is no overlay."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._overlay: Overlay | None = None
        self._is_low = False
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.show_overlay(self._overlay)

    def share(self, height: int) -> None:
        """Take the shape that covers little of a graph ``height`` pixels high."""
        is_low = height < px(_LOW)
        if is_low != self._is_low:
            self._is_low = is_low
            self.show_overlay(self._overlay)

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Explain another overlay."""
        self._overlay = overlay
        self.setVisible(overlay is not None)
        if overlay is not None:
            texts = self._texts(overlay)
            measure = QFontMetricsF(self._theme.unzoomed().ui_font(_POINTS)).horizontalAdvance
            if self._is_line(overlay):
                width = sum(map(measure, _ends(overlay, texts))) + _SHORT + 4 * _PAD
                self.resize(px(ceil(width)), px(_ROW + _PAD))
            else:
                rows = 2 if overlay.is_ramp and overlay.units else len(texts)
                keys = max(map(measure, texts), default=0.0) + (0 if overlay.is_ramp else _KEY)
                least = _RAMP if overlay.is_ramp and overlay.units else 0
                width = max(measure(_title(overlay)), keys, least) + 2 * _PAD + 2
                self.resize(px(ceil(width)), px(_PAD * 2 + _ROW * (rows + 1) - 6))
            self.setAccessibleName(f"Colours: {OVERLAYS[overlay.kind]}. {' '.join(self._texts(overlay))}")
            self.update()

    @property
    def kind(self) -> str:
        """The overlay that is explained; "decision" for none."""
        return self._overlay.kind if self._overlay is not None else "decision"

    def _is_line(self, overlay: Overlay) -> bool:
        return self._is_low and overlay.is_ramp and bool(overlay.units)

    def _texts(self, overlay: Overlay) -> list[str]:
        if not overlay.is_ramp:
            return overlay.keys
        if not overlay.units:
            return ["not checked yet" if overlay.kind == "error" else "nothing was measured"]
        if overlay.kind == "error":
            return [error_text(overlay.smallest), error_text(overlay.largest)]
        if overlay.kind == "bytes":
            return ["0 B", fmt.size(overlay.largest)]
        return ["0", fmt.microseconds(round(overlay.largest, 2))]

    def paintEvent(self, event: QPaintEvent) -> None:
        """A title, then the ramp or the categories."""
        overlay, theme = self._overlay, self._theme.unzoomed()
        if overlay is None:
            return
        width = self.width() / self._theme.zoom
        with QPainter(self) as painter:
            painter.scale(self._theme.zoom, self._theme.zoom)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.border, 1.0))
            painter.setBrush(theme.surface)
            painter.drawRoundedRect(QRectF(0.5, 0.5, width - 1, self.height() / self._theme.zoom - 1), 8, 8)
            painter.setFont(theme.ui_font(_POINTS))
            if self._is_line(overlay):
                self._paint_line(painter, overlay, QRectF(_PAD, 0, width - 2 * _PAD, _ROW + _PAD))
                return
            painter.setPen(theme.text)
            title = QRectF(_PAD, _PAD - 3, width - 2 * _PAD, _ROW)
            painter.drawText(title, Qt.AlignmentFlag.AlignVCenter, _title(overlay))
            if overlay.is_ramp:
                self._paint_ramp(painter, overlay, width - 2 * _PAD)
                return
            for number, text in enumerate(overlay.keys):
                top = _PAD + _ROW * (number + 1)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(category_color(number, theme))
                painter.drawRoundedRect(QRectF(_PAD, top + 3, 11, 11), 3, 3)
                painter.setPen(theme.muted)
                painter.drawText(QRectF(_PAD + _KEY, top, width, _ROW), Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_line(self, painter: QPainter, overlay: Overlay, area: QRectF) -> None:
        low, high = _ends(overlay, self._texts(overlay))
        painter.setPen(self._theme.muted)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, low)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, high)
        left = area.left() + QFontMetricsF(painter.font()).horizontalAdvance(low) + _PAD
        self._paint_levels(painter, QRectF(left, area.center().y() - 5, _SHORT, 10))

    def _paint_levels(self, painter: QPainter, area: QRectF) -> None:
        width = area.width() / LEVELS
        for level in range(LEVELS):
            where = QRectF(area.left() + level * width, area.top(), width, area.height())
            painter.fillRect(where, ramp_color(level, self._theme))

    def _paint_ramp(self, painter: QPainter, overlay: Overlay, length: float) -> None:
        top = _PAD + _ROW
        if overlay.units:
            self._paint_levels(painter, QRectF(_PAD, top + 2, length, 10))
        painter.setPen(self._theme.muted)
        texts = self._texts(overlay)
        where = QRectF(_PAD, top + (_ROW - 2 if overlay.units else -2), length, _ROW)
        painter.drawText(where, Qt.AlignmentFlag.AlignLeft, texts[0])
        if len(texts) > 1:
            painter.drawText(where, Qt.AlignmentFlag.AlignRight, texts[1])


def _title(overlay: Overlay) -> str:
    """What the colours tell, and how that is known."""
    return OVERLAYS[overlay.kind] + (" against float64" if overlay.kind == "error" else _how(overlay))


def _how(overlay: Overlay) -> str:
    if overlay.kind == "error" or not overlay.is_ramp or not overlay.units:
        return ""
    return " (measured)" if overlay.is_measured else " (estimated)"


def _ends(overlay: Overlay, texts: list[str]) -> tuple[str, str]:
    """Of a ramp without its title, which the bar over the graph has."""
    return texts[0], texts[-1] + _how(overlay)
