"""What screen readers find in the graph: the selected node or box as an item with its name, role and state."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent, QAccessibleInterface
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from compiler.report import Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import ROOT
from views.graph.panel import GraphPanel
from views.look.theme import light

KEY = Qt.Key
NAME, DESCRIPTION = QAccessible.Text.Name, QAccessible.Text.Description


@pytest.fixture
def report() -> Report:
    return transformer_report(700)


@pytest.fixture
def panel(qtbot: QtBot, report: Report) -> GraphPanel:
    made = GraphPanel(light())
    qtbot.addWidget(made)
    made.resize(1100, 800)
    made.show()
    with qtbot.waitActive(made):
        made.activateWindow()
    with qtbot.waitSignal(made.laid_out, timeout=10_000):
        made.set_report(report, {})
    made.canvas.setFocus()
    return made


def list_of(panel: GraphPanel) -> QAccessibleInterface:
    return QAccessible.queryAccessibleInterface(panel.canvas)


def items(panel: GraphPanel) -> list[QAccessibleInterface]:
    found = list_of(panel)
    children = [found.child(place) for place in range(found.childCount())]
    return [child for child in children if child.role() == QAccessible.Role.ListItem]


def at_rest(qtbot: QtBot, panel: GraphPanel) -> None:
    qtbot.waitUntil(lambda: panel.canvas._motion.goal is None, timeout=5_000)


def test_keys_move_the_item(panel: GraphPanel, qtbot: QtBot, report: Report) -> None:
    found = list_of(panel)
    assert found.role() == QAccessible.Role.List
    assert items(panel) == []
    QTest.keyClick(panel.canvas, KEY.Key_Home)
    at_rest(qtbot, panel)
    (first,) = items(panel)
    node = next(node for node in report.regions[0].nodes if node.name == first.text(NAME))
    assert first.text(DESCRIPTION).startswith(f"{node.op}, ")
    assert found.text(DESCRIPTION) == f"{first.text(NAME)}, {first.text(DESCRIPTION)}"
    assert (first.state().selected, first.state().focused, first.state().expandable) == (1, 1, 0)
    assert found.focusChild().text(NAME) == first.text(NAME)
    assert first.parent().object() is panel.canvas
    place = first.rect()
    viewport = panel.canvas.viewport()
    on_screen = QRect(viewport.mapToGlobal(viewport.rect().topLeft()), viewport.size())
    assert on_screen.contains(place)
    assert found.childAt(place.center().x(), place.center().y()).text(NAME) == first.text(NAME)
    assert (place.center() - on_screen.topLeft() - panel.canvas.view_position(node.name)).manhattanLength() <= 2
    number = QAccessible.uniqueId(first)
    QTest.keyClick(panel.canvas, KEY.Key_Down)
    (second,) = items(panel)
    assert second.text(NAME) != node.name
    assert QAccessible.uniqueId(second) != number, "a reader says only what is new"
    QTest.keyClick(panel.canvas, KEY.Key_U)
    assert items(panel) == [], "of many none is the one"
    QTest.keyClick(panel.canvas, KEY.Key_Escape)
    assert found.text(DESCRIPTION).endswith("Arrow keys follow edges."), "nothing is selected any more"


def test_boxes_are_collapsed_and_expanded(panel: GraphPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.keyClick(panel.canvas, KEY.Key_M)
    QTest.keyClick(panel.canvas, KEY.Key_Home)
    for _ in range(8):
        at_rest(qtbot, panel)
        if items(panel)[0].state().collapsed:
            break
        QTest.keyClick(panel.canvas, KEY.Key_Down)
    (box,) = items(panel)
    name = box.text(NAME)
    assert (box.state().collapsed, box.state().expanded) == (1, 0)
    with qtbot.waitSignal(panel.modules.ready, timeout=10_000):
        QTest.keyClick(panel.canvas, KEY.Key_Space)
    (box,) = items(panel)
    assert (box.text(NAME), box.state().collapsed, box.state().expanded) == (name, 0, 1)


def test_events_tell_where_the_focus_is(
    panel: GraphPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[QAccessible.Event, str]] = []

    def note(event: QAccessibleEvent) -> None:
        told.append((event.type(), event.accessibleInterface().text(NAME)))

    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(QAccessible, "updateAccessibility", note)
    event = QAccessible.Event
    QTest.keyClick(panel.canvas, KEY.Key_Home)
    name = panel.canvas.selected[0]
    assert told == [(event.Selection, name), (event.Focus, name)]
    told.clear()
    panel.overlays.setFocus()
    panel.canvas.select_nodes({"addmm_3"})  # in another panel
    assert told == [(event.Selection, "addmm_3")]
    told.clear()
    panel.canvas.setFocus()
    assert told == [(event.Focus, "addmm_3")]


def test_what_lies_over_the_graph_is_found_too(panel: GraphPanel) -> None:
    found = list_of(panel)
    names = [found.child(place).text(NAME) for place in range(found.childCount())]
    assert QAccessible.queryAccessibleInterface(panel.minimap).text(NAME) in names


def test_an_item_outlives_its_graph_without_harm(qtbot: QtBot, report: Report) -> None:
    panel = GraphPanel(light())
    with qtbot.waitSignal(panel.laid_out, timeout=10_000):
        panel.set_report(report, {})
    panel.canvas.select_nodes({"addmm_3"})
    (item,) = items(panel)
    panel.close()
    panel.deleteLater()
    del panel
    QApplication.processEvents()
    gc.collect()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not item.isValid()


def test_a_process_in_which_a_reader_listened_ends_well() -> None:
    """What Qt still knows of the graph when it ends must still be there."""
    code = (
        "import gc; from views.app import make_application; app = make_application();"
        "from PySide6.QtGui import QAccessible; from PySide6.QtTest import QTest; from PySide6.QtCore import Qt;"
        "from tests.fake_reports import transformer_report; from views.canvas.canvas import GraphCanvas;"
        "from app.layout import layout_region; QAccessible.setActive(True); canvas = GraphCanvas(); canvas.show();"
        "region = transformer_report(60).regions[0]; canvas.set_region(region, layout_region(region));"
        "canvas.setFocus(); QTest.keyClick(canvas, Qt.Key.Key_Home); assert canvas.voice.item() is not None;"
        "canvas.close(); canvas.deleteLater(); del canvas; app.processEvents(); gc.collect()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
