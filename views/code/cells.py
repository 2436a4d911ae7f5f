"""Where the characters of a line stand on a grid of equal cells: a tab reaches to its stop, a wide character takes two
cells, a combining one none."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from unicodedata import category, east_asian_width

TAB = 4  # cells from one tab stop to the next
_SPECIAL = re.compile("[\t\u0300-\U0010ffff]")  # all that may take another number of cells than one


class Cells:
    """The grid of one line. Columns count its characters from 0, cells what these take."""

    __slots__ = ("_columns", "_ends", "_starts", "count", "length")

    def __init__(self, line: str) -> None:
        self.length = len(line)
        self._columns: list[int] = []  # the characters that do not take one cell
        self._starts: list[int] = []  # the first cell of each, and the one behind it
        self._ends: list[int] = []
        cell = column = 0
        if not line.isascii() or "\t" in line:
            for match in _SPECIAL.finditer(line):
                cell += match.start() - column
                column = match.end()
                width = TAB - cell % TAB if match[0] == "\t" else width_of(match[0])
                if width != 1:
                    self._columns.append(match.start())
                    self._starts.append(cell)
                    self._ends.append(cell + width)
                cell += width
        self.count = cell + self.length - column

    @property
    def is_plain(self) -> bool:
        """Whether every character takes one cell."""
        return not self._columns

    def cell(self, column: int) -> int:
        """The first cell of a character; of the line's end, the cell behind the last."""
        before = bisect_left(self._columns, column) - 1
        return column if before < 0 else self._ends[before] + column - self._columns[before] - 1

    def column(self, cell: float) -> int:
        """The character that covers a cell; its length behind the line's end."""
        before = bisect_right(self._starts, cell) - 1
        if before < 0:
            column = int(cell)
        elif cell < self._ends[before]:
            column = self._columns[before]
        else:
            column = self._columns[before] + 1 + int(cell - self._ends[before])
        return max(0, min(column, self.length))

    def nearest(self, cell: float) -> int:
        """The gap between two characters that is nearest to a point of the grid, as the column behind it."""
        column = self.column(cell)
        if column == self.length:
            return column
        after = column + 1
        while after < self.length and self.cell(after + 1) == self.cell(after):
            after += 1  # a combining character belongs to the one before it
        return column if cell - self.cell(column) < self.cell(after) - cell else after


@lru_cache(maxsize=1024)
def width_of(character: str) -> int:
    """The cells that a character takes: 2 for the wide ones of East Asia and emoji, 0 for what combines."""
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def pieces(line: str, start: int, end: int) -> list[tuple[int, str]]:
    """The characters from ``start`` to ``end`` in pieces to be drawn each at its own cell, with their columns.

    Plain text is one piece. A character that may come from another font, whose width is its own, is a piece with what
    combines with it. Blanks and tabs are none.
    """
    made: list[tuple[int, str]] = []
    at = start
    for match in _SPECIAL.finditer(line, start, end):
        if match.start() > at:
            made.append((at, line[at : match.start()]))
        at = match.end()
        if match[0] == "\t":
            continue
        if made and width_of(match[0]) == 0 and made[-1][0] + len(made[-1][1]) == match.start():
            made[-1] = (made[-1][0], made[-1][1] + match[0])
        else:
            made.append((match.start(), match[0]))
    if at < end:
        made.append((at, line[at:end]))
    return [(column, text) for column, text in made if not text.isspace()]
