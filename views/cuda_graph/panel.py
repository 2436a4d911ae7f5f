"""Everything about a region's CUDA Graph: its life, its nodes, its inputs, and what stands in the way of capture."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.capture_check import Check, State, capture_checks, rule_title
from app.filters import Kept
from compiler.report import CudaGraph, InputRoute, Report, SkipReason, SourceLine
from views.background.jobs import Job
from views.cuda_graph.lifecycle_chart import LifecycleChart
from views.cuda_graph.topology_page import TopologyPage
from views.look import format as fmt
from views.look.theme import Theme
from views.selection.hidden_note import HiddenNote, hidden_text
from views.selection.index import RegionIndex
from views.selection.selection import Selection
from views.tables.data_table import Column, DataTable, Record
from views.widgets.basic import ElidedLabel, as_panel
from views.widgets.rows import Finding, FindingList
from views.widgets.segments import Segments

_Row = TypeVar("_Row", Finding, Record)
_PAGES = {"overview": "Overview", "topology": "Topology", "inputs": "Inputs", "check": "Before you capture"}
_LEVELS = {State.OK: "success", State.COSTS: "info", State.SPLITS: "break", State.SKIPS: "error"}
_ROUTES = {
    "static": "Static: read where it is",
    "same_address": "Same address: nothing to do",
    "patched": "Moved: parameters patched",
    "copied": "Copied into the graph's memory",
    "host": "From the host",
}
_THINGS = {"overview": "reason", "inputs": "input", "check": "finding"}
_NO_TOPOLOGY = "No graph was captured. On a machine with a GPU, a run with graph replay records its nodes here."
_NOT_YET = "On a machine with a GPU, a run with graph replay tells here what capture cost and what it covers."
_NO_ROUTES = "Nothing was captured; \"Before you capture\" says which inputs would be copied where they move."
_WHOLE_ITERATION = "The graph runs on the very tensors that it was captured with: no input moves, and none is copied."


class CudaGraphPanel(QWidget):
    """Four pages, chosen above. With filters a row is shown where they leave its node, or where it has none."""

    node_chosen = Signal(str, str)  # region, FX node
    unit_chosen = Signal(str, str)  # region, unit

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: Report | None = None
        self._index: RegionIndex | None = None
        self._checking: Job | None = None
        self._findings: list[Finding] = []
        self._kept: dict[str, Kept] | None = None
        self._hidden: dict[str, tuple[int, int]] = {}  # page -> rows that the filters hide, of so many
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 8, 6)
        column.setSpacing(8)
        head = QHBoxLayout()
        head.setSpacing(12)
        self.pages = Segments(_PAGES, "CUDA Graph page")
        self.pages.chosen.connect(self.show_page)
        head.addWidget(self.pages)
        self._headline = ElidedLabel("", "muted", is_sentence=True)
        head.addWidget(self._headline, 1)
        column.addLayout(head)
        self.note = HiddenNote()
        column.addWidget(self.note)
        self._stack = QStackedWidget()
        column.addWidget(self._stack, 1)
        self._stack.addWidget(self._overview(theme))
        self.topology = TopologyPage(theme)
        self.topology.unit_chosen.connect(self.unit_chosen)
        self.topology.node_chosen.connect(self.node_chosen)
        self._stack.addWidget(self.topology)
        self.inputs = DataTable(
            "Inputs of the CUDA Graph",
            [
                Column("Input", 150, is_name=True), Column("Way", 220), Column("Bytes", 80, True),
                Column("Nodes", 60, True),
                Column("CPU cost", 80, True, "Measured CPU time of serving it before a replay"), Column("Why", 300),
            ],
        )  # fmt: skip
        self.inputs.chosen.connect(self._go)
        self._stack.addWidget(self.inputs)
        self.check = FindingList("Before you capture", theme)
        self.check.chosen.connect(self._go)
        self._stack.addWidget(self.check)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.life, self.reasons, self.topology, self.check):
            part.set_theme(theme)

    def set_report(self, report: Report) -> None:
        """Another report."""
        self._report = report
        if self._checking is not None:
            self._checking.cancel()
        self._checking = Job(lambda cancelled: [_finding(check) for check in capture_checks(report)], self)
        self._checking.done.connect(self._checked)
        self._checking.start()

    def _checked(self, findings: list[Finding]) -> None:
        self._checking = None
        self._findings = findings
        self._fill()

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """What the filters leave, by region; None for everything."""
        self._kept = kept
        self._fill()

    def set_region(self, index: RegionIndex) -> None:
        """Another region; where it was captured with the others, the facts are those of all."""
        self._index = index
        self.topology.set_topology(graph_of(index).topology, index, _NO_TOPOLOGY)
        self._fill()

    def _fill(self) -> None:
        self.check.set_findings(self._left("check", self._findings, [finding.target for finding in self._findings]))
        if self._index is None:
            return
        index = self._index
        graph = graph_of(index)
        self.life.setVisible(graph.captured)
        self.life.set_graph(graph)
        self._headline.setText(headline(graph))
        reasons = [_reason_finding(index.region.name, reason) for reason in graph.skip_reasons]
        reasons_left = self._left("overview", reasons, [finding.target for finding in reasons])
        self.reasons.set_findings(reasons_left if reasons else [_no_reasons(graph)])
        routes = [_route_record(index, route) for route in graph.routes]
        self.inputs.set_records(self._left("inputs", routes, [route.target for route in routes]))
        nothing = _WHOLE_ITERATION if graph.captured else _NO_ROUTES
        self.inputs.set_empty_text("" if routes else nothing)
        self._tell_hidden()

    def _left(self, page: str, rows: list[_Row], targets: list[str]) -> list[_Row]:
        """The rows whose target ("region/node") the filters leave."""
        left = [row for row, target in zip(rows, targets, strict=True) if self._shows(target)]
        self._hidden[page] = (len(rows) - len(left), len(rows))
        return left

    def _shows(self, target: str) -> bool:
        region, _, node = target.partition("/")
        return self._kept is None or not node or region not in self._kept or node in self._kept[region].nodes

    def _tell_hidden(self) -> None:
        page = self.pages.value
        hidden, every = self._hidden.get(page, (0, 0))
        self.note.tell(hidden_text(hidden, every, _THINGS[page]) if self._kept is not None and every else "")

    def show_selection(self, selection: Selection) -> None:
        """Mark the graph nodes of what is selected."""
        self.topology.show_unit(selection.region, selection.unit)

    def show_page(self, page: str) -> None:
        """One of "overview", "topology", "inputs", "check"."""
        self.pages.choose(page)
        self._stack.setCurrentIndex(list(_PAGES).index(page))
        self._tell_hidden()

    def _overview(self, theme: Theme) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.life = LifecycleChart(theme)
        column.addWidget(self.life)
        self.reasons = FindingList("Why the graph is split or skipped", theme)
        self.reasons.chosen.connect(self._go)
        column.addWidget(self.reasons, 1)
        return page

    def _go(self, target: str) -> None:
        region, _, node = target.partition("/")
        self.node_chosen.emit(region, node)


def graph_of(index: RegionIndex) -> CudaGraph:
    """The facts that hold for a region: its own, or those of the graph that captured all regions at once."""
    every = [index.region.cuda_graph, *(region.cuda_graph for region in index.report.regions)]
    return next((graph for graph in every if graph.nodes), index.region.cuda_graph)


def headline(graph: CudaGraph) -> str:
    """One line on the state of things."""
    if graph.captured:
        parts = [f"Captured in {fmt.plural(graph.partitions, 'partition')}"]
        if graph.covered_kernels is not None and graph.covered_time is not None:
            parts.append(f"{_share(graph.covered_kernels)} of kernels, {_share(graph.covered_time)} of GPU time")
        return ": ".join(parts)
    if not graph.answered:
        return "Not captured: the log does not say whether it could be"
    return "Not captured: nothing would refuse it" if graph.capturable else "Not captured: it would be split or skipped"


def _share(share: float) -> str:
    return f"{share:.1%}".replace(".0%", "%")


def _no_reasons(graph: CudaGraph) -> Finding:
    if graph.captured:
        return Finding("success", "Nothing split or skipped it")
    if not graph.answered:
        return Finding("info", "The log does not say whether it could be captured")
    title = "Nothing in this region would refuse capture" if graph.capturable else "It cannot be captured"
    return Finding("success" if graph.capturable else "break", title, _NOT_YET)


def _place(source: SourceLine | None, node: str) -> str:
    where = f"{source.file}:{source.line}  {source.code.strip()}" if source is not None else ""
    return where or node


def _reason_finding(region: str, reason: SkipReason) -> Finding:
    target = f"{region}/{reason.node}" if reason.node else ""
    return Finding("break", rule_title(reason.rule), reason.detail, "", _place(reason.source, reason.node), target)


def _finding(check: Check) -> Finding:
    target = f"{check.region}/{check.node}" if check.node else ""
    place = _place(check.source, check.node if check.state in (State.SPLITS, State.SKIPS) else "")
    return Finding(_LEVELS[check.state], check.title, check.detail, check.advice, place, target)


def _route_record(index: RegionIndex, route: InputRoute) -> Record:
    known = route.name in index.nodes
    return Record(
        (
            route.name, _ROUTES.get(route.route, route.route), fmt.size(route.bytes),
            str(route.nodes) if route.nodes else "–",
            fmt.microseconds(route.cost_us) if route.cost_us is not None else "–", route.detail,
        ),
        (route.name, route.route, route.bytes, route.nodes, route.cost_us, route.detail),
        f"{index.region.name}/{route.name}" if known else "",
    )  # fmt: skip
