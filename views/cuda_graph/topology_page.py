"""The captured graph's nodes with the facts of the one in focus beside them."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.layout.topology import TopologyLayout, layout_topology
from compiler.report import GraphNode
from views.background.jobs import Job
from views.cuda_graph.topology_view import TopologyScene, TopologyView, kind_title
from views.inspector.sections import Page
from views.look import format as fmt
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.selection.index import RegionIndex, group_colors
from views.widgets.basic import icon_button, push_button, recolor
from views.widgets.empty import Empty

_DETAILS_WIDTH = 300


class TopologyPage(QWidget):
    """Laid out off the GUI thread when first seen."""

    unit_chosen = Signal(str, str)  # region, unit
    node_chosen = Signal(str, str)  # region, FX node
    unit_hovered = Signal(str)  # "region/unit", "" for none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._nodes: list[GraphNode] = []
        self._index: RegionIndex | None = None
        self._layout: TopologyLayout | None = None
        self._job: Job | None = None
        self._units: frozenset[str] = frozenset()  # "region/unit" of what is selected
        self._path: list[tuple[str, list[GraphNode]]] = []  # graphs that the present one is a child of
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        left = QVBoxLayout()
        left.setSpacing(0)
        self._missing = Empty("gpu", theme)
        left.addWidget(self._missing)
        self.view = TopologyView(theme)
        self.view.node_chosen.connect(self._chosen)
        self.view.node_hovered.connect(self._pointed)
        left.addWidget(self.view, 1)
        row.addLayout(left, 1)
        self._fit = icon_button("fit", "Fit the CUDA Graph (F)", self.view.fit, theme)
        self._fit.setParent(self.view)
        self._fit.move(6, 6)
        self._up = push_button("Back to the whole graph", self._leave_child)
        self._up.setParent(self.view)
        self._up.move(40, 6)
        self._up.hide()
        self.details = QScrollArea()
        self.details.setAccessibleName("Facts of the graph node")
        self.details.setWidgetResizable(True)
        self.details.setFrameShape(QFrame.Shape.NoFrame)
        fitted(self, lambda: self.details.setFixedWidth(px(_DETAILS_WIDTH)))
        row.addWidget(self.details)
        self._details_due = QTimer(self)
        self._details_due.setSingleShot(True)
        self._details_due.setInterval(0)
        self._details_due.timeout.connect(self._fill_details)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.view.set_theme(theme)
        self._missing.set_theme(theme)
        recolor(self, theme)
        if self._layout is not None:
            self._show_scene(self._layout, keep=self.view.chosen)

    def set_topology(self, nodes: list[GraphNode], index: RegionIndex, missing: str) -> None:
        """Show a graph, or say that there is none."""
        self._index = index
        self._path = []
        self._missing.set_text(missing)
        self._missing.setVisible(not nodes)
        self.view.setVisible(bool(nodes))
        self.details.setVisible(bool(nodes))
        self._set_nodes(nodes)

    def show_unit(self, region: str, unit: str) -> None:
        """Mark the nodes that a unit issued."""
        self._units = frozenset((f"{region}/{unit}",)) if unit else frozenset()
        self.view.show_units(self._units)
        self._want_details()

    def _set_nodes(self, nodes: list[GraphNode]) -> None:
        if nodes is self._nodes:
            return
        self._nodes = nodes
        self._layout = None
        self.view.set_scene(None)
        if self._job is not None:
            self._job.cancel()
        self._up.setVisible(bool(self._path))
        self._job = Job(lambda cancelled: layout_topology(nodes, cancelled=cancelled), self)
        self._job.done.connect(self._laid_out)
        self._job.start()
        self._want_details()

    def _laid_out(self, layout: TopologyLayout) -> None:
        self._job = None
        self._layout = layout
        self._show_scene(layout, keep=-1)

    def _show_scene(self, layout: TopologyLayout, *, keep: int) -> None:
        index, theme = self._index, self._theme
        colors = {}
        if index is not None:
            for region in index.report.regions:
                for group, number in group_colors(region.groups).items():
                    if region.name == index.region.name and not index.shows_unit(group):
                        continue  # grey, as what has no group
                    colors[f"{region.name}/{group}"] = theme.group_colors[number % len(theme.group_colors)]
        self.view.set_scene(TopologyScene(self._nodes, layout, colors))
        self.view.choose(keep, reveal=False)
        self.view.show_units(self._units)
        self._want_details()

    def _pointed(self, place: int) -> None:
        node = self._nodes[place] if 0 <= place < len(self._nodes) else None
        self.unit_hovered.emit(f"{node.region}/{node.unit}" if node is not None and node.unit else "")

    def _chosen(self, place: int) -> None:
        self._want_details()
        node = self._nodes[place] if place >= 0 else None
        if node is not None and node.unit:
            self.unit_chosen.emit(node.region, node.unit)

    def _leave_child(self) -> None:
        _, nodes = self._path.pop(0)
        self._path = []
        self._set_nodes(nodes)

    def _enter_child(self, node: GraphNode) -> None:
        self._path = [*self._path, (node.name, self._nodes)]
        self._set_nodes(node.children)

    def showEvent(self, event: QShowEvent) -> None:
        """The facts of what was chosen while nobody saw them."""
        super().showEvent(event)
        self._want_details()

    def _want_details(self) -> None:
        """In a turn of their own, once for all that changed in this one, and only where they are seen."""
        if self.isVisible():
            self._details_due.start()

    def _fill_details(self) -> None:
        place = self.view.chosen
        page = Page()
        if not 0 <= place < len(self._nodes):
            self._fill_summary(page)
        else:
            self._fill_node(page, self._nodes[place])
        self.details.setWidget(page)

    def _fill_summary(self, page: Page) -> None:
        kinds = Counter(node.kind for node in self._nodes)
        page.text(f"{fmt.plural(len(self._nodes), 'node')}. Click one to see its parameters.", "strong")
        page.facts((kind_title(kind), fmt.count(count)) for kind, count in kinds.most_common())
        path = sum(node.measured_us or 0.0 for node in self._nodes if node.critical)
        total = sum(node.measured_us or 0.0 for node in self._nodes)
        if path and all(node.critical for node in self._nodes):
            page.text(f"They follow one another: {fmt.microseconds(total)} of work.")
        elif path:
            page.text(f"The critical path, in red, is {fmt.microseconds(path)} of {fmt.microseconds(total)} of work.")

    def _fill_node(self, page: Page, node: GraphNode) -> None:
        page.name(node.name)
        page.facts(node_facts(node))
        if node.children:
            enter = push_button(f"Show its {fmt.plural(len(node.children), 'node')}", lambda: self._enter_child(node))
            page.layout().addWidget(enter, 0, Qt.AlignmentFlag.AlignLeft)
        index = self._index
        if index is None or not node.unit or node.region != index.region.name:
            return
        unit = index.units.get(node.unit)
        if unit is None:
            return
        page.heading(f"{node.unit}{'' if node.exact else ' (inferred)'}")
        rows = [(name, index.nodes[name].op) for name in unit.nodes if name in index.nodes]
        page.table("FX nodes", ("Node", "Op"), rows).chosen.connect(
            lambda name: self.node_chosen.emit(node.region, name)
        )
        frames = (index.nodes[name].provenance.frames for name in unit.nodes if name in index.nodes)
        lines = dict.fromkeys(f"{f[0].file}:{f[0].line}  {f[0].code.strip()}" for f in frames if f)
        for line in list(lines)[:3]:
            page.code(line, self._theme)


def node_facts(node: GraphNode) -> list[tuple[str, str]]:
    """A graph node's parameters, as far as its kind has them."""
    facts = [("Kind", kind_title(node.kind))]
    if node.measured_us is not None:
        facts.append(("Time", f"{fmt.microseconds(node.measured_us)} (measured)"))
    if node.grid:
        facts.append(("Grid", " × ".join(map(str, node.grid))))
    if node.block:
        facts.append(("Block", " × ".join(map(str, node.block))))
    if node.shared_bytes:
        facts.append(("Dynamic shared memory", fmt.size(node.shared_bytes)))
    if node.bytes:
        facts.append(("Bytes", fmt.size(node.bytes)))
    if node.critical:
        facts.append(("Critical path", "on it"))
    waits = ", ".join(map(str, node.dependencies[:6])) if node.dependencies else "nothing"
    facts.append(("Waits for", f"node {waits}" if node.dependencies else waits))
    return facts
