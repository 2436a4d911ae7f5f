"""Lines made ready for painting, a few at a time: what is drawn at which cell, in which colour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QGlyphRun, QPainter

from views.code.cells import TAB, Cells, pieces
from views.code.glyphs import Glyphs
from views.code.highlighting import Highlighter
from views.code.lines import Lines
from views.code.tokens import Span

LINES = 8  # of a block: drawn at once where they have one colour
_WINDOW = 512  # cells: a line is made ready from a multiple of them to another
_COLOURED = 4_096  # columns of a line that have colours; what is longer than that is data
_DIGITS = 3  # cells of the line numbers, at least
_KEPT = 64  # blocks kept ready


class Block(NamedTuple):
    """What is drawn of some lines, as far as it is near what is seen.

    Each part has a field of theme.Syntax as its colour, "" that of plain text.
    """

    runs: list[tuple[str, QGlyphRun]]
    others: list[tuple[str, int, int, str]]  # colour, row, cell, text: characters that may come from another font
    numbers: QGlyphRun | None  # the lines' numbers, in ``digits`` cells each; None where the font has not all figures
    widest: int  # cells of the widest line


class Blocks:
    """The lines of a text that are or were just on screen. Others cost nothing."""

    def __init__(self, lines: Lines, highlighter: Highlighter, glyphs: Glyphs) -> None:
        self._lines = lines
        self._highlighter = highlighter
        self._glyphs = glyphs
        self.digits = max(_DIGITS, len(str(len(lines))))
        self._made: dict[int, Block] = {}
        self._window = (0, _WINDOW)

    def set_glyphs(self, glyphs: Glyphs) -> None:
        """Another font."""
        self._glyphs = glyphs
        self._made.clear()

    def look_at(self, first_cell: int, last_cell: int) -> None:
        """The cells of each line that are seen from now on."""
        window = max(first_cell, 0) // _WINDOW * _WINDOW, (last_cell // _WINDOW + 1) * _WINDOW
        if window != self._window:
            self._window = window
            self._made.clear()

    def __getitem__(self, number: int) -> Block:
        block = self._made.get(number)
        if block is None:
            if len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]  # the oldest; all at once would take a frame's time
            block = self._made[number] = self._make(number * LINES)
        return block

    @property
    def ready(self) -> list[int]:
        """The blocks kept ready."""
        return sorted(self._made)

    def draw(self, painter: QPainter, number: int, left: float, top: float, colors: dict[str, QColor]) -> None:
        """Draw a block whose first line's cell 0 has its upper left corner there."""
        block, glyphs = self[number], self._glyphs
        at = QPointF(left + self._window[0] * glyphs.advance, top + glyphs.ascent)
        for field, run in block.runs:
            painter.setPen(colors[field])
            painter.drawGlyphRun(at, run)
        for field, row, cell, text in block.others:
            painter.setPen(colors[field])
            painter.drawText(QPointF(left + cell * glyphs.advance, top + row * glyphs.height + glyphs.ascent), text)

    def draw_numbers(self, painter: QPainter, number: int, left: float, top: float) -> None:
        """Draw the numbers of a block's lines, in the painter's pen."""
        numbers, glyphs = self[number].numbers, self._glyphs
        if numbers is not None:
            painter.drawGlyphRun(QPointF(left, top + glyphs.ascent), numbers)
            return
        for row, figures in enumerate(self._figures(number * LINES)):
            painter.drawText(QPointF(left, top + row * glyphs.height + glyphs.ascent), figures)

    def _figures(self, first: int) -> list[str]:
        lines = range(first + 1, min(first + LINES, len(self._lines)) + 1)
        return [str(line).rjust(self.digits) for line in lines]

    def _numbers(self, first: int) -> QGlyphRun | None:
        figures = self._figures(first)
        if not self._glyphs.can_draw(figures[0]):
            return None
        points = [
            point for row in range(len(figures)) for point in self._glyphs.points(row, self.digits)[: self.digits]
        ]
        return self._glyphs.run(self._glyphs.indexes("".join(figures)), points)

    def _make(self, first: int) -> Block:
        plain: dict[str, tuple[list[int], list[QPointF]]] = {}
        others: list[tuple[str, int, int, str]] = []
        widest = 0
        for row, line in enumerate(self._lines[first : first + LINES]):
            if self._glyphs.can_draw(line):
                shown = line.expandtabs(TAB) if "\t" in line else line
                widest = max(widest, len(shown))
                self._add_plain(plain, first + row, row, shown)
            else:
                widest = max(widest, self._add_others(others, first + row, row, line))
        runs = [(field, self._glyphs.run(*drawn)) for field, drawn in plain.items()]
        return Block(runs, others, self._numbers(first), widest)

    def _add_plain(self, plain: dict[str, tuple[list[int], list[QPointF]]], number: int, row: int, shown: str) -> None:
        """A line whose characters take one cell each, tabs aside, which are blanks in ``shown``."""
        start, end = self._window
        indexes = self._glyphs.indexes(shown[start:end])
        points = self._glyphs.points(row, end - start)
        for first, behind, field in _filled(self._spans(number, shown, start, end), start, min(end, len(shown))):
            if field or not shown[first:behind].isspace():
                drawn = plain.get(field)
                if drawn is None:
                    drawn = plain[field] = ([], [])
                drawn[0].extend(indexes[first - start : behind - start])
                drawn[1].extend(points[first - start : behind - start])

    def _add_others(self, others: list[tuple[str, int, int, str]], number: int, row: int, line: str) -> int:
        """Any other line; returns its cells."""
        cells = Cells(line)
        start, end = cells.column(self._window[0]), cells.column(self._window[1])
        for first, behind, field in _filled(self._spans(number, line, start, end), start, end):
            others += [(field, row, cells.cell(column), text) for column, text in pieces(line, first, behind)]
        return cells.count

    def _spans(self, number: int, line: str, start: int, end: int) -> list[Span]:
        return self._highlighter.spans(number, line, min(end, _COLOURED)) if start < _COLOURED else []


def _filled(spans: list[Span], start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """First column, the one behind the last, field: the spans and what is between them, from ``start`` to ``end``."""
    at = start
    for first, length, field in spans:
        behind = min(first + length, end)
        if behind <= at:
            continue
        if first > at:
            yield at, first, ""
        yield max(first, at), behind, field
        at = behind
    if at < end:
        yield at, end, ""
