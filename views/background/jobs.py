"""Work off the GUI thread: run a function, get its value or exception back as a signal, cancel at any time."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, Signal, Slot

from views.background.turns import in_a_turn


class _Report(QObject):
    """Carries the result from the worker thread; a signal of its own so that Qt queues it to the GUI thread."""

    finished = Signal(object, object)  # value, exception


class _Task(QRunnable):
    def __init__(self, work: Callable[[Callable[[], bool]], Any], cancelled: Callable[[], bool]) -> None:
        super().__init__()
        self.report = _Report()
        self._work = work
        self._cancelled = cancelled

    def run(self) -> None:
        value, fault = None, None
        if not self._cancelled():
            try:
                value = self._work(self._cancelled)
            except Exception as error:  # handed to the caller, who knows what it means
                fault = error
        with contextlib.suppress(RuntimeError):  # the application has ended meanwhile, and its signals with it
            self.report.finished.emit(value, fault)


class Job(QObject):
    """One piece of work. ``done(value)`` or ``failed(exception)`` is emitted unless it was cancelled.

    What listens does so in a turn of its own: two results that come together would take over a frame.
    """

    done = Signal(object)
    failed = Signal(object)

    def __init__(self, work: Callable[[Callable[[], bool]], Any], parent: QObject) -> None:
        super().__init__(parent)
        self._cancelled = False
        self._task = _Task(work, lambda: self._cancelled)
        self._task.setAutoDelete(False)
        self._task.report.finished.connect(self._finish, Qt.ConnectionType.QueuedConnection)

    def start(self) -> Job:
        """Put it in the pool's queue."""
        QThreadPool.globalInstance().start(self._task)
        return self

    def cancel(self) -> None:
        """No signal comes any more; work that asks ``cancelled()`` ends early."""
        self._cancelled = True

    @Slot(object, object)
    def _finish(self, value: object, fault: object) -> None:
        in_a_turn(self, lambda: self._tell(value, fault))

    def _tell(self, value: object, fault: object) -> None:
        if not self._cancelled:
            if fault is None:
                self.done.emit(value)
            else:
                self.failed.emit(fault)
        self.deleteLater()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """For work that makes objects by the hundred thousand, all of which stay: a report, look-ups of one.

    The garbage collector would walk over them again and again, and every thread stands still while it does.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # what is there is looked at no more
        gc.enable()
