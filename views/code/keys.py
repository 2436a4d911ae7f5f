"""Which keys move the caret of a text, as the platform has them."""

from __future__ import annotations

from PySide6.QtGui import QKeyEvent, QKeySequence

from views.code.caret import Move

_Key = QKeySequence.StandardKey
_MOVES = (
    (_Key.MoveToPreviousChar, _Key.SelectPreviousChar, Move.LEFT),
    (_Key.MoveToNextChar, _Key.SelectNextChar, Move.RIGHT),
    (_Key.MoveToPreviousWord, _Key.SelectPreviousWord, Move.WORD_LEFT),
    (_Key.MoveToNextWord, _Key.SelectNextWord, Move.WORD_RIGHT),
    (_Key.MoveToPreviousLine, _Key.SelectPreviousLine, Move.UP),
    (_Key.MoveToNextLine, _Key.SelectNextLine, Move.DOWN),
    (_Key.MoveToPreviousPage, _Key.SelectPreviousPage, Move.PAGE_UP),
    (_Key.MoveToNextPage, _Key.SelectNextPage, Move.PAGE_DOWN),
    (_Key.MoveToStartOfLine, _Key.SelectStartOfLine, Move.LINE_START),
    (_Key.MoveToEndOfLine, _Key.SelectEndOfLine, Move.LINE_END),
    (_Key.MoveToStartOfDocument, _Key.SelectStartOfDocument, Move.START),
    (_Key.MoveToEndOfDocument, _Key.SelectEndOfDocument, Move.END),
)


def move_of(event: QKeyEvent) -> tuple[Move, bool] | None:
    """How a key moves the caret, and whether the selection follows; None for any other key."""
    for move, select, how in _MOVES:
        if event.matches(move):
            return how, False
        if event.matches(select):
            return how, True
    return None
