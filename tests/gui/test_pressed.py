"""Small things of the window that are pressed, dragged and chosen by real events."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QFileDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.overlays import OVERLAYS
from app.session import save_session
from app.settings import Settings
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, is_seen, open_laid_out, settle, to_front
from views.main_window import MainWindow
from views.widgets.basic import DockTitle
from views.window.message_bar import Message

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    made = make_window(worker=False)
    open_laid_out(qtbot, made, lab_report(120))
    to_front(qtbot, made)
    return made


def test_a_dock_is_dragged_by_its_title_and_comes_back_by_a_double_click(window: MainWindow, qtbot: QtBot) -> None:
    dock = window.workspace.docks.inspector
    title = dock.findChild(DockTitle)
    start = QPoint(60, title.height() // 2)
    QTest.mousePress(title, LEFT, pos=start)
    for step in (20, 60, 120):
        QTest.mouseMove(title, start + QPoint(-step, step))
        QApplication.processEvents()
    QTest.mouseRelease(title, LEFT, pos=start + QPoint(-120, 120))
    qtbot.waitUntil(dock.isFloating, timeout=3_000)
    assert dock.isVisible()
    QTest.mouseDClick(title, LEFT, pos=start)
    qtbot.waitUntil(lambda: not dock.isFloating(), timeout=3_000)


def test_the_selections_way_is_walked_by_the_inspectors_buttons(window: MainWindow, qtbot: QtBot) -> None:
    table, selection = window.workspace.units.table, window.workspace.selection
    names = []
    for row in (1, 3):
        qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(row, 1)).center())
        names.append(selection.current.unit)
    buttons = {button.accessibleName(): button for button in window.workspace.inspector.findChildren(QAbstractButton)}
    back = next(button for name, button in buttons.items() if name.startswith("Back"))
    forward = next(button for name, button in buttons.items() if name.startswith("Forward"))
    assert (back.isEnabled(), forward.isEnabled()) == (True, False)
    qtbot.mouseClick(back, LEFT)
    assert selection.current.unit == names[0]
    qtbot.mouseClick(forward, LEFT)
    assert selection.current.unit == names[1]


def test_every_overlay_is_reached_by_keys(window: MainWindow, qtbot: QtBot) -> None:
    graph = window.workspace.graph
    graph.overlays.setFocus()
    seen = [graph.legend.kind]
    for _ in range(graph.overlays.count() - 1):
        qtbot.keyClick(graph.overlays, Qt.Key.Key_Down)
        qtbot.waitUntil(lambda: graph.legend.kind == graph.overlays.currentData(), timeout=5_000)
        seen.append(graph.legend.kind)
    assert set(seen) == set(OVERLAYS)


def test_a_tables_menu_copies_and_saves(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = window.workspace.units.table
    at = table.visualRect(table.model().index(2, 1)).center()
    qtbot.mouseClick(table.viewport(), LEFT, pos=at)

    def choose(word: str) -> None:
        asked = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, table.viewport().mapToGlobal(at))
        QApplication.sendEvent(table.viewport(), asked)
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        action = next(one for one in menu.actions() if word in one.text())
        qtbot.mouseClick(menu, LEFT, pos=menu.actionGeometry(action).center())

    name = table.model().index(2, 1).data()
    choose("Copy row")
    assert name in QApplication.clipboard().text().split("\t")
    choose("as CSV")
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 1 + table.model().rowCount()
    target = tmp_path / "units.csv"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    choose("Save")
    assert target.read_text().splitlines() == lines


def test_a_plots_menu_saves_both_forms(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panels = window.workspace.panels
    panels.setCurrentWidget(panels.roofline)
    chart = panels.roofline.chart
    qtbot.waitUntil(lambda: bool(panels.roofline.table.records.shown), timeout=10_000)
    for kind in ("png", "svg"):
        target = tmp_path / f"plot.{kind}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, target=target: (str(target), ""))
        press_in_its_menu(qtbot, window, chart, kind.upper())
        assert target.stat().st_size > 1000


def press_in_its_menu(qtbot: QtBot, window: MainWindow, chart: QWidget, word: str) -> None:
    """The menu of a plot waits for its end, so it is pressed from within."""
    def press() -> None:
        menu = QApplication.activePopupWidget()
        action = next(one for one in menu.actions() if word in one.text())
        qtbot.mouseClick(menu, LEFT, pos=menu.actionGeometry(action).center())

    QTimer.singleShot(100, window, press)
    middle = chart.rect().center()
    QApplication.sendEvent(chart, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, middle, chart.mapToGlobal(middle)))


def test_what_was_opened_lately_is_opened_again_by_a_click_and_by_keys(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "run.fscope"
    save_session(path, lab_report(60))
    window = make_window(Settings(recent=[str(path)]), worker=False)
    (button,) = [one for one in window.start_page.findChildren(QAbstractButton) if "run" in one.text()]
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        qtbot.mouseClick(button, LEFT)
    assert window.session.path == path
    with qtbot.waitActive(window):
        window.activateWindow()
    window.session.discard_changes()
    qtbot.keyClick(window, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert window.start_page.isVisible()
    (button,) = [one for one in window.start_page.findChildren(QAbstractButton) if "run" in one.text()]
    button.setFocus()
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        qtbot.keyClick(button, Qt.Key.Key_Space)


def press(qtbot: QtBot, root: QWidget, name: str) -> None:
    """The button in sight that screen readers know by a name that begins so, once it is there."""

    def found() -> list[QAbstractButton]:
        buttons = root.findChildren(QAbstractButton)
        return [one for one in buttons if is_seen(one) and (one.accessibleName() or one.text()).startswith(name)]

    qtbot.waitUntil(lambda: bool(found()), timeout=5_000)
    qtbot.mouseClick(found()[0], LEFT)


def test_zoom_and_fit_have_buttons(window: MainWindow, qtbot: QtBot) -> None:
    window.resize(2200, 1000)  # with room for all of them
    graph = window.workspace.graph
    canvas = graph.canvas
    for name, is_changed in (
        ("Zoom in", lambda before, now: now > before),
        ("Zoom out", lambda before, now: now < before),
        ("Fit", lambda before, now: now < before),
    ):
        before = canvas.camera.scale
        press(qtbot, graph, name)
        qtbot.waitUntil(lambda: canvas._motion.goal is None, timeout=5_000)
        assert is_changed(before, canvas.camera.scale), name


def test_a_kernel_is_copied_by_its_button(window: MainWindow, qtbot: QtBot) -> None:
    table, inspector = window.workspace.units.table, window.workspace.inspector
    group = window.workspace.index.region.groups[0]
    at = table.records.index(table.records.row_of(group.name), 1)
    table.scrollTo(at)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(at).center())
    qtbot.waitUntil(inspector.kernel_panel.code.isVisible, timeout=5_000)
    press(qtbot, inspector.kernel_panel, "Copy")
    assert QApplication.clipboard().text() == window.session.report.kernel(group.kernel).source


def test_a_message_is_dismissed(window: MainWindow, qtbot: QtBot) -> None:
    window.post(Message("info", "One.", ""))
    window.post(Message("info", "Two.", ""))
    qtbot.waitUntil(window.messages.isVisible, timeout=5_000)
    press(qtbot, window.messages, "Dismiss message")
    assert [message.text for message in window.messages.messages] == ["Two."]
    press(qtbot, window.messages, "Dismiss message")
    assert not window.messages.isVisible()


def test_every_button_of_every_panel_can_be_pressed(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in what one calls fails the test."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    panels = window.workspace.panels
    pressed: set[str] = set()
    for place in range(panels.count()):
        panels.setCurrentIndex(place)
        settle()
        qtbot.wait(50)
        page = panels.page(place)
        for button in page.findChildren(QAbstractButton):
            if not isValid(button) or not button.isVisible() or not button.isEnabled():
                continue
            qtbot.mouseClick(button, LEFT)
            QApplication.processEvents()
            pressed.add(button.accessibleName() or button.text())
            if isinstance(popup := QApplication.activePopupWidget(), QMenu):
                qtbot.keyClick(popup, Qt.Key.Key_Escape)
            panels.setCurrentIndex(place)  # where a press led elsewhere
    assert len(pressed) > 15
