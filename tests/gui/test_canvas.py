"""The canvas by real mouse, wheel and key events, offscreen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QColor, QHelpEvent, QImage, QPainter, QPixmap, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.layout import NodeStyle, layout_region
from app.overlays import OVERLAYS
from compiler.report import Region
from tests.fake_reports import transformer_region
from tests.fake_runs import lab_report
from views.canvas.base_layer import BaseLayer
from views.canvas.camera import Camera, fitted
from views.canvas.canvas import GraphCanvas
from views.canvas.minimap import Minimap
from views.canvas.painting import ScenePainter
from views.canvas.palette import CanvasPalette
from views.canvas.primitives import ShapeBuffer
from views.canvas.scene import Scene
from views.graph.panel import GraphPanel
from views.look import theme

NO_KEYS = Qt.KeyboardModifier.NoModifier


@pytest.fixture(scope="module")
def region() -> Region:
    return transformer_region(700)


@pytest.fixture
def canvas(qtbot: QtBot, region: Region) -> Iterator[GraphCanvas]:
    widget = GraphCanvas(theme=theme.light())
    qtbot.addWidget(widget)
    widget.resize(1000, 700)
    widget.set_region(region, layout_region(region))
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def settle(qtbot: QtBot, canvas: GraphCanvas) -> None:
    """Waits until no animation moves the canvas."""
    qtbot.wait(20)
    qtbot.waitUntil(lambda: canvas._motion.goal is None)


def show(qtbot: QtBot, canvas: GraphCanvas, name: str) -> QPoint:
    canvas.center_on(name)
    settle(qtbot, canvas)
    return canvas.view_position(name)


def wheel(canvas: GraphCanvas, at: QPoint, notches: int, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    event = QWheelEvent(
        QPointF(at), QPointF(canvas.viewport().mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas.viewport(), event)


def click(canvas: GraphCanvas, at: QPoint) -> None:
    QTest.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, at)


def group_background(canvas: GraphCanvas, name: str) -> QPoint:
    """A point on a group's title."""
    assert canvas.scene is not None
    rect = canvas.scene.locate(name)
    assert rect is not None
    x, y = canvas.camera.to_view(rect[0] + 30, rect[1] + 10)
    return QPoint(round(x), round(y))


def test_opens_at_a_readable_scale_at_the_top(canvas: GraphCanvas) -> None:
    assert canvas.camera.scale > 0.6
    assert canvas.scene is not None
    assert canvas.view_bounds().top() < canvas.scene.bounds[1]
    assert canvas.view_position("input_ids").y() in range(canvas.viewport().height())


def test_click_on_a_node_says_its_name(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    name = region.groups[2].nodes[1]
    at = show(qtbot, canvas, name)
    with qtbot.waitSignal(canvas.node_clicked) as clicked:
        click(canvas, at)
    assert clicked.args == [name]


def test_click_on_a_title_says_the_group(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    group = region.groups[1].name
    show(qtbot, canvas, group)
    with qtbot.waitSignal(canvas.group_clicked) as clicked:
        click(canvas, group_background(canvas, group))
    assert clicked.args == [group]


def test_click_on_nothing(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.go_home()
    settle(qtbot, canvas)
    with qtbot.waitSignal(canvas.background_clicked):
        click(canvas, QPoint(5, 5))


def test_click_on_a_stub_goes_to_the_far_end(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    layout = canvas.scene.layout
    stub = max(i for i, label in enumerate(layout.stub_labels) if label == "rotary_cos")
    x, y, width, height = (float(v) for v in layout.stub_rect[stub])
    canvas.move_to(Camera().centred(x, y, 1000, 700, 1.0))
    at = QPoint(*(round(v) for v in canvas.camera.to_view(x + width / 2, y + height / 2)))
    with qtbot.waitSignal(canvas.node_clicked) as clicked:
        click(canvas, at)
    assert clicked.args == ["rotary_cos"]
    settle(qtbot, canvas)
    assert canvas.viewport().rect().contains(canvas.view_position("rotary_cos"))


def test_hover_says_the_node_and_draws_its_edges(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    name = region.groups[2].nodes[1]
    at = show(qtbot, canvas, name)
    before = canvas.grab().toImage()
    with qtbot.waitSignal(canvas.hovered) as hovered:
        QTest.mouseMove(canvas.viewport(), at)
    assert hovered.args == [name]
    after = canvas.grab().toImage()
    assert before != after
    highlight = canvas.canvas_palette.highlight
    close = sum(
        abs(after.pixelColor(x, y).hue() - highlight.hue()) < 6 and after.pixelColor(x, y).saturation() > 150
        for x, y in itertools.product(range(at.x() - 120, at.x() + 120), range(at.y() - 90, at.y() + 90))
    )
    assert close > 200
    with qtbot.waitSignal(canvas.hovered) as left:
        QTest.mouseMove(canvas.viewport(), QPoint(3, 3))
    assert left.args == [""]


@pytest.mark.parametrize("keys", [NO_KEYS, Qt.KeyboardModifier.ControlModifier])
def test_wheel_zooms_about_the_cursor(qtbot: QtBot, canvas: GraphCanvas, keys: Qt.KeyboardModifier) -> None:
    at = QPoint(321, 234)
    point, scale = canvas.camera.to_scene(at.x(), at.y()), canvas.camera.scale
    for notches in (1, 1, -3):
        wheel(canvas, at, notches, keys)
        for _ in range(4):  # also on the way
            qtbot.wait(15)
            assert canvas.camera.to_view(*point) == pytest.approx((at.x(), at.y()), abs=0.01)
    settle(qtbot, canvas)
    assert canvas.camera.to_view(*point) == pytest.approx((at.x(), at.y()), abs=0.01)
    assert canvas.camera.scale == pytest.approx(scale / 1.25)


def test_shift_wheel_pans_sideways(qtbot: QtBot, canvas: GraphCanvas) -> None:
    before = canvas.camera
    wheel(canvas, QPoint(300, 300), 1, Qt.KeyboardModifier.ShiftModifier)
    assert canvas.camera.scale == before.scale
    assert canvas.camera.x != before.x
    assert canvas.camera.y == before.y


def test_trackpad_pans(canvas: GraphCanvas) -> None:
    before = canvas.camera
    at = QPointF(200, 200)
    event = QWheelEvent(
        at, at, QPoint(12, -30), QPoint(12, -30), Qt.MouseButton.NoButton, NO_KEYS,
        Qt.ScrollPhase.ScrollUpdate, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas.viewport(), event)
    assert canvas.camera.x == pytest.approx(before.x - 12 / before.scale)
    assert canvas.camera.y == pytest.approx(before.y + 30 / before.scale)


def test_drag_pans_and_is_no_click(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    name = region.groups[2].nodes[1]
    at = show(qtbot, canvas, name)
    clicks: list[str] = []
    canvas.node_clicked.connect(clicks.append)
    QTest.mousePress(canvas.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, at)
    for step in range(1, 6):
        QTest.mouseMove(canvas.viewport(), at + QPoint(20 * step, 10 * step))
    QTest.mouseRelease(canvas.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, at + QPoint(100, 50))
    assert canvas.view_position(name) == at + QPoint(100, 50)
    assert clicks == []


def test_picture_after_panning_equals_a_fresh_one(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    show(qtbot, canvas, region.groups[3].name)
    for dx, dy in ((37, -61), (-120, 15), (3, 200), (900, 0)):
        canvas.move_to(canvas.camera.panned(dx, dy))
        QApplication.processEvents()
    panned = canvas.viewport().grab().toImage()
    canvas.set_theme(theme.light())
    fresh = canvas.viewport().grab().toImage()
    differing = _difference(panned, fresh)
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
    assert _difference(panned, drawn(BaseLayer(), used)[0]) == 0


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


def test_rectangles_of_many_names_are_those_of_each(canvas: GraphCanvas, region: Region) -> None:
    scene = canvas.scene
    names = [region.nodes[4].name, region.groups[2].name, region.extern_calls[0].name, region.nodes[9].name]
    found = {tuple(rect) for rect in scene.rects_of([*names, "nobody"]).tolist()}
    assert found == {scene.locate(name) for name in names}
    assert scene.rects_of([]).shape == (0, 4)


def test_what_is_in_sight_and_large_enough(canvas: GraphCanvas, region: Region) -> None:
    first, last = region.nodes[3].name, region.nodes[-1].name
    canvas.move_to(Camera().centred(*canvas.scene.locate(first)[:2], 800, 600, 1.0))
    assert canvas.shows([first])
    assert not canvas.shows([first, last])
    canvas.move_to(fitted(canvas.scene.bounds, canvas.viewport().width(), canvas.viewport().height()))
    assert not canvas.shows([first]), "too small to read"


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


def _difference(a: object, b: object) -> float:
    """Share of pixels that differ visibly."""
    arrays = []
    for image in (a, b):
        image = image.convertToFormat(image.Format.Format_RGB32)  # type: ignore[attr-defined]
        data = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
        arrays.append(data[:, :, :3].astype(int))
    return float((np.abs(arrays[0] - arrays[1]).max(axis=2) > 24).mean())


def test_arrow_keys_follow_edges(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    node = next(node for node in reversed(region.nodes) if node.name.startswith("erf"))
    canvas.setFocus()
    canvas.select_nodes({node.name})
    for key, wanted in ((Qt.Key.Key_Up, node.inputs[0]), (Qt.Key.Key_Down, node.name)):
        with qtbot.waitSignal(canvas.node_clicked) as clicked:
            QTest.keyClick(canvas, key)
        if key == Qt.Key.Key_Up:
            assert clicked.args == [wanted]
        consumers = [other.name for other in region.nodes if node.inputs[0] in other.inputs]
        assert clicked.args[0] in (wanted, consumers[0])
        settle(qtbot, canvas)
        assert canvas.viewport().rect().contains(canvas.view_position(clicked.args[0]))


def test_sideways_keys_stay_in_the_row(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.select_nodes({"slice_1"})
    assert canvas.scene is not None
    with qtbot.waitSignal(canvas.node_clicked) as clicked:
        QTest.keyClick(canvas, Qt.Key.Key_Right)
    index = canvas.scene.index
    before, after = canvas.scene.node_rect[index["slice_1"]], canvas.scene.node_rect[index[clicked.args[0]]]
    assert after[0] > before[0]
    assert abs(after[1] - before[1]) < 90


def test_zoom_and_fit_keys(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    scale = canvas.camera.scale
    QTest.keyClick(canvas, Qt.Key.Key_Plus)
    settle(qtbot, canvas)
    assert canvas.camera.scale == pytest.approx(scale * 1.25)
    QTest.keyClick(canvas, Qt.Key.Key_Minus)
    QTest.keyClick(canvas, Qt.Key.Key_Minus)
    settle(qtbot, canvas)
    assert canvas.camera.scale == pytest.approx(scale / 1.25)
    QTest.keyClick(canvas, Qt.Key.Key_0)
    settle(qtbot, canvas)
    assert canvas.camera.scale == pytest.approx(1.0)
    QTest.keyClick(canvas, Qt.Key.Key_F)
    settle(qtbot, canvas)
    left, top, width, height = canvas.scene.bounds
    view = canvas.view_bounds()
    assert view.left() <= left
    assert view.top() <= top
    assert view.right() >= left + width
    assert view.bottom() >= top + height
    QTest.keyClick(canvas, Qt.Key.Key_Home)
    settle(qtbot, canvas)
    assert canvas.camera.scale == pytest.approx(scale)


def test_escape_clears_the_selection(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.select_nodes({"embedding"})
    selected = canvas.grab().toImage()
    with qtbot.waitSignal(canvas.background_clicked):
        QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert canvas.grab().toImage() != selected


def test_search_finds_names_and_ops_and_walks_them(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    plain = canvas.grab().toImage()
    found = canvas.set_search("  ERF ")
    wanted = {node.name for node in region.nodes if "erf" in node.name}
    wanted |= {group.name for group in region.groups if "erf" in group.name}
    assert set(found) == wanted
    assert len(found) == len(set(found))
    assert canvas.grab().toImage() != plain, "the rest is dimmed"
    assert canvas.next_match() == found[0]
    assert canvas.next_match() == found[1]
    assert canvas.next_match(-1) == found[0]
    assert canvas.next_match(-1) == found[-1]
    settle(qtbot, canvas)
    assert canvas.viewport().rect().contains(canvas.view_position(found[-1]))
    assert canvas.set_search("no such op") == []
    assert canvas.next_match() == ""
    canvas.set_search("")
    canvas.go_home()
    settle(qtbot, canvas)
    canvas.set_theme(theme.light())  # drawn anew: a pan ends within half a pixel
    assert canvas.grab().toImage() == plain


def test_selecting_from_outside(canvas: GraphCanvas, region: Region) -> None:
    plain = canvas.grab().toImage()
    canvas.select_group(region.groups[0].name)
    group = canvas.grab().toImage()
    assert group != plain
    canvas.select_nodes({"embedding", "input_ids", "unknown"})
    assert canvas.grab().toImage() not in (plain, group)
    canvas.select_group(region.extern_calls[0].name)
    canvas.select_group("")
    assert canvas.grab().toImage() == plain
    canvas.center_on("unknown")


def test_tooltip_has_op_shape_dtype_and_reason(qtbot: QtBot, canvas: GraphCanvas, region: Region) -> None:
    for name, words in (
        (region.groups[2].nodes[0], ["aten.slice.Tensor", "8×12×1024×32 bf16", region.groups[2].reason]),
        (region.extern_calls[1].nodes[0], ["aten.addmm.default", "Extern call"]),
    ):
        at = show(qtbot, canvas, name)
        event = QHelpEvent(QEvent.Type.ToolTip, at, canvas.viewport().mapToGlobal(at))
        QApplication.sendEvent(canvas.viewport(), event)
        text = QToolTip.text()
        for word in words:
            assert word in text
        QToolTip.hideText()


def test_screen_reader_texts(qtbot: QtBot, canvas: GraphCanvas) -> None:
    accessible = QAccessible.queryAccessibleInterface(canvas)
    assert accessible.text(QAccessible.Text.Name) == "Graph of region_0"
    canvas.select_nodes({"addmm"})
    spoken = accessible.text(QAccessible.Text.Description)
    assert spoken.startswith("addmm, aten.addmm.default, 8192×2304 bf16")
    assert "3 inputs" in spoken


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


def test_no_region_and_clear(qtbot: QtBot, region: Region) -> None:
    widget = GraphCanvas()
    qtbot.addWidget(widget)
    widget.show()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_F, Qt.Key.Key_Plus, Qt.Key.Key_Escape):
        QTest.keyClick(widget, key)
    click(widget, QPoint(10, 10))
    assert widget.set_search("x") == []
    assert widget.next_match() == ""
    widget.set_region(region, layout_region(region))
    widget.clear("Nothing here")
    assert widget.scene is None
    widget.render_image(QSize(50, 50))


def test_empty_region(qtbot: QtBot) -> None:
    widget = GraphCanvas()
    Minimap(widget)
    qtbot.addWidget(widget)
    widget.show()
    empty = Region("region_0", "inference", [])
    widget.set_region(empty, layout_region(empty))
    QTest.keyClick(widget, Qt.Key.Key_Down)
    widget.fit()
    widget.grab()


def test_minimap_frames_the_view_and_moves_it(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    minimap = Minimap(canvas)
    minimap.show()
    assert minimap.isVisible()
    assert canvas.rect().contains(minimap.geometry())
    top = canvas.view_bounds().top()
    picture = minimap.grab().toImage()
    at = QPoint(minimap.width() // 2, minimap.height() - 12)
    wanted = minimap.map_camera().to_scene(at.x(), at.y())
    QTest.mousePress(minimap, Qt.MouseButton.LeftButton, NO_KEYS, at)
    middle = canvas.view_bounds().center()
    assert (middle.x(), middle.y()) == pytest.approx(wanted, abs=1.0)
    assert canvas.view_bounds().top() > top
    assert minimap.grab().toImage() != picture
    before = canvas.view_bounds().top()
    QTest.mouseMove(minimap, at - QPoint(0, 30))
    assert canvas.view_bounds().top() < before
    QTest.mouseRelease(minimap, Qt.MouseButton.LeftButton, NO_KEYS, at)
    canvas.resize(900, 600)
    QApplication.processEvents()
    assert canvas.rect().contains(minimap.geometry())


def test_camera_glide_keeps_what_both_ends_share() -> None:
    start = Camera(10.0, 20.0, 0.5)
    goal = start.zoomed(8.0, 300.0, 200.0)
    point = start.to_scene(300.0, 200.0)
    for share in np.linspace(0, 1, 7):
        assert start.between(goal, float(share)).to_view(*point) == pytest.approx((300.0, 200.0))
    assert start.between(goal, 1.0) == goal


def test_fitted_camera_holds_the_bounds() -> None:
    camera = fitted((-50.0, 10.0, 4000.0, 90000.0), 800.0, 600.0)
    left, top = camera.to_view(-50.0, 10.0)
    right, bottom = camera.to_view(3950.0, 90010.0)
    assert 0 <= left < right <= 800
    assert 0 <= top < bottom <= 600


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
    widths: list[int] = []
    for kind, presses in (("time", 1), ("dtype", 4)):
        for _ in range(presses):
            qtbot.keyClick(panel.overlays, Qt.Key.Key_Down)
        assert panel.overlays.currentData() == kind
        assert panel.legend.isVisible()
        assert OVERLAYS[kind] in panel.legend.accessibleName()
        pictures.append(panel.canvas.grab().toImage())
        widths.append(panel.legend.width())
    assert widths[1] < widths[0], "as wide as what it explains"
    assert plain not in pictures
    assert pictures[0] != pictures[1]
    panel.show_overlay("decision")
    assert not panel.legend.isVisible()
    assert panel.canvas.grab().toImage() == plain


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


def test_a_ring_shows_that_the_keyboard_came_to_the_graph(canvas: GraphCanvas, qtbot: QtBot) -> None:
    def edge(reason: Qt.FocusReason) -> QColor:
        canvas.clearFocus()
        canvas.setFocus(reason)
        qtbot.waitUntil(canvas.hasFocus, timeout=5_000)
        return canvas.viewport().grab().toImage().pixelColor(500, 1)

    assert edge(Qt.FocusReason.TabFocusReason) != edge(Qt.FocusReason.MouseFocusReason)
    assert edge(Qt.FocusReason.ShortcutFocusReason) == edge(Qt.FocusReason.TabFocusReason)


def test_the_first_view_stays_the_first_while_docks_take_their_room(canvas: GraphCanvas) -> None:
    start = canvas.scene.start_x()
    canvas.resize(600, 500)
    QApplication.processEvents()
    assert canvas.camera.to_view(start, 0)[0] == pytest.approx(300, abs=2)
    canvas.zoom_in()
    canvas.move_to(Camera(10.0, 20.0, 0.8))
    canvas.resize(500, 400)
    QApplication.processEvents()
    assert canvas.camera == Camera(10.0, 20.0, 0.8), "somebody looked elsewhere"


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
