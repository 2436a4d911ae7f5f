"""Work that only the GUI thread can do, a step in each turn of the event loop: all at once would take over a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer


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
