"""The tabs at the bottom: Run, Stages, programs, graph breaks, memory, messages."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget, QWidget

from compiler.report import Region, Report
from views.memory_panel import MemoryPanel
from views.message_bar import Message
from views.run_panel import RunPanel
from views.stages_panel import StagesPanel
from views.text_panels import ListPanel, ProgramPanel, break_entries, message_entry
from views.theme import Theme

_NO_BREAKS = "No graph breaks: Dynamo captured the whole model, and nothing was recompiled."
_NO_REPORT = "Compile a model to see where Dynamo breaks its graph, and what it guards on."
_NO_MESSAGES = "No messages yet."


class BottomPanel(QTabWidget):
    """Each tab is filled when it is first seen."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDocumentMode(True)
        self.tabBar().setAccessibleName("Panels")
        self._messages: list[Message] = []
        self.run = RunPanel(theme)
        self.stages = StagesPanel(theme)
        self.wrapper = ProgramPanel("wrapper program", "The report has no wrapper program for this region.", theme)
        self.fx_text = ProgramPanel("FX graph", "The report has no FX graph text for this region.", theme)
        self.breaks = ListPanel(theme, "Graph breaks")
        self.memory = MemoryPanel(theme)
        self.messages = ListPanel(theme, "Messages")
        for widget, title in (
            (self.run, "Run"),
            (self.stages, "Stages"),
            (self.wrapper, "Wrapper program"),
            (self.fx_text, "FX graph"),
            (self.breaks, "Graph breaks"),
            (self.memory, "Memory"),
            (self.messages, "Messages"),
        ):
            self.addTab(widget, title)
        self.breaks.set_entries([], _NO_REPORT)
        self.messages.set_entries([], _NO_MESSAGES)

    def set_theme(self, theme: Theme) -> None:
        """Other colours in every tab."""
        for panel in (self.run, self.stages, self.wrapper, self.fx_text, self.breaks, self.memory, self.messages):
            panel.set_theme(theme)

    def set_report(self, report: Report) -> None:
        """What belongs to the report as a whole."""
        self.stages.set_stages(report.stages)
        entries = break_entries(report)
        if not report.graph_breaks and not report.recompiles:
            entries.insert(0, ("success", _NO_BREAKS, ""))
        self.breaks.set_entries(entries, _NO_REPORT)
        title = f"Graph breaks ({len(report.graph_breaks)})" if report.graph_breaks else "Graph breaks"
        self.setTabText(self.indexOf(self.breaks), title)

    def set_region(self, region: Region) -> None:
        """What belongs to the region shown."""
        self.wrapper.set_text(region.wrapper)
        self.fx_text.set_text(region.fx_text)
        self.memory.set_memory(region.memory)

    def add_message(self, message: Message) -> None:
        """Keep a message, the latest first."""
        self._messages = [message, *self._messages][:200]
        self.messages.set_entries([message_entry(m) for m in self._messages], _NO_MESSAGES)
        self.setTabText(self.indexOf(self.messages), f"Messages ({len(self._messages)})")
