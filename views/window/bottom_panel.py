"""The panels at the bottom: runs and timelines, CUDA Graph, memory, stages, programs, graph breaks, messages."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.filters import Kept
from compiler.report import Report
from views.background.turns import in_a_turn
from views.code.programs import ProgramsPanel
from views.code.source import SourcePanel
from views.compare.panel import ComparePanel
from views.compile.stages import StagesPanel
from views.cuda_graph.panel import CudaGraphPanel
from views.look.theme import Theme
from views.panels.dynamo import DynamoPanel
from views.panels.memory import MemoryPanel
from views.panels.messages import MessagesPanel
from views.panels.roofline import RooflinePanel
from views.panels.timeline import TimelinePanel
from views.refusals.panel import RefusalsPanel
from views.run.panel import RunPanel
from views.selection.index import RegionIndex
from views.selection.selection import Selection
from views.widgets.rail import RailStack
from views.window.feed import KEPT, REGION, REPORT, SELECTION, Feed
from views.window.message_bar import Message

Page = TypeVar("Page", bound=QWidget)


class BottomPanel(RailStack):
    """Tells what is chosen in any of its panels. Those out of sight are filled when they are looked at."""

    unit_chosen = Signal(str, str)  # region, group or extern call
    node_chosen = Signal(str, str)  # region, FX node
    nodes_chosen = Signal(str, object)  # region, frozenset of FX nodes
    pair_chosen = Signal(str, str, str)  # region, two FX nodes
    hovered = Signal(str, str)  # region ("" for the one shown), a unit or FX node under the mouse, "" for none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        """Empty; ``make_pages`` fills it once it is where it is to be, for moving it then would take long."""
        super().__init__("Panels", theme, parent)
        self._feed = Feed()

    def make_pages(self) -> Generator[None, None, None]:
        """Make the panels one by one, and put each into its place in a step of its own."""
        theme = self._theme
        self.run = yield from self._made(RunPanel(theme), "Run", "play")
        self.timeline = yield from self._made(TimelinePanel(theme), "Timeline", "timeline")
        self.cuda_graph = yield from self._made(CudaGraphPanel(theme), "CUDA Graph", "gpu")
        self.memory = yield from self._made(MemoryPanel(theme), "Memory", "memory", begins_group=True)
        self.roofline = yield from self._made(RooflinePanel(theme), "Roofline", "roofline")
        self.source = yield from self._made(SourcePanel(theme), "Source", "code")
        self.refusals = yield from self._made(RefusalsPanel(theme), "Refusals", "split", begins_group=True)
        self.compare = yield from self._made(ComparePanel(theme), "Compare", "columns")
        self.stages = yield from self._made(StagesPanel(theme), "Stages", "stages")
        self.dynamo = yield from self._made(DynamoPanel(theme), "Dynamo", "breaks")
        self.programs = yield from self._made(ProgramsPanel(theme), "Programs", "file", begins_group=True)
        self.messages = yield from self._made(MessagesPanel(theme), "Messages", "info")
        self._connect()

    def _made(self, page: Page, title: str, icon: str, *, begins_group: bool = False) -> Generator[None, None, Page]:
        yield
        self.add_page(page, title, icon, begins_group=begins_group)
        yield
        page.ensurePolished()  # with all that is in it, which would else happen when it is first shown
        yield
        return page

    def _connect(self) -> None:
        self.current_changed.connect(lambda _: self._feed.catch_up(self.currentWidget()))
        self.timeline.unit_chosen.connect(self.unit_chosen)
        self.cuda_graph.unit_chosen.connect(self.unit_chosen)
        self.cuda_graph.node_chosen.connect(self.node_chosen)
        self.refusals.pair_chosen.connect(self.pair_chosen)
        self.compare.unit_chosen.connect(self.unit_chosen)
        self.compare.nodes_chosen.connect(self.nodes_chosen)
        self.memory.node_chosen.connect(lambda node: self.node_chosen.emit("", node))
        self.roofline.unit_chosen.connect(lambda unit: self.unit_chosen.emit("", unit))
        self.source.nodes_chosen.connect(self.nodes_chosen)
        self.dynamo.line_chosen.connect(self.show_line)
        for told in (self.roofline.chart.unit_hovered, self.roofline.table.hovered, self.memory.map.node_hovered):
            told.connect(lambda name: self.hovered.emit("", name))
        for joined in (self.timeline.gantt.unit_hovered, self.cuda_graph.topology.unit_hovered):
            joined.connect(lambda unit: self.hovered.emit(*_parts(unit)))
        self.refusals.node_hovered.connect(self.hovered)

    def set_theme(self, theme: Theme) -> None:
        """Other colours everywhere, at once in the panel in front."""
        self.set_rail_theme(theme)
        for place in range(self.count()):
            page = self.page(place)
            if page is self.currentWidget():
                page.set_theme(theme)
            else:
                in_a_turn(page, lambda page=page: page.set_theme(self._theme))

    def set_report(self, report: Report) -> None:
        """What belongs to the report as a whole."""
        self._tell(self.stages, REPORT, lambda: self.stages.set_stages(report.stages))
        for panel in (self.refusals, self.timeline, self.cuda_graph, self.source, self.dynamo):
            self._tell(panel, REPORT, lambda panel=panel: panel.set_report(report))
        self._keep(report, None)
        self.set_count(self.refusals, sum(len(region.refusals) for region in report.regions))
        self.set_count(self.dynamo, len(report.graph_breaks))

    def set_kept(self, report: Report, kept: dict[str, Kept] | None) -> None:
        """What the filters leave, by region; None for everything. Region and selection are told again after it."""
        self._tell(self.timeline, REPORT, lambda: self.timeline.set_report(report, kept))
        self._keep(report, kept)

    def _keep(self, report: Report, kept: dict[str, Kept] | None) -> None:
        self._tell(self.run, KEPT, lambda: self.run.set_kept(report, kept))
        for panel in (self.cuda_graph, self.refusals, self.source, self.compare, self.stages, self.dynamo):
            self._tell(panel, KEPT, lambda panel=panel: panel.set_kept(kept))

    def set_region(self, index: RegionIndex) -> None:
        """What belongs to the region shown."""
        self._tell(self.programs, REGION, lambda: self.programs.set_region(index))
        for panel in (self.memory, self.cuda_graph, self.roofline):
            self._tell(panel, REGION, lambda panel=panel: panel.set_region(index))
        self._tell(self.source, REGION, lambda: self.source.set_region(index.region.name))

    def show_selection(self, selection: Selection) -> None:
        """Mark what is selected in every panel that shows it."""
        self._tell(self.timeline, SELECTION, lambda: self.timeline.show_unit(selection.region, selection.unit))
        for panel in (self.cuda_graph, self.memory, self.source):
            self._tell(panel, SELECTION, lambda panel=panel: panel.show_selection(selection))
        self._tell(self.roofline, SELECTION, lambda: self.roofline.show_unit(selection.unit))

    def show_line(self, file: str, line: int) -> None:
        """A line of the model's source."""
        self.setCurrentWidget(self.source)
        self.source.show_line(file, line)

    def add_message(self, message: Message) -> None:
        """Keep a message, the latest first."""
        self.messages.add(message)
        self.set_count(self.messages, self.messages.count)

    def _tell(self, panel: QWidget, topic: str, call: Callable[[], object]) -> None:
        self._feed.tell(panel, topic, call, now=panel is self.currentWidget())


def _parts(unit: str) -> tuple[str, str]:
    region, _, name = unit.partition("/")
    return region, name

