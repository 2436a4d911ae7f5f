"""Where there is little room nothing is cut off: columns of tables, names over plots, sentences."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from compiler.report import CudaGraph
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow
from tests.gui.test_one_selection import click_unit, comparison
from tests.test_diff import cut
from views.compare.rows import GROUP_COLUMNS
from views.cuda_graph.panel import headline
from views.tables.data_table import Column, DataTable, Record
from views.tables.widths import shared_widths

LEFT = Qt.MouseButton.LeftButton


def test_with_room_each_column_has_its_own_width() -> None:
    columns = [Column("A", 120), Column("B", 60, True)]
    assert shared_widths(columns, 180) == [120, 60]
    assert shared_widths(columns, 900) == [120, 60], "the last one stretches by itself"
    assert shared_widths([], 100) == []


@pytest.mark.parametrize("room", range(200, 1500, 37))
def test_the_last_column_that_fits_ends_at_the_edge(room: int) -> None:
    widths = shared_widths(GROUP_COLUMNS, room)
    edges = [sum(widths[:count]) for count in range(len(widths) + 1)]
    assert room in edges or edges[-1] <= room
    for column, width in zip(GROUP_COLUMNS, widths, strict=True):
        assert width >= (column.width if column.is_figure else min(column.width, 96))


def test_all_columns_fit_where_texts_can_give_way() -> None:
    widths = shared_widths([Column("Kind", 168), Column("Code", 420), Column("Bytes", 80, True)], 400)
    assert widths[2] == 80
    assert 395 <= sum(widths) <= 400
    assert 96 <= widths[0] < widths[1]


def test_no_figure_of_a_comparison_is_cut_in_a_small_window(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    report = lab_report(200)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, "example:gpt2")
    with qtbot.waitSignal(window.compare_control.compared, timeout=20_000):
        window.compare_control.pair(report, cut(report))
    QApplication.processEvents()
    table = window.workspace.panels.compare.groups
    header = table.horizontalHeader()
    edges = {header.sectionViewportPosition(i) + header.sectionSize(i) for i in range(header.count())}
    assert table.viewport().width() in edges
    bytes_ = next(i for i, column in enumerate(GROUP_COLUMNS) if column.title == "Bytes")
    assert header.sectionViewportPosition(bytes_) + header.sectionSize(bytes_) <= table.viewport().width()
    tree = window.workspace.panels.refusals.tree
    window.workspace.panels.setCurrentWidget(window.workspace.panels.refusals)
    QApplication.processEvents()
    assert tree.horizontalScrollBar().maximum() == 0


def test_a_width_given_by_hand_stays(qtbot: QtBot) -> None:
    table = DataTable("t", [Column("A", 200), Column("B", 200), Column("C", 200)])
    qtbot.addWidget(table)
    table.resize(400, 200)
    table.show()
    qtbot.waitExposed(table)
    header = table.horizontalHeader()
    assert header.sectionSize(0) < 200
    edge = QPoint(header.sectionSize(0) - 1, header.height() // 2)
    QTest.mousePress(header.viewport(), LEFT, pos=edge)
    QTest.mouseMove(header.viewport(), edge + QPoint(25, 0))
    QTest.mouseMove(header.viewport(), edge + QPoint(50, 0))
    QTest.mouseRelease(header.viewport(), LEFT, pos=edge + QPoint(50, 0))
    given = header.sectionSize(0)
    assert given > edge.x() + 25
    table.resize(330, 200)
    QApplication.processEvents()
    assert header.sectionSize(0) == given


def test_wide_letters_are_elided_too(qtbot: QtBot) -> None:
    """A text that does not fit ends in an ellipsis, however few letters it has."""
    pictures = []
    for text in ("WWWWWWWWWWWWWWWW", "WWWWWWWWWWWWWWWWWWWWWWWWWWWW"):
        table = DataTable("t", [Column("A", 120), Column("B", 100)])
        qtbot.addWidget(table)
        table.resize(260, 100)
        table.set_records([Record((text, ""), (text, ""))])
        table.show()
        qtbot.waitExposed(table)
        pictures.append(table.viewport().grab().toImage())
    assert pictures[0] == pictures[1]


def test_the_usual_order_comes_back_with_the_usual_colours(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(lab_report(200), "example:gpt2")
    graph, table = window.workspace.graph, window.workspace.units.table
    usual = [record.target for record in table.records.shown]
    graph.overlays.setFocus()
    while graph.overlays.currentData() != "bytes":
        qtbot.keyClick(graph.overlays, Qt.Key.Key_Down)
    assert [record.target for record in table.records.shown] != usual
    while graph.overlays.currentData() != "decision":
        qtbot.keyClick(graph.overlays, Qt.Key.Key_Up)
    assert [record.target for record in table.records.shown] == usual


def test_what_a_graph_covers_is_told_shortly() -> None:
    graph = CudaGraph(captured=True, partitions=1, covered_kernels=1.0, covered_time=0.985)
    assert headline(graph) == "Captured in 1 partition: 100% of kernels, 98.5% of GPU time"


def test_names_of_modes_stand_above_what_they_ran(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(lab_report(120), "example:gpt2")
    run = window.workspace.panels.run
    window.workspace.panels.setCurrentWidget(run)
    qtbot.mouseClick(run.views.button("order"), LEFT)
    QApplication.processEvents()
    plot = run.plot
    tops = {}
    for view in ("order", "overlaid"):
        qtbot.mouseClick(run.views.button(view), LEFT)
        QApplication.processEvents()
        tops[view] = plot._boxes(plot.rect().toRectF())[0][0].top()
    assert tops["order"] >= tops["overlaid"] + 12, "there is a line for the names"


def test_what_sorts_the_groups_is_in_sight_in_a_small_window(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(lab_report(200), "example:gpt2")
    QApplication.processEvents()
    table = window.workspace.units.table
    header = table.horizontalHeader()
    wasted = header.sortIndicatorSection()
    assert table.records.columns[wasted].title == "Wasted"
    assert header.sectionViewportPosition(wasted) + header.sectionSize(wasted) <= table.viewport().width()
    edges = {header.sectionViewportPosition(i) + header.sectionSize(i) for i in range(header.count())}
    assert table.viewport().width() in edges, "no column is cut"


def test_facts_compared_are_told_whole(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(lab_report(200), "example:gpt2")
    groups = window.workspace.index.region.groups
    click_unit(qtbot, window, groups[0].name)
    qtbot.keyClick(window, Qt.Key.Key_P)
    click_unit(qtbot, window, groups[1].name)
    QApplication.processEvents()
    table = comparison(window)
    assert table is not None
    for row in range(table.topLevelItemCount()):
        name = table.topLevelItem(row).text(0)
        for column in range(3):
            text = table.topLevelItem(row).text(column)
            fits = table.fontMetrics().horizontalAdvance(text) + 12 <= table.columnWidth(column)
            assert fits or name == "Kernel", (name, text, table.columnWidth(column))
