"""Selecting text with the mouse: drag, double click for words, triple for lines, Shift to extend, the line numbers."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject, QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QMouseEvent

from views.code.caret import Place, word_at

if TYPE_CHECKING:
    from views.code.text_view import TextView

_EVERY = 30  # milliseconds between steps while the mouse is dragged out of the view


class _By(Enum):
    CHARACTERS = auto()
    WORDS = auto()
    LINES = auto()


class Pointer(QObject):
    """Turns the left button's events into a selection of ``view``."""

    def __init__(self, view: TextView) -> None:
        super().__init__(view)
        self._view = view
        self._by = _By.CHARACTERS
        self._from: tuple[Place, Place] = ((0, 0), (0, 0))  # what the first click selected
        self._at = QPointF()
        self._pressed = False
        self._on_numbers = False
        self._since_double = QElapsedTimer()
        self._steps = QTimer(self)
        self._steps.setInterval(_EVERY)
        self._steps.timeout.connect(self._step)

    @property
    def is_dragging(self) -> bool:
        """Whether the button is down."""
        return self._pressed

    def press(self, event: QMouseEvent) -> None:
        """The button goes down: stand there, or extend the selection to there."""
        self._pressed = True
        third = self._is_third(event.position())
        self._at = event.position()
        self._on_numbers = self._at.x() < self._view.gutter_width()
        self._by = _By.LINES if third else _By.CHARACTERS
        place = self._view.place_at(self._at)
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            anchor = self._view.caret.anchor
            self._from = (anchor, anchor)
            self._extend_to(place)
        else:
            self._begin(place)

    def double(self, event: QMouseEvent) -> None:
        """A second click: the word there."""
        self._pressed = True
        self._at = event.position()
        self._since_double.start()
        self._by = _By.WORDS
        self._begin(self._view.place_at(self._at))

    def move(self, event: QMouseEvent) -> None:
        """The mouse moves with the button down."""
        self._at = event.position()
        place = self._view.place_at(self._at)
        if self._on_numbers and place[0] != self._from[0][0]:  # a drag over the numbers takes whole lines
            self._by = _By.LINES
            self._from = self._unit(self._from[0])
        self._extend_to(place)
        inside = 0 <= self._at.y() < self._view.viewport().height()
        beside = self._view.gutter_width() <= self._at.x() < self._view.viewport().width()
        if inside and (beside or self._on_numbers):
            self._steps.stop()
        elif not self._steps.isActive():
            self._steps.start()

    def release(self) -> None:
        """The button goes up."""
        self._pressed = False
        self._steps.stop()
        clipboard = QGuiApplication.clipboard()
        if self._view.caret.has_selection and clipboard.supportsSelection():
            clipboard.setText(self._view.caret.text(), clipboard.Mode.Selection)

    def _is_third(self, at: QPointF) -> bool:
        hints = QGuiApplication.styleHints()
        in_time = self._since_double.isValid() and not self._since_double.hasExpired(hints.mouseDoubleClickInterval())
        return in_time and (at - self._at).manhattanLength() < hints.startDragDistance()

    def _begin(self, place: Place) -> None:
        self._from = self._unit(place)
        self._view.select(*self._from)

    def _extend_to(self, place: Place) -> None:
        start, end = self._unit(place)
        if start < self._from[0]:
            self._view.select(self._from[1], start)
        else:
            self._view.select(self._from[0], max(end, self._from[1]))

    def _unit(self, place: Place) -> tuple[Place, Place]:
        """What a click selects at ``place``."""
        line, column = place
        lines = self._view.lines
        if self._by is _By.WORDS:
            start, end = word_at(lines[line], column)
            return (line, start), (line, end)
        if self._by is _By.LINES:
            return (line, 0), ((line + 1, 0) if line + 1 < len(lines) else (line, len(lines[line])))
        return place, place

    def _step(self) -> None:
        """Scroll towards the mouse outside of the view, the faster the further away it is."""
        view, at = self._view, self._at
        for bar, where, low, high in (
            (view.verticalScrollBar(), at.y(), 0, view.viewport().height()),
            (view.horizontalScrollBar(), at.x(), view.gutter_width(), view.viewport().width()),
        ):
            beyond = where - low if where < low else max(where - high, 0)
            bar.setValue(bar.value() + round(beyond / 2))
        self._extend_to(view.place_at(at))
