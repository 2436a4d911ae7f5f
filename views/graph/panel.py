"""The centre: which region is shown, its graph, zoom, search, minimap. Layouts are made off the GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.filters import Kept
from app.layout.group_tree import build_group_tree
from app.layout.module_tree import build_module_tree
from app.overlays import Overlay, overlay
from compiler.report import Region, Report
from views.background.jobs import Job
from views.canvas.canvas import GraphCanvas
from views.canvas.export import svg_writer
from views.canvas.minimap import Minimap
from views.canvas.module_scene import ModuleScene
from views.canvas.scene import Scene
from views.graph.box_view import BoxView
from views.graph.canvas_menu import add_canvas_menu
from views.graph.group_scenes import GroupScenes
from views.graph.head import GraphHead
from views.graph.overlay_legend import OverlayLegend
from views.graph.view_history import Around, ViewHistory, ViewState
from views.look.theme import Theme
from views.selection.selection import Selection
from views.widgets.basic import label, recolor

_AT_ONCE = 1500  # nodes whose colours are found in a fraction of a frame


class GraphPanel(QWidget):
    """Region tabs over the canvas."""

    region_changed = Signal(str)
    node_clicked = Signal(str)
    group_clicked = Signal(str)
    background_clicked = Signal()
    nodes_clicked = Signal(str, object)  # region, frozenset of nodes
    laid_out = Signal(str)
    layout_failed = Signal(object)
    exported = Signal(object)  # Path
    numerics_requested = Signal()
    overlay_chosen = Signal(str)  # one of OVERLAYS
    view_history_changed = Signal(bool, bool)  # can undo, can redo
    around_wanted = Signal(object)  # the Around that an undo goes back to

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._report: Report | None = None
        self._pending = Selection()
        self._history = ViewHistory()
        self._around = Around()
        self._shown_grouping = "fusion"
        self._goal: ViewState | None = None  # of an undo whose layout is being made
        self._is_sought = False  # what the filters leave, once that is known
        self._kept: dict[str, Kept] | None = None
        self._pinned = Selection()
        self._colouring: Job | None = None
        self._coloured: tuple[Region | None, str, Overlay | None] = (None, "decision", None)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.canvas = GraphCanvas(theme=theme)
        self._groups = GroupScenes(self)
        self._groups.made.connect(self._laid_out)
        self._groups.failed.connect(self._not_laid_out)
        self.modules, self.kernels = BoxView(self, build_module_tree), BoxView(self, build_group_tree)
        self._boxes = {"modules": self.modules, "kernels": self.kernels}
        self.head = head = GraphHead(theme)
        self.tabs, self.groupings, self.overlays = head.tabs, head.groupings, head.overlays
        head.region_chosen.connect(self._tab_changed)
        head.grouping_chosen.connect(self.show_grouping)
        head.overlay_chosen.connect(self.choose_overlay)
        head.open_wanted.connect(self._open_boxes)
        head.close_wanted.connect(self._close_boxes)
        head.zoom_wanted.connect(self._zoom)
        column.addWidget(head)
        column.addWidget(self.canvas, 1)
        self.minimap = Minimap(self.canvas)
        self.legend = OverlayLegend(theme)
        column.addWidget(self.legend)
        self._waiting = label("Laying out the graph…", "chip")
        self._waiting.setParent(self.canvas)
        self._waiting.move(14, 12)
        self._waiting.setVisible(False)
        self.canvas.node_clicked.connect(self.node_clicked)
        self.canvas.group_clicked.connect(self.group_clicked)
        self.canvas.background_clicked.connect(self.background_clicked)
        self.canvas.nodes_clicked.connect(self._nodes_clicked)
        self.canvas.box_toggled.connect(self._toggle)
        self.canvas.reveal_requested.connect(self._reveal)
        self.canvas.jumping.connect(self._leave_view)
        add_canvas_menu(self.canvas, self.export)
        for name, view in self._boxes.items():
            view.ready.connect(lambda region, made, anchor, name=name: self._boxes_made(name, region, made, anchor))
            view.failed.connect(self._not_laid_out)
        for keys, call in (
            ("M", self._other_grouping), ("[", self._open_boxes), ("]", self._close_boxes),
        ):  # fmt: skip
            QShortcut(QKeySequence(keys), self, call, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The bar gives way."""
        super().resizeEvent(event)
        self.head.share(self.width())

    def _zoom(self, step: int) -> None:
        (self.canvas.fit, self.canvas.zoom_in, self.canvas.zoom_out)[step]()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.canvas.set_theme(theme)
        self.legend.set_theme(theme)
        recolor(self, theme)
        self.head.set_icons(self._report, theme)

    def set_report(self, report: Report, stored: dict[str, bytes]) -> None:
        """Show the regions of ``report``; ``stored`` are layouts that its session kept, by region."""
        self._report = report
        self._groups.set_stored(stored)
        for view in self._boxes.values():
            view.forget()
        self._history.clear()
        self._around = Around()
        self._tell_history()
        self.head.set_report(report)
        self.head.set_icons(report, self._theme)
        if report.regions:
            self._tab_changed(0)
        else:
            self.canvas.clear("This report has no compiled region")
            self._coloured = (None, self.head.overlay, None)
            self.legend.show_overlay(None)

    @property
    def report(self) -> Report | None:
        """The report shown."""
        return self._report

    @property
    def regions(self) -> list[Region]:
        """Every region of the report."""
        return self._report.regions if self._report is not None else []

    @property
    def region(self) -> Region | None:
        """The region shown."""
        position = self.tabs.currentIndex()
        return self._report.regions[position] if self._report and position >= 0 else None

    def show_region(self, name: str) -> None:
        """Switch to the region called ``name``."""
        for position, region in enumerate(self._report.regions if self._report else ()):
            if region.name == name:
                self.tabs.setCurrentIndex(position)

    def layout_bytes(self) -> Callable[[], dict[str, bytes]]:
        """Encodes the layouts made so far for the session, on any thread."""
        return self._groups.layout_bytes()

    def show_selection(self, selection: Selection) -> None:
        """Mark the selection, and bring it into sight. Kept until the layout is there."""
        self._pending = selection
        region, scene = self.region, self.canvas.scene
        if region is None or scene is None or scene.region is not region:
            return
        unit = scene.groups.get(selection.unit) or scene.calls.get(selection.unit)
        is_whole = selection.nodes == frozenset(unit.nodes if unit is not None else ())
        if is_whole and not selection.node:
            self.canvas.select_group(selection.unit)
        else:
            self.canvas.select_nodes(selection.nodes)
        if len(selection.nodes) > 1 and not selection.unit:
            if not self.canvas.shows(selection.nodes):
                self.canvas.center_on_all(selection.nodes)
            return
        whole = selection.unit if is_whole else min(selection.nodes, default="")
        if target := selection.node or whole:
            self.canvas.center_on(target)

    @property
    def grouping(self) -> str:
        """One of GROUPINGS."""
        return self.head.grouping

    def show_grouping(self, kind: str) -> None:
        """Group the graph by modules or by fusion groups, from now on; what is selected stays in view."""
        if kind != self._shown_grouping and self.canvas.scene is not None:
            self._leave_view(self._shown_grouping)
        self._set_grouping(kind)
        if self.region is not None:
            self._request(self.region)

    @property
    def view_history(self) -> tuple[bool, bool]:
        """Whether there is a view to undo, and one to redo."""
        return bool(self._history.before), bool(self._history.after)

    def set_around(self, around: Around) -> None:
        """Filters, the search or the pin are others now; an undo goes back to those before."""
        if around != self._around:
            if not around.goes_on(self._around):
                self._leave_view()
            self._is_sought |= around.filters != self._around.filters
            self._around = around

    @property
    def around(self) -> Around:
        """Filters, search and pin as the panel knows them."""
        return self._around

    def search(self, text: str) -> list[str]:
        """Mark what holds ``text``, from now on in every layout; the names found, from top to bottom."""
        self.set_around(replace(self._around, search=text))
        return self.canvas.set_search(text)

    def undo_view(self) -> None:
        """Look as before the last change of region, grouping, open boxes, colours, filters, search, pin, or jump."""
        self._go_to_view(self._history.undo(self._view_state()))

    def redo_view(self) -> None:
        """Look as before the last undo."""
        self._go_to_view(self._history.redo(self._view_state()))

    def _view_state(self, kind: str = "", name: str = "") -> ViewState:
        region, grouping = self.region, kind or self.grouping
        name = name or (region.name if region is not None else "")
        folding = self._boxes[grouping].folding(name) if grouping in self._boxes else None
        return ViewState(name, grouping, self.head.overlay, self.canvas.camera, folding, self._around)

    def _leave_view(self, kind: str = "", name: str = "") -> None:
        """The view, of this grouping and region, is about to change in a way that can be undone."""
        if self._goal is None and self.canvas.isVisible():
            self._history.leave(self._view_state(kind, name))
            self._tell_history()

    @contextmanager
    def _in_one_step(self) -> Iterator[None]:
        """Where the canvas goes now is no jump of its own, but part of what an undo goes back over."""
        goal = self._goal
        self._goal = goal or self._view_state()
        yield
        self._goal = goal

    def _tell_history(self) -> None:
        self.view_history_changed.emit(*self.view_history)

    def _go_to_view(self, state: ViewState | None) -> None:
        self._tell_history()
        if state is None:
            return
        self._set_grouping(state.grouping)
        if state.overlay != self.head.overlay:
            self.head.show_overlay(state.overlay)
            self.overlay_chosen.emit(state.overlay)
        self._goal = state
        self.show_region(state.region)
        self._around = state.around
        self._is_sought = False
        self.around_wanted.emit(state.around)
        region = self.region
        if region is None:
            return
        if self._lies_as(state, region):
            if state.overlay != self._coloured[1]:
                self.show_overlay(state.overlay)
            self._arrive()
        elif state.grouping in self._boxes:
            self._boxes[state.grouping].set_folding(region, state.folding)
        else:
            self._request(region)

    def _lies_as(self, state: ViewState, region: Region) -> bool:
        """Whether the layout on screen is that of ``state`` already."""
        scene, boxes = self.canvas.scene, self._boxes.get(state.grouping)
        same = scene is not None and scene.region is region and self._shown_grouping == state.grouping
        return same and (boxes is None or boxes.folding(region.name) == state.folding)

    def _set_grouping(self, kind: str) -> None:
        self.head.show_grouping(kind, has_boxes=kind in self._boxes)

    def _other_grouping(self) -> None:
        self.show_grouping("fusion" if self.grouping == "modules" else "modules")

    def _toggle(self, key: str, whole_stack: bool) -> None:
        if self.region is not None and self.grouping in self._boxes:
            self._leave_view()
            self._boxes[self.grouping].toggle(self.region, key, whole_stack=whole_stack)

    def _reveal(self, name: str) -> None:
        scene = self.canvas.scene
        if self.region is not None and scene is not None and self.grouping in self._boxes:
            self._leave_view()
            self._boxes[self.grouping].reveal(self.region, scene.index[name])

    def _open_boxes(self) -> None:
        if self.region is not None and self.grouping in self._boxes:
            self._leave_view()
            self._boxes[self.grouping].open_all(self.region, stacks=False)

    def _close_boxes(self) -> None:
        if self.region is not None and self.grouping in self._boxes:
            self._leave_view()
            self._boxes[self.grouping].close_all(self.region)

    def _boxes_made(self, grouping: str, name: str, made: ModuleScene, anchor: str) -> None:
        region = self.region
        if region is None or region.name != name or self.grouping != grouping:
            return
        scene = self.canvas.scene
        if scene is not None and scene.region is region and self._shown_grouping == grouping:
            self._waiting.setVisible(False)
            self.canvas.exchange_scene(made, anchor)
            self._mark_kept()
            self._mark_search()
            self._colour_again()
            self._arrive()
        else:
            self._display(made)

    def _arrive(self) -> None:
        """Looks where the view that an undo goes to looked."""
        goal, self._goal = self._goal, None
        if goal is not None:
            self.canvas.glide_to(goal.camera)

    def _nodes_clicked(self, nodes: frozenset[str]) -> None:
        if self.region is not None:
            self.nodes_clicked.emit(self.region.name, nodes)

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """Dim what the filters hide; None for nothing. Filters that are no undo's bring what they leave into sight."""
        self._kept = kept
        self._mark_kept()
        if self._is_sought:
            self._is_sought = False
            with self._in_one_step():
                self.canvas.go_to_kept()

    def set_pinned(self, pinned: Selection | None) -> None:
        """Keep a mark on what is pinned."""
        self._pinned = pinned or Selection()
        self._mark_kept()

    def _mark_kept(self) -> None:
        region = self.region
        scene = self.canvas.scene
        if region is None or scene is None or scene.region is not region:
            return
        kept = self._kept.get(region.name) if self._kept is not None else None
        self.canvas.keep_nodes(kept.nodes if kept is not None else None)
        self.canvas.pin_nodes(self._pinned.nodes if self._pinned.region == region.name else ())

    def _mark_search(self) -> None:
        if self._around.search:
            self.canvas.set_search(self._around.search)

    def show_overlay(self, kind: str) -> None:
        """Colour the graph by one of OVERLAYS, from now on; of a large region the colours come a little later."""
        self.head.show_overlay(kind)
        if self._colouring is not None:
            self._colouring.cancel()
            self._colouring = None
        report, region = self._report, self.region
        if report is None or region is None or kind == "decision":
            self._colour(region, kind, None)
        elif len(region.nodes) <= _AT_ONCE:
            self._colour(region, kind, overlay(report, region, kind))
        else:
            job = Job(lambda cancelled: overlay(report, region, kind), self)
            job.done.connect(lambda made: self._colour(region, kind, made))
            self._colouring = job.start()

    def _colour(self, region: Region | None, kind: str, made: Overlay | None) -> None:
        if region is not self.region:
            return  # it was left while its colours were looked for
        self._coloured = (region, kind, made)
        scene = self.canvas.scene
        if scene is not None and scene.region is region:  # else the layout to be coloured is still being made
            self.canvas.set_overlay(made)
        self.legend.show_overlay(made)

    def _colour_again(self) -> None:
        """The region is laid out otherwise, or it is another one."""
        region, kind = self.region, self.head.overlay
        if self._coloured[0] is region and self._coloured[1] == kind:
            self._colour(*self._coloured)
        else:
            self.show_overlay(kind)

    def refresh(self) -> None:
        """The report has grown: its times may have other colours."""
        self.show_overlay(self.head.overlay)

    def choose_overlay(self, kind: str) -> None:
        """As the user does: what is shown beside the graph follows."""
        shown = self.legend.kind
        if kind != shown:
            self.head.show_overlay(shown)
            self._leave_view()
        self.show_overlay(kind)
        self.overlay_chosen.emit(kind)
        if kind == "error" and self._report is not None and self._report.numerics is None:
            self.numerics_requested.emit()  # wanting to see it is asking for it

    def export(self, path: Path) -> None:
        """Write the whole graph as SVG, or what is in sight as PNG where ``path`` ends so; ``exported`` tells the end.

        Raises:
            OSError: the file cannot be written.
        """
        if path.suffix.lower() != ".png":
            write = svg_writer(self.canvas.scene, self._theme, path)
            job = Job(lambda cancelled: write(), self)  # ten thousand nodes take half a second
            job.done.connect(lambda _: self.exported.emit(path))
            job.start()
            return
        if not self.canvas.render_image(self.canvas.viewport().size() * 2).save(str(path), "PNG"):
            raise OSError("the place cannot be written to")
        self.exported.emit(path)

    def cancel_jobs(self) -> None:
        """Stop layouts in progress, as when the window closes."""
        for view in self._boxes.values():
            view.cancel()
        self._groups.cancel()
        if self._colouring is not None:
            self._colouring.cancel()

    def _tab_changed(self, position: int) -> None:
        region = self.region
        if region is None:
            return
        left = self.canvas.scene.region if self.canvas.scene is not None else None
        if left is not region and any(left is one for one in self.regions):
            self._leave_view(self._shown_grouping, left.name)
        self._around = replace(self._around, search="")  # it was about the region before
        self._pending = Selection(region=region.name)
        self.region_changed.emit(region.name)
        self._request(region)

    def _request(self, region: Region) -> None:
        if self.grouping in self._boxes:
            self._waiting.setVisible(self.canvas.scene is None)
            self._waiting.adjustSize()
            view = self._boxes[self.grouping]
            view.set_folding(region, view.folding(region.name))
            return
        scene = self._groups.scene_of(region)
        if scene is not None:
            self._display(scene)
            return
        self._waiting.setVisible(True)
        self._waiting.adjustSize()

    def _laid_out(self, region: Region) -> None:
        scene = self._groups.scene_of(region)
        if scene is not None and self.region is region and self.grouping == "fusion":
            self._display(scene)
        self.laid_out.emit(region.name)

    def _not_laid_out(self, fault: Exception) -> None:
        self._waiting.setVisible(False)
        self.layout_failed.emit(fault)

    def _display(self, scene: Scene) -> None:
        """Shows a region anew, in one of the groupings, with what is selected in view."""
        self._waiting.setVisible(False)
        self._shown_grouping = self.grouping
        self.canvas.set_scene(scene)
        self._colour_again()
        self._mark_kept()
        self._mark_search()
        with self._in_one_step():
            self.show_selection(self._pending)
        self._arrive()
