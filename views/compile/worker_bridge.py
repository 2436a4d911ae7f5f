"""The worker's events as Qt signals: the client calls from its reader thread, the window hears in its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.worker.protocol import (
    Command,
    Compiled,
    Event,
    Failed,
    Measured,
    NumericsChecked,
    OptionsListed,
    Ready,
    RunState,
    Samples,
    StageFinished,
    StageStarted,
    WorkerDied,
)


class Client(Protocol):
    """What the window needs of a worker client."""

    ready: Ready | None

    def start(self) -> None:
        """Start the process."""

    def send(self, command: Command) -> None:
        """Send a command."""

    def cancel(self) -> None:
        """Kill the process and start another."""

    def close(self) -> None:
        """End the process."""


ClientFactory = Callable[[Callable[[Event], None]], Client]


class WorkerBridge(QObject):
    """One worker client, seen from the GUI thread."""

    ready = Signal(object)  # Ready
    stage_started = Signal(object)
    stage_finished = Signal(object)
    compiled = Signal(object)
    failed = Signal(object)
    run_state = Signal(object)
    samples = Signal(object)
    measured = Signal(object)
    options_listed = Signal(object)
    numerics_checked = Signal(object)
    died = Signal(object)
    started = Signal()
    _arrived = Signal(object)

    def __init__(self, factory: ClientFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self._client: Client | None = None
        self._next_id = 0
        self.known: Ready | None = None  # what the worker said when it was ready last
        self._signals = (
            (Ready, self.ready),
            (StageStarted, self.stage_started),
            (StageFinished, self.stage_finished),
            (Compiled, self.compiled),
            (Failed, self.failed),
            (RunState, self.run_state),
            (Samples, self.samples),
            (Measured, self.measured),
            (OptionsListed, self.options_listed),
            (NumericsChecked, self.numerics_checked),
            (WorkerDied, self.died),
        )
        self._arrived.connect(self._dispatch, Qt.ConnectionType.QueuedConnection)

    @property
    def is_started(self) -> bool:
        """Whether the process was asked for."""
        return self._client is not None

    def start(self) -> None:
        """Start the worker process; ``ready`` is emitted when it has imported torch."""
        if self._client is None:
            self._client = self._factory(self._arrived.emit)
            self._client.start()
            self.started.emit()

    def new_id(self) -> int:
        """An id that no earlier command had."""
        self._next_id += 1
        return self._next_id

    def send(self, command: Command) -> None:
        """Send a command, starting the worker first where needed."""
        self.start()
        assert self._client is not None
        self._client.send(command)

    def cancel(self) -> None:
        """Kill what the worker is doing; a fresh worker starts at once."""
        if self._client is not None:
            self._client.cancel()

    def close(self) -> None:
        """End the worker. Events still on their way are dropped."""
        if self._client is not None:
            self._arrived.disconnect(self._dispatch)
            self._client.close()
            self._client = None

    @Slot(object)
    def _dispatch(self, event: object) -> None:
        if isinstance(event, Ready):
            self.known = event
        for kind, signal in self._signals:
            if isinstance(event, kind):
                signal.emit(event)
