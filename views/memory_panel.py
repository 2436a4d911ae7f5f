"""The memory plan: bytes of live intermediates over the steps of the schedule."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from compiler.report import Memory
from views import format as fmt
from views.theme import Theme
from views.widgets import as_panel, label


class MemoryPanel(QWidget):
    """A step plot of live bytes; drawn when first seen, as the plot library is slow to import."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._memory = Memory()
        self._drawn: Memory | None = None
        self._plot: Any = None
        as_panel(self)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(14, 10, 14, 8)
        self._facts = label("", "muted", wrap=True)
        self._column.addWidget(self._facts)
        self._column.addStretch()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._drawn = None
        if self.isVisible():
            self._draw()

    def set_memory(self, memory: Memory) -> None:
        """Show another plan."""
        self._memory = memory
        self._facts.setText(memory_text(memory))
        if self.isVisible():
            self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what was set while hidden."""
        super().showEvent(event)
        self._draw()

    def _draw(self) -> None:
        if self._drawn is self._memory:
            return
        self._drawn = self._memory
        import pyqtgraph

        if self._plot is None:
            self._column.takeAt(1)
            self._plot = pyqtgraph.PlotWidget(antialias=False)
            self._plot.setAccessibleName("Live bytes over the schedule")
            item = self._plot.getPlotItem()
            item.setMenuEnabled(False)
            item.hideButtons()
            item.setMouseEnabled(x=False, y=False)
            item.getAxis("left").enableAutoSIPrefix(False)
            item.getAxis("bottom").enableAutoSIPrefix(False)
            self._column.addWidget(self._plot, 1)
        theme, plot = self._theme, self._plot
        plot.setBackground(theme.surface)
        item = plot.getPlotItem()
        item.clear()
        for side, text in (("left", "live intermediates (MB)"), ("bottom", "step of the schedule")):
            axis = item.getAxis(side)
            axis.setPen(pyqtgraph.mkPen(theme.border))
            axis.setTextPen(pyqtgraph.mkPen(theme.muted))
            axis.setStyle(tickFont=theme.ui_font(8.5), tickLength=4)
            axis.setLabel(text, color=theme.muted.name(), **{"font-size": "8.5pt"})
        live = live_bytes(self._memory)
        if live:
            fill = theme.gpu_curve.toRgb()
            fill.setAlpha(60)
            steps = [value / 1e6 for value in live]
            item.plot(
                list(range(len(steps) + 1)), steps, stepMode="center", fillLevel=0, brush=fill,
                pen=pyqtgraph.mkPen(theme.gpu_curve),
            )


def live_bytes(memory: Memory) -> list[int]:
    """Bytes live at each step: every buffer from its first use to its last, both included."""
    if not memory.buffers:
        return []
    changes = [0] * (max(buffer.last_use for buffer in memory.buffers) + 2)
    for buffer in memory.buffers:
        changes[buffer.first_use] += buffer.bytes
        changes[buffer.last_use + 1] -= buffer.bytes
    live: list[int] = []
    total = 0
    for change in changes[:-1]:
        total += change
        live.append(total)
    return live


def memory_text(memory: Memory) -> str:
    """One sentence on the plan."""
    if not memory.buffers:
        return "This region keeps no intermediate buffers."
    reused = sum(1 for buffer in memory.buffers if buffer.reuses)
    return (
        f"Peak {fmt.size(memory.peak_bytes)} planned for {fmt.plural(len(memory.buffers), 'intermediate buffer')}; "
        f"{fmt.size(memory.total_bytes)} without reuse. {reused} of them take over the storage of an earlier one."
    )
