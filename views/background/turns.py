"""Work that only the GUI thread can do, a step in each turn of the event loop: all at once would take over a frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Generic, TypeVar

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal
from shiboken6 import isValid

T = TypeVar("T")


def in_a_turn(owner: QObject, call: Callable[[], object]) -> None:
    """Call in a turn of its own, after those that asked before; not if ``owner`` is gone by then."""
    application = QCoreApplication.instance()
    assert application is not None
    line = application.findChild(_Line) or _Line(application)
    line.add(owner, call)


def is_waiting() -> bool:
    """Whether any call waits for its turn."""
    application = QCoreApplication.instance()
    line = application.findChild(_Line) if application is not None else None
    return line is not None and line.is_waiting


class _Line(QObject):
    """The one line of calls of an application: none shares its turn with another, whoever asked for them."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._due: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._next)

    def add(self, owner: QObject, call: Callable[[], object]) -> None:
        """Last in the line."""
        self._due.append((owner, call))
        self._timer.start()

    @property
    def is_waiting(self) -> bool:
        """Whether anybody is in the line."""
        return bool(self._due)

    def _next(self) -> None:
        while self._due:
            owner, call = self._due.popleft()
            if not self._due:
                self._timer.stop()
            if isValid(owner):
                call()
                return


class Turns(QObject):
    """Steps done in order, with painting and input between them."""

    def __init__(self, steps: Iterable[Callable[[], object]], parent: QObject) -> None:
        super().__init__(parent)
        self._steps = deque(steps)

    def start(self) -> Turns:
        """Do the first step in a turn to come."""
        in_a_turn(self, self._turn)
        return self

    def cancel(self) -> None:
        """What was not done yet is not done any more."""
        self._steps.clear()
        self.deleteLater()

    def _turn(self) -> None:
        if not self._steps:
            return
        step = self._steps.popleft()
        if self._steps:
            in_a_turn(self, self._turn)
        else:
            self.deleteLater()
        step()


class Making(QObject, Generic[T]):
    """One thing made a step in each turn: by a generator that yields between its steps, and returns the thing."""

    made = Signal(object)

    def __init__(self, steps: Generator[object, None, T], parent: QObject) -> None:
        super().__init__(parent)
        self._steps = steps
        self._is_over = False

    def start(self) -> Making[T]:
        """Do the first step in a turn to come."""
        in_a_turn(self, self._turn)
        return self

    def finish(self) -> None:
        """Do all that is left at once: somebody cannot wait."""
        self._end(finished(self._steps))

    def cancel(self) -> None:
        """What was not done yet is not done any more."""
        self._is_over = True
        self._steps.close()
        self.deleteLater()

    def _turn(self) -> None:
        if self._is_over:
            return
        try:
            next(self._steps)
        except StopIteration as end:
            self._end(end.value)
        else:
            in_a_turn(self, self._turn)

    def _end(self, thing: T) -> None:
        self._is_over = True
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
