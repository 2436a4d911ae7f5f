"""What the compiler is doing: stages with their times, a progress bar, elapsed time, Cancel."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.worker.protocol import StageFinished, StageStarted
from views.look import format as fmt
from views.look.icons import pixmap
from views.look.theme import Theme, mix
from views.widgets.basic import label, push_button

STAGES = {
    "load": "Load",
    "capture": "Capture",
    "lower": "Lower",
    "fuse": "Fuse",
    "plan": "Plan memory",
    "generate": "Generate",
    "compile": "Compile",
    "report": "Report",
}
_COLUMNS = 4


def stage_title(name: str) -> str:
    """What a stage is called; a compiler's own names are written as ours are."""
    return STAGES.get(name, f"{name[:1].upper()}{name[1:]}")


@dataclass
class _Cell:
    widget: QWidget
    sign: QLabel
    name: QLabel
    time: QLabel
    ms: float = 0.0


class ProgressPanel(QFrame):
    """Visible while a compilation runs."""

    cancel_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._theme = theme
        self._began = 0.0
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 12)
        column.setSpacing(8)
        head = QHBoxLayout()
        self._title = label("", "strong")
        head.addWidget(self._title)
        self._note = label("", "muted")
        head.addWidget(self._note)
        head.addStretch()
        self._elapsed = label("", "muted")
        head.addWidget(self._elapsed)
        self.cancel_button = push_button("Cancel", self.cancel_requested.emit, tip="Cancel the compilation (Esc)")
        head.addWidget(self.cancel_button)
        column.addLayout(head)
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Progress of the compilation")
        column.addWidget(self.bar)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(3)
        column.addLayout(self._grid)
        self._cells: dict[str, _Cell] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(100)
        self._timer.timeout.connect(self._tick)
        self.setVisible(False)

    def set_theme(self, theme: Theme) -> None:
        """Colours for the stages' signs."""
        self._theme = theme

    def begin(self, title: str, note: str = "") -> None:
        """Show the panel for a new compilation."""
        self._title.setText(title)
        self._note.setText(note)
        for cell in self._cells.values():
            self._grid.removeWidget(cell.widget)
            cell.widget.deleteLater()
        self._cells = {}
        for stage in STAGES:
            self._cell(stage)
        self.bar.setValue(0)
        self._began = time.monotonic()
        self._tick()
        self._timer.start()
        self.setVisible(True)

    def end(self) -> None:
        """Hide the panel."""
        self._timer.stop()
        self.setVisible(False)

    @property
    def stage_times(self) -> dict[str, float]:
        """Milliseconds of each stage that ended."""
        return {name: cell.ms for name, cell in self._cells.items() if cell.ms}

    def stage_event(self, event: StageStarted | StageFinished) -> None:
        """A stage began or ended."""
        if isinstance(event, StageStarted):
            self._stage_started(event)
        else:
            self._stage_finished(event)

    def _stage_started(self, event: StageStarted) -> None:
        cell = self._cell(event.stage)
        cell.sign.setPixmap(pixmap("clock", self._theme.accent, 15))
        cell.name.setStyleSheet(f"color: {self._theme.text.name()}; font-weight: 600")
        self._note.setText(event.region)
        self.bar.setValue(int(event.fraction * 1000))

    def _stage_finished(self, event: StageFinished) -> None:
        cell = self._cell(event.stage)
        cell.ms += event.ms  # several regions add up
        cell.sign.setPixmap(pixmap("success", self._theme.success, 15))
        cell.name.setStyleSheet("")
        cell.time.setText(fmt.milliseconds(cell.ms))
        self.bar.setValue(int(event.fraction * 1000))

    def _cell(self, stage: str) -> _Cell:
        if stage not in self._cells:
            index = len(self._cells)
            sign = QLabel()
            sign.setPixmap(pixmap("recorded", mix(self._theme.muted, self._theme.surface, 0.6), 15))
            cell = _Cell(QWidget(), sign, label(stage_title(stage)), label("", "muted"))
            line = QHBoxLayout(cell.widget)
            line.setContentsMargins(0, 0, 0, 0)
            line.setSpacing(7)
            for widget in (cell.sign, cell.name, cell.time):
                line.addWidget(widget)
            line.addStretch()
            row, column = divmod(index, _COLUMNS)
            self._grid.addWidget(cell.widget, row, column)
            self._grid.setColumnStretch(column, 1)
            self._cells[stage] = cell
        return self._cells[stage]

    def _tick(self) -> None:
        self._elapsed.setText(f"{time.monotonic() - self._began:.1f} s")
