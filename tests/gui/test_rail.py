"""The rail of panels: all of them in sight at 1280x800, one key away, walked by arrows."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.fake_reports import transformer_report
from tests.gui.conftest import MakeWindow, open_laid_out
from views.main_window import MainWindow

ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    window = make_window(worker=False)
    window.resize(1280, 800)
    open_laid_out(qtbot, window, transformer_report(160))
    QApplication.processEvents()
    return window


def test_every_panel_has_its_name_in_sight_at_1280(window: MainWindow) -> None:
    panels = window.workspace.panels
    inspector = window.workspace.inspector
    assert panels.mapTo(window, QPoint(panels.width(), 0)).x() <= inspector.mapTo(window, QPoint(0, 0)).x()
    inside = QRect(QPoint(0, 0), panels.rail.size())
    for button in panels.rail.buttons:
        assert button.text()
        assert inside.contains(button.geometry()), button.title
        assert button.sizeHint().width() <= panels.rail.width()


def test_where_there_is_little_room_icons_stay(window: MainWindow) -> None:
    panels = window.workspace.panels
    window.resize(1100, 640)
    QApplication.processEvents()
    assert window.width() == 1100
    inside = QRect(QPoint(0, 0), panels.rail.size())
    for button in panels.rail.buttons:
        assert not button.text()
        assert button.accessibleName()
        assert inside.contains(button.geometry()), button.title


def test_a_key_for_every_panel(window: MainWindow, qtbot: QtBot) -> None:
    panels = window.workspace.panels
    keys = [getattr(Qt.Key, f"Key_{key}") for key in "1234567890"] + [Qt.Key.Key_Minus, Qt.Key.Key_Equal]
    assert panels.count() <= len(keys)
    for place, key in list(enumerate(keys[: panels.count()]))[::-1]:
        qtbot.keyClick(window, key, ALT)
        assert panels.currentIndex() == place
        assert panels.rail.buttons[place].isChecked()
    qtbot.keyClick(window, Qt.Key.Key_PageUp, ALT)
    assert panels.currentIndex() == panels.count() - 1
    qtbot.keyClick(window, Qt.Key.Key_PageDown, ALT)
    assert panels.currentIndex() == 0


def test_arrows_walk_the_rail_and_a_click_shows(window: MainWindow, qtbot: QtBot) -> None:
    panels = window.workspace.panels
    qtbot.keyClick(window, Qt.Key.Key_4, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is panels.rail.buttons[0]
    qtbot.keyClick(panels.rail.buttons[0], Qt.Key.Key_Down)
    assert panels.currentWidget() is panels.timeline
    qtbot.mouseClick(panels.rail.buttons[panels.indexOf(panels.memory)], Qt.MouseButton.LeftButton)
    assert panels.currentWidget() is panels.memory


def test_a_hidden_panel_is_filled_when_it_is_looked_at(window: MainWindow, qtbot: QtBot) -> None:
    panels, index = window.workspace.panels, window.workspace.index
    assert index is not None
    shown = panels.roofline.table.records
    window.workspace.select_unit(index.region.groups[0].name)
    assert not shown.shown
    panels.setCurrentWidget(panels.roofline)
    qtbot.waitUntil(lambda: len(shown.shown) == len(index.points), timeout=10_000)
