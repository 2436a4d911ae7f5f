"""A read-only text that paints only the lines on screen, however long it is.

There is no document: the lines are strings, all equally tall, and their characters stand on a grid of equal cells. So
where a line or a character is follows from its number; opening a text, scrolling and jumping cost what is on screen.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from views.code.blocks import LINES, Blocks
from views.code.caret import Caret, Move, Place
from views.code.cells import Cells
from views.code.glyphs import Glyphs
from views.code.highlighting import Highlighter
from views.code.keys import move_of
from views.code.lines import Lines
from views.code.pointer import Pointer
from views.look.contrast import legible
from views.look.theme import Theme, mix

_MARGIN = 4  # pixels around the text
_BESIDE_NUMBERS, _BEHIND_NUMBERS = 22, 12  # pixels on both sides of the line numbers, and on the right
_SIZES = (6.0, 28.0)  # points that zooming goes to
_SIZE = 9.5
_Key = QKeySequence.StandardKey


class TextView(QAbstractScrollArea):
    """Shows lines of code with a caret and a selection. Lines in signals and names of methods count from 1."""

    caret_moved = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._pointer = Pointer(self)
        self._points = _SIZE
        self._widest = 0  # cells of the widest line known
        self._bars_due = False
        self._glyphs = Glyphs(self.font())
        self._take_text("", "")
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and font of ``theme``."""
        self._theme = theme
        fields = ("keyword", "name", "type", "string", "number", "comment", "decorator", "operator")
        self._colors: dict[str, QColor] = {field: getattr(theme.syntax, field) for field in fields} | {"": theme.text}
        self._pale = legible(mix(theme.muted, theme.surface, 0.35), theme.surface)
        self._measure()

    def set_text(self, text: str, language: str) -> None:
        """Show ``text`` from its beginning; ``language`` is "python", "diff" or the name of an IR."""
        self._take_text(text, language)
        self.horizontalScrollBar().setValue(0)
        self.verticalScrollBar().setValue(0)
        self._place_bars()
        self.viewport().update()

    @property
    def text(self) -> str:
        """The whole text."""
        return self.lines.text

    @property
    def line_count(self) -> int:
        """Lines of the whole text."""
        return len(self.lines)

    @property
    def ready_lines(self) -> list[int]:
        """The lines that are kept ready to be painted: those on screen, and a few that were."""
        blocks = (range(number * LINES + 1, number * LINES + LINES + 1) for number in self._blocks.ready)
        return [line for lines in blocks for line in lines if line <= self.line_count]

    def line_rect(self, line: int) -> QRect:
        """Where a line is, in pixels of the viewport."""
        top = _MARGIN + (line - 1) * self._row_height - self.verticalScrollBar().value()
        return QRect(0, top, self.viewport().width(), self._row_height)

    def is_on_screen(self, line: int) -> bool:
        """Whether the middle of a line can be seen."""
        return line in self.lines_on_screen()

    def lines_on_screen(self) -> range:
        """The lines whose middle can be seen."""
        height = self._row_height
        above = self.verticalScrollBar().value() - _MARGIN - height // 2
        return range(max(-(-above // height), 0) + 1, (above + self.viewport().height() - 1) // height + 2)

    def center_line(self, line: int) -> None:
        """Stand at a line, in the middle of the view, whose first line is not cut."""
        self.caret.go((max(0, min(line, self.line_count) - 1), 0))
        above = (self.viewport().height() // self._row_height - 1) // 2
        first = max(line - 1 - above, 0)
        self.verticalScrollBar().setValue(first * self._row_height + _MARGIN if first else 0)
        self.horizontalScrollBar().setValue(0)
        self._tell_caret()

    def gutter_width(self) -> int:
        """Pixels left of the text, which the line numbers take and do not scroll sideways."""
        return round(self._advance * self._blocks.digits) + _BESIDE_NUMBERS

    def place_at(self, at: QPointF) -> Place:
        """The place in the text that is nearest to a point of the viewport."""
        row = int((at.y() + self.verticalScrollBar().value() - _MARGIN) // self._row_height)
        if row < 0:
            return 0, 0
        line = min(row, self.line_count - 1)
        cell = (at.x() - self._left()) / self._advance
        return line, self._cells(line).nearest(max(cell, 0.0))

    def place_rect(self, place: Place) -> QRectF:
        """Where the caret is drawn at a place, in pixels of the viewport."""
        cell = self._cells(place[0]).cell(place[1])
        return QRectF(self._left() + cell * self._advance, self.line_rect(place[0] + 1).top(), 1, self._row_height)

    def stand_at(self, place: Place) -> None:
        """Move the caret there, with nothing selected, and bring it into sight."""
        self.select(place, place)

    def select(self, start: Place, end: Place) -> None:
        """Select what is between two places, and bring the second into sight."""
        if (start, end) != (self.caret.anchor, self.caret.place):
            self.caret.select(start, end)
            self._reveal_caret()

    def select_all(self) -> None:
        """Select the whole text; the view stays."""
        last = self.line_count - 1
        self.caret.select((0, 0), (last, len(self.lines[last])))
        self._tell_caret()

    def copy(self) -> None:
        """Copy what is selected."""
        if self.caret.has_selection:
            QGuiApplication.clipboard().setText(self.caret.text())

    def zoom(self, steps: float) -> None:
        """A larger or smaller font by so many points; 0 is the size it had at first."""
        points = max(_SIZES[0], min(self._points + steps, _SIZES[1])) if steps else _SIZE
        if points != self._points:
            middle = self.place_at(QPointF(self.gutter_width(), self.viewport().height() / 2))[0]
            self._points = points
            self._measure()
            self.verticalScrollBar().setValue(middle * self._row_height - self.viewport().height() // 2)

    # what a view of code adds

    def line_back(self, number: int) -> QColor | None:
        """What is behind a line (from 0)."""
        return None

    def line_veil(self, number: int) -> QColor | None:
        """What is over a line's text (from 0)."""
        return None

    def found_in(self, number: int) -> list[tuple[int, int, bool]]:
        """First column, the one behind, whether it is the current one: what a search found in a line (from 0)."""
        return []

    def paint_gutter(self, painter: QPainter, number: int, area: QRect) -> None:
        """Paint over what is left of a line (from 0): its number, in a pale colour."""

    def draw_number(self, painter: QPainter, number: int, area: QRect) -> None:
        """Draw a line's number again, in the painter's pen."""
        figures = str(number + 1)
        left = area.right() + 1 - _BEHIND_NUMBERS - self._advance * len(figures)
        painter.drawText(QPointF(left, area.top() + self._ascent), figures)

    # events

    def event(self, event: QEvent) -> bool:
        """Keys that this view uses are not the window's shortcuts."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self.wants_key(event):
            event.accept()
            return True
        return super().event(event)

    def wants_key(self, event: QKeyEvent) -> bool:
        """Whether a key is this view's."""
        return (
            move_of(event) is not None
            or _lines_of(event) != 0
            or _zoom_of(event) is not None
            or event.matches(_Key.Copy)
            or event.matches(_Key.SelectAll)
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, select, copy, zoom."""
        move = move_of(event)
        if move is not None:
            how, extend = move
            page = max(self.viewport().height() // self._row_height - 1, 1)
            self.caret.move(how, extend, page)
            self._scroll_by({Move.PAGE_UP: -page, Move.PAGE_DOWN: page}.get(how, 0))
            self._reveal_caret()
        elif _lines_of(event):
            self._scroll_by(_lines_of(event))
        elif event.matches(_Key.Copy):
            self.copy()
        elif event.matches(_Key.SelectAll):
            self.select_all()
        elif _zoom_of(event) is not None:
            self.zoom(_zoom_of(event) or 0)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a selection."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pointer.press(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Select a word."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pointer.double(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Extend the selection; over the line numbers the mouse is an arrow."""
        on_numbers = event.position().x() < self.gutter_width()
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if on_numbers else Qt.CursorShape.IBeamCursor)
        if self._pointer.is_dragging:
            self._pointer.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a selection."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pointer.release()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """A touchpad scrolls by its pixels, a wheel by lines; with Ctrl the font changes."""
        by = event.pixelDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            if event.angleDelta().y():
                self.zoom(event.angleDelta().y() / 120)
        elif not by.isNull() and not event.modifiers() and QGuiApplication.platformName() != "xcb":  # unreliable there
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() - by.y())
            self.horizontalScrollBar().setValue(self.horizontalScrollBar().value() - by.x())
        else:
            super().wheelEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Painting what is on screen anew takes less than moving what was."""
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """There is room for more lines, or fewer."""
        super().resizeEvent(event)
        self._place_bars()

    def changeEvent(self, event: QEvent) -> None:
        """Another font has other cells."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._place_cells()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The caret can be seen."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The caret can be seen no more."""
        super().focusOutEvent(event)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the lines of the damaged part, what is behind them first, and the gutter over their left ends."""
        painter = QPainter(self.viewport())
        painter.setFont(self.font())
        area = event.rect()
        painter.fillRect(area, self._theme.surface)
        left, gutter = self._left(), self.gutter_width()
        first_cell = max(int((gutter - left) / self._advance), 0)
        last_cell = int((self.viewport().width() - left) / self._advance) + 1
        self._blocks.look_at(first_cell, last_cell)
        scrolled = self.verticalScrollBar().value() - _MARGIN
        numbers = range(
            max((area.top() + scrolled) // self._row_height, 0),
            min((area.bottom() + scrolled) // self._row_height + 1, self.line_count),
        )
        for number in numbers:
            self._paint_back(painter, number, number * self._row_height - scrolled)
        for block in _blocks_of(numbers):
            self._widen(self._blocks[block].widest)
            self._blocks.draw(painter, block, left, block * LINES * self._row_height - scrolled, self._colors)
        for number in numbers:
            if (veil := self.line_veil(number)) is not None:
                top = number * self._row_height - scrolled
                painter.fillRect(QRect(0, top, area.right() + 1, self._row_height), veil)
        if self.hasFocus() and self.caret.place[0] in numbers:
            painter.fillRect(self.place_rect(self.caret.place), self._theme.text)
        self._paint_gutter(painter, numbers, scrolled)
        painter.end()

    def _paint_gutter(self, painter: QPainter, numbers: range, scrolled: int) -> None:
        gutter, height = self.gutter_width(), self._row_height
        painter.fillRect(QRect(0, 0, gutter, self.viewport().height()), self._theme.surface)
        for number in numbers:
            if (back := self.line_back(number)) is not None:
                painter.fillRect(QRect(0, number * height - scrolled, gutter, height), back)
        painter.setPen(self._pale)
        left = gutter - _BEHIND_NUMBERS - self._advance * self._blocks.digits
        for block in _blocks_of(numbers):
            self._blocks.draw_numbers(painter, block, left, block * LINES * height - scrolled)
        for number in numbers:
            self.paint_gutter(painter, number, QRect(0, number * height - scrolled, gutter, height))

    def _paint_back(self, painter: QPainter, number: int, top: int) -> None:
        theme, width = self._theme, self.viewport().width()
        back = self.line_back(number)
        if back is None and self.hasFocus() and number == self.caret.place[0]:
            back = mix(theme.surface, theme.text, 0.045)
        if back is not None:
            painter.fillRect(QRect(0, top, width, self._row_height), back)
        (first, begin), (last, behind) = self.caret.selection
        if self.caret.has_selection and first <= number <= last:
            strength = 0.2 if self.hasFocus() else 0.12
            start = begin if number == first else 0
            end = behind if number == last else len(self.lines[number])
            beyond = 0.5 if number < last else 0.0  # the line's end is selected, too
            self._fill_cells(painter, number, top, start, end, mix(theme.surface, theme.accent, strength), beyond)
        for start, end, current in self.found_in(number):
            color = mix(theme.surface, theme.warning, 0.36 if current else 0.16)
            self._fill_cells(painter, number, top, start, end, color)

    def _fill_cells(
        self, painter: QPainter, number: int, top: int, start: int, end: int, color: QColor, beyond: float = 0.0
    ) -> None:
        cells = self._cells(number)
        first, last = cells.cell(start), cells.cell(end) + beyond
        left = self._left() + first * self._advance
        painter.fillRect(QRectF(left, top, (last - first) * self._advance, self._row_height), color)

    def _scroll_by(self, lines: int) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().value() + lines * self._row_height)

    def _take_text(self, text: str, language: str) -> None:
        self.lines = Lines(text)
        self.caret = Caret(self.lines)
        self._blocks = Blocks(self.lines, Highlighter(language, self.lines), self._glyphs)
        self._widest = self.lines.longest

    def _measure(self) -> None:
        self.setFont(self._theme.mono_font(self._points))
        self._place_cells()

    def _place_cells(self) -> None:
        self._glyphs = Glyphs(self.font())
        self._blocks.set_glyphs(self._glyphs)
        self._advance, self._row_height, self._ascent = self._glyphs.advance, self._glyphs.height, self._glyphs.ascent
        self._place_bars()
        self.viewport().update()

    def _cells(self, number: int) -> Cells:
        return Cells(self.lines[number])

    def _left(self) -> float:
        """Where the first cell of each line is, in pixels of the viewport."""
        return self.gutter_width() + _MARGIN - self.horizontalScrollBar().value()

    def _widen(self, cells: int) -> None:
        if cells > self._widest:
            self._widest = cells
            if not self._bars_due:
                self._bars_due = True
                QTimer.singleShot(0, self, self._place_bars)  # not while painting

    def _place_bars(self) -> None:
        self._bars_due = False
        down, across = self.verticalScrollBar(), self.horizontalScrollBar()
        down.setRange(0, max(self.line_count * self._row_height + 2 * _MARGIN - self.viewport().height(), 0))
        down.setPageStep(self.viewport().height())
        down.setSingleStep(self._row_height)
        room = self.viewport().width() - self.gutter_width()
        across.setRange(0, max(round((self._widest + 1) * self._advance) + 2 * _MARGIN - room, 0))
        across.setPageStep(max(room, 1))
        across.setSingleStep(round(self._advance))

    def _reveal_caret(self) -> None:
        place = self.place_rect(self.caret.place)
        down, across = self.verticalScrollBar(), self.horizontalScrollBar()
        beyond = min(place.top() - _MARGIN, 0) or max(place.bottom() + _MARGIN - self.viewport().height(), 0)
        down.setValue(down.value() + round(beyond))
        room = 4 * self._advance  # some of what is further on
        gutter, width = self.gutter_width(), self.viewport().width()
        beyond = min(place.left() - room - gutter, 0) or max(place.right() + room - width, 0)
        across.setValue(across.value() + round(beyond))
        self._tell_caret()

    def _tell_caret(self) -> None:
        self.viewport().update()
        self.caret_moved.emit()


def _blocks_of(lines: range) -> range:
    return range(lines.start // LINES, -(-lines.stop // LINES))


def _lines_of(event: QKeyEvent) -> int:
    """Lines that Ctrl and an arrow scroll by, while the caret stays."""
    return {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(_with_ctrl(event), 0)


def _zoom_of(event: QKeyEvent) -> int | None:
    """Steps that a key zooms by, 0 for back to the beginning, None where it does not."""
    keys = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1, Qt.Key.Key_0: 0}
    return keys.get(_with_ctrl(event))


def _with_ctrl(event: QKeyEvent) -> Qt.Key:
    ctrl = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.ControlModifier
    return Qt.Key(event.key()) if ctrl else Qt.Key.Key_unknown
