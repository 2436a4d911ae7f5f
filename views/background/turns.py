"""Work that only the GUI thread can do, a step in each turn of the event loop: all at once would take over a frame."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

T = TypeVar("T")


class Turns(QObject):
    """Steps done in order, with painting and input between them."""

    def __init__(self, steps: Iterable[Callable[[], object]], parent: QObject) -> None:
        super().__init__(parent)
        self._steps = list(steps)
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._turn)

    def start(self) -> Turns:
        """Do the first step in the next turn."""
        self._timer.start()
        return self

    def cancel(self) -> None:
        """What was not done yet is not done any more."""
        self._timer.stop()
        self._steps = []
        self.deleteLater()

    def _turn(self) -> None:
        step = self._steps.pop(0)
        if not self._steps:
            self._timer.stop()
            self.deleteLater()
        step()


class Making(QObject, Generic[T]):
    """One thing made a step in each turn: by a generator that yields between its steps, and returns the thing."""

    made = Signal(object)

    def __init__(self, steps: Generator[object, None, T], parent: QObject) -> None:
        super().__init__(parent)
        self._steps = steps
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._turn)

    def start(self) -> Making[T]:
        """Do the first step in the next turn."""
        self._timer.start()
        return self

    def finish(self) -> None:
        """Do all that is left at once: somebody cannot wait."""
        self._end(finished(self._steps))

    def cancel(self) -> None:
        """What was not done yet is not done any more."""
        self._timer.stop()
        self._steps.close()
        self.deleteLater()

    def _turn(self) -> None:
        try:
            next(self._steps)
        except StopIteration as end:
            self._end(end.value)

    def _end(self, thing: T) -> None:
        self._timer.stop()
        self.made.emit(thing)
        self.deleteLater()


def finished(steps: Generator[object, None, T]) -> T:
    """What a generator returns, once it has done all of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            thing: T = end.value
            return thing
