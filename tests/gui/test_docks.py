"""The docks by their buttons and keys: floated, hidden, brought back; and the keys that lead to each part."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot

from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, to_front
from views.main_window import MainWindow

LEFT, CTRL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    made = make_window(worker=False)
    open_laid_out(qtbot, made, lab_report(60))
    to_front(qtbot, made)
    return made


def press(qtbot: QtBot, window: MainWindow, name: str) -> None:
    button = next(b for b in window.findChildren(QAbstractButton) if b.accessibleName() == name)
    qtbot.mouseClick(button, LEFT)


def test_a_dock_floats_follows_the_selection_there_and_comes_back(window: MainWindow, qtbot: QtBot) -> None:
    dock, workspace = window.workspace.docks.inspector, window.workspace
    press(qtbot, window, "Float Inspector")
    assert dock.isFloating()
    assert dock.isVisible()
    table = workspace.units.table
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(0, 1)).center())
    assert workspace.selection.current.unit
    assert workspace.inspector.title.text() == workspace.selection.current.unit
    press(qtbot, window, "Float Inspector")
    assert not dock.isFloating()


def test_a_hidden_dock_comes_back_from_the_menu_and_by_its_key(window: MainWindow, qtbot: QtBot) -> None:
    docks = window.workspace.docks
    for dock, name in ((docks.units, "Hide Groups and extern calls"), (docks.inspector, "Hide Inspector"),
                       (docks.panels, "Hide the panels")):  # fmt: skip
        press(qtbot, window, name)
        assert not dock.isVisible()
        action = next(a for a in window.menus.docks.actions() if a.text() == dock.windowTitle())
        assert not action.isChecked()
        action.trigger()
        assert dock.isVisible()


@pytest.mark.parametrize(
    ("key", "part"),
    [
        (Qt.Key.Key_1, lambda window: window.workspace.units.table),
        (Qt.Key.Key_2, lambda window: window.workspace.graph.canvas),
        (Qt.Key.Key_3, lambda window: window.workspace.inspector.kernel_panel.code),
        (Qt.Key.Key_4, lambda window: window.workspace.panels.rail),
        (Qt.Key.Key_L, lambda window: window.toolbar.source),
        (Qt.Key.Key_F, lambda window: window.toolbar.search),
    ],
)
def test_keys_lead_to_each_part(window: MainWindow, qtbot: QtBot, key: Qt.Key, part: object) -> None:
    workspace = window.workspace
    workspace.select_unit(workspace.graph.region.groups[0].name)
    qtbot.waitUntil(workspace.inspector.kernel_panel.code.isVisible, timeout=5_000)
    for dock in workspace.docks.all:
        dock.close()
    window.setFocus()
    qtbot.keyClick(window, key, CTRL)
    wanted: QWidget = part(window)
    assert wanted.isVisible(), "a hidden dock comes back"
    focused = QApplication.focusWidget()
    assert focused is wanted or wanted.isAncestorOf(focused)


def test_matches_are_walked_by_the_windows_key(window: MainWindow, qtbot: QtBot) -> None:
    graph = window.workspace.graph
    qtbot.keyClick(window, Qt.Key.Key_F, CTRL)
    qtbot.keyClicks(window.toolbar.search, "add")
    first, second = graph.canvas._matches[:2]
    for expected in (first, second):
        qtbot.keyClick(window, Qt.Key.Key_F3)
        assert graph.canvas._matches[graph.canvas._match] == expected


def test_no_menu_hides_the_toolbar(window: MainWindow) -> None:
    for part in (window.statusBar(), window.workspace.docks.inspector.titleBarWidget()):
        at = part.rect().center()
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, part.mapToGlobal(at))
        QApplication.sendEvent(part, event)
        assert QApplication.activePopupWidget() is None
