"""A widget that paints one chart: axes in the theme's look, export as PNG and SVG, a menu to copy and save.

A chart has three layers. What only changes with its data (``paint_base``) is kept as a picture in the screen's own
pixels; the marks of a selection and what hangs on the mouse are painted over it, so that following the mouse costs
nothing that grows with the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QSinglePointEvent,
)
from PySide6.QtWidgets import QWidget

from views.charts.scale import Scale, log_tick_texts, tick_texts
from views.look.theme import Theme, mix
from views.widgets.basic import BY_KEYBOARD
from views.widgets.picture_menu import picture_menu

_TICK_POINTS = 8.5
LEFT, BOTTOM = 52.0, 34.0  # room for an axis with its ticks and title
Texts = Callable[[Sequence[float]], list[str]]


class Chart(QWidget):
    """Subclasses paint into any rectangle, so that the same code draws on the screen and into a file.

    ``redraw`` is for other data, ``update`` for other marks.
    """

    def __init__(self, name: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._take(theme)
        self._base = QPixmap()
        self._ringed = False
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(120, 80)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._take(theme)
        self.redraw()

    def _take(self, theme: Theme) -> None:
        """Charts are drawn for the usual size of texts, and enlarged as a whole where the system's are larger."""
        self.theme, self.enlarged = theme.unzoomed(), theme.zoom

    def area(self) -> QRectF:
        """The whole chart, in the units that it is drawn in."""
        return QRectF(0.0, 0.0, self.width() / self.enlarged, self.height() / self.enlarged)

    def place(self, event: QSinglePointEvent) -> QPointF:
        """Where the mouse is, in the units that the chart is drawn in."""
        return event.position() / self.enlarged

    def redraw(self) -> None:
        """What ``paint_base`` draws is another thing now."""
        self._base = QPixmap()
        self.update()

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """Paint what depends on the data alone into ``area``."""
        raise NotImplementedError

    def paint_marks(self, painter: QPainter, area: QRectF) -> None:
        """Paint the marks of what is selected over it."""

    def paint_hover(self, painter: QPainter, area: QRectF) -> None:
        """Paint what hangs on the mouse; in no file."""

    def paint_chart(self, painter: QPainter, area: QRectF) -> None:
        """Paint everything that belongs into a file into ``area``."""
        self.paint_base(painter, area)
        self.paint_marks(painter, area)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The chart on the theme's surface."""
        ratio = self.devicePixelRatioF()
        if self._base.size() != self.size() * ratio or self._base.devicePixelRatio() != ratio:
            self._base = self._picture(ratio, self.paint_base)
        with QPainter(self) as painter:
            painter.drawPixmap(0, 0, self._base)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint(painter, self.paint_marks)
            self._paint(painter, self.paint_hover)
            if self._ringed:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(self.theme.accent, 1.5))
                painter.drawRoundedRect(QRectF(self.visibleRegion().boundingRect()).adjusted(1, 1, -1, -1), 4, 4)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """A ring shows where the keyboard is, if the keyboard brought it here."""
        super().focusInEvent(event)
        self._ringed = event.reason() in BY_KEYBOARD
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The ring goes with the keyboard."""
        super().focusOutEvent(event)
        self._ringed = False
        self.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy and save."""
        picture_menu(self, self.picture, self.save).exec(event.globalPos())

    def picture(self, ratio: float = 2.0) -> QPixmap:
        """The chart as it is, at ``ratio`` pixels to a point."""
        return self._picture(ratio, self.paint_chart)

    def _picture(self, ratio: float, paint: Callable[[QPainter, QRectF], None]) -> QPixmap:
        made = QPixmap(self.size() * ratio)
        made.setDevicePixelRatio(ratio)
        made.fill(self.theme.surface)
        with QPainter(made) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint(painter, paint)
        return made

    def _paint(self, painter: QPainter, paint: Callable[[QPainter, QRectF], None]) -> None:
        painter.save()
        painter.scale(self.enlarged, self.enlarged)
        painter.setFont(self.theme.ui_font())
        paint(painter, self.area())
        painter.restore()

    def save(self, path: Path) -> None:
        """Write the chart as SVG, or as PNG where ``path`` does not end in ``.svg``.

        Raises:
            OSError: the file cannot be written.
        """
        if path.suffix.lower() == ".svg":
            def paint(painter: QPainter, area: QRectF) -> None:
                self._paint(painter, self.paint_chart)

            save_svg(path, self.size(), self.theme.surface, self.accessibleName(), paint)
        elif not self.picture().save(str(path), "PNG"):
            raise OSError(f"{path} cannot be written.")


def save_svg(
    path: Path, size: QSize, background: QColor, title: str, paint: Callable[[QPainter, QRectF], None]
) -> None:
    """Write what ``paint`` draws as SVG.

    Raises:
        OSError: the file cannot be written.
    """
    from PySide6.QtCore import QBuffer, QIODevice
    from PySide6.QtSvg import QSvgGenerator

    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setResolution(round(QGuiApplication.primaryScreen().logicalDotsPerInch()))  # texts as large as here
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    with QPainter(generator) as painter:
        area = QRectF(0, 0, size.width(), size.height())
        painter.fillRect(area, background)
        paint(painter, area)
    path.write_bytes(bytes(buffer.data().data()))


def draw_axes(
    painter: QPainter,
    theme: Theme,
    box: QRectF,
    x: Scale,
    y: Scale,
    titles: tuple[str, str],
    *,
    x_texts: Texts | None = None,
    y_texts: Texts | None = None,
    has_grid: bool = True,
) -> None:
    """Grid lines, ticks and titles around ``box``. An empty title leaves its axis without texts.

    ``x_texts`` and ``y_texts`` write the ticks of an axis; without them these are counts. Where an axis has no texts
    at all, lines across the plot tell nothing: ``has_grid`` leaves them out.
    """
    painter.save()
    painter.setFont(theme.ui_font(_TICK_POINTS))
    grid = QPen(mix(theme.surface, theme.muted, 0.16), 1.0)
    for value, text in _ticks(y, 34.0, y_texts) if has_grid else ():
        at = round(y.px(value)) + 0.5
        painter.setPen(grid)
        painter.drawLine(int(box.left()), int(at), int(box.right()), int(at))
        if titles[1]:
            painter.setPen(theme.muted)
            where = QRectF(box.left() - 80, at - 9, 74, 18)
            painter.drawText(where, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
    metrics, free = QFontMetricsF(painter.font()), -math.inf
    for value, text in _ticks(x, 66.0, x_texts):
        at = x.px(value)
        painter.setPen(theme.border)
        painter.drawLine(int(at), int(box.bottom()), int(at), int(box.bottom()) + 4)
        if titles[0]:
            width = metrics.horizontalAdvance(text)
            left = min(max(at - width / 2, box.left() - 4), box.right() + 4 - width)
            if left < free:
                continue  # it would stand on the one before
            free = left + width + 6
            painter.setPen(theme.muted)
            painter.drawText(QRectF(left, box.bottom() + 4, width + 2, 15), Qt.AlignmentFlag.AlignLeft, text)
    painter.setPen(QPen(theme.border, 1.0))
    painter.drawLine(int(box.left()), int(box.bottom()), int(box.right()), int(box.bottom()))
    painter.setPen(theme.muted)
    if titles[0]:
        where = QRectF(box.left() - LEFT, box.bottom() + 17, box.width() + LEFT, 16)  # a plot may be narrower than it
        painter.drawText(where, Qt.AlignmentFlag.AlignRight, titles[0])
    if titles[1]:
        painter.drawText(QRectF(box.left() - 80, box.top() - 25, 74, 16), Qt.AlignmentFlag.AlignRight, titles[1])
    painter.restore()


def _ticks(scale: Scale, spacing_px: float, texts: Texts | None) -> list[tuple[float, str]]:
    found = scale.ticks(spacing_px)
    written = texts or (log_tick_texts if scale.log else tick_texts)
    return list(zip(found, written(found), strict=True))


def draw_legend(
    painter: QPainter, theme: Theme, left: float, right: float, top: float, keys: list[tuple[str, QColor]]
) -> None:
    """Keys in a row from ``left``, or from before it where they would not end at ``right``."""
    painter.save()
    painter.setFont(theme.ui_font(9.0))
    metrics = QFontMetricsF(painter.font())
    needed = sum(19 + metrics.horizontalAdvance(text) + 16 for text, _ in keys) - 14  # no gap after the last
    left = max(min(left, right - needed), 2.0)
    for text, color in keys:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawRoundedRect(QRectF(left, top + 6.5, 14, 3), 1.5, 1.5)
        painter.setPen(theme.muted)
        width = metrics.horizontalAdvance(text)
        painter.drawText(QRectF(left + 19, top, width + 2, 16), Qt.AlignmentFlag.AlignVCenter, text)
        left += 19 + width + 16
    painter.restore()


def draw_tip(painter: QPainter, theme: Theme, area: QRectF, x: float, y: float, lines: list[str]) -> None:
    """A small box with ``lines`` beside a point, inside ``area``; the first line is strong."""
    if not lines:
        return
    painter.save()
    strong, plain = theme.ui_font(9.0), theme.ui_font(9.0)
    strong.setWeight(QFont.Weight.DemiBold)
    fonts = [strong, *([plain] * (len(lines) - 1))]
    width = max(QFontMetricsF(f).horizontalAdvance(text) for f, text in zip(fonts, lines, strict=True)) + 20
    height = 17.0 * len(lines) + 10
    left = x + 12 if x + 12 + width <= area.right() else x - 12 - width
    left = max(left, area.left() + 2)
    top = min(max(y - height / 2, area.top() + 2), area.bottom() - height - 2)
    painter.setPen(QPen(theme.border, 1.0))
    painter.setBrush(theme.raised)
    painter.drawRoundedRect(QRectF(round(left) + 0.5, round(top) + 0.5, width, height), 6, 6)
    painter.setPen(theme.text)
    for row, text in enumerate(lines):
        painter.setFont(fonts[row])
        where = QRectF(left + 10, top + 5 + 17 * row, width, 17)
        painter.drawText(where, Qt.AlignmentFlag.AlignVCenter, text)
        painter.setPen(theme.muted)
    painter.restore()
