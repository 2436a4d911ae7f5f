"""Every table leaves as CSV, every plot as PNG and SVG, every text by copying."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu
from pytestqt.qtbot import QtBot

from compiler.report import Report
from tests.fake_runs import lab_report
from tests.gui.conftest import Answers, MakeWindow, settle
from views.charts.chart import Chart
from views.code.source import SourcePanel
from views.inspector.table import Table
from views.look.theme import light
from views.main_window import MainWindow
from views.widgets.picture_menu import picture_menu
from views.widgets.rows import FindingRow


@pytest.fixture(scope="module")
def report() -> Report:
    return lab_report(120)


def copied() -> str:
    return QApplication.clipboard().text()


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot, report: Report) -> MainWindow:
    made = make_window(worker=False)
    with qtbot.waitSignal(made.workspace.graph.laid_out, timeout=20_000):
        made.open_report(report, report.source)
    for place in range(made.workspace.panels.count()):  # panels are filled when they are looked at
        made.workspace.panels.setCurrentWidget(made.workspace.panels.page(place))
        settle()
    return made


def test_every_plot_is_saved_in_both_forms(window: MainWindow, tmp_path: Path) -> None:
    charts = window.findChildren(Chart)
    assert len({chart.accessibleName() for chart in charts}) >= 7
    for number, chart in enumerate(charts):
        chart.save(tmp_path / f"{number}.svg")
        chart.save(tmp_path / f"{number}.png")
        assert "<svg" in (tmp_path / f"{number}.svg").read_text(), chart.accessibleName()
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    topology = window.workspace.panels.cuda_graph.topology.view
    topology.save(tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text()
    with pytest.raises(OSError):
        topology.save(tmp_path / "no" / "graph.png")


def test_trees_and_lists_are_copied(window: MainWindow, qtbot: QtBot, report: Report) -> None:
    panels = window.workspace.panels
    lines = panels.refusals.model.csv_text().splitlines()
    assert lines[0] == "rule,a,b,bytes_lost,detail,region"
    assert len(lines) == 1 + sum(len(region.refusals) for region in report.regions)
    tree = panels.refusals.tree
    tree.setCurrentIndex(panels.refusals.model.index(0, 0, panels.refusals.model.index(0, 0)))
    panels.setCurrentWidget(panels.refusals)
    tree.setFocus()
    qtbot.keyClick(tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert report.regions[0].refusals[0].a.split("_")[0] in copied() or "\t" in copied()
    window.workspace.select_unit(report.regions[0].groups[0].name)
    # The inspector makes its sections one by one, in turns of their own.
    inspector = window.workspace.inspector
    qtbot.waitUntil(lambda: any(found.isVisible() for found in inspector.findChildren(Table, "Ops")))
    table = next(found for found in inspector.findChildren(Table, "Ops") if found.isVisible())
    table.setCurrentItem(table.topLevelItem(0))
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert copied().split("\t")[0] == table.topLevelItem(0).text(0)
    panels.stages.bars.actions()[0].trigger()
    assert copied().splitlines()[0] == "stage,region,ms"
    row = panels.cuda_graph.findChild(FindingRow)
    row.actions()[0].trigger()
    assert copied().startswith(row.finding.title)
    window.workspace.inspector.title.actions()[0].trigger()
    assert copied() == report.regions[0].groups[0].name


def test_the_graph_is_copied_and_saved_from_its_menu(
    window: MainWindow, qtbot: QtBot, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canvas = window.workspace.graph.canvas
    group, node = report.regions[0].groups[0].name, report.regions[0].groups[0].nodes[0]
    window.workspace.select_unit(group)
    qtbot.waitUntil(lambda: canvas._motion.goal is None, timeout=5_000)
    qtbot.keyClick(canvas, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert copied() == group

    def choose(word: str, reason: QContextMenuEvent.Reason = QContextMenuEvent.Reason.Mouse) -> None:
        where = canvas.view_position(node)
        asked = QContextMenuEvent(reason, where, canvas.viewport().mapToGlobal(where))
        QApplication.sendEvent(canvas.viewport(), asked)
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        action = next(found for found in menu.actions() if word in found.text())
        assert action.isEnabled()
        qtbot.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(action).center())

    choose("Copy the name", QContextMenuEvent.Reason.Keyboard)
    assert copied() == group, "by the keyboard what is selected is meant"
    choose("Copy the name")
    assert copied() == node, "what is under the mouse is meant"
    assert window.workspace.selection.current.node == node
    choose("Copy as picture")
    assert not QApplication.clipboard().pixmap().isNull()
    choose("depends on it")
    settle()
    assert len(window.workspace.selection.current.nodes) > 1
    for kind in ("svg", "png"):
        target = tmp_path / f"graph.{kind}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, target=target: (str(target), ""))
        with qtbot.waitSignal(window.workspace.graph.exported) as told:
            choose(f"Save as {kind.upper()}")
        assert told.args == [target]
        assert target.stat().st_size > 1000
    canvas.to_svg(tmp_path / "here.svg")
    assert (tmp_path / "graph.svg").read_text() == (tmp_path / "here.svg").read_text(), "drawn on another thread"


def test_an_export_gets_the_ending_of_what_is_in_it(
    window: MainWindow, qtbot: QtBot, answers: Answers, tmp_path: Path
) -> None:
    def export(place: Path) -> None:
        answers.to_save = str(place)
        qtbot.keyClick(window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)

    for name in ("graph", "graph.v2"):
        with qtbot.waitSignal(window.workspace.graph.exported) as told:
            export(tmp_path / name)
        assert told.args == [tmp_path / f"{name}.svg"]
        assert not (tmp_path / name).exists()
    export(tmp_path / "graph")
    assert window.messages.history[-1].text == f"{tmp_path / 'graph.svg'} cannot be written: File exists."
    nowhere = tmp_path / "no" / "graph.svg"
    export(nowhere)
    assert window.messages.history[-1].text == f"{nowhere} cannot be written: No such file or directory."


def test_a_picture_and_a_table_get_their_ending_too(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "named"), ""))
    topology = window.workspace.panels.cuda_graph.topology.view
    menu = picture_menu(topology, topology.grab, topology.save)
    for word in ("PNG", "SVG"):
        next(action for action in menu.actions() if word in action.text()).trigger()
    assert (tmp_path / "named.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "named.svg").read_text()
    units = window.workspace.units.table
    units.customContextMenuRequested.emit(units.rect().center())
    table_menu = QApplication.activePopupWidget()
    assert isinstance(table_menu, QMenu)
    next(action for action in table_menu.actions() if "Save" in action.text()).trigger()
    table_menu.close()
    assert (tmp_path / "named.csv").read_text().count("\n") > 1
    assert not (tmp_path / "named").exists()


def test_heat_is_by_time_or_by_bytes(qtbot: QtBot, report: Report) -> None:
    panel = SourcePanel(light())
    qtbot.addWidget(panel)
    panel.resize(800, 280)
    panel.show()
    panel.set_report(report)
    panel.set_region("region_0")
    qtbot.waitUntil(lambda: bool(panel.heat), timeout=10_000)
    by_time = panel.code.grab().toImage()
    qtbot.mouseClick(panel.figure.button("bytes"), Qt.MouseButton.LeftButton)
    assert panel.code.grab().toImage() != by_time
    line = max(panel.heat.values(), key=lambda found: found.bytes)
    assert panel.code.heat_of(line)[0] == line.bytes > 0
    moved = sum(unit.estimated_bytes for region in report.regions for unit in (*region.groups, *region.extern_calls))
    assert 0 < sum(found.bytes for found in panel.heat.values()) <= moved * 1.001
