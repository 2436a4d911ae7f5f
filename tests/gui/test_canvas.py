"""What one points at, clicks and walks to on the canvas, offscreen."""

from __future__ import annotations

import itertools

from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QAccessible, QColor, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.layout import layout_region
from compiler.report import Region
from tests.gui.on_canvas import click, group_background, settle, show
from views.canvas.camera import Camera
from views.canvas.canvas import GraphCanvas
from views.canvas.minimap import Minimap
from views.look import theme


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


def test_rectangles_of_many_names_are_those_of_each(canvas: GraphCanvas, region: Region) -> None:
    scene = canvas.scene
    names = [region.nodes[4].name, region.groups[2].name, region.extern_calls[0].name, region.nodes[9].name]
    found = {tuple(rect) for rect in scene.rects_of([*names, "nobody"]).tolist()}
    assert found == {scene.locate(name) for name in names}
    assert scene.rects_of([]).shape == (0, 4)


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


def test_a_ring_shows_that_the_keyboard_came_to_the_graph(canvas: GraphCanvas, qtbot: QtBot) -> None:
    def edge(reason: Qt.FocusReason) -> QColor:
        canvas.clearFocus()
        canvas.setFocus(reason)
        qtbot.waitUntil(canvas.hasFocus, timeout=5_000)
        return canvas.viewport().grab().toImage().pixelColor(500, 1)

    assert edge(Qt.FocusReason.TabFocusReason) != edge(Qt.FocusReason.MouseFocusReason)
    assert edge(Qt.FocusReason.ShortcutFocusReason) == edge(Qt.FocusReason.TabFocusReason)
