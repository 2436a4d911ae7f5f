"""What is on screen with a report: the graph and the docks around it, all following one selection.

Made after the first paint, because the graph brings numpy and is not needed for the start page.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QMainWindow, QWidget

from compiler.report import Region, Report
from views.background.turns import Turns, in_a_turn
from views.graph.panel import GraphPanel
from views.graph.view_history import Around
from views.inspector.panel import Inspector
from views.look.theme import Theme
from views.selection.filters import FilterStack
from views.selection.index import RegionIndex
from views.selection.selection import Hint, Selection, SelectionModel
from views.tables.units_table import UnitsPanel
from views.window.bottom_panel import BottomPanel
from views.window.docks import Docks
from views.window.message_bar import Message

Step = Callable[[], object]
_AT_ONCE = 1500  # nodes of a report whose panels are filled in a frame


class Workspace(QObject):
    """Owns the panels and the selection."""

    message = Signal(object)  # Message
    region_changed = Signal()

    def __init__(
        self,
        window: QMainWindow,
        graph: GraphPanel,
        units: UnitsPanel,
        inspector: Inspector,
        panels: BottomPanel,
        docks: Docks,
        theme: Theme,
    ) -> None:
        """Connects the panels, which ``workspace_in_turns`` makes in ``theme``."""
        super().__init__(window)
        self._theme = theme
        self._report: Report | None = None
        self._indexes: dict[str, RegionIndex] = {}
        self._filtering: Turns | None = None
        self._first: Selection | None = None  # in a report that is about to be shown
        self.selection = SelectionModel(self)
        self.filters = FilterStack(self)
        self.graph, self.units, self.inspector, self.panels = graph, units, inspector, panels
        self.docks = docks
        self._connect()

    @property
    def index(self) -> RegionIndex | None:
        """Look-ups of the region shown."""
        region = self.graph.region
        return self._indexes.get(region.name) if region is not None else None

    def set_theme(self, theme: Theme) -> None:
        """Other colours, a part in each turn: all of them and their painting at once would take over a frame."""
        self._theme = theme
        self.docks.set_theme(theme)
        for part in (self.graph, self.units, self.inspector, self.panels):
            part.setUpdatesEnabled(False)  # it is painted once it has its colours
            in_a_turn(part, partial(self._colour, part))

    def _colour(self, part: GraphPanel | UnitsPanel | Inspector | BottomPanel) -> None:
        part.set_theme(self._theme)
        part.setUpdatesEnabled(True)

    def showing(self, report: Report, layouts: dict[str, bytes], indexes: dict[str, RegionIndex]) -> list[Step]:
        """The steps that show another report; ``layouts`` are those its session kept, ``indexes`` of its regions."""
        return [
            lambda: self._take(report, indexes),
            lambda: self.panels.set_report(report),
            lambda: self.graph.set_report(report, layouts),
            self._show_none,
        ]

    def _take(self, report: Report, indexes: dict[str, RegionIndex]) -> None:
        if report is not self._report:
            self._first = self._again(report, indexes)
        self._report = report
        self._indexes = indexes
        self.filters.set_report(report)

    def _again(self, report: Report, indexes: dict[str, RegionIndex]) -> Selection:
        """What is selected first in another report: where the same compiler made it of the same model, the same."""
        current, before = self.selection.current, self._report
        index = indexes.get(current.region)
        if before is not None and index is not None and _origin(before) == _origin(report):
            if current.node in index.nodes:
                return Selection(current.region, index.unit_of(current.node), current.node, frozenset((current.node,)))
            if (unit := index.units.get(current.unit)) is not None:
                return Selection(current.region, unit.name, "", frozenset(unit.nodes))
        return Selection(region=report.regions[0].name if report.regions else "")

    def _show_none(self) -> None:
        """Of a report with no region, so that nothing of the one before stays."""
        if self._report is not None and not self._report.regions:
            self._show_region(RegionIndex(self._report, Region("No compiled region", "", [])))
            self.selection.reset(Selection())

    def refresh(self) -> None:
        """The report shown has grown: a run ended and left its records in it."""
        if self._report is None:
            return
        self._indexes = {region.name: RegionIndex(self._report, region) for region in self._report.regions}
        self.panels.set_report(self._report)
        self.graph.refresh()
        self.filters.refresh()
        if self.index is not None:
            self._show_region(self.index)
            self._selected(self.selection.current)

    def select_node(self, name: str) -> None:
        """Select one FX node, and with it the unit that computes it."""
        index = self.index
        if index is not None and name in index.nodes:
            unit = index.unit_of(name)
            current = self.selection.current.unit
            if current in index.units_of.get(name, ()):
                unit = current  # a recomputed node stays in the unit that is being looked at
            self.selection.select(Selection(index.region.name, unit, name, frozenset((name,))))

    def select_unit(self, name: str) -> None:
        """Select a whole group or extern call."""
        index = self.index
        if index is not None and (unit := index.units.get(name)) is not None:
            self.selection.select(Selection(index.region.name, name, "", frozenset(unit.nodes)))

    def select_unit_of(self, region: str, name: str) -> None:
        """Select a unit of another region; "" is the one shown."""
        if region:
            self.graph.show_region(region)
        self.select_unit(name)

    def select_node_of(self, region: str, name: str) -> None:
        """Select an FX node of another region; "" is the one shown."""
        if region:
            self.graph.show_region(region)
        self.select_node(name)

    def select_nodes_of(self, region: str, nodes: frozenset[str]) -> None:
        """Select several FX nodes of a region."""
        if len(nodes) == 1:
            self.select_node_of(region, next(iter(nodes)))
            return
        self.graph.show_region(region)
        self.selection.select(Selection(region, "", "", nodes))

    def select_pair(self, region: str, a: str, b: str) -> None:
        """Select two nodes of a region ("" for the one shown), to see why they are apart."""
        shown = self.graph.region
        if region or shown is not None:
            self.select_nodes_of(region or shown.name, frozenset((a, b)))

    def reveal(self, dock: int, widget: QWidget) -> None:
        """Show a dock and give ``widget`` in it the keyboard."""
        self.docks.all[dock].show()
        self.docks.all[dock].raise_()
        widget.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_panel(self, panel: QWidget) -> None:
        """Bring one of the panels at the bottom to the front."""
        self.docks.panels.show()
        self.panels.setCurrentWidget(panel)

    def step_panel(self, by: int) -> None:
        """The next panel at the bottom or, with -1, the one before."""
        self.docks.panels.show()
        self.panels.step(by)

    def _filtered(self) -> None:
        """Other filters: the same selection, in panels that show something else."""
        kept = self.filters.kept
        self._indexes = {
            name: index.keeping(kept.get(name) if kept is not None else None) for name, index in self._indexes.items()
        }
        self.graph.set_kept(kept)
        if self._filtering is not None:
            self._filtering.cancel()
            self._filtering = None
        report = self._report
        if report is None or self.index is None or self.graph.report is not report:
            return  # a report that is about to be shown
        steps: list[Step] = [
            lambda: self.panels.set_kept(report, kept), self._show_again, lambda: self._tell(self.selection.current)
        ]  # fmt: skip
        if sum(len(region.nodes) for region in report.regions) <= _AT_ONCE:
            for step in steps:
                step()
        else:
            self._filtering = Turns([*steps, self._filtering_is_over], self).start()

    def _filtering_is_over(self) -> None:
        self._filtering = None

    def _show_again(self) -> None:
        if self.index is not None:
            self._show_region(self.index)

    def _pinned(self, pinned: Selection | None) -> None:
        self.graph.set_around(replace(self.graph.around, pinned=pinned))
        self.graph.set_pinned(pinned)
        index = self._indexes.get(pinned.region) if pinned is not None else None
        self.inspector.set_pinned((index, pinned) if index is not None and pinned is not None else None)

    def _look_through(self, around: Around) -> None:
        """Filters and pin as they were; who has the search's line puts that back."""
        self.filters.put(around.filters)
        self.selection.pin(around.pinned)

    def _hint_name(self, region: str, name: str) -> None:
        """A panel has the mouse over a unit or node; only those of the region shown can be pointed at."""
        index = self.index
        if index is None or region not in ("", index.region.name):
            self._hint_nodes(frozenset())
            return
        unit = index.units.get(name)
        self._hint_nodes(frozenset(unit.nodes) if unit is not None else frozenset((name,)) & index.nodes.keys())

    def _connect(self) -> None:
        graph, inspector = self.graph, self.inspector
        self.filters.changed.connect(self._filtered)
        self.filters.asked.connect(lambda: graph.set_around(replace(graph.around, filters=self.filters.filters)))
        graph.around_wanted.connect(self._look_through)
        self.selection.pin_changed.connect(self._pinned)
        self.inspector.pin_requested.connect(self.selection.toggle_pin)
        for told in (self.units.unit_hovered, self.inspector.hovered):
            told.connect(lambda name: self._hint_name("", name))
        self.panels.hovered.connect(self._hint_name)
        graph.region_changed.connect(self._region_changed)
        graph.node_clicked.connect(self.select_node)
        graph.group_clicked.connect(self.select_unit)
        graph.nodes_clicked.connect(self.select_nodes_of)
        graph.background_clicked.connect(self.selection.clear)
        graph.overlay_chosen.connect(self.units.lead_with)
        graph.layout_failed.connect(self._layout_failed)
        self.units.unit_chosen.connect(self.select_unit)
        self.panels.unit_chosen.connect(self.select_unit_of)
        self.panels.node_chosen.connect(self.select_node_of)
        self.panels.nodes_chosen.connect(self.select_nodes_of)
        inspector.node_chosen.connect(self.select_node)
        inspector.unit_chosen.connect(self.select_unit)
        inspector.lines_chosen.connect(self._select_line)
        inspector.line_hovered.connect(self._hint_line)
        graph.canvas.hovered.connect(self._hint_node)
        graph.canvas.edge_clicked.connect(lambda a, b: self.select_pair("", a, b))
        self.panels.pair_chosen.connect(self.select_pair)
        self.panels.source.nodes_hovered.connect(self._hint_nodes)
        self.selection.hinted.connect(self._hinted)
        inspector.back_requested.connect(self.selection.back)
        inspector.forward_requested.connect(self.selection.forward)
        self.selection.changed.connect(self._selected)
        self.selection.history_changed.connect(inspector.set_history)

    def _region_changed(self, name: str) -> None:
        self._show_region(self._indexes[name])
        self.region_changed.emit()
        first, self._first = self._first, None
        if first is not None:
            self.selection.reset(first)  # another report: its predecessor's history means nothing
        elif self.selection.current.region != name:
            self.selection.select(Selection(region=name))
        else:
            self._selected(self.selection.current)

    def _show_region(self, index: RegionIndex) -> None:
        self.units.set_region(index)
        self.inspector.set_region(index)
        self.panels.set_region(index)

    def _selected(self, selection: Selection) -> None:
        if self.graph.region is not None and selection.region not in ("", self.graph.region.name):
            self.graph.show_region(selection.region)
        self._tell(selection)
        self.graph.show_selection(selection)

    def _tell(self, selection: Selection) -> None:
        """What is beside the graph."""
        self.inspector.show_selection(selection)
        self.units.show_unit(selection.unit)
        self.panels.show_selection(selection)

    def _select_line(self, kernel: str, line: int) -> None:
        index = self.index
        found = index.kernels.get(kernel) if index is not None else None
        if index is None or found is None:
            return
        nodes = index.line_nodes(found, line)
        name = self.selection.current.unit
        unit = index.units.get(name)
        node = nodes[0] if len(nodes) == 1 else ""
        # indices and masks compute no node: they serve the whole unit
        shown = nodes or (unit.nodes if unit is not None else [])
        self.selection.select(Selection(index.region.name, name, node, frozenset(shown), line))

    def _hint_line(self, kernel: str, line: int) -> None:
        index = self.index
        found = index.kernels.get(kernel) if index is not None else None
        if index is None or found is None or not line:
            self.selection.hint(Hint())
        else:
            self.selection.hint(Hint(frozenset(index.line_nodes(found, line)), kernel, frozenset((line,))))

    def _hint_node(self, name: str) -> None:
        self._hint_nodes(frozenset((name,)) if name else frozenset())

    def _hint_nodes(self, nodes: frozenset[str]) -> None:
        index = self.index
        kernel = index.kernel_of(self.selection.current.unit) if index is not None else None
        if index is None or not nodes:
            self.selection.hint(Hint())
            return
        lines = index.node_lines(kernel, nodes) if kernel is not None else []
        self.selection.hint(Hint(nodes, kernel.name if kernel is not None else "", frozenset(lines)))

    def _hinted(self, hint: Hint) -> None:
        self.inspector.kernel_panel.show_hint(hint.kernel, hint.lines)
        self.graph.canvas.hint_nodes(hint.nodes)
        self.panels.source.show_hint(hint.nodes)

    def _layout_failed(self, fault: Exception) -> None:
        text = f"The graph cannot be laid out: {type(fault).__name__}."
        self.message.emit(Message("error", text, "The other panels still work.", str(fault)))


def _origin(report: Report) -> tuple[str, str, bool]:
    return report.source, report.compiler, report.training


def workspace_in_turns(window: QMainWindow, theme: Theme) -> Generator[None, None, Workspace]:
    """The workspace of ``window`` with its panels, each made in a step of its own."""
    graph = GraphPanel(theme)
    yield
    units = UnitsPanel(theme)
    yield
    inspector = Inspector(theme)
    yield
    panels = BottomPanel(theme)
    docks = Docks(window, units, inspector, panels, theme)
    docks.show(False)
    yield
    for side in (units, inspector):
        side.ensurePolished()  # with all that is in it, which would else happen when it is first shown
        yield
    yield from panels.make_pages()
    return Workspace(window, graph, units, inspector, panels, docks, theme)
