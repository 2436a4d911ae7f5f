"""One selection through the window: a click in any panel selects everywhere, and what is selected is marked in each."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.main_window import MainWindow

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    made = make_window(worker=False)
    open_laid_out(qtbot, made, lab_report(120))
    return made


def bring(window: MainWindow, panel: QWidget) -> None:
    window.workspace.panels.setCurrentWidget(panel)
    settle()


def test_a_buffer_selects_its_node(window: MainWindow, qtbot: QtBot) -> None:
    panel = window.workspace.panels.memory
    bring(window, panel)
    buffer = window.workspace.index.region.memory.buffers[2]
    qtbot.mouseClick(panel.map, LEFT, pos=panel.map.buffer_box(buffer.name).center().toPoint())
    assert window.workspace.selection.current.node == buffer.node


def test_a_line_of_the_model_selects_its_nodes(window: MainWindow, qtbot: QtBot) -> None:
    panel = window.workspace.panels.source
    bring(window, panel)
    qtbot.waitUntil(lambda: bool(panel.heat), timeout=10_000)
    line = max(panel.heat, key=lambda number: panel.heat[number].us)
    at = panel.code.line_rect(line).center().y()
    qtbot.mouseClick(panel.code.viewport(), LEFT, pos=QPoint(30, at))
    assert window.workspace.selection.current.nodes == {node for _, node in panel.heat[line].nodes}


def test_a_line_that_broke_the_graph_is_shown_in_the_source(window: MainWindow) -> None:
    panels = window.workspace.panels
    bring(window, panels.dynamo)
    panels.dynamo.line_chosen.emit("model.py", 3)
    assert panels.currentWidget() is panels.source


@pytest.mark.parametrize("name", ["timeline", "memory", "roofline", "source", "cuda_graph"])
def test_what_is_selected_is_marked(window: MainWindow, qtbot: QtBot, name: str) -> None:
    panels, index = window.workspace.panels, window.workspace.index
    panel = getattr(panels, name)
    if name == "cuda_graph":
        panel.show_page("topology")
    bring(window, panel)
    group = index.region.groups[1]
    plain = panel.grab().toImage()
    window.workspace.select_node(group.nodes[-1])
    settle()
    qtbot.waitUntil(lambda: panel.grab().toImage() != plain, timeout=5_000)
    table = window.workspace.units.table
    assert table.currentIndex().siblingAtColumn(1).data() == group.name
