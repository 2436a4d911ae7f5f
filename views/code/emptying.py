"""Letting go of a long text without stopping the window: Qt frees all lines of a document at once, which takes 20 ms
for 20,000 that were scrolled through."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QPlainTextDocumentLayout, QPlainTextEdit

_LINES = 500  # taken away at once, under 1 ms
_EVERY = 10  # milliseconds; nothing waits for it, and the next text is put in meanwhile


def start_afresh(edit: QPlainTextEdit) -> None:
    """Give ``edit`` an empty document with the options of the one it has, whose lines go a few at a time."""
    old = edit.document()
    new = QTextDocument(edit)
    new.setDocumentLayout(QPlainTextDocumentLayout(new))
    new.setUndoRedoEnabled(old.isUndoRedoEnabled())
    new.setDefaultFont(old.defaultFont())
    new.setDefaultTextOption(old.defaultTextOption())
    old.setParent(_Emptying(old, edit))  # or the edit deletes it, as its own, when it gets another
    edit.setDocument(new)


class _Emptying(QObject):
    def __init__(self, document: QTextDocument, parent: QObject) -> None:
        super().__init__(parent)
        self._document = document
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._take_some)
        self._timer.start(_EVERY)

    def _take_some(self) -> None:
        kept = max(self._document.blockCount() - _LINES, 0)
        if not kept:
            self._timer.stop()
            self.deleteLater()
            return
        last = self._document.findBlockByNumber(kept - 1)
        cursor = QTextCursor(self._document)
        cursor.setPosition(last.position() + last.length() - 1)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
