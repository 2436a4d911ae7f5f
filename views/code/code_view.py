"""A read-only code editor: line numbers, colours, marked lines, and signals for the line under the mouse.

However long the text, no step takes the GUI thread more than a few milliseconds: lines are put in by the thousand, one
event-loop turn after another, and only those on screen are coloured and marked.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
)
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from views.background.jobs import Job
from views.code.emptying import start_afresh
from views.code.tokens import Lines, Span, line_spans, python_spans
from views.look.theme import Theme, mix

_FIRST = 200  # lines put in before anything is painted: more than a tall screen holds
_PAUSE = 16  # milliseconds for painting those
_CHUNK = 500  # lines put in at once after those, about 2 ms
_SYNC_LIMIT = 1_500  # characters of Python lexed at once (about 3 ms); more is lexed off the GUI thread


class CodeView(QPlainTextEdit):
    """Shows one text. ``marked`` lines belong to the selection, ``hinted`` ones to what the mouse is over."""

    line_clicked = Signal(int)  # 1-based
    line_hovered = Signal(int)  # 1-based; 0 when the mouse leaves

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setMouseTracking(True)
        self.viewport().setMouseTracking(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setAccessibleName("Code")
        self._language = "python"
        self._python: Lines = []
        self._prepared: set[int] = set()  # blocks that have their colours and keep their glyphs
        self._ranges: dict[Span, QTextLayout.FormatRange] = {}  # lines of one text are much alike
        self._text = ""
        self._line_count = 1
        self._put_in = 0  # characters of the text that the document has
        self._filling = QTimer(self)
        self._filling.timeout.connect(self._fill_on)
        self._marked: list[int] = []
        self._hinted: list[int] = []
        self._faded: frozenset[int] = frozenset()
        self._reveal = 0
        self._hovered = 0
        self._job: Job | None = None
        self._gutter = _Gutter(self)
        self.updateRequest.connect(self._scrolled)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and font of ``theme``."""
        self._theme = theme
        self.setFont(theme.mono_font(9.5))
        # in fractions of a pixel: rounded, stops drift off the characters and some tabs become nothing
        self.setTabStopDistance(QFontMetricsF(self.font()).horizontalAdvance(" ") * 4)
        self._formats = {
            field: _format(getattr(theme.syntax, field))
            for field in ("keyword", "name", "type", "string", "number", "comment", "decorator", "operator")
        }
        self._ranges.clear()
        self._release(self._prepared)
        self._place_gutter()
        self._repaint()

    def set_code(self, text: str, language: str) -> None:
        """Show ``text``; ``language`` is "python" or the name of an IR ("ptx", "ttir", ...)."""
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self._language = language
        self._python = []
        self._prepared.clear()
        self._ranges.clear()
        self._marked, self._hinted, self._faded, self._reveal = [], [], frozenset(), 0
        self._text = text
        self._line_count = text.count("\n") + 1
        self._put_in = _after_lines(text, 0, _FIRST)
        if self.blockCount() > _CHUNK:
            start_afresh(self)
        self.setPlainText(text[: self._put_in])
        if self._put_in < len(text):
            self._filling.start(_PAUSE)
        else:
            self._filling.stop()
        self._place_gutter()
        if language == "python" and text:
            if len(text) <= _SYNC_LIMIT:
                self._python = python_spans(text)
            else:
                self._job = Job(lambda cancelled: python_spans(text), self)
                self._job.done.connect(self._lexed)
                self._job.start()

    def _fill_on(self) -> None:
        self._filling.setInterval(0)
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        until = _after_lines(self._text, self._put_in + 1, _CHUNK)
        cursor.insertText(self._text[self._put_in : until])
        self._put_in = until
        if until == len(self._text):
            self._filling.stop()
        if self._reveal and self._reveal <= self.blockCount():
            self._show_line(self._reveal)

    @property
    def text(self) -> str:
        """The whole text, also while it is being put in."""
        return self._text

    @property
    def line_count(self) -> int:
        """Lines of the whole text."""
        return self._line_count

    def mark_lines(self, lines: Iterable[int], reveal: bool = True) -> None:
        """Highlight these lines (1-based), and scroll to the first where none of them is on screen."""
        self._marked = [line for line in lines if 1 <= line <= self.line_count]
        self._repaint()
        self._reveal = 0
        if self._marked and reveal and not self._on_screen(self._marked):
            self._show_line(self._marked[0])

    def hint_lines(self, lines: Iterable[int]) -> None:
        """Highlight these lines lightly, until told otherwise; never scrolls."""
        hinted = list(lines)
        if hinted != self._hinted:
            self._hinted = hinted
            self._repaint()

    def fade_lines(self, lines: Iterable[int]) -> None:
        """Paint these lines (1-based) faintly, until told otherwise."""
        self._faded = frozenset(lines)
        self._repaint()

    @property
    def faded_lines(self) -> frozenset[int]:
        """The lines that are painted faintly (1-based)."""
        return self._faded

    @property
    def marked_lines(self) -> list[int]:
        """The highlighted lines (1-based)."""
        return list(self._marked)

    @property
    def hinted_lines(self) -> list[int]:
        """The lightly highlighted lines (1-based)."""
        return list(self._hinted)

    def _show_line(self, line: int) -> None:
        if line > self.blockCount():
            self._reveal = line  # not put in yet
            return
        self._reveal = 0
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(line - 1)))
        self.centerCursor()

    def gutter_width(self) -> int:
        """Pixels that the line numbers take."""
        digits = max(3, len(str(self.line_count)))
        return self.fontMetrics().horizontalAdvance("9") * digits + 22

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that selects no text is a click on its line."""
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self.line_clicked.emit(self._line_at(event.position().toPoint()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell which line the mouse is over, once for each."""
        super().mouseMoveEvent(event)
        self._set_hovered(self._line_at(event.position().toPoint()))

    def leaveEvent(self, event: QEvent) -> None:
        """The mouse is over no line any more."""
        super().leaveEvent(event)
        self._set_hovered(0)

    def _set_hovered(self, line: int) -> None:
        if line != self._hovered:
            self._hovered = line
            self.line_hovered.emit(line)

    def _line_at(self, at: QPoint) -> int:
        return self.cursorForPosition(at).blockNumber() + 1

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter on a line is a click on it."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.line_clicked.emit(self.textCursor().blockNumber() + 1)
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the highlights, then the text over them."""
        self._release(self._prepared - {block.blockNumber() for block, _, _ in self._visible_blocks()})
        self._paint_highlights()
        super().paintEvent(event)
        self._paint_veil()

    def _paint_veil(self) -> None:
        """What is faint is the text under a veil of the surface's colour."""
        if not self._faded:
            return
        veil = QColor(self._theme.surface)
        veil.setAlphaF(0.64)
        with QPainter(self.viewport()) as painter:
            for block, top, height in self._visible_blocks():
                if block.blockNumber() + 1 in self._faded:
                    painter.fillRect(QRect(0, top, self.viewport().width(), height), veil)

    def _paint_highlights(self) -> None:
        marked, hinted = set(self._marked), set(self._hinted)
        if not marked and not hinted:
            return
        painter = QPainter(self.viewport())
        strong = mix(self._theme.surface, self._theme.selection, 0.16)
        light = mix(self._theme.surface, self._theme.selection, 0.07)
        for block, top, height in self._visible_blocks():
            number = block.blockNumber() + 1
            if number in marked or number in hinted:
                area = QRect(0, top, self.viewport().width(), height)
                painter.fillRect(area, strong if number in marked else light)
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the gutter as tall as the view."""
        super().resizeEvent(event)
        self._place_gutter()

    def paint_gutter(self, event: QPaintEvent) -> None:
        """Paint the line numbers of the visible lines."""
        painter = QPainter(self._gutter)
        painter.fillRect(event.rect(), self._theme.surface)
        painter.setFont(self.font())
        marked = set(self._marked)
        right, ascent = self._gutter.width() - 12, self.fontMetrics().ascent()
        digit = self.fontMetrics().horizontalAdvance("9")
        muted = mix(self._theme.muted, self._theme.surface, 0.35)
        for block, top, height in self._visible_blocks():
            if top > event.rect().bottom():
                break
            if top + height < event.rect().top():
                continue
            number = block.blockNumber() + 1
            if number in marked:
                painter.fillRect(QRect(0, top, 3, height), self._theme.selection)
            painter.setPen(self._theme.text if number in marked else muted)
            figures = str(number)
            painter.drawText(right - digit * len(figures), top + ascent, figures)
        painter.end()

    def _lexed(self, lines: Lines) -> None:
        self._python = lines
        self._release(self._prepared)
        self.viewport().update()

    def _visible_blocks(self) -> Iterable[tuple[QTextBlock, int, int]]:
        """Each with its top and height in pixels, coloured first: later, colours would have it laid out again."""
        block = self.firstVisibleBlock()
        top = self.contentOffset().y()
        bottom = self.viewport().height()
        while block.isValid() and top <= bottom:
            self._prepare(block)
            height = self.blockBoundingRect(block).height()
            yield block, round(top), round(height)
            top += height
            block = block.next()

    def _on_screen(self, lines: list[int]) -> bool:
        visible = {block.blockNumber() + 1 for block, _, _ in self._visible_blocks()}
        return not visible.isdisjoint(lines)

    def _prepare(self, block: QTextBlock) -> None:
        """Colour a line, and have it keep the glyphs that measuring it takes: painting would shape them again."""
        number = block.blockNumber()
        if number not in self._prepared:
            self._prepared.add(number)
            layout = block.layout()
            layout.setCacheEnabled(True)
            layout.setFormats([self._range(span) for span in self._spans(block)])

    def _release(self, numbers: set[int]) -> None:
        """Let lines forget what ``_prepare`` gave them: a long text read through would hold that of every line."""
        for number in numbers:
            layout = self.document().findBlockByNumber(number).layout()
            layout.setCacheEnabled(False)
            layout.setFormats([])
            layout.clearLayout()
        self._prepared = self._prepared - numbers

    def _spans(self, block: QTextBlock) -> list[Span]:
        if self._language == "python":
            return self._python[block.blockNumber()] if block.blockNumber() < len(self._python) else []
        return line_spans(self._language, block.text())

    def _range(self, span: Span) -> QTextLayout.FormatRange:
        made = self._ranges.get(span)
        if made is None:
            made = self._ranges[span] = QTextLayout.FormatRange()
            made.start, made.length, made.format = span[0], span[1], self._formats[span[2]]
        return made

    def _repaint(self) -> None:
        self.viewport().update()
        self._gutter.update()

    def _place_gutter(self) -> None:
        self.setViewportMargins(self.gutter_width(), 0, 0, 0)
        area = self.contentsRect()
        self._gutter.setGeometry(area.left(), area.top(), self.gutter_width(), area.height())

    def _scrolled(self, area: QRect, by: int) -> None:
        if by:
            self._gutter.scroll(0, by)
        else:
            self._gutter.update(0, area.y(), self._gutter.width(), area.height())


class _Gutter(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.gutter_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_gutter(event)


def _format(color: QColor) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(color)
    return made


def _after_lines(text: str, start: int, count: int) -> int:
    """The end of the ``count`` th line from ``start`` on, before its line feed; the end of the text if it has fewer."""
    end = start - 1
    for _ in range(count):
        end = text.find("\n", end + 1)
        if end < 0:
            return len(text)
    return end
