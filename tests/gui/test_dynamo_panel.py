"""What Dynamo did: breaks, guards and recompiles on pages of their own, each leading to the model's line."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from compiler.report import GraphBreak, Guard, Recompile, Report, SourceLine
from compiler.targets import TARGETS
from views.background.turns import finished
from views.look.theme import light
from views.panels.dynamo import DynamoPanel
from views.tables.data_table import DataTable
from views.widgets.rows import Finding, FindingList
from views.window.bottom_panel import BottomPanel

LEFT = Qt.MouseButton.LeftButton
PLACE = SourceLine("model.py", 3, "f", "return g(x)")
TEXT = "def f(x):\n    y = x\n    return g(x)\n"


def report(**fields: object) -> Report:
    return Report("fusescope", "x", TARGETS["h100"], sources={"model.py": TEXT}, **fields)  # type: ignore[arg-type]


def shown(qtbot: QtBot, found: Report) -> BottomPanel:
    panel = BottomPanel(light())
    finished(panel.make_pages())
    qtbot.addWidget(panel)
    panel.resize(900, 300)
    panel.show()
    panel.set_report(found)
    panel.setCurrentWidget(panel.dynamo)
    QApplication.processEvents()
    return panel


def click_first(qtbot: QtBot, table: DataTable) -> None:
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(0, 0)).center())


def texts(panel: DynamoPanel) -> list[str]:
    return [label.text() for label in panel.breaks.findChildren(QLabel)]


def test_a_break_says_why_and_leads_to_its_line(qtbot: QtBot) -> None:
    panel = shown(qtbot, report(graph_breaks=[GraphBreak("no LSTM", PLACE, "Hint: none", skipped_frame=True)]))
    found = texts(panel.dynamo)
    assert "no LSTM" in found
    assert "The whole function is left to eager. Hint: none" in found
    assert "model.py:3  return g(x)" in found
    assert panel.dynamo.pages.button("breaks").text() == "Graph breaks (1)"
    qtbot.mouseClick(panel.dynamo.breaks.rows()[0], LEFT)
    assert panel.currentWidget() is panel.source
    assert panel.source.code.marked_lines == [3]


@pytest.mark.parametrize("page", ["guards", "recompiles"])
def test_guards_and_recompiles_lead_to_their_lines(qtbot: QtBot, page: str) -> None:
    found = report(
        guards=[Guard("L['n'] == 2", "EQUALS_MATCH", "L['n']", PLACE)], recompiles=[Recompile("n == 2", "f", PLACE)]
    )
    panel = shown(qtbot, found)
    qtbot.mouseClick(panel.dynamo.pages.button(page), LEFT)
    table = {"guards": panel.dynamo.guards, "recompiles": panel.dynamo.recompiles}[page]
    assert "n" in table.csv_text().splitlines()[1]
    asked = panel.dynamo.filter.placeholderText().split(" by ")[1].split(", ")
    titles = " ".join(column.title.lower() for column in table.records.columns)
    assert all(word in titles for word in asked), "it says what the page has"
    click_first(qtbot, table)
    assert panel.currentWidget() is panel.source
    assert panel.source.code.marked_lines == [3]


def test_thousands_of_guards_are_filtered(qtbot: QtBot) -> None:
    panel = shown(qtbot, report(guards=[Guard(f"n == {i}", "EQUALS_MATCH") for i in range(3000)]))
    qtbot.mouseClick(panel.dynamo.pages.button("guards"), LEFT)
    assert panel.dynamo.guards.model().rowCount() == 3000
    qtbot.keyClicks(panel.dynamo.filter, "299 equals")
    assert panel.dynamo.guards.model().rowCount() == 13
    click_first(qtbot, panel.dynamo.guards)
    assert panel.currentWidget() is panel.dynamo, "a guard of no line of the model leads nowhere"


def test_the_panel_says_that_nothing_broke(qtbot: QtBot) -> None:
    panel = shown(qtbot, report(guards=[Guard("n == 2", "EQUALS_MATCH")]))
    assert "Dynamo captured the whole model in one graph." in texts(panel.dynamo)


def test_rows_that_are_there_already_stay(qtbot: QtBot) -> None:
    """A panel that is told of report, filters and region one after the other makes its rows once."""
    found = FindingList("Findings", light())
    qtbot.addWidget(found)
    found.set_findings([Finding("info", "one"), Finding("error", "two")])
    rows = found.rows()
    found.set_findings([Finding("info", "one"), Finding("error", "two")])
    assert found.rows() == rows
    found.set_findings([], "Nothing.")
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert found.rows() == []
    assert [label.text() for label in found.findChildren(QLabel)] == ["Nothing."]
