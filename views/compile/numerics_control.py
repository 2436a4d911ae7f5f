"""Checking the numbers of the report on screen: asks the worker, keeps what it finds, says how it went."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Signal

from app.unit_errors import summary
from app.worker.protocol import CheckNumerics, Failed, NumericsChecked, WorkerDied
from compiler.report import Region, Report
from views.compile.worker_bridge import WorkerBridge
from views.window.message_bar import Message
from views.window.notify import Notifier

_NOT_LOADED = "The worker does not hold this model, and checking its numbers runs it."
_NOT_OURS = "Only the kernels of Fusescope's own compiler are checked value by value."


class NumericsControl(QObject):
    """Drives CheckNumerics."""

    message = Signal(object)  # Message
    checked = Signal(object)  # the Report that has its numbers now
    over = Signal(object)  # the Message that told of a check under way

    def __init__(
        self,
        bridge: WorkerBridge,
        loaded: Callable[[], Report | None],
        notifier: Notifier,
        parent: QObject | None = None,
    ) -> None:
        """``loaded`` says which report's model the worker holds: the user has agreed to run that one."""
        super().__init__(parent)
        self._bridge = bridge
        self._loaded = loaded
        self._notifier = notifier
        self._id = 0
        self._report: Report | None = None  # the one that is being checked
        self._told: Message | None = None  # which says so
        bridge.numerics_checked.connect(self._on_checked)
        bridge.failed.connect(self._on_failed)
        bridge.died.connect(self._on_died)

    @property
    def is_busy(self) -> bool:
        """Whether a check is on its way."""
        return self._report is not None

    def check(self, report: Report) -> None:
        """Check ``report``, or say why that cannot be."""
        if self.is_busy:
            self.message.emit(Message("info", "The numbers are being checked already."))
        elif report.compiler != "fusescope":
            self.message.emit(Message("info", _NOT_OURS, "Compile with Fusescope to check them."))
        elif report is not self._loaded():
            self.message.emit(Message("info", _NOT_LOADED, "Compile it here, then check its numbers."))
        else:
            self._send(report)

    def _send(self, report: Report) -> None:
        self._report, self._id = report, self._bridge.new_id()
        self._notifier.begin()
        local = report.target.local
        how = "this machine's GPU" if local else "Triton's interpreter, which takes minutes for a large model"
        text = f"Checking every value against float64, on {how}."
        self._told = Message(
            "info", text, "You can look on meanwhile.", action="Cancel", on_action=self._bridge.cancel
        )
        self.message.emit(self._told)
        self._bridge.send(
            CheckNumerics(
                self._id,
                report.source,
                "local" if local else report.target.name,
                training=report.training,
                dynamic=any(region.sizes for region in report.regions),
                options=dict(report.options),
            )
        )

    def _on_checked(self, event: NumericsChecked) -> None:
        report = self._report
        if report is None or event.id != self._id:
            return
        self._end()
        known = {computed for region in report.regions for computed in _computed(region)}
        # what is checked on a CPU is captured there, where some ops are others than the target's
        event.numerics.nodes = [one for one in event.numerics.nodes if (one.region, one.unit, one.node) in known]
        report.numerics = event.numerics
        self.message.emit(Message("success", summary(report), "The graph's colours show where."))
        self.checked.emit(report)

    def _on_failed(self, event: Failed) -> None:
        if self.is_busy and event.id == self._id:
            self._end()
            self.message.emit(
                Message("error", f"The numbers were not checked: {event.message}", event.hint, event.detail)
            )

    def _on_died(self, event: WorkerDied) -> None:
        if self.is_busy:
            self._end()
            text = "The check was cancelled." if event.cancelled else "The numbers were not checked: the worker ended."
            hint = "Compile again to check or run the model."
            self.message.emit(
                Message(
                    "info" if event.cancelled else "warning", text, hint, "" if event.cancelled else event.stderr_tail
                )
            )

    def _end(self) -> None:
        self._report = None
        if self._told is not None:
            self.over.emit(self._told)
        self._notifier.end("The check of the numbers has ended.")


def _computed(region: Region) -> Iterator[tuple[str, str, str]]:
    """Region, unit and node of all that is computed."""
    for unit in (*region.groups, *region.extern_calls):
        for node in unit.nodes:
            yield region.name, unit.name, node
