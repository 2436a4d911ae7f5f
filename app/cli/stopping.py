"""Ctrl+C ends a command within a second, whatever it is doing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

STATUS = 130  # what a shell says of a program that Ctrl+C ended
_GRACE_S = 0.7  # for KeyboardInterrupt to undo what is half done


class Stopping:
    """Says once that the command was stopped, whoever is first to notice."""

    def __init__(self) -> None:
        self._unsaid = threading.Lock()

    def say(self) -> None:
        """Tell it on stderr, unless that was done."""
        if self._unsaid.acquire(blocking=False):
            os.write(2, b"fusescope: stopped\n")

    def end_process(self) -> None:
        """Wait a moment, and end the process if it is still there."""
        time.sleep(_GRACE_S)
        self.say()
        os._exit(STATUS)


@contextmanager
def stopped_by_interrupt() -> Iterator[Stopping]:
    """Around a command: after Ctrl+C the process has a moment left.

    Python raises KeyboardInterrupt where its main thread next runs Python. Inside a compiler's C++ that takes seconds,
    a model's code may catch it, and so long as torch cleans up the process is still there. So the signal itself also
    wakes a thread, which waits and then ends the process.
    """
    stopping = Stopping()
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, stopping), name="interrupts", daemon=True).start()
    try:
        yield stopping
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)  # the thread ends, unless it is to end the process


def _watch(reading: int, stopping: Stopping) -> None:
    with open(reading, "rb", buffering=0) as signals:
        while numbers := signals.read(64):
            if signal.SIGINT in numbers:
                stopping.end_process()
