"""Connects the Run panel with the worker, and decides whether it runs live, plays back or can do neither."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from PySide6.QtCore import QObject, Signal

from app.worker.protocol import Failed, Measured, Ready, RunState, Samples, SetRun, StartRun, StopRun, WorkerDied
from compiler.joining import note_kernel_times
from compiler.report import Report
from views.compile.worker_bridge import WorkerBridge
from views.look import format as fmt
from views.run.panel import RunPanel
from views.run.record import RunRecord
from views.window.message_bar import Message

NO_GPU = "This machine has no CUDA GPU, so this model cannot run here."
NOT_LOADED = "The worker does not hold this model: compile it here to run it."


@dataclass(frozen=True)
class _Run:
    """What a run runs, the samples that come of it (in ``record`` from ``since`` on), and the modes whose own record
    has come.
    """

    report: Report
    record: RunRecord
    since: int
    measured: set[str] = field(default_factory=set)


class RunControl(QObject):
    """Drives StartRun, SetRun, StopRun; gathers Measured."""

    measured = Signal(object)  # the Report that has a record more
    ended = Signal()  # every record of a run has come
    message = Signal(object)

    def __init__(self, bridge: WorkerBridge, panel: RunPanel, has_samples: bool, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._panel = panel
        self._has_samples = has_samples
        self._id = 0
        self._runs: dict[int, _Run] = {}  # until each has told its end: its records come then
        known = bridge.known
        self._has_gpu = known.gpu is not None if known is not None else None  # None: the worker has not said yet
        self._report: Report | None = None
        self._loaded = False  # the worker holds the model of this report
        panel.start_requested.connect(self._start)
        panel.change_requested.connect(self._change)
        panel.stop_requested.connect(self._stop)
        bridge.ready.connect(self._on_ready)
        bridge.run_state.connect(self._on_state)
        bridge.samples.connect(self._on_samples)
        bridge.measured.connect(self._on_measured)
        bridge.failed.connect(self._on_failed)
        bridge.died.connect(self._on_died)

    def set_report(self, report: Report, *, loaded: bool) -> None:
        """Another report is shown; ``loaded`` says that the worker has just compiled it."""
        self._panel.stop()
        self._report = report
        self._loaded = loaded
        self._choose()

    def release(self) -> None:
        """The worker is about to compile something else."""
        self._panel.stop()
        self._loaded = False
        self._choose()

    def _choose(self) -> None:
        report = self._report
        if report is None:
            return
        recorded = [m for m in report.measurements if m.cpu_samples]
        if self._loaded and self._has_gpu and report.target.local:
            self._panel.set_live()
        elif recorded:
            self._panel.set_recorded(recorded)
        elif self._has_gpu:
            other = "" if report.target.local else " Choose this machine's GPU as the target."
            self._panel.set_unavailable(NOT_LOADED + other, offer_sample=False)
        else:
            offer = " Here is a session whose recorded iterations play back:" if self._has_samples else ""
            self._panel.set_unavailable(NO_GPU + offer, offer_sample=self._has_samples)

    def _start(self, modes: list[str]) -> None:
        self._id = self._bridge.new_id()
        if self._report is not None:
            self._runs[self._id] = _Run(self._report, self._panel.record, self._panel.record.total)
        self._bridge.send(StartRun(self._id, modes))

    def _change(self, modes: list[str]) -> None:
        self._bridge.send(SetRun(self._id, modes))

    def _stop(self) -> None:
        self._bridge.send(StopRun(self._id))

    def _on_ready(self, event: Ready) -> None:
        changed = self._has_gpu is not (event.gpu is not None)
        self._has_gpu = event.gpu is not None
        if changed and not self._panel.is_running:
            self._choose()

    def _on_state(self, event: RunState) -> None:
        if event.id == self._id:
            self._panel.apply_state(event)
        if event.state == "stopped" and (run := self._runs.pop(event.id, None)) is not None:
            self._show_ended(run)

    def _on_samples(self, event: Samples) -> None:
        if event.id == self._id:
            self._panel.add_samples(event)

    def _on_measured(self, event: Measured) -> None:
        run = self._runs.get(event.id)
        if run is None:
            return
        run.measured.add(event.measurement.mode)
        keep_measured(run.report, event)
        self.measured.emit(run.report)

    def _on_failed(self, event: Failed) -> None:
        if event.id == self._id and self._id:
            self._panel.stop()
            self.message.emit(Message("error", event.message, event.hint, event.detail))
        if (run := self._runs.pop(event.id, None)) is not None:
            self._keep_what_came(run)

    def _on_died(self, event: WorkerDied) -> None:
        runs, self._runs = list(self._runs.values()), {}
        for run in runs:
            self._keep_what_came(run)
        if self._loaded:
            self._loaded = False
            self._choose()

    def keep_samples(self) -> None:
        """Runs may be about to be closed: what has come of them is put into their reports, to be asked about."""
        for run in self._runs.values():
            self._keep(run)

    def _keep_what_came(self, run: _Run) -> None:
        """A run has ended without its records: they are made of its samples."""
        if count := self._keep(run):
            text = f"The run's {fmt.plural(count, 'iteration')} until then are kept."
            self.message.emit(Message("info", text, "None of them was traced, so the timeline lacks them."))
            self._show_ended(run)

    def _keep(self, run: _Run) -> int:
        """Make records of a run's samples where no longer one is there already; how many iterations that adds."""
        known = {(m.mode, m.gpu): m.iterations for m in run.report.measurements}
        came = [
            made
            for made in run.record.measurements(run.report.target.title, run.since)
            if made.mode not in run.measured and made.iterations > known.get((made.mode, made.gpu), 0)
        ]
        for made in came:
            keep_measured(run.report, Measured(0, made))
        if came:
            self.measured.emit(run.report)
        return sum(made.iterations for made in came)

    def _show_ended(self, run: _Run) -> None:
        if run.report is self._report:
            self.ended.emit()


def keep_measured(report: Report, event: Measured) -> None:
    """Put a run's record into its report in place of an earlier one of the same mode, so that saving keeps it."""
    new, trace, graph = event.measurement, event.trace, event.cuda_graph
    report.measurements = [m for m in report.measurements if (m.mode, m.gpu) != (new.mode, new.gpu)] + [new]
    if trace is not None:
        report.traces = [other for other in report.traces if other.mode != trace.mode] + [trace]
    if graph is not None and report.regions:
        first, *others = report.regions
        first.cuda_graph = graph  # of the whole iteration; its nodes name their regions
        for region in others:
            region.cuda_graph = msgspec.structs.replace(region.cuda_graph, captured=graph.captured)
    note_kernel_times(report)
