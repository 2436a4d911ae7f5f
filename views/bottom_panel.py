"""The tabs at the bottom: runs and timelines, CUDA Graph, memory, stages, programs, graph breaks, messages."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QTabWidget, QWidget

from compiler.report import Report
from views.compare_panel import ComparePanel
from views.cuda_graph_panel import CudaGraphPanel
from views.index import RegionIndex
from views.memory_panel import MemoryPanel
from views.message_bar import Message
from views.programs_panel import ProgramsPanel
from views.refusals_panel import RefusalsPanel
from views.roofline_panel import RooflinePanel
from views.run_panel import RunPanel
from views.selection import Selection
from views.source_panel import SourcePanel
from views.stages_panel import StagesPanel
from views.text_panels import ListPanel, break_entries, message_entry
from views.theme import Theme
from views.timeline_panel import TimelinePanel

_NO_BREAKS = "No graph breaks: Dynamo captured the whole model, and nothing was recompiled."
_NO_REPORT = "Compile a model to see where Dynamo breaks its graph, and what it guards on."
_NO_MESSAGES = "No messages yet."


class BottomPanel(QTabWidget):
    """Tells what is chosen in any of its tabs."""

    unit_chosen = Signal(str, str)  # region, group or extern call
    node_chosen = Signal(str, str)  # region, FX node
    nodes_chosen = Signal(str, object)  # region, frozenset of FX nodes
    pair_chosen = Signal(str, str, str)  # region, two FX nodes

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDocumentMode(True)
        self.tabBar().setAccessibleName("Panels")
        self._messages: list[Message] = []
        self.run = RunPanel(theme)
        self.timeline = TimelinePanel(theme)
        self.cuda_graph = CudaGraphPanel(theme)
        self.memory = MemoryPanel(theme)
        self.roofline = RooflinePanel(theme)
        self.source = SourcePanel(theme)
        self.refusals = RefusalsPanel(theme)
        self.compare = ComparePanel(theme)
        self.stages = StagesPanel(theme)
        self.programs = ProgramsPanel(theme)
        self.breaks = ListPanel(theme, "Graph breaks")
        self.messages = ListPanel(theme, "Messages")
        self._titles = {
            self.run: "Run",
            self.timeline: "Timeline",
            self.cuda_graph: "CUDA Graph",
            self.memory: "Memory",
            self.roofline: "Roofline",
            self.source: "Source",
            self.refusals: "Refusals",
            self.compare: "Compare",
            self.stages: "Stages",
            self.breaks: "Breaks",
            self.programs: "Programs",
            self.messages: "Messages",
        }
        for widget, title in self._titles.items():
            self.addTab(widget, title)
        self.timeline.unit_chosen.connect(self.unit_chosen)
        self.cuda_graph.unit_chosen.connect(self.unit_chosen)
        self.cuda_graph.node_chosen.connect(self.node_chosen)
        self.refusals.pair_chosen.connect(self.pair_chosen)
        self.compare.unit_chosen.connect(self.unit_chosen)
        self.compare.nodes_chosen.connect(self.nodes_chosen)
        self.memory.node_chosen.connect(lambda node: self.node_chosen.emit("", node))
        self.roofline.unit_chosen.connect(lambda unit: self.unit_chosen.emit("", unit))
        self.source.nodes_chosen.connect(self.nodes_chosen)
        self.breaks.set_entries([], _NO_REPORT)
        self.messages.set_entries([], _NO_MESSAGES)

    def set_theme(self, theme: Theme) -> None:
        """Other colours in every tab."""
        for panel in self._titles:
            panel.set_theme(theme)

    def set_report(self, report: Report) -> None:
        """What belongs to the report as a whole."""
        self.stages.set_stages(report.stages)
        self.refusals.set_report(report)
        self.setTabText(self.indexOf(self.refusals), f"Refusals ({self.refusals.count:,})")
        self.timeline.set_report(report)
        self.cuda_graph.set_report(report)
        self.source.set_report(report)
        entries = break_entries(report)
        if not report.graph_breaks and not report.recompiles:
            entries.insert(0, ("success", _NO_BREAKS, ""))
        self.breaks.set_entries(entries, _NO_REPORT)
        title = f"Breaks ({len(report.graph_breaks)})" if report.graph_breaks else "Breaks"
        self.setTabText(self.indexOf(self.breaks), title)

    def set_region(self, index: RegionIndex) -> None:
        """What belongs to the region shown."""
        self.programs.set_region(index.region)
        self.memory.set_region(index)
        self.cuda_graph.set_region(index)
        self.roofline.set_region(index)
        self.source.set_region(index.region.name)

    def show_selection(self, selection: Selection) -> None:
        """Mark what is selected in every tab that shows it."""
        self.timeline.show_unit(selection.region, selection.unit)
        self.cuda_graph.show_selection(selection)
        self.memory.show_selection(selection)
        self.roofline.show_unit(selection.unit)
        self.source.show_selection(selection)

    def add_message(self, message: Message) -> None:
        """Keep a message, the latest first."""
        self._messages = [message, *self._messages][:200]
        self.messages.set_entries([message_entry(m) for m in self._messages], _NO_MESSAGES)
        self.setTabText(self.indexOf(self.messages), f"Messages ({len(self._messages)})")
