"""A read-only code editor: line numbers, colours, marked lines, and a signal for the line under a click."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
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
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from views.jobs import Job
from views.theme import Theme, mix
from views.tokens import Lines, Span, line_spans, python_spans

_SYNC_LIMIT = 20_000  # characters of Python lexed at once (about 10 ms); more is lexed off the GUI thread


class CodeView(QPlainTextEdit):
    """Shows one text. Only lines that come on screen are coloured, so 20,000 lines of PTX open at once."""

    line_clicked = Signal(int)  # 1-based

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setAccessibleName("Code")
        self._language = "python"
        self._python: Lines = []
        self._coloured: set[int] = set()
        self._marked: list[int] = []
        self._job: Job | None = None
        self._gutter = _Gutter(self)
        self.blockCountChanged.connect(self._place_gutter)
        self.updateRequest.connect(self._scrolled)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and font of ``theme``."""
        self._theme = theme
        self.setFont(theme.mono_font(9.5))
        self.setTabStopDistance(self.fontMetrics().horizontalAdvance(" ") * 4)
        self._formats = {
            field: _format(getattr(theme.syntax, field))
            for field in ("keyword", "name", "type", "string", "number", "comment", "decorator", "operator")
        }
        self._coloured.clear()
        self._place_gutter()
        self._mark()
        self.viewport().update()

    def set_code(self, text: str, language: str) -> None:
        """Show ``text``; ``language`` is "python" or the name of an IR ("ptx", "ttir", ...)."""
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self._language = language
        self._python = []
        self._coloured.clear()
        self._marked = []
        self.setExtraSelections([])
        self.setPlainText(text)
        if language == "python":
            if len(text) <= _SYNC_LIMIT:
                self._python = python_spans(text)
            else:
                self._job = Job(lambda cancelled: python_spans(text), self)
                self._job.done.connect(self._lexed)
                self._job.start()

    def mark_lines(self, lines: Iterable[int], reveal: bool = True) -> None:
        """Highlight these lines (1-based), and scroll to the first where none of them is on screen."""
        self._marked = [line for line in lines if 1 <= line <= self.blockCount()]
        self._mark()
        if self._marked and reveal and not self._on_screen(self._marked):
            self.setTextCursor(QTextCursor(self.document().findBlockByNumber(self._marked[0] - 1)))
            self.centerCursor()

    @property
    def marked_lines(self) -> list[int]:
        """The highlighted lines (1-based)."""
        return list(self._marked)

    def gutter_width(self) -> int:
        """Pixels that the line numbers take."""
        digits = max(3, len(str(self.blockCount())))
        return self.fontMetrics().horizontalAdvance("9") * digits + 22

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that selects no text is a click on its line."""
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self.line_clicked.emit(self.cursorForPosition(event.position().toPoint()).blockNumber() + 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter on a line is a click on it."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.line_clicked.emit(self.textCursor().blockNumber() + 1)
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Colour the lines about to be seen, then paint."""
        self._colour_visible()
        super().paintEvent(event)

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
        width = self._gutter.width() - 12
        for block, top, height in self._visible_blocks():
            number = block.blockNumber() + 1
            if number in marked:
                painter.fillRect(QRect(0, top, 3, height), self._theme.selection)
            painter.setPen(self._theme.text if number in marked else mix(self._theme.muted, self._theme.surface, 0.35))
            painter.drawText(QRect(0, top, width, height), Qt.AlignmentFlag.AlignRight, str(number))
        painter.end()

    def _lexed(self, lines: Lines) -> None:
        self._python = lines
        self._coloured.clear()
        self.viewport().update()

    def _visible_blocks(self) -> Iterable[tuple[QTextBlock, int, int]]:
        block = self.firstVisibleBlock()
        offset = self.contentOffset()
        while block.isValid():
            area = self.blockBoundingGeometry(block).translated(offset)
            if area.top() > self.viewport().height():
                return
            yield block, round(area.top()), round(area.height())
            block = block.next()

    def _on_screen(self, lines: list[int]) -> bool:
        visible = {block.blockNumber() + 1 for block, _, _ in self._visible_blocks()}
        return not visible.isdisjoint(lines)

    def _colour_visible(self) -> None:
        for block, _, _ in self._visible_blocks():
            number = block.blockNumber()
            if number in self._coloured:
                continue
            self._coloured.add(number)
            block.layout().setFormats([self._range(span) for span in self._spans(block)])

    def _spans(self, block: QTextBlock) -> list[Span]:
        if self._language == "python":
            return self._python[block.blockNumber()] if block.blockNumber() < len(self._python) else []
        return line_spans(self._language, block.text())

    def _range(self, span: Span) -> QTextLayout.FormatRange:
        made = QTextLayout.FormatRange()
        made.start, made.length, made.format = span[0], span[1], self._formats[span[2]]
        return made

    def _mark(self) -> None:
        fill = mix(self._theme.surface, self._theme.selection, 0.16)
        selections = []
        for line in self._marked:
            selection = QTextEdit.ExtraSelection()
            selection.cursor = QTextCursor(self.document().findBlockByNumber(line - 1))
            selection.format.setBackground(fill)
            selection.format.setProperty(QTextCharFormat.Property.FullWidthSelection, True)
            selections.append(selection)
        self.setExtraSelections(selections)
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
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.gutter_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_gutter(event)


def _format(color: QColor) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(color)
    return made
