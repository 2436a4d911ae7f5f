"""What the canvas looks like: seams, details, marks, themes, overlays, exports."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPixmap
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.layout import NodeStyle, layout_region
from app.overlays import OVERLAYS, Overlay
from compiler.report import Region
from tests.fake_runs import lab_report
from tests.gui.on_canvas import difference, show
from views.canvas.base_layer import BaseLayer
from views.canvas.camera import Camera, fitted
from views.canvas.canvas import GraphCanvas
from views.canvas.painting import ScenePainter
from views.canvas.palette import CanvasPalette
from views.canvas.primitives import ShapeBuffer
from views.canvas.scene import Scene
from views.graph.overlay_legend import OverlayLegend
from views.graph.panel import GraphPanel
from views.look import theme


def test_picture_after_panning_equals_a_fresh_one(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    show(qtbot, canvas, region.groups[3].name)
    for dx, dy in ((37, -61), (-120, 15), (3, 200), (900, 0)):
        canvas.move_to(canvas.camera.panned(dx, dy))
        QApplication.processEvents()
    panned = canvas.viewport().grab().toImage()
    canvas.set_theme(theme.light())
    fresh = canvas.viewport().grab().toImage()
    differing = difference(panned, fresh)
    assert differing < 0.002, "strips must join without a seam"


@pytest.mark.parametrize("ratio", [1.0, 1.25, 1.5, 2.0])
def test_panning_leaves_no_seam_on_dense_screens(qtbot: QtBot, region: Region, ratio: float) -> None:
    scene = Scene(region, layout_region(region))
    painter, size = ScenePainter(scene, CanvasPalette(theme.light())), QSize(500, 400)

    def drawn(layer: BaseLayer, camera: Camera) -> tuple[QImage, Camera]:
        picture = QPixmap(size * ratio)
        picture.setDevicePixelRatio(ratio)
        with QPainter(picture) as into:
            used, _ = layer.draw(into, painter, camera, size, ratio, False)
        return picture.toImage(), used

    layer, camera = BaseLayer(), Camera(scene.bounds[0] + 200, scene.bounds[1] + 300, 0.8)
    drawn(layer, camera)
    for dx, dy in ((13, 0), (0, 17), (-29, 5), (3, -41), (1, 1), (-7, -9)):
        camera = camera.panned(dx, dy)
        panned, used = drawn(layer, camera)
    assert difference(panned, drawn(BaseLayer(), used)[0]) == 0


@pytest.mark.parametrize("names", [5, 500])
def test_every_selected_node_in_sight_is_marked(canvas: GraphCanvas, names: int) -> None:
    """Few of them one by one, many at once."""
    scene = canvas.scene
    chosen = [node.name for node in scene.nodes[:names]]
    canvas.move_to(fitted(scene.bounds, canvas.viewport().width(), canvas.viewport().height()))
    canvas.select_nodes(set(chosen))
    QApplication.processEvents()
    image = canvas.viewport().grab().toImage()
    wanted = canvas.canvas_palette.selection

    def is_marked(name: str) -> bool:
        left, top, _, height = scene.locate(name)
        x, y = canvas.camera.to_view(left, top + height / 2)
        near = [image.pixelColor(round(x) + dx, round(y) + dy) for dx in range(-2, 3) for dy in range(-2, 3)]
        return any(abs(c.red() - wanted.red()) + abs(c.blue() - wanted.blue()) < 60 for c in near)

    assert all(map(is_marked, chosen))


def test_shapes_stay_where_they_are_when_more_are_needed() -> None:
    buffer, few = ShapeBuffer(QRectF), np.arange(40.0).reshape(10, 4)
    before = buffer.fill(few)
    many = np.arange(4000.0).reshape(1000, 4)
    after = buffer.fill(many)
    assert [(r.x(), r.y(), r.width(), r.height()) for r in after] == list(map(tuple, many.tolist()))
    assert after[7] is before[7]
    assert [r.height() for r in buffer.fill(few)] == few[:, 3].tolist()


def test_detail_grows_with_the_scale(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    """Far away colours alone, then titles of groups, ops, their shapes, and what edges carry."""
    scene = canvas.scene
    name = next(group for group in region.groups if len(group.nodes) > 3).nodes[-1]
    left, top, width, height = scene.locate(name)

    def texts(scale: float) -> list[set[str]]:
        painter, picture = ScenePainter(scene, canvas.canvas_palette), QPixmap(800, 600)
        camera = Camera().centred(left + width / 2, top + height / 2, 800, 600, scale)
        with QPainter(picture) as into:
            painter.paint(into, camera, QRectF(0, 0, 800, 600))
        caches = (painter.far_text, painter.op_text, painter.small_text)
        return [{text for text, _ in cache._texts} for cache in caches]

    shape = scene.subtitles[scene.index[name]]
    carried = {scene.edge_label(number) for number in range(len(scene.nodes))} - {""}
    assert texts(0.02) == [set(), set(), set()]
    far, ops, small = texts(0.3)
    assert far
    assert not ops | small
    far, ops, small = texts(0.4)
    assert not far
    assert scene.titles[scene.index[name]] in ops
    assert shape not in small
    small = texts(0.6)[2]
    assert shape in small
    assert not small & carried
    assert texts(1.3)[2] & carried, "tensors beside the edges"


def test_themes_and_images(canvas: GraphCanvas) -> None:
    light = canvas.render_image(QSize(640, 400))
    canvas.set_theme(theme.dark())
    dark = canvas.render_image(QSize(640, 400))
    assert light.size() == QSize(640, 400)
    assert dark.pixelColor(1, 1).lightness() < 80 < light.pixelColor(1, 1).lightness()


def test_image_of_a_canvas_that_was_never_shown(qtbot: QtBot, region: Region) -> None:
    widget = GraphCanvas()
    qtbot.addWidget(widget)
    widget.set_region(region, layout_region(region))
    image = widget.render_image(QSize(800, 600))
    colors = {image.pixel(x, y) for x in range(0, 800, 7) for y in range(0, 600, 7)}
    assert len(colors) > 10, "the first nodes are in the picture"


def test_svg_holds_the_whole_graph(canvas: GraphCanvas, tmp_path: object) -> None:
    path = f"{tmp_path}/graph.svg"
    canvas.to_svg(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.count("<svg") == 1
    assert "lm_head_weight" in text
    with pytest.raises(OSError, match="nowhere"):
        canvas.to_svg(f"{tmp_path}/nowhere/graph.svg")


def test_extern_calls_look_different(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    layout = canvas.scene.layout
    extern = canvas.canvas_palette.node(int(canvas.scene.node_class[layout.names.index("addmm")]))
    plain = canvas.canvas_palette.node(int(canvas.scene.node_class[layout.names.index("view")]))
    assert layout.node_style[layout.names.index("addmm")] == NodeStyle.EXTERN
    assert extern.fill != plain.fill
    assert canvas.scene.badge(layout.names.index("addmm")) == "ATen"


def graph_panel(qtbot: QtBot, nodes: int) -> GraphPanel:
    """A panel with a laid-out region of so many nodes."""
    panel = GraphPanel(theme.light())
    qtbot.addWidget(panel)
    panel.resize(900, 600)
    panel.show()
    with qtbot.waitSignal(panel.laid_out, timeout=20_000):
        panel.set_report(lab_report(nodes), {})
    return panel


def test_an_overlay_recolours_and_its_legend_explains(qtbot: QtBot) -> None:
    panel = graph_panel(qtbot, 120)
    plain = panel.canvas.grab().toImage()
    pictures: list[QImage] = []
    lines: list[QImage] = []
    for kind, presses in (("time", 1), ("dtype", 4)):
        for _ in range(presses):
            qtbot.keyClick(panel.overlays, Qt.Key.Key_Down)
        assert panel.overlays.currentData() == kind
        assert panel.legend.isVisible()
        assert OVERLAYS[kind] in panel.legend.accessibleName()
        QApplication.processEvents()
        assert not panel.canvas.geometry().intersects(panel.legend.geometry()), "no node is below it"
        pictures.append(panel.canvas.grab().toImage())
        lines.append(panel.legend.grab().toImage())
    assert lines[0] != lines[1]
    assert plain not in pictures
    assert pictures[0] != pictures[1]
    panel.show_overlay("decision")
    assert not panel.legend.isVisible()
    QApplication.processEvents()
    assert panel.canvas.grab().toImage() == plain


def test_a_legend_without_room_leaves_out_its_title_and_counts_what_does_not_fit(qtbot: QtBot) -> None:
    legend = OverlayLegend(theme.light())
    qtbot.addWidget(legend)

    def pixels(overlay: Overlay, width: int) -> QImage:
        legend.show_overlay(overlay)
        legend.resize(width, legend.height())
        return legend.grab().toImage()

    ramp = Overlay("time", is_ramp=True, units={"a": 1}, largest=230.0, is_measured=True)
    assert pixels(ramp, 320).copy(0, 0, 100, 26) == pixels(ramp, 330).copy(0, 0, 100, 26), "neither has the title"
    assert pixels(ramp, 320).copy(0, 0, 100, 26) != pixels(ramp, 900).copy(0, 0, 100, 26)
    names = ["float32", "bfloat16", "int64", "bool"]
    many, few = (Overlay("dtype", is_ramp=False, keys=keys) for keys in (names, names[:2]))
    assert pixels(many, 200) != pixels(few, 200), "how many there are besides"
    assert pixels(many, 200).copy(0, 0, 80, 26) == pixels(few, 200).copy(0, 0, 80, 26)


def test_a_low_graph_has_no_minimap(qtbot: QtBot) -> None:
    panel = graph_panel(qtbot, 120)
    panel.canvas.zoom_in()
    qtbot.waitUntil(panel.minimap.isVisible, timeout=5_000)
    panel.resize(600, 280)
    QApplication.processEvents()
    assert not panel.minimap.isVisible()
    panel.resize(900, 600)
    QApplication.processEvents()
    assert panel.minimap.isVisible()


def test_colours_of_a_large_region_are_found_on_another_thread(qtbot: QtBot) -> None:
    panel = graph_panel(qtbot, 1800)
    panel.show_overlay("time")
    panel.show_overlay("bytes")
    assert panel.legend.kind == "decision", "not yet"
    qtbot.waitUntil(lambda: panel.legend.kind != "decision", timeout=5_000)
    assert panel.legend.kind == "bytes", "what is not wanted any more is not shown"
    colours = panel.canvas.scene.group_color.tolist()
    panel.show_grouping("modules")
    qtbot.waitUntil(lambda: panel._shown_grouping == "modules", timeout=20_000)
    panel.show_grouping("fusion")
    assert panel.legend.kind == "bytes"
    assert panel.canvas.scene.group_color.tolist() == colours, "another layout keeps the colours at once"
    panel.show_overlay("dtype")
    panel.show_overlay("decision")
    qtbot.wait(100)
    assert panel.legend.kind == "decision"


def test_a_pan_at_another_scale_is_drawn_at_once(qtbot: QtBot, canvas: GraphCanvas) -> None:
    """A slow graph is shown scaled while it zooms; where that would show nothing of what is there, it is drawn."""
    assert canvas.scene is not None
    canvas.grab()
    canvas._base._cost = 1.0  # as if a full drawing took a second
    left, top, width, height = (float(v) for v in canvas.scene.node_rect[400])
    goal = Camera().centred(left + width / 2, top + height / 2, 1000, 700, 1.1)
    for step in (0.0, 3.0):
        canvas.move_to(goal.panned(step, step))
        picture = canvas.viewport().grab().toImage()
        middle = picture.copy(400, 300, 200, 100)
        colors = {middle.pixel(x, y) for x in range(0, 200, 5) for y in range(0, 100, 5)}
        assert len(colors) > 1, "there is a node in the middle"


def test_a_slow_graph_becomes_sharp_strip_by_strip(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    canvas.grab()
    whole = canvas.camera.zoomed(0.8, 500.0, 350.0)
    canvas._base._cost = 1.0  # as if a full drawing took a second
    canvas.move_to(whole)
    canvas.viewport().grab()
    assert canvas._base._is_coarse
    canvas._come_to_rest()
    assert canvas._base._next is not None
    assert 0 < canvas._base._next.drawn < canvas.viewport().height(), "the first strip"
    canvas.viewport().grab()
    assert canvas._base._is_coarse, "what is painted meanwhile waits for the last"
    qtbot.waitUntil(lambda: canvas._base._next is None, timeout=30_000)
    strips = canvas.viewport().grab().toImage()
    assert not canvas._base._is_coarse
    canvas._base.invalidate()
    at_once = canvas.viewport().grab().toImage()
    bits = [np.frombuffer(image.constBits(), np.uint8).astype(np.int16) for image in (at_once, strips)]
    assert np.abs(bits[0] - bits[1]).max() < 32, "no seams, but for how edges of shapes are smoothed"


def test_a_move_ends_a_sharp_picture_that_is_being_drawn(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    canvas.grab()
    canvas._base._cost = 1.0
    canvas.move_to(canvas.camera.zoomed(0.8, 500.0, 350.0))
    canvas.viewport().grab()
    canvas._come_to_rest()
    canvas._base._cost = 1.0
    goal = canvas.camera.zoomed(0.95, 500.0, 350.0)
    canvas.move_to(goal)
    canvas.viewport().grab()
    qtbot.waitUntil(lambda: canvas._base._camera == goal, timeout=30_000)
    assert canvas._base._next is None


def test_a_library_s_name_stays_above_the_border_of_what_is_selected(qtbot: QtBot, canvas: GraphCanvas) -> None:
    show(qtbot, canvas, "addmm")
    canvas.move_to(Camera().centred(*canvas.scene.locate("addmm")[:2], canvas._width, canvas._height, 2.0))
    canvas._come_to_rest()
    left, top, width, _ = canvas.scene.locate("addmm")
    x, y = canvas.camera.to_view(left + width - 12, top)  # within the name's end

    def seen() -> list[int]:
        image = canvas.viewport().grab().toImage()
        return [image.pixel(round(x) + dx, round(y) + dy) for dx in range(-30, 0) for dy in range(-8, 9)]

    before = seen()
    canvas.select_nodes({"addmm"})
    assert canvas.canvas_palette.selection.rgb() not in seen()
    assert seen() == before
