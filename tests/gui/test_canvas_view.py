"""The canvas moves: wheel, drag, trackpad, keys, the minimap."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from compiler.report import Region
from tests.gui.on_canvas import NO_KEYS, settle, show, wheel
from views.canvas.camera import Camera, fitted
from views.canvas.canvas import GraphCanvas
from views.canvas.minimap import Minimap


def test_opens_at_a_readable_scale_at_the_top(canvas: GraphCanvas) -> None:
    assert canvas.camera.scale > 0.6
    assert canvas.scene is not None
    assert canvas.view_bounds().top() < canvas.scene.bounds[1]
    assert canvas.view_position("input_ids").y() in range(canvas.viewport().height())


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


def test_what_is_in_sight_and_large_enough(canvas: GraphCanvas, region: Region) -> None:
    first, last = region.nodes[3].name, region.nodes[-1].name
    canvas.move_to(Camera().centred(*canvas.scene.locate(first)[:2], 800, 600, 1.0))
    assert canvas.shows([first])
    assert not canvas.shows([first, last])
    canvas.move_to(fitted(canvas.scene.bounds, canvas.viewport().width(), canvas.viewport().height()))
    assert not canvas.shows([first]), "too small to read"


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


def test_minimap_frames_the_view_and_moves_it(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    minimap = Minimap(canvas)
    minimap.show()
    hover(minimap)
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


def test_the_minimap_makes_way_for_nodes(qtbot: QtBot, canvas: GraphCanvas) -> None:
    assert canvas.scene is not None
    minimap = Minimap(canvas)
    minimap.findChild(QTimer).setInterval(20)
    minimap.show()
    hover(minimap)
    whole = minimap.size()
    left, top, width, height = (float(value) for value in canvas.scene.node_rect[-1])

    def put_node_below_the_map() -> None:
        x, y = canvas.camera.to_scene(minimap.geometry().right() - 20, minimap.geometry().bottom() - 20)
        camera = canvas.camera
        canvas.move_to(Camera(camera.x + left + width / 2 - x, camera.y + top + height / 2 - y, camera.scale))

    put_node_below_the_map()
    assert minimap.size() == whole, "while the view moves"
    QApplication.sendEvent(minimap, QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: minimap.height() < whole.height() / 2, timeout=5_000)
    assert minimap.toolTip()
    assert canvas.rect().contains(minimap.geometry())
    button = minimap.grab().toImage()
    canvas.resize(canvas.width() - 1, canvas.height())
    QApplication.processEvents()
    assert minimap.grab().toImage() == button, "a size is no move"
    hover(minimap)
    assert minimap.size() == whole
    QApplication.sendEvent(minimap, QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: minimap.height() < whole.height() / 2, timeout=5_000)
    QTest.mouseClick(minimap, Qt.MouseButton.LeftButton, NO_KEYS, QPoint(5, 5))
    assert minimap.size() == whole, "a finger hovers over nothing"
    canvas.look_at(left + 9000.0, top)
    qtbot.wait(80)
    assert minimap.size() == whole, "there is nothing below it"


def hover(widget: QWidget) -> None:
    """The mouse comes to the middle of a widget."""
    at = QPointF(widget.rect().center())
    QApplication.sendEvent(widget, QEnterEvent(at, at, QPointF(widget.mapToGlobal(at.toPoint()))))
