"""Numerical errors on screen: asked for by colouring the graph, shown as overlay, column and fact, kept for saving."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.worker.protocol import NumericsChecked
from compiler.report import NodeCheck, Numerics
from tests.fake_reports import transformer_report
from tests.gui.conftest import MakeWindow, open_laid_out
from views.main_window import MainWindow
from views.widgets.cards import Card

LEFT = Qt.MouseButton.LeftButton


def choose_error_overlay(qtbot: QtBot, window: MainWindow) -> None:
    box = window.workspace.graph.overlays
    box.setFocus()
    while box.currentData() != "error":
        qtbot.keyClick(box, Qt.Key.Key_Down)


def column(window: MainWindow) -> int:
    table = window.workspace.units.table
    titles = [table.model().headerData(i, Qt.Orientation.Horizontal) for i in range(table.model().columnCount())]
    return titles.index("Error")


def test_colouring_by_error_checks_the_numbers(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(gpu=True)
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.start_page.gallery.findChild(Card, "example:relu_add_mul"), LEFT)
    workspace = window.workspace
    table = workspace.units.table
    assert table.isColumnHidden(column(window))
    choose_error_overlay(qtbot, window)
    assert "not checked yet" in workspace.graph.legend.accessibleName()
    report = window.session.report
    assert report is not None
    qtbot.waitUntil(lambda: report.numerics is not None, timeout=10_000)
    assert "1.0e-7 1.0e-3" in workspace.graph.legend.accessibleName()
    assert not any(told.text.startswith("Checking") for told in window.messages.messages), "nothing is left to cancel"
    assert window.messages.history[-1].hint == "The graph's colours show where."
    assert workspace.graph.overlays.currentData() == "error"
    assert window.isWindowModified()
    place = column(window)
    assert not table.isColumnHidden(place)
    assert table.horizontalHeader().visualIndex(place) == 2, "the figure that colours the graph leads"
    assert table.model().index(0, place).data() == "1.0e-3"
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(0, 1)).center())
    QApplication.processEvents()
    texts = [found.text() for found in workspace.inspector.page.findChildren(QLabel)]
    assert any("1.0e-3 at " in text and "eager's 1.0e-8" in text for text in texts)
    assert ",error,eager_error" in table.csv_text()


def test_what_the_worker_does_not_hold_is_not_run(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, transformer_report(60))
    qtbot.keyClick(window, Qt.Key.Key_F8)
    assert "does not hold this model" in window.messages.history[-1].text
    assert not window.bridge.is_started


def test_a_check_can_be_cancelled(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(gpu=True)
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.start_page.gallery.findChild(Card, "example:relu_add_mul"), LEFT)
    report = window.session.report
    assert report is not None
    report.source = "example:softmax"  # at which this worker sleeps
    qtbot.keyClick(window, Qt.Key.Key_F8)
    told = window.messages.history[-1]
    assert told.text.startswith("Checking every value")
    told.on_action()
    qtbot.waitUntil(lambda: "cancelled" in window.messages.history[-1].text, timeout=10_000)
    assert report.numerics is None


def test_an_error_is_told_only_of_what_the_report_computes(make_window: MakeWindow, qtbot: QtBot) -> None:
    """A CPU captures some ops otherwise than the target: a unit called the same may compute something else there."""
    window = make_window(worker=False)
    open_laid_out(qtbot, window, transformer_report(60))
    report, control = window.session.report, window.on_demand.get().numerics
    region = report.regions[0]
    unit = region.groups[0]
    told = [(unit.name, unit.nodes[-1]), (unit.name, region.groups[1].nodes[0]), ("ext_of_a_cpu", unit.nodes[0])]
    checks = [NodeCheck(region.name, name, node, 1e-6, 1e-8, "float32") for name, node in told]
    control._report, control._id = report, 7
    with qtbot.waitSignal(control.checked):
        control._on_checked(NumericsChecked(7, Numerics("a CPU", checks)))
    assert [(check.unit, check.node) for check in report.numerics.nodes] == told[:1]
