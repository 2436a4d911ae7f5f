"""The graph by modules, undo of views, cones and paths, by real mouse and key events."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.cones import between, downstream, upstream
from compiler.report import Report
from tests.fake_reports import transformer_report
from views.canvas.module_scene import ModuleScene
from views.graph.panel import GraphPanel
from views.graph.view_history import ViewHistory, ViewState
from views.look import theme


@pytest.fixture(scope="module")
def report() -> Report:
    return transformer_report(700)


@pytest.fixture
def panel(qtbot: QtBot, report: Report) -> GraphPanel:
    made = GraphPanel(theme.light())
    qtbot.addWidget(made)
    made.resize(1100, 800)
    made.show()
    qtbot.waitExposed(made)
    with qtbot.waitSignal(made.laid_out, timeout=10_000):
        made.set_report(report, {})
    made.canvas.setFocus()
    return made


def settle(qtbot: QtBot, panel: GraphPanel) -> None:
    """Waits until nothing moves the camera any more."""
    qtbot.wait(20)
    qtbot.waitUntil(lambda: panel.canvas._motion.goal is None)


def by_modules(qtbot: QtBot, panel: GraphPanel) -> ModuleScene:
    """Switches with the key."""
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.keyClick(panel.canvas, Qt.Key.Key_M)
    settle(qtbot, panel)
    return scene_of(panel)


def scene_of(panel: GraphPanel) -> ModuleScene:
    assert isinstance(panel.canvas.scene, ModuleScene)
    return panel.canvas.scene


def mark_of(panel: GraphPanel, key: str) -> QPoint:
    """Where the mark that opens a box is in the viewport."""
    scene = scene_of(panel)
    box = scene.boxes[scene.group_index[key]]
    left, top, _, _ = (float(v) for v in scene.group_rect[scene.group_index[key]])
    x, y = panel.canvas.camera.to_view(left + 12, top + (20 if box.count > 1 else 11))
    return QPoint(round(x), round(y))


def toggle(
    qtbot: QtBot, panel: GraphPanel, key: str, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    if not panel.canvas.viewport().rect().contains(mark_of(panel, key)):
        panel.canvas.center_on(key)
        settle(qtbot, panel)
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.mouseClick(panel.canvas.viewport(), Qt.MouseButton.LeftButton, keys, mark_of(panel, key))


def stack_key(panel: GraphPanel) -> str:
    return next(box.key for box in scene_of(panel).boxes if box.count > 1)


def test_the_key_switches_and_the_selection_stays_in_view(qtbot: QtBot, panel: GraphPanel) -> None:
    panel.canvas.select_nodes({"addmm_3"})
    from views.selection.selection import Selection

    panel.show_selection(Selection("region_0", "", "addmm_3", frozenset({"addmm_3"})))
    scene = by_modules(qtbot, panel)
    at = panel.canvas.view_position("addmm_3")
    assert panel.canvas.viewport().rect().contains(at)
    assert scene.box_of(scene.index["addmm_3"]) >= 0, "it is hidden in a closed box, which is marked"
    with qtbot.waitSignal(panel.canvas.scene_changed):
        QTest.keyClick(panel.canvas, Qt.Key.Key_M)
    settle(qtbot, panel)
    assert panel.canvas.scene is not None
    assert not panel.canvas.scene.opens_boxes
    assert panel.canvas.viewport().rect().contains(panel.canvas.view_position("addmm_3"))


def test_opening_keeps_the_box_where_it_is(qtbot: QtBot, panel: GraphPanel) -> None:
    by_modules(qtbot, panel)
    key = stack_key(panel)
    panel.canvas.center_on(key)
    settle(qtbot, panel)
    for _ in range(2):  # opens, closes
        before = scene_of(panel).locate(key)
        assert before is not None
        was = panel.canvas.camera.to_view(before[0], before[1])
        toggle(qtbot, panel, key)
        after = scene_of(panel).locate(key)
        assert after is not None
        assert panel.canvas.camera.to_view(after[0], after[1]) == pytest.approx(was, abs=1.0)


def test_a_stack_opens_one_for_all_and_with_shift_all(qtbot: QtBot, panel: GraphPanel) -> None:
    by_modules(qtbot, panel)
    key = stack_key(panel)
    toggle(qtbot, panel, key)
    assert sum(box.type_name == "Block" and box.count == 1 for box in scene_of(panel).boxes) == 1
    assert scene_of(panel).boxes[scene_of(panel).group_index[key]].is_single
    toggle(qtbot, panel, key)
    toggle(qtbot, panel, key, Qt.KeyboardModifier.ShiftModifier)
    assert sum(box.type_name == "Block" and box.count == 1 for box in scene_of(panel).boxes) > 5


def test_clicking_a_module_selects_its_nodes(qtbot: QtBot, panel: GraphPanel) -> None:
    by_modules(qtbot, panel)
    key = stack_key(panel)
    panel.canvas.center_on(key)
    settle(qtbot, panel)
    with qtbot.waitSignal(panel.nodes_clicked) as clicked:
        QTest.mouseClick(panel.canvas.viewport(), Qt.MouseButton.LeftButton, pos=mark_of(panel, key) + QPoint(60, 0))
    region, nodes = clicked.args
    scene = scene_of(panel)
    assert region == "region_0"
    assert {scene.index[name] for name in nodes} == set(scene.boxes[scene.group_index[key]].members)


def test_undo_walks_back_through_views(qtbot: QtBot, panel: GraphPanel) -> None:
    first = panel.canvas.camera
    by_modules(qtbot, panel)
    closed = len(scene_of(panel).boxes)
    toggle(qtbot, panel, stack_key(panel))
    opened = len(scene_of(panel).boxes)
    assert opened > closed
    QTest.keyClick(panel.canvas, Qt.Key.Key_F)
    settle(qtbot, panel)
    fitted = panel.canvas.camera
    undo(qtbot, panel)
    assert panel.canvas.camera != fitted
    assert len(scene_of(panel).boxes) == opened
    while len(scene_of(panel).boxes) != closed:
        undo(qtbot, panel)
    while panel.grouping == "modules":
        undo(qtbot, panel)
    assert panel.grouping == "fusion"
    assert panel.canvas.camera.scale == pytest.approx(first.scale)
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        panel.redo_view()
    assert panel.grouping == "modules"


def undo(qtbot: QtBot, panel: GraphPanel) -> None:
    panel.undo_view()
    qtbot.waitUntil(lambda: panel._goal is None, timeout=10_000)
    settle(qtbot, panel)


def test_colours_are_undone(qtbot: QtBot, panel: GraphPanel) -> None:
    panel.overlays.setFocus()
    qtbot.keyClick(panel.overlays, Qt.Key.Key_Down)
    chosen = panel.legend.kind
    assert chosen != "decision"
    panel.undo_view()
    qtbot.waitUntil(lambda: panel.legend.kind == "decision")
    assert panel.overlays.currentData() == "decision"


def test_history_forgets_what_lay_ahead() -> None:
    from views.canvas.camera import Camera

    views = [ViewState("r", "fusion", "decision", Camera(scale=1.0 + i)) for i in range(4)]
    history = ViewHistory()
    history.leave(views[0])
    assert history.undo(views[1]) == views[0]
    assert history.redo(views[0]) == views[1]
    assert history.undo(views[1]) == views[0]
    history.leave(views[0])
    assert history.redo(views[2]) is None


def test_keys_go_in_and_out_of_modules_and_are_spoken(qtbot: QtBot, panel: GraphPanel) -> None:
    by_modules(qtbot, panel)
    QTest.keyClick(panel.canvas, Qt.Key.Key_Home)
    settle(qtbot, panel)
    spoken = []
    for _ in range(6):
        interface = QAccessible.queryAccessibleInterface(panel.canvas)
        spoken.append(interface.text(QAccessible.Text.Description))
        if "closed, Enter opens it" in spoken[-1]:
            break
        QTest.keyClick(panel.canvas, Qt.Key.Key_Down)
        settle(qtbot, panel)
    assert "closed, Enter opens it" in spoken[-1], spoken
    before = len(scene_of(panel).boxes)
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.keyClick(panel.canvas, Qt.Key.Key_Return)
    assert len(scene_of(panel).boxes) > before or scene_of(panel).nested.shown.sum() > 0
    with qtbot.waitSignal(panel.canvas.scene_changed, raising=False, timeout=100):
        QTest.keyClick(panel.canvas, Qt.Key.Key_Return)  # into it
    description = QAccessible.queryAccessibleInterface(panel.canvas).text(QAccessible.Text.Description)
    assert "closed" in description or "input" in description
    with qtbot.waitSignal(panel.nodes_clicked):
        QTest.keyClick(panel.canvas, Qt.Key.Key_Backspace)
    assert ", open" in QAccessible.queryAccessibleInterface(panel.canvas).text(QAccessible.Text.Description)
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.keyClick(panel.canvas, Qt.Key.Key_Space)
    QTest.keyClick(panel.canvas, Qt.Key.Key_End)
    assert "output" in QAccessible.queryAccessibleInterface(panel.canvas).text(QAccessible.Text.Description)


def test_keys_go_in_and_out_of_fusion_groups(qtbot: QtBot, panel: GraphPanel) -> None:
    scene = panel.canvas.scene
    assert scene is not None
    group = scene.layout.group_names[2]
    panel.canvas.select_group(group)
    with qtbot.waitSignal(panel.node_clicked) as clicked:
        QTest.keyClick(panel.canvas, Qt.Key.Key_Return)
    assert clicked.args[0] in scene.groups[group].nodes
    with qtbot.waitSignal(panel.group_clicked) as out:
        QTest.keyClick(panel.canvas, Qt.Key.Key_Backspace)
    assert out.args[0] == group


def test_cones_and_paths(qtbot: QtBot, panel: GraphPanel) -> None:
    canvas = panel.canvas
    assert canvas.scene is not None
    reads, index = canvas.scene.reads, canvas.scene.index
    canvas.select_nodes({"addmm_2"})
    for key, reach in ((Qt.Key.Key_U, upstream), (Qt.Key.Key_D, downstream)):
        canvas.select_nodes({"addmm_2"})
        with qtbot.waitSignal(panel.nodes_clicked) as clicked:
            QTest.keyClick(canvas, key)
        assert {index[name] for name in clicked.args[1]} == reach(reads, [index["addmm_2"]])
    canvas.select_nodes(set())
    for name in ("addmm_1", "addmm_4"):
        canvas.center_on(name)
        settle(qtbot, panel)
        at = canvas.view_position(name)
        QTest.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, at)
    with qtbot.waitSignal(panel.nodes_clicked) as clicked:
        QTest.keyClick(canvas, Qt.Key.Key_P, Qt.KeyboardModifier.ShiftModifier)
    found = {index[name] for name in clicked.args[1]}
    assert found == between(reads, index["addmm_1"], index["addmm_4"])
    assert {index["addmm_1"], index["addmm_4"]} < found


def test_a_bundle_lists_its_tensors(qtbot: QtBot, panel: GraphPanel) -> None:
    scene = by_modules(qtbot, panel)
    canvas = panel.canvas
    edge = int(np.argmax(np.where(scene.layout.edge_cut == 0, scene.nested.edge_values, 0)))
    used = scene.pieces[scene.pieces_of(np.array([edge]))]
    x0, y0, x1, y1 = (float(v) for v in used[np.argmax(used[:, 3] - used[:, 1])])
    canvas.look_at((x0 + x1) / 2, (y0 + y1) / 2)
    qtbot.wait(20)
    point = QPointF(*canvas.camera.to_view((x0 + x1) / 2, (y0 + y1) / 2)).toPoint()
    event = QHelpEvent(QEvent.Type.ToolTip, point, canvas.viewport().mapToGlobal(point))
    QApplication.sendEvent(canvas.viewport(), event)
    text = QToolTip.text()
    values = scene.values_of(edge)
    assert f"{len(values)} tensor" in text
    assert "B" in text
    assert values[0].name in text
    QToolTip.hideText()


def test_search_marks_the_boxes_that_hide_matches(qtbot: QtBot, panel: GraphPanel) -> None:
    scene = by_modules(qtbot, panel)
    found = panel.canvas.set_search("erf_2")
    hidden = scene.box_of(scene.index["erf_2"])
    assert hidden >= 0
    assert scene.boxes[hidden].key in found


def test_closed_fusion_groups_open_where_they_are(qtbot: QtBot, panel: GraphPanel) -> None:
    with qtbot.waitSignal(panel.kernels.ready, timeout=10_000):
        panel.groupings.setFocus()
        qtbot.keyClick(panel.groupings, Qt.Key.Key_Down)
    settle(qtbot, panel)
    scene = scene_of(panel)
    box = scene.boxes[2]
    assert box.key in scene.groups
    panel.canvas.center_on(box.key)
    settle(qtbot, panel)
    with qtbot.waitSignal(panel.group_clicked) as clicked:
        QTest.mouseClick(
            panel.canvas.viewport(), Qt.MouseButton.LeftButton, pos=mark_of(panel, box.key) + QPoint(60, 0)
        )
    assert clicked.args[0] == box.key
    was = mark_of(panel, box.key)
    with qtbot.waitSignal(panel.kernels.ready, timeout=10_000):
        QTest.mouseClick(panel.canvas.viewport(), Qt.MouseButton.LeftButton, pos=was)
    assert scene_of(panel).nested.shown[list(box.members)].all()
    assert (mark_of(panel, box.key) - was).manhattanLength() <= 1


def test_enter_opens_what_hides_the_selected_node(qtbot: QtBot, panel: GraphPanel) -> None:
    scene = by_modules(qtbot, panel)
    assert scene.box_of(scene.index["erf_2"]) >= 0
    panel.canvas.select_nodes({"erf_2"})
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.keyClick(panel.canvas, Qt.Key.Key_Return)
    assert scene_of(panel).nested.shown[scene.index["erf_2"]]


@pytest.mark.parametrize("grouping", ["fusion", "modules", "kernels"])
def test_colours_chosen_while_a_region_is_laid_out_wait_for_it(qtbot: QtBot, panel: GraphPanel, grouping: str) -> None:
    report = transformer_report(700, training=True)
    with qtbot.waitSignal(panel.laid_out, timeout=10_000):
        panel.set_report(report, {})
    panel.show_grouping(grouping)
    qtbot.waitUntil(lambda: panel._shown_grouping == grouping, timeout=10_000)
    panel.tabs.setFocus()
    with qtbot.captureExceptions() as faults:
        QTest.keyClick(panel.tabs, Qt.Key.Key_Right)
        QTest.keyClick(panel.overlays, Qt.Key.Key_Down)
        assert panel.canvas.scene.region is report.regions[0], "the second one is not laid out yet"
        qtbot.waitUntil(lambda: panel.canvas.scene.region is report.regions[1], timeout=10_000)
    assert not faults
    assert panel.legend.kind == "time"
    assert (panel.canvas.scene.node_ink != panel.canvas.scene.node_class).any()
