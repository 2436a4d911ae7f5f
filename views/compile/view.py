"""What the window shows of a compilation and of the worker: progress, the toolbar's state, the status bar."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.worker.protocol import Ready, StageFinished, StageStarted, WorkerDied
from views.compile.control import CompileControl, Request
from views.compile.progress import ProgressPanel
from views.compile.worker_bridge import WorkerBridge
from views.window.notify import Notifier
from views.window.status import StatusFields
from views.window.toolbar import Toolbar


class CompileView(QObject):
    """Listens to the worker and to who drives it."""

    unloaded = Signal()  # the worker does not hold the last model any more

    def __init__(
        self,
        bridge: WorkerBridge,
        control: CompileControl,
        toolbar: Toolbar,
        progress: ProgressPanel,
        status: StatusFields,
        notifier: Notifier,
    ) -> None:
        super().__init__(control)
        self._control, self._toolbar, self._progress = control, toolbar, progress
        self._status, self._notifier = status, notifier
        self._source = ""
        control.began.connect(self._began)
        control.ended.connect(self._ended)
        bridge.ready.connect(self._ready)
        bridge.died.connect(self._died)
        bridge.stage_started.connect(self._stage)
        bridge.stage_finished.connect(self._stage)

    def _began(self, request: Request) -> None:
        self._source = request.source
        self.unloaded.emit()
        self._notifier.begin()
        had_keyboard = self._toolbar.compile_button.hasFocus()
        self._toolbar.set_compiling(True)
        if had_keyboard:
            self._toolbar.cancel_button.setFocus()
        note = "" if self._status.is_ready else "Starting the worker, which imports torch"
        self._progress.begin(f"Compiling {request.source}", note)

    def _ended(self) -> None:
        had_keyboard = self._toolbar.cancel_button.hasFocus() or self._progress.cancel_button.hasFocus()
        self._toolbar.set_compiling(False)
        self._progress.end()
        if had_keyboard:  # not whatever comes next in Tab's way
            self._toolbar.compile_button.setFocus()
        self._notifier.end(f"The compilation of {self._source} has ended.")

    def _stage(self, event: StageStarted | StageFinished) -> None:
        if event.id == self._control.current_id:
            self._progress.stage_event(event)

    def _ready(self, event: Ready) -> None:
        self._status.show_ready(event)
        self._toolbar.set_targets(event.gpu, event.targets)

    def _died(self, event: WorkerDied) -> None:
        self.unloaded.emit()
        no_torch = "No module named 'torch'" in event.stderr_tail
        self._status.show_died(no_torch=no_torch)
        if no_torch:
            self._toolbar.set_no_targets("No torch here")
