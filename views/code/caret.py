"""Where the caret of a text stands, what is selected, and how the keys move it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto

from views.code.cells import Cells, width_of

Place = tuple[int, int]  # line and column, both from 0
_WORD = re.compile(r"\w+|[^\w\s]+|\s+")


class Move(Enum):
    """What a key does to the caret."""

    LEFT = auto()
    RIGHT = auto()
    WORD_LEFT = auto()
    WORD_RIGHT = auto()
    UP = auto()
    DOWN = auto()
    PAGE_UP = auto()
    PAGE_DOWN = auto()
    LINE_START = auto()
    LINE_END = auto()
    START = auto()
    END = auto()


class Caret:
    """A place in ``lines``, and the one that the selection began at. Up and down keep the cell that they began in."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.place: Place = (0, 0)
        self.anchor: Place = (0, 0)
        self._cell: int | None = None

    @property
    def selection(self) -> tuple[Place, Place]:
        """The selected text's first place and the one behind it; equal where nothing is selected."""
        return min(self.anchor, self.place), max(self.anchor, self.place)

    @property
    def has_selection(self) -> bool:
        """Whether any text is selected."""
        return self.anchor != self.place

    def text(self) -> str:
        """The selected text."""
        return between(self._lines, *self.selection)

    def go(self, place: Place, extend: bool = False) -> None:
        """Stand at ``place``; with ``extend`` the selection reaches there from where it began."""
        self.place = place
        self._cell = None
        if not extend:
            self.anchor = place

    def select(self, start: Place, end: Place) -> None:
        """Select what is between two places, standing at ``end``."""
        self.anchor = start
        self.go(end, extend=True)

    def move(self, how: Move, extend: bool, page: int) -> None:
        """Do what a key does; ``page`` is the number of lines of a page."""
        start, end = self.selection
        if self.has_selection and not extend and how in (Move.LEFT, Move.RIGHT):
            self.go(start if how is Move.LEFT else end)
            return
        step = {Move.UP: -1, Move.DOWN: 1, Move.PAGE_UP: -page, Move.PAGE_DOWN: page}.get(how)
        if step is None:
            self.go(self._moved(how), extend)
            return
        line, column = self.place
        cell = self._cell if self._cell is not None else Cells(self._lines[line]).cell(column)
        to = max(0, min(line + step, len(self._lines) - 1))
        self.go((to, Cells(self._lines[to]).column(cell) if to != line else column), extend)
        self._cell = cell

    def _moved(self, how: Move) -> Place:
        line, column = self.place
        text, last = self._lines[line], len(self._lines) - 1
        match how:
            case Move.LINE_START:
                return line, 0
            case Move.LINE_END:
                return line, len(text)
            case Move.START:
                return 0, 0
            case Move.END:
                return last, len(self._lines[last])
            case Move.LEFT | Move.WORD_LEFT if column == 0:
                return (line - 1, len(self._lines[line - 1])) if line else (0, 0)
            case Move.RIGHT | Move.WORD_RIGHT if column == len(text):
                return (line + 1, 0) if line < last else (line, column)
            case Move.LEFT:
                return line, _character_before(text, column)
            case Move.RIGHT:
                return line, _character_after(text, column)
            case Move.WORD_LEFT:
                return line, _word_before(text, column)
            case _:
                return line, _word_after(text, column)


def between(lines: Sequence[str], start: Place, end: Place) -> str:
    """The text from one place to a later one."""
    if start[0] == end[0]:
        return lines[start[0]][start[1] : end[1]]
    whole = lines[start[0] : end[0] + 1]
    return "\n".join([whole[0][start[1] :], *whole[1:-1], whole[-1][: end[1]]])


def word_at(line: str, column: int) -> tuple[int, int]:
    """First column of the word, blanks or signs at ``column``, and the one behind them; behind the end, of the last."""
    start = end = 0
    for match in _WORD.finditer(line):
        start, end = match.span()
        if column < end:
            break
    return start, end


def _character_before(text: str, column: int) -> int:
    column -= 1
    while column > 0 and _combines(text[column]):
        column -= 1
    return column


def _character_after(text: str, column: int) -> int:
    column += 1
    while column < len(text) and _combines(text[column]):
        column += 1
    return column


def _combines(character: str) -> bool:
    return not character.isascii() and width_of(character) == 0


def _word_before(text: str, column: int) -> int:
    start = 0
    for match in _WORD.finditer(text, 0, column):
        if not match[0].isspace():
            start = match.start()
    return start


def _word_after(text: str, column: int) -> int:
    """The start of the next word, as most editors go."""
    for match in _WORD.finditer(text, column):
        if match.start() > column and not match[0].isspace():
            return match.start()
    return len(text)
