"""How long the GUI thread is busy at a stretch: a timer that should always fire.

A block is the time between two beats of a zero timer. Its wall time counts what the machine gave to others too; its
CPU time is what the GUI thread itself computed.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer

LIMIT_MS = 16.0


@dataclass
class Blocks:
    """What was seen while a step ran: wall and CPU milliseconds of every beat.

    In arrays: there are thousands of beats a second, and the garbage collector would walk over lists of them.
    """

    wall_ms: array[float] = field(default_factory=lambda: array("d"))
    cpu_ms: array[float] = field(default_factory=lambda: array("d"))

    @property
    def worst_wall_ms(self) -> float:
        """The longest block by the clock."""
        return max(self.wall_ms, default=0.0)

    @property
    def worst_cpu_ms(self) -> float:
        """The longest block by the GUI thread's own work."""
        return max(self.cpu_ms, default=0.0)

    @property
    def too_long(self) -> int:
        """Blocks whose own work exceeds LIMIT_MS."""
        return sum(1 for ms in self.cpu_ms if ms > LIMIT_MS)


class Heartbeat(QObject):
    """Beats in the GUI thread. ``watch`` collects the blocks of a step."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._blocks: Blocks | None = None
        self._wall = time.perf_counter()
        self._cpu = time.thread_time()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._beat)

    @contextmanager
    def watch(self) -> Iterator[Blocks]:
        """Collect until the end of the ``with`` block."""
        self._blocks = blocks = Blocks()
        self._wall, self._cpu = time.perf_counter(), time.thread_time()
        self._timer.start()
        yield blocks
        self._beat()
        self._timer.stop()
        self._blocks = None

    def _beat(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        if self._blocks is not None:
            self._blocks.wall_ms.append((wall - self._wall) * 1e3)
            self._blocks.cpu_ms.append((cpu - self._cpu) * 1e3)
        # what the notes above took is nobody's block
        self._wall, self._cpu = time.perf_counter(), time.thread_time()
