"""Tab goes from widget to widget as they are read."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.settings import Settings
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.main_window import MainWindow
from views.widgets.cards import Card


def stops(first: QWidget, count: int = 90) -> list[QWidget]:
    """Where the keyboard is after each press of Tab from ``first`` on, until it comes round."""
    first.setFocus()
    found: list[QWidget] = []
    for _ in range(count):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        QApplication.processEvents()
        at = QApplication.focusWidget()
        if at in found:
            break
        found.append(at)
    return found


def activate(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)


def test_the_start_page_is_gone_through_from_top_to_bottom(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(Settings(recent=["a/model.py", "b/model.py"]), worker=False)
    activate(qtbot, window)
    inside = [one for one in stops(window.start_page) if window.start_page.widget().isAncestorOf(one)]
    places = [one.mapTo(window.start_page.widget(), QPoint(0, 0)) for one in inside]
    rows = [place.y() for place in places]
    assert len([one for one in inside if isinstance(one, Card)]) > 10
    assert rows == sorted(rows)
    assert all(a.x() < b.x() for a, b in pairwise(places) if a.y() == b.y())


def test_a_report_is_gone_through_from_left_to_right(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(60))
    activate(qtbot, window)
    window.workspace.select_unit(window.workspace.graph.regions[0].groups[0].name)
    settle()
    parts = (window.toolbar, window.workspace.docks.units, window.workspace.graph, window.workspace.docks.inspector)
    parts = (*parts, window.workspace.docks.panels)
    order = [part for one in stops(window.toolbar.source) for part in parts if part.isAncestorOf(one)]
    seen = [part for place, part in enumerate(order) if place == 0 or order[place - 1] is not part]
    assert seen[:5] == list(parts), "each is gone through whole, and none twice"
    inspector = window.workspace.inspector
    assert inspector.page is not None
    tables = [one for one in stops(window.toolbar.source) if inspector.page.isAncestorOf(one)]
    heights = [one.mapTo(inspector, QPoint(0, 0)).y() for one in tables]
    assert len(tables) > 1
    assert heights == sorted(heights)
