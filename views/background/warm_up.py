"""What a report's panels need, made while the first page is looked at: imports, and classes that Qt's bindings make."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QScrollArea

from views.background.jobs import uncollected

# no Qt in these: another thread imports them
_ANYWHERE = (
    "numpy", "numpy.ma", "app.layout.module_layouts", "app.layout.group_tree", "app.overlays", "app.cones",
    "app.finder", "app.statistics", "app.memory_plan", "app.capture_check", "app.source_heat", "app.program_lines",
    "app.diff", "views.code.python_tokens",
)  # fmt: skip
_LEVELS = ("ttir", "ttgir", "llir", "ptx", "sass")
# classes of Qt are made, with their enums, when they are first named: each of these takes a few milliseconds
_IN_TURNS = (
    "views.selection.index", "views.selection.selection", "views.selection.filters", "views.canvas.curves",
    "views.canvas.scene", "views.canvas.module_scene", "views.canvas.palette", "views.canvas.camera",
    "views.canvas.texts", "views.canvas.module_boxes", "views.canvas.painting", "views.canvas.base_layer",
    "views.canvas.highlights", "views.canvas.motion", "views.canvas.view", "views.canvas.tips", "views.canvas.export",
    "views.canvas.traversal", "views.canvas.marked_view", "views.canvas.canvas", "views.canvas.minimap",
    "views.graph.head", "views.graph.view_history", "views.graph.group_scenes", "views.graph.overlay_legend",
    "views.graph.box_view", "views.graph.panel", "views.tables.record_model", "views.tables.cells",
    "views.tables.data_table", "views.tables.units_table", "views.code.glyphs", "views.code.cells",
    "views.code.blocks", "views.code.caret", "views.code.pointer", "views.code.text_view", "views.code.find_bar",
    "views.code.code_view", "views.code.level_pane", "views.code.kernel", "views.inspector.table",
    "views.inspector.sections", "views.inspector.page_area", "views.inspector.panel", "views.charts.scale",
    "views.charts.chart", "views.run.record", "views.run.facets", "views.run.plot", "views.run.distribution",
    "views.run.compare", "views.run.table", "views.run.panel", "views.widgets.rows", "views.cuda_graph.topology_view",
    "views.cuda_graph.topology_page", "views.cuda_graph.panel", "views.charts.gantt", "views.panels.timeline",
    "views.charts.memory_map", "views.panels.memory", "views.charts.roofline_chart", "views.panels.roofline",
    "views.code.source", "views.code.programs", "views.refusals.model", "views.refusals.panel", "views.compare.rows",
    "views.compare.panel", "views.panels.dynamo", "views.compile.stages", "views.widgets.rail",
    "views.window.bottom_panel", "views.compile.what_if", "views.compare.control", "views.run.control",
    "views.window.docks", "views.window.workspace", "views.window.report_panels", "views.find.palette",
)  # fmt: skip


def import_anywhere() -> None:
    """Import what knows no Qt, and make the patterns that code is coloured by, on any thread."""
    with uncollected():
        for name in _ANYWHERE:
            importlib.import_module(name)
        from views.code.python_tokens import python_line_spans
        from views.code.tokens import line_spans

        python_line_spans("", "", 0)
        for level in _LEVELS:
            line_spans(level, "", 0)


def import_in_turns() -> Iterator[None]:
    """Import the panels in the GUI thread, one in each step.

    Not on another thread, for two that make the same enum at once would each have their own.
    """
    for name in _IN_TURNS:
        with uncollected():
            importlib.import_module(name)
        yield


def use_in_turns() -> Iterator[None]:
    """What Qt's bindings make at a first use, in the GUI thread while nobody waits."""
    image = QImage(2, 2, QImage.Format.Format_ARGB32_Premultiplied)
    with QPainter(image) as painter:
        painter.fillRect(QRectF(0.0, 0.0, 1.0, 1.0), QColor(0, 0, 0))  # enums of two hundred members
    yield
    QScrollArea().viewport()  # the first widget that Qt made: every class that it might be of
    yield
