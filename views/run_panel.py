"""The Run panel: CUDA Graph replay on or off, eager or compiled, the live plot, percentiles and speedups."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from app.worker.protocol import RunState, Samples
from compiler.report import Measurement
from views.playback import Player, pace_text
from views.run_plot import RunPlot
from views.run_record import MODE_TITLES, RunRecord, mode_key
from views.run_table import RunTable
from views.theme import Theme
from views.widgets import Segments, Switch, as_panel, label, push_button

REDRAW_MS = 33
_STATES = {"preparing": "Preparing…", "warmup": "Warming up…", "running": "Running", "stopped": "Stopped"}


class RunPanel(QWidget):
    """Live where the worker has a GPU and the model; else it plays back what the report recorded."""

    start_requested = Signal(str, bool)  # mode, replay
    change_requested = Signal(str, bool)
    stop_requested = Signal()
    sample_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._live = False
        self._running = False
        self._warming = False
        self._dirty = False
        self._recorded: dict[str, Measurement] = {}
        self.record = RunRecord()
        self.plot: RunPlot | None = None
        self.player = Player(self)
        self.player.samples.connect(self._played)
        self._redraw = QTimer(self)
        self._redraw.setInterval(REDRAW_MS)
        self._redraw.timeout.connect(self._draw)
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 8)
        column.setSpacing(6)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._nothing_page())
        self._pages.addWidget(self._run_page())
        column.addWidget(self._pages)
        self.set_unavailable("Compile a model to run it.", offer_sample=False)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.switch.set_theme(theme)
        if self.plot is not None:
            self.plot.set_theme(theme)
            self.plot.show_record(self.record)

    @property
    def mode(self) -> str:
        """The measured mode that the controls ask for: "eager", "compiled" or "graph"."""
        return mode_key(self.modes.value, self.switch.isChecked())

    @property
    def sentence(self) -> str:
        """Why nothing can run, or "" where something can."""
        return self._sentence.text() if self._pages.currentIndex() == 0 else ""

    @property
    def is_running(self) -> bool:
        """Whether iterations come, live or recorded."""
        return self._running

    def set_unavailable(self, sentence: str, *, offer_sample: bool) -> None:
        """Nothing to run and nothing recorded: say why, and offer the sample session."""
        self._end()
        self._sentence.setText(sentence)
        self.sample_button.setVisible(offer_sample)
        self._pages.setCurrentIndex(0)

    def set_live(self) -> None:
        """The worker has a GPU and the model compiled last."""
        self._begin_page(live=True)
        self._chip.setVisible(False)
        self._state.setText("")
        self._enable(None)

    def set_recorded(self, measurements: list[Measurement]) -> None:
        """Play back these measurements; they are all of one GPU or each says its own."""
        self._begin_page(live=False)
        self._recorded = {m.mode: m for m in measurements if m.cpu_samples}
        for measurement in self._recorded.values():
            self.record.set_measured(measurement)
        first = next(iter(self._recorded.values()))
        self._chip.setText(f"Recorded on {first.gpu}")
        self._chip.setVisible(True)
        self._enable(set(self._recorded))
        self._tell_pace()
        self._figures.figures.set_rows(self.record.rows())

    def apply_state(self, event: RunState) -> None:
        """The worker says where the run stands."""
        self._warming = event.state == "warmup"
        title = MODE_TITLES.get(event.mode, event.mode)
        state = _STATES.get(event.state, event.state)
        self._state.setText(event.text or f"{state}  ·  {title}" if event.mode else state)
        if event.state == "stopped":
            self._end()

    def add_samples(self, event: Samples) -> None:
        """A batch from the worker."""
        if self._running:
            self.record.add(event.mode, event.cpu_us, event.gpu_us, warmup=self._warming)
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
        if self._live:
            self._state.setText(_STATES["preparing"])
            self.start_requested.emit(self.modes.value, self.switch.isChecked())
        else:
            self._play()

    def showEvent(self, event: QShowEvent) -> None:
        """The plot library is imported when the panel is first seen."""
        super().showEvent(event)
        QTimer.singleShot(0, self, self._make_plot)

    def _nothing_page(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.addStretch()
        self._sentence = label("", wrap=True)
        column.addWidget(self._sentence)
        row = QHBoxLayout()
        self.sample_button = push_button("Open the recorded sample session", self.sample_requested.emit)
        row.addWidget(self.sample_button)
        row.addStretch()
        column.addLayout(row)
        column.addStretch()
        return page

    def _run_page(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        bar = QHBoxLayout()
        bar.setSpacing(14)
        self.start_button: QPushButton = push_button("Start", self.toggle_run, "primary", "Start or stop the run")
        self.start_button.setMinimumWidth(76)
        bar.addWidget(self.start_button)
        self.modes = Segments({"eager": "Eager", "compiled": "Compiled"}, "Mode")
        self.modes.choose("compiled")
        self.modes.chosen.connect(self._mode_chosen)
        bar.addWidget(self.modes)
        self.switch = Switch("CUDA Graph replay", self._theme)
        self.switch.clicked.connect(self._replay_toggled)
        bar.addWidget(self.switch)
        self._chip = label("", "recorded")
        bar.addWidget(self._chip)
        bar.addStretch()
        self.log_box = QCheckBox("Log scale")
        self.log_box.setAccessibleName("Logarithmic time axis")
        self.log_box.toggled.connect(self._set_log)
        bar.addWidget(self.log_box)
        column.addLayout(bar)
        row = QHBoxLayout()
        row.setSpacing(12)
        self._plot_place = QVBoxLayout()
        row.addLayout(self._plot_place, 1)
        side = QVBoxLayout()
        side.setSpacing(2)
        self._figures = RunTable()
        side.addWidget(self._figures, 1)
        self._state = label("", "muted", wrap=True)
        side.addWidget(self._state)
        row.addLayout(side)
        column.addLayout(row, 1)
        return page

    def _begin_page(self, *, live: bool) -> None:
        self._end()
        self._live = live
        self._recorded = {}
        self.record = RunRecord()
        self._figures.figures.set_rows([])
        self._pages.setCurrentIndex(1)
        self._dirty = True
        self._draw()

    def _enable(self, modes: set[str] | None) -> None:
        """Only what was recorded can be chosen; None is everything."""
        for key in ("eager", "compiled"):
            present = modes is None or key in modes or (key == "compiled" and "graph" in modes)
            self.modes.button(key).setEnabled(present)
        self.switch.setEnabled(modes is None or "graph" in modes)
        if modes is not None and self.mode not in modes:
            mode = next((m for m in ("graph", "compiled", "eager") if m in modes), "compiled")
            self.switch.setChecked(mode == "graph")
            self.modes.choose("eager" if mode == "eager" else "compiled")

    def _mode_chosen(self, mode: str) -> None:
        if mode == "eager":
            self.switch.setChecked(False)
        elif self._recorded and "compiled" not in self._recorded:
            self.switch.setChecked(True)
        self._changed()

    def _replay_toggled(self, on: bool) -> None:
        if on:
            self.modes.choose("compiled")  # a graph replays the compiled model
        elif self._recorded and "compiled" not in self._recorded:
            self.switch.setChecked(True)
        self._changed()

    def _changed(self) -> None:
        if self._live:
            if self._running:
                self.change_requested.emit(self.modes.value, self.switch.isChecked())
            return
        self._tell_pace()
        if self._running:
            self._play()

    def _play(self) -> None:
        measurement = self._recorded.get(self.mode)
        if measurement is not None:
            self.player.play(measurement)

    def _tell_pace(self) -> None:
        measurement = self._recorded.get(self.mode)
        if measurement is not None:
            warm = f" after {measurement.warmup} of warm-up" if measurement.warmup else ""
            self._state.setText(
                f"{measurement.iterations:,} iterations{warm}, playing {pace_text(measurement)}"
                if self._running
                else f"{measurement.iterations:,} recorded iterations{warm}"
            )

    def _played(self, mode: str, cpu_us: list[float], gpu_us: list[float]) -> None:
        self.record.show(mode, cpu_us, gpu_us)  # its figures are those of the whole recording, known already
        self._tell_pace()
        self._dirty = True

    def _end(self) -> None:
        self._running = False
        self._warming = False
        self.player.stop()
        self._redraw.stop()
        self.start_button.setText("Start")
        if self._recorded:
            self._tell_pace()
        self._draw()

    def _make_plot(self) -> None:
        if self.plot is None:
            self.plot = RunPlot(self._theme)
            self.plot.set_log(self.log_box.isChecked())
            self._plot_place.addWidget(self.plot)
            self.plot.show_record(self.record)

    def _set_log(self, on: bool) -> None:
        if self.plot is not None:
            self.plot.set_log(on)
            self.plot.show_record(self.record)

    def _draw(self) -> None:
        if not self._dirty:
            return
        self._dirty = False
        if self.plot is not None:
            self.plot.show_record(self.record)
        self._figures.figures.set_rows(self.record.rows())
