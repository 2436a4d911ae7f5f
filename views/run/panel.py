"""The replay lab: modes switched on and off while they run, live plot, distribution, comparison, percentiles."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from app.filters import Kept
from app.worker.protocol import RunState, Samples
from compiler.report import Measurement, Report
from views.background.when_seen import WhenSeen
from views.look import format as fmt
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.run.compare import ComparePage
from views.run.distribution import DistributionPlot
from views.run.facets import LAYOUTS
from views.run.kept_note import kept_sentence
from views.run.modes import REPLAYED, in_order, mode_title
from views.run.playback import Player, pace_text
from views.run.plot import Picked, RunPlot
from views.run.record import RunRecord
from views.run.table import RunTable
from views.selection.hidden_note import HiddenNote
from views.widgets.basic import ElidedLabel, Switch, as_panel, icon_button, label, push_button, recolor
from views.widgets.empty import Empty
from views.widgets.segments import Segments

REDRAW_MS = 33
_TABLE_MS = 250  # percentiles need not flicker
_STATE_HEIGHT = 34  # two lines: an outlier has much to say
_PREVIEW = 500  # iterations of each recording that are shown before it plays
_STATES = {
    "preparing": "Preparing…",
    "warmup": "Warming up…",
    "running": "Running",
    "tracing": "Tracing one iteration",
    "stopped": "Stopped",
}
_VIEWS = {**LAYOUTS, "distribution": "Histogram", "compare": "Compare"}


class RunPanel(QWidget):
    """Live where the worker has a GPU and the model; else it plays back what the report recorded."""

    start_requested = Signal(object)  # modes
    change_requested = Signal(object)
    stop_requested = Signal()
    sample_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._live = False
        self._running = False
        self._dirty = False
        self._recorded: dict[str, Measurement] = {}
        self._on = {"compiled"}
        self.record = RunRecord()
        self.player = Player(self)
        self.player.samples.connect(self._played)
        self._redraw = QTimer(self)
        self._redraw.setInterval(REDRAW_MS)
        self._redraw.timeout.connect(self._draw)
        self._figures_due = QTimer(self)
        self._figures_due.setInterval(_TABLE_MS)
        self._figures_due.timeout.connect(self._draw_figures)
        self._kept = WhenSeen(self)
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 6)
        column.setSpacing(6)
        self._pages = QStackedWidget()
        self._nothing = Empty("play", theme)
        self.sample_button = push_button("Open the recorded sample session", self.sample_requested.emit)
        self._nothing.add_button(self.sample_button)
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(self._run_page(theme))
        column.addWidget(self._pages)
        self.set_unavailable("Compile a model to run it.", offer_sample=False)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.switch.set_theme(theme)
        self._nothing.set_theme(theme)
        self.table.figures.set_theme(theme)
        for part in (self.plot, self.distribution, self.compare):
            part.set_theme(theme)
        recolor(self, theme)

    @property
    def modes(self) -> list[str]:
        """The modes that are switched on."""
        return in_order(self._on)

    @property
    def sentence(self) -> str:
        """Why nothing can run, or "" where something can."""
        return self._nothing.text() if self._pages.currentIndex() == 0 else ""

    @property
    def is_running(self) -> bool:
        """Whether iterations come, live or recorded."""
        return self._running

    @property
    def state_text(self) -> str:
        """What the line below the figures says."""
        return self._state.text()

    def set_unavailable(self, sentence: str, *, offer_sample: bool) -> None:
        """Nothing to run and nothing recorded: say why, and offer the sample session."""
        self._end()
        self._nothing.set_text(sentence)
        self.sample_button.setVisible(offer_sample)
        self._pages.setCurrentIndex(0)

    def set_live(self) -> None:
        """The worker has a GPU and the model compiled last."""
        self._begin_page(live=True)
        self._chip.setVisible(False)
        self._state.setText("")
        self._show_modes()

    def set_recorded(self, measurements: list[Measurement]) -> None:
        """Play back these measurements; they are all of one GPU or each says its own."""
        self._begin_page(live=False)
        self._recorded = {m.mode: m for m in measurements if m.cpu_samples}
        for measurement in self._recorded.values():
            self.record.set_measured(measurement)
        first = next(iter(self._recorded.values()))
        self._chip.setText(f"Recorded on {first.gpu}")
        self._chip.setVisible(True)
        self._on = {mode for mode in ("compiled", "graph") if mode in self._recorded} or {first.mode}
        self._show_modes()
        self._preview()
        self._tell_pace()
        self._draw_figures()

    def apply_state(self, event: RunState) -> None:
        """The worker says where the run stands."""
        state = _STATES.get(event.state, event.state)
        self._state.setText(event.text or f"{state}  ·  {mode_title(event.mode)}" if event.mode else state)
        if event.state == "stopped":
            self._end()

    def add_samples(self, event: Samples) -> None:
        """A batch from the worker."""
        if self._running:
            self.record.add(event.mode, event.cpu_us, event.gpu_us, warmup=event.warmup)
            self._dirty = True

    def stop(self) -> None:
        """End the run or the playback."""
        if not self._running:
            return
        if self._live:
            self.stop_requested.emit()
        self._end()

    def toggle_run(self) -> None:
        """Start, or stop."""
        if self._running:
            self.stop()
            return
        self._running = True
        self.start_button.setText("Stop")
        self._redraw.start()
        self._figures_due.start()
        if self._live:
            self._state.setText(_STATES["preparing"])
            self.start_requested.emit(self.modes)
        else:
            self.record = self.record.restarted()
            self._play()
            self._tell_pace()

    def toggle_mode(self, mode: str) -> None:
        """Switch a mode on or off; the last one stays on."""
        changed = self._on ^ {mode}
        if changed and self.table.figures.is_available(mode):
            self._set_on(changed)

    def jump_to_outlier(self, step: int) -> None:
        """Go to the next or, with -1, the previous outlier of the modes that are on."""
        found = [
            (mode, series.first + position)
            for mode in self.modes
            for series in (self.record.series(mode),)
            for position in series.outliers()
        ]
        if found:
            self._outlier = (self._outlier + step) % len(found)
            mode, number = found[self._outlier]
            in_run = self.record.run_number(mode, number) is not None
            if self.views.value not in LAYOUTS or (self.views.value == "order" and not in_run):
                self.show_view("side")  # what played holds only some of the recording
            self.plot.jump(mode, number)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The plot keeps its room before the table."""
        super().resizeEvent(event)
        self.table.share(self.width())

    def set_kept(self, report: Report, kept: dict[str, Kept] | None) -> None:
        """An iteration is never filtered: say how much of it the filters leave. None is everything."""
        self._kept.request(lambda: kept_sentence(report, kept))

    # Building

    def _run_page(self, theme: Theme) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(self._bar(theme))
        self.note = HiddenNote()
        self._kept.made.connect(self.note.tell)
        column.addWidget(self.note)
        row = QHBoxLayout()
        row.setSpacing(10)
        self.plot = RunPlot(theme)
        self.plot.picked.connect(self._picked)
        self.distribution = DistributionPlot(theme)
        self.compare = ComparePage(theme)
        self._views = QStackedWidget()
        fitted(self, lambda: self._views.setMinimumWidth(px(260)))
        self._views.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        for view in (self.plot, self.distribution, self.compare):
            self._views.addWidget(view)
        row.addWidget(self._views, 1)
        self.table = RunTable(theme)
        self.table.toggled.connect(self.toggle_mode)
        row.addWidget(self.table)
        column.addLayout(row, 1)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        self._state = ElidedLabel("", "muted", is_sentence=True)
        fitted(self, lambda: self._state.setMinimumHeight(px(_STATE_HEIGHT)))
        foot.addWidget(self._state, 1)
        self.log_box = QCheckBox("Log")
        self.log_box.setAccessibleName("Logarithmic time axis")
        self.log_box.setToolTip("Logarithmic time axis")
        self.log_box.toggled.connect(self._set_log)
        foot.addWidget(self.log_box)
        self._chip = label("", "recorded")
        foot.addWidget(self._chip)
        self.earlier = icon_button("back", "Previous outlier", lambda: self.jump_to_outlier(-1), theme)
        self.later = icon_button("forward", "Next outlier", lambda: self.jump_to_outlier(1), theme)
        foot.addWidget(self.earlier)
        foot.addWidget(self.later)
        column.addLayout(foot)
        return page

    def _bar(self, theme: Theme) -> QHBoxLayout:
        bar = QHBoxLayout()
        bar.setSpacing(8)
        self.start_button: QPushButton = push_button("Start", self.toggle_run, "primary", "Start or stop the run")
        self.start_button.setMinimumWidth(76)
        bar.addWidget(self.start_button)
        self.switch = Switch("Graph replay", theme)
        self.switch.setAccessibleName("CUDA Graph replay")
        self.switch.setToolTip("Replay the iteration as a CUDA Graph (F7)")
        self.switch.clicked.connect(self._replay_toggled)
        bar.addWidget(self.switch)
        bar.addStretch()
        self.views = Segments(_VIEWS, "View of the run")
        self.views.chosen.connect(self.show_view)
        bar.addWidget(self.views)
        return bar

    # Modes

    def _begin_page(self, *, live: bool) -> None:
        self._end()
        self._live = live
        self._recorded = {}
        self._outlier = -1
        self.record = RunRecord()
        if live:
            self._on = {"compiled"}
        self.table.figures.set_rows([])
        self._pages.setCurrentIndex(1)
        self._dirty = True
        self._draw()

    def _show_modes(self) -> None:
        """Only what was recorded can be chosen."""
        available = None if self._live else set(self._recorded)
        self.table.figures.set_state(self._on, available)
        replayed = set(REPLAYED.values())
        self.switch.setEnabled(available is None or bool(available & replayed))
        self.switch.setChecked(bool(self._on & replayed))

    def _set_on(self, modes: set[str]) -> None:
        self._on = modes
        self._show_modes()
        if self._live:
            if self._running:
                self.change_requested.emit(self.modes)
        elif self._running:
            self._play()
        else:
            self._preview()
        self._tell_pace()
        self._dirty = True
        self._draw()
        self._draw_figures()

    def _replay_toggled(self, on: bool) -> None:
        """Every mode that is on becomes itself with, or without, CUDA Graphs; a graph replays the compiled model."""
        swap = REPLAYED if on else {graph: plain for plain, graph in REPLAYED.items()}
        wanted = {swap.get(mode, mode) for mode in self._on}
        if on and not wanted & set(REPLAYED.values()):
            wanted = {REPLAYED["compiled"]}
        available = {mode for mode in wanted if self.table.figures.is_available(mode)}
        self._set_on(available or self._on)

    def show_view(self, view: str) -> None:
        """One of the plot's layouts, "distribution" or "compare"."""
        self.views.choose(view)
        page = {"distribution": 1, "compare": 2}.get(view, 0)
        self._views.setCurrentIndex(page)
        if page == 0:
            self.plot.set_layout(view)
        self.log_box.setVisible(page != 2)
        self.table.setVisible(page != 2)  # the comparison has a choice of its own, and its sentences need the room
        self._dirty = True
        self._draw()
        self._draw_figures()

    def _set_log(self, on: bool) -> None:
        self.plot.set_log(on)
        self.distribution.set_log(on)

    # Iterations

    def _preview(self) -> None:
        """The beginnings of the recordings, one after another, so that there is something to look at."""
        self.record = self.record.restarted()
        for mode in self.modes:
            m = self._recorded.get(mode)
            if m is not None:
                self.record.add(mode, m.warmup_cpu_samples, m.warmup_gpu_samples, warmup=True)
                self.record.add(mode, m.cpu_samples[:_PREVIEW], m.gpu_samples[:_PREVIEW])
        self._dirty = True
        self._draw()

    def _play(self) -> None:
        self.player.play([self._recorded[mode] for mode in self.modes if mode in self._recorded])

    def _tell_pace(self) -> None:
        chosen = [self._recorded[mode] for mode in self.modes if mode in self._recorded]
        if not chosen:
            return
        total = f"{sum(m.iterations for m in chosen):,}"
        if self._running:
            self._state.setText(f"{total} iterations, playing {pace_text(chosen[0])}")
        else:
            warm = max(m.warmup for m in chosen)
            self._state.setText(f"{total} recorded iterations{f' after {warm:,} of warm-up' if warm else ''}")

    def _played(self, mode: str, cpu_us: list[float], gpu_us: list[float]) -> None:
        self.record.add(mode, cpu_us, gpu_us)
        self._dirty = True

    def _picked(self, picked: Picked) -> None:
        cpu, gpu = self.record.series(picked.mode).recorded
        notes = []
        for name, value, all_of in (("CPU", picked.cpu_us, cpu), ("GPU", picked.gpu_us, gpu)):
            rank = float((all_of < value).mean()) if len(all_of) else 0.0
            median = sorted(all_of)[len(all_of) // 2] if len(all_of) else value
            of_median = f"{value / median:.2f}× p50, " if median else ""
            notes.append(f"{name} {fmt.microseconds(value)} ({of_median}above {rank:.1%})")
        kind = "warm-up iteration" if picked.warmup else "iteration"
        self._state.setText(f"{mode_title(picked.mode)}, {kind} {picked.number:,}: {'; '.join(notes)}")

    def _end(self) -> None:
        self._running = False
        self.player.stop()
        self._redraw.stop()
        self._figures_due.stop()
        self.start_button.setText("Start")
        if self._recorded:
            self._tell_pace()
        self._draw()
        self._draw_figures()

    def _draw(self) -> None:
        if not self._dirty:
            return
        self._dirty = False
        if self.views.value in LAYOUTS:
            self.plot.show_record(self.record, self.modes)

    def _draw_figures(self) -> None:
        """What need not follow every batch."""
        rows = self.record.rows()
        self.table.figures.set_rows(rows)
        if self.views.value == "distribution":
            self.distribution.show_record(self.record, self.modes)
        elif self.views.value == "compare":
            self.compare.show_record(self.record)
        for button in (self.earlier, self.later):
            button.setEnabled(bool(rows))
