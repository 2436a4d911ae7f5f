"""The centre: which region is shown, its graph, zoom, search, minimap. Layouts are made off the GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QTabBar, QVBoxLayout, QWidget

from app.layout import GraphLayout, layout_region
from app.overlays import OVERLAYS, overlay
from compiler.report import GraphBreak, Region, Report
from views.canvas import GraphCanvas, Minimap
from views.icons import icon
from views.jobs import Job
from views.overlay_legend import OverlayLegend
from views.selection import Selection
from views.theme import Theme
from views.widgets import icon_button, label, recolor


class GraphPanel(QWidget):
    """Region tabs over the canvas."""

    region_changed = Signal(str)
    node_clicked = Signal(str)
    group_clicked = Signal(str)
    background_clicked = Signal()
    laid_out = Signal(str)
    layout_failed = Signal(object)
    numerics_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._report: Report | None = None
        self._layouts: dict[str, GraphLayout] = {}
        self._stored: dict[str, bytes] = {}
        self._jobs: dict[str, Job] = {}
        self._pending = Selection()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        bar = QFrame()
        bar.setProperty("role", "panel")
        head = QHBoxLayout(bar)
        head.setContentsMargins(8, 2, 8, 0)
        head.setSpacing(2)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName("Compiled regions")
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(True)
        self.tabs.setElideMode(Qt.TextElideMode.ElideRight)
        self.tabs.currentChanged.connect(self._tab_changed)
        head.addWidget(self.tabs, 1)
        self.canvas = GraphCanvas()
        self.overlays = QComboBox()
        self.overlays.setAccessibleName("Colour the graph by")
        self.overlays.setToolTip("Colour the graph by")
        for key, title in OVERLAYS.items():
            self.overlays.addItem(title, key)
        self.overlays.activated.connect(lambda _: self._overlay_chosen(str(self.overlays.currentData())))
        head.addWidget(self.overlays)
        for name, tip, slot in (
            ("zoom-out", "Zoom out (-)", self.canvas.zoom_out),
            ("zoom-in", "Zoom in (+)", self.canvas.zoom_in),
            ("fit", "Fit the graph (F)", self.canvas.fit),
        ):
            head.addWidget(icon_button(name, tip, slot, theme))
        column.addWidget(bar)
        column.addWidget(self.canvas, 1)
        self.minimap = Minimap(self.canvas)
        self.legend = OverlayLegend(theme, self.canvas)
        self.canvas.resized.connect(self._place_legend)
        self._waiting = label("Laying out the graph…", "chip")
        self._waiting.setParent(self.canvas)
        self._waiting.move(14, 12)
        self._waiting.setVisible(False)
        self.canvas.node_clicked.connect(self.node_clicked)
        self.canvas.group_clicked.connect(self.group_clicked)
        self.canvas.background_clicked.connect(self.background_clicked)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.canvas.set_theme(theme)
        self.legend.set_theme(theme)
        recolor(self, theme)
        self._set_tab_icons()

    def set_report(self, report: Report, stored: dict[str, bytes]) -> None:
        """Show the regions of ``report``; ``stored`` are layouts that its session kept, by region."""
        for job in self._jobs.values():
            job.cancel()
        self._jobs = {}
        self._report = report
        self._layouts = {}
        self._stored = stored
        self.tabs.blockSignals(True)
        while self.tabs.count():
            self.tabs.removeTab(0)
        for number, region in enumerate(report.regions):
            self.tabs.addTab(region_title(region))
            tip = f"{region.name}: {region.kind}, {len(region.nodes):,} nodes"
            found = _break_before(report, number)
            self.tabs.setTabToolTip(number, f"{tip}\nGraph break before it: {found.reason}" if found else tip)
        self.tabs.blockSignals(False)
        self._set_tab_icons()
        if report.regions:
            self._tab_changed(0)

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
        stored, made = dict(self._stored), dict(self._layouts)
        return lambda: {**stored, **{name: layout.to_bytes() for name, layout in made.items()}}

    def show_selection(self, selection: Selection) -> None:
        """Mark the selection, and bring it into sight. Kept until the layout is there."""
        self._pending = selection
        region = self.region
        if region is None or region.name not in self._layouts:
            return
        members = {group.name: group.nodes for group in region.groups}
        members |= {call.name: call.nodes for call in region.extern_calls}
        is_whole = selection.nodes == frozenset(members.get(selection.unit, ()))
        if is_whole and not selection.node:
            self.canvas.select_group(selection.unit)
        else:
            self.canvas.select_nodes(set(selection.nodes))
        if len(selection.nodes) > 1 and not selection.unit:
            self.canvas.center_on_all(selection.nodes)
            return
        whole = selection.unit if is_whole else min(selection.nodes, default="")
        if target := selection.node or whole:
            self.canvas.center_on(target)

    def show_overlay(self, kind: str) -> None:
        """Colour the graph by one of OVERLAYS, from now on."""
        self.overlays.setCurrentIndex(self.overlays.findData(kind))
        region = self.region
        made = overlay(self._report, region, kind) if self._report is not None and region is not None else None
        self.canvas.set_overlay(made)
        self.legend.show_overlay(made)
        self._place_legend()

    def _overlay_chosen(self, kind: str) -> None:
        self.show_overlay(kind)
        if kind == "error" and self._report is not None and self._report.numerics is None:
            self.numerics_requested.emit()  # wanting to see it is asking for it

    def export(self, path: Path) -> None:
        """Write the whole graph as SVG, or what is in sight as PNG where ``path`` ends so.

        Raises:
            OSError: the file cannot be written.
        """
        if path.suffix.lower() != ".png":
            self.canvas.to_svg(path)
        elif not self.canvas.render_image(self.canvas.viewport().size() * 2).save(str(path), "PNG"):
            raise OSError("the place cannot be written to")

    def _place_legend(self) -> None:
        self.legend.move(14, self.canvas.height() - self.legend.height() - 14)

    def cancel_jobs(self) -> None:
        """Stop layouts in progress, as when the window closes."""
        for job in self._jobs.values():
            job.cancel()
        self._jobs = {}

    def _set_tab_icons(self) -> None:
        for number in range(self.tabs.count()):
            split = self._report is not None and _break_before(self._report, number) is not None
            made = icon("split", self._theme.warning) if split else icon("group", self._theme.muted)
            self.tabs.setTabIcon(number, made)

    def _tab_changed(self, position: int) -> None:
        region = self.region
        if region is None:
            return
        self._pending = Selection(region=region.name)
        self.region_changed.emit(region.name)
        self._request(region)

    def _request(self, region: Region) -> None:
        if region.name in self._layouts:
            self._show(region)
            return
        self._waiting.setVisible(True)
        self._waiting.adjustSize()
        if region.name in self._jobs:
            return
        stored = self._stored.get(region.name)
        job = Job(lambda cancelled: _layout(region, stored, cancelled), self)
        job.done.connect(lambda layout: self._made(region, layout))
        job.failed.connect(lambda fault: self._failed(region, fault))
        self._jobs[region.name] = job.start()

    def _made(self, region: Region, layout: GraphLayout) -> None:
        self._jobs.pop(region.name, None)
        self._layouts[region.name] = layout
        if self.region is region:
            self._show(region)
        self.laid_out.emit(region.name)

    def _failed(self, region: Region, fault: Exception) -> None:
        self._jobs.pop(region.name, None)
        self._waiting.setVisible(False)
        self.layout_failed.emit(fault)

    def _show(self, region: Region) -> None:
        self._waiting.setVisible(False)
        self.canvas.set_region(region, self._layouts[region.name])
        self.show_overlay(str(self.overlays.currentData()))
        self.show_selection(self._pending)


def region_title(region: Region) -> str:
    """The region's name, with its kind where the name does not say it."""
    return region.name if region.kind in region.name else f"{region.name}  {region.kind}"


def _break_before(report: Report, position: int) -> GraphBreak | None:
    """The graph break that this region begins after, where forward regions and breaks pair up one to one."""
    starts = [region for region in report.regions if region.kind != "backward"]
    region = report.regions[position]
    if region.kind == "backward" or len(report.graph_breaks) != len(starts) - 1:
        return None
    place = starts.index(region)
    return report.graph_breaks[place - 1] if place > 0 else None


def _layout(region: Region, stored: bytes | None, cancelled: Callable[[], bool]) -> GraphLayout:
    if stored is not None:
        try:
            return GraphLayout.from_bytes(stored)
        except ValueError:
            pass  # of another version: make it anew
    return layout_region(region, cancelled=cancelled)
