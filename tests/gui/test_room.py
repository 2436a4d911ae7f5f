"""Where there is little room nothing is cut off: columns of tables, names over plots, sentences."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication
from pytestqt.qtbot import QtBot

from compiler.report import CudaGraph, Memory, Refusal, RefusalRule
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from tests.gui.test_one_selection import click_unit, comparison
from tests.test_diff import cut
from views.charts.chart import Chart
from views.compare.rows import GROUP_COLUMNS
from views.cuda_graph.panel import CudaGraphPanel, headline
from views.look.theme import light
from views.selection.index import RegionIndex
from views.tables.data_table import Column, DataTable, Record
from views.tables.sort_header import SortHeader
from views.tables.widths import shared_widths
from views.widgets.basic import ElidedLabel
from views.widgets.empty import Empty

LEFT = Qt.MouseButton.LeftButton


def test_with_room_each_column_has_its_own_width() -> None:
    columns = [Column("A", 120), Column("B", 60, True)]
    assert shared_widths(columns, 180) == [120, 60]
    assert shared_widths(columns, 900) == [120, 780]
    figures = [*columns, Column("C", 60, True)]
    assert shared_widths(figures, 900) == [120, 390, 390], "no figure stands far from the others"
    texts = [Column("A", 60, True), Column("B", 120)]
    assert shared_widths(texts, 900) == [60, 120], "a text that ends it stretches by itself"
    assert shared_widths([], 100) == []


@pytest.mark.parametrize("room", range(200, 1500, 37))
def test_the_last_column_that_fits_ends_at_the_edge(room: int) -> None:
    widths = shared_widths(GROUP_COLUMNS, room)
    edges = [sum(widths[:count]) for count in range(len(widths) + 1)]
    assert room in edges or edges[-1] <= room
    for column, width in zip(GROUP_COLUMNS, widths, strict=True):
        assert width >= (column.width if column.is_figure else column.least or min(column.width, 96))


def test_all_columns_fit_where_texts_can_give_way() -> None:
    widths = shared_widths([Column("Kind", 168), Column("Code", 420), Column("Bytes", 80, True)], 400)
    assert widths[2] == 80
    assert 395 <= sum(widths) <= 400
    assert 96 <= widths[0] <= widths[1]


def test_no_figure_of_a_comparison_is_cut_in_a_small_window(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    report = lab_report(200)
    open_laid_out(qtbot, window, report)
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


def test_figures_are_whole_in_every_unit(qtbot: QtBot) -> None:
    table = DataTable("t", [Column("Name", 200, least=40), Column("Time", 30, True)])
    qtbot.addWidget(table)
    for wide, narrow in (("8.88 ms", "8.88 µs"), ("8.88 MFLOP", "8.88 kFLOP")):
        for last in ((wide, narrow), (narrow, wide)):
            table.set_records([Record(("a_rather_long_name" * 4, text), (text, text)) for text in last])
            table.resize(160, 200)
            table.show()
            QApplication.processEvents()
            assert table.columnWidth(1) >= table.fontMetrics().horizontalAdvance(wide) + 10, "a letter m is wide"


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
    for text in ("W" * 26, "W" * 40):
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
    open_laid_out(qtbot, window, lab_report(200))
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
    open_laid_out(qtbot, window, lab_report(120))
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
    open_laid_out(qtbot, window, lab_report(200))
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
    open_laid_out(qtbot, window, lab_report(200))
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


def test_docks_keep_their_width_on_the_way_home_and_back(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    open_laid_out(qtbot, window, lab_report(120))
    window.workspace.graph.show_grouping("modules")  # its bar has two buttons more
    QApplication.processEvents()
    docks = window.workspace.docks.all
    before = [dock.width() for dock in docks]
    window.show_start_page()
    QApplication.processEvents()
    window.show_workspace()
    qtbot.waitUntil(lambda: all(dock.isVisible() for dock in docks), timeout=3_000)
    QApplication.processEvents()
    assert [dock.width() for dock in docks] == before


def test_what_needs_little_is_whole_before_what_needs_much(qtbot: QtBot) -> None:
    columns = [Column("Kind", 150), Column("Code", 420), Column("Line", 300)]
    widths = shared_widths(columns, 600, [170, 900, 500])
    assert widths[0] == 170
    assert sum(widths) <= 600
    assert min(widths[1:]) > 150
    assert shared_widths(columns, 2000, [60, 900, 500]) == [60, 840, 500], "no more than twice its own width"


def test_names_lose_their_middle_and_sentences_their_end(qtbot: QtBot) -> None:
    """Two names with one beginning are told apart, two with one end are not the same either."""
    ends, pictures = ("block_of_a_transformer_with_a_long_name_1", "block_of_a_transformer_with_a_long_name_2"), []
    for is_name in (True, False):
        for text in ends:
            table = DataTable("t", [Column("A", 80, is_name=is_name), Column("B", 400)])
            qtbot.addWidget(table)
            table.resize(300, 100)
            table.set_records([Record((text, "x" * 300), (text, ""))])
            table.show()
            qtbot.waitExposed(table)
            pictures.append(table.viewport().grab().toImage())
    assert pictures[0] != pictures[1]
    assert pictures[2] == pictures[3]


def test_a_text_stands_off_from_the_figure_before_it(qtbot: QtBot) -> None:
    table = DataTable("t", [Column("#", 30, True), Column("Name", 90), Column("Bytes", 80, True), Column("Why", 90)])
    titles = [str(table.records.headerData(i, Qt.Orientation.Horizontal)) for i in range(4)]
    assert [title.strip() == title for title in titles] == [True, True, True, False]


def test_a_sentence_goes_on_in_a_second_line(qtbot: QtBot) -> None:
    told = ElidedLabel("Captured in 2 partitions: 98.6% of kernels, 99.4% of GPU time", "muted", is_sentence=True)
    qtbot.addWidget(told)
    width = told.fontMetrics().horizontalAdvance(told.text()) * 2 // 3
    told.resize(width, told.fontMetrics().lineSpacing() * 2 + 4)
    told.grab()
    assert told.toolTip() == "", "it is there as a whole"
    told.resize(width, told.fontMetrics().lineSpacing() + 4)
    told.grab()
    assert told.toolTip() == told.text()


def test_a_panel_with_nothing_to_show_says_why_in_its_middle(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    report = transformer_report(60)
    report.stages = []
    report.regions[0].refusals = []
    report.regions[0].memory = Memory()
    open_laid_out(qtbot, window, report)
    panels = window.workspace.panels
    for panel in (panels.run, panels.timeline, panels.memory, panels.refusals, panels.compare, panels.stages,
                  panels.messages):  # fmt: skip
        panels.setCurrentWidget(panel)
        settle()
        (empty,) = [one for one in panel.findChildren(Empty) if one.isVisible()]
        assert empty.text().endswith((".", ":"))
        middle = empty.mapTo(panel, empty.rect().center())
        assert abs(middle.x() - panel.width() / 2) < 20, empty.text()
        views = [*panel.findChildren(QAbstractItemView), *panel.findChildren(Chart)]
        assert not any(view.isVisible() for view in views)


def test_figures_are_whole_and_stand_close_where_there_is_little_room() -> None:
    columns = [Column("#", 30, True), Column("Name", 108), Column("Time", 76, True)]
    assert shared_widths(columns, 240, [42, 220, 54]) == [42, 144, 54]
    assert shared_widths(columns, 900, [42, 220, 54]) == [42, 499, 359]


def test_a_tall_cuda_graph_opens_at_its_first_node(qtbot: QtBot) -> None:
    report = lab_report(6000)
    panel = CudaGraphPanel(light())
    qtbot.addWidget(panel)
    panel.resize(740, 290)
    panel.show()
    panel.set_region(RegionIndex(report, report.regions[0]))
    panel.show_page("topology")
    view = panel.topology.view
    qtbot.waitUntil(lambda: view.scene is not None, timeout=20_000)
    QApplication.processEvents()
    first = int(view.scene.layout.node_rect[:, 0].argmin())
    assert view.viewport().rect().toRectF().contains(view.rect_in_view(first))


def test_what_plays_says_at_what_pace(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(60))
    run = window.workspace.panels.run
    window.workspace.panels.setCurrentWidget(run)
    assert "recorded iterations" in run.state_text
    qtbot.mouseClick(run.start_button, LEFT)
    assert "playing" in run.state_text
    qtbot.mouseClick(run.start_button, LEFT)
    assert "recorded iterations" in run.state_text


@pytest.mark.parametrize("training", [True, False])
def test_refusals_have_nothing_to_scroll_to_sideways(make_window: MakeWindow, qtbot: QtBot, training: bool) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    open_laid_out(qtbot, window, transformer_report(600, training=training))
    panel = window.workspace.panels.refusals
    panel.filter.setText("extern")
    window.workspace.panels.setCurrentWidget(panel)
    for width in (1280, 1500, 1180):
        window.resize(width, 800)
        QApplication.processEvents()
        assert panel.tree.verticalScrollBar().maximum() > 0
        assert panel.tree.horizontalScrollBar().maximum() == 0, width
        regions = panel.tree.fontMetrics().horizontalAdvance("backward")
        assert panel.tree.columnWidth(3) > (regions + 15 if training else 60), "with what a style leaves beside a text"


def test_a_rule_of_refusals_is_whole_beyond_the_column_of_pairs(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    report = transformer_report(60)
    region = report.regions[0]
    first, second, *_ = region.nodes
    region.refusals = [Refusal(first.name, second.name, RefusalRule.ACCESS_MISMATCH, "why " * 30, 4_000)]
    open_laid_out(qtbot, window, report)
    panels = window.workspace.panels
    panels.setCurrentWidget(panels.refusals)
    settle()
    tree, header = panels.refusals.tree, panels.refusals.tree.header()
    at = tree.visualRect(panels.refusals.model.index(0, 0))
    tree.setColumnWidth(0, 120)
    beyond = QRect(124, at.top(), 60, at.height())
    assert beyond.right() < header.sectionViewportPosition(1), "before the bytes"

    def inks() -> int:
        image = tree.viewport().grab(beyond).toImage()
        return len({image.pixel(x, y) for x in range(image.width()) for y in range(image.height())})

    assert inks() > 2
    tree.setCurrentIndex(panels.refusals.model.index(0, 0))
    assert inks() > 2, "also where it is selected"
    window.resize(2560, 1440)
    settle()
    assert header.sectionViewportPosition(1) < 1200, "the bytes are not far from what they are of"


def test_a_stage_s_text_has_no_empty_lines(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(2560, 1440)
    open_laid_out(qtbot, window, transformer_report(200))
    panels = window.workspace.panels
    panels.setCurrentWidget(panels.stages)
    settle()
    for width in (2560, 1280):
        window.resize(width, 900)
        QApplication.processEvents()
        text = panels.stages.text
        assert text.height() - text.heightForWidth(text.width()) in range(6)


@pytest.mark.parametrize(("column", "side"), [(0, 1), (1, -1)])
def test_the_sign_of_sorting_stands_beside_the_title(qtbot: QtBot, column: int, side: int) -> None:
    table = DataTable("t", [Column("Name", 160), Column("Time", 160, True)])
    qtbot.addWidget(table)
    table.set_records([Record(("a", "1"), ("a", 1)), Record(("b", "2"), ("b", 2))])
    table.resize(340, 200)
    table.show()
    header = table.horizontalHeader()
    assert isinstance(header, SortHeader)
    at = QPoint(header.sectionViewportPosition(column) + header.sectionSize(column) // 2, 9)
    qtbot.mouseClick(header.viewport(), LEFT, pos=at)
    assert header.sortIndicatorSection() == column
    rect = QRect(header.sectionViewportPosition(column), 0, header.sectionSize(column), header.height())
    sign = header.sign_at(rect, column)
    width = header.fontMetrics().horizontalAdvance(("Name", "Time")[column])
    title = rect.left() + 5 + width if side > 0 else rect.right() - 5 - width
    assert 4 < side * (sign.x() - title) < 14, "before a figure's, after a text's"
    narrow = header.sign_at(QRect(0, 0, 30, 24), column)
    assert 0 < narrow.x() < 30


@pytest.mark.parametrize("width", [1280, 1440, 1600])
def test_names_of_library_calls_are_whole_in_the_table_of_units(
    make_window: MakeWindow, qtbot: QtBot, width: int
) -> None:
    window = make_window(worker=False)
    window.resize(width, 900)
    report = lab_report(60)
    open_laid_out(qtbot, window, report)
    QApplication.processEvents()
    table = window.workspace.units.table
    swatch_and_pads = 18 + 10
    assert table.columnWidth(1) >= table.fontMetrics().horizontalAdvance("ext_addmm_28") + swatch_and_pads
