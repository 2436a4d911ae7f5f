"""A window of 1024 by 700: choices, messages and lists give way, and nothing of them is cut."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox, QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, is_seen, open_laid_out, settle
from views.inspector.table import Table
from views.widgets.basic import Paragraph
from views.widgets.segments import Segments
from views.window.message_bar import Message


def test_a_choice_side_by_side_becomes_a_box_where_there_is_little_room(qtbot: QtBot) -> None:
    holder = QWidget()
    row = QHBoxLayout(holder)
    choice = Segments({"a": "In order", "b": "Overlaid", "c": "Side by side", "d": "Histogram"}, "View")
    row.addWidget(choice)
    row.addStretch()
    qtbot.addWidget(holder)
    holder.resize(800, 60)
    holder.show()
    qtbot.waitExposed(holder)
    wide = choice.width()
    assert is_seen(choice.button("d"))
    holder.resize(wide, 60)
    QApplication.processEvents()
    assert wide > choice.width()
    assert is_seen(choice.button("d")), "closer together"
    holder.resize(220, 60)
    QApplication.processEvents()
    (box,) = choice.findChildren(QComboBox)
    assert is_seen(box)
    assert not choice.button("d").isVisible()
    assert box.currentText() == "In order"
    box.setFocus()
    with qtbot.waitSignal(choice.chosen) as told:
        qtbot.keyClick(box, Qt.Key.Key_Down)
    assert told.args == ["b"]
    choice.choose("c")
    assert box.currentText() == "Side by side"
    holder.resize(800, 60)
    QApplication.processEvents()
    assert choice.width() == wide
    assert choice.button("c").isChecked()


def test_a_long_message_is_told_whole_where_there_is_little_room(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1024, 700)
    open_laid_out(qtbot, window, lab_report(120))
    for number in range(2):
        window.post(Message("info", f"Message {number}.", "It takes a line or two."))
    text = "/home/someone/a-rather-long-folder-name/experiments/attention_with_a_long_name.py cannot be compiled: "
    window.post(Message("error", text * 2, "Check what the function returns.", "Traceback …"))

    def is_whole() -> bool:
        told = [one for one in window.messages.findChildren(Paragraph) if one.text() == text * 2]
        return all(one.height() >= one.heightForWidth(one.width()) for one in told) and bool(told)

    qtbot.waitUntil(is_whole, timeout=5_000)


def test_lists_of_the_inspector_share_what_room_there_is(qtbot: QtBot) -> None:
    table = Table("Ops", ("Node", "Op", "Output"), [("add", "aten.add.Tensor", "f32[1, 128, 768]")], "")
    qtbot.addWidget(table)
    for width in (520, 260, 400):
        table.resize(width, 60)
        table.show()
        QApplication.processEvents()
        last = table.header().sectionViewportPosition(2) + table.header().sectionSize(2)
        assert last <= table.viewport().width()
        assert table.header().sectionSize(2) >= 60


def test_lists_of_the_inspector_use_what_room_there_is(qtbot: QtBot) -> None:
    op = "aten._scaled_dot_product_attention"
    table = Table("Ops", ("Node", "Op", "Output"), [("add", op, "f32[1]")], "")
    qtbot.addWidget(table)
    table.resize(330, 60)
    table.show()
    QApplication.processEvents()
    assert table.columnWidth(1) < table.fontMetrics().horizontalAdvance(op)
    table.resize(700, 60)
    QApplication.processEvents()
    assert table.columnWidth(1) > table.fontMetrics().horizontalAdvance(op)


def test_shapes_in_a_list_of_the_inspector_are_whole_where_names_are_short(qtbot: QtBot) -> None:
    shape = "f32[1, 128, 768]"
    table = Table("Ops", ("Node", "Op", "Output"), [("add", "aten.add.Tensor", shape)], "")
    qtbot.addWidget(table)
    table.resize(360, 60)
    table.show()
    QApplication.processEvents()
    for column, text in enumerate(("add", "aten.add.Tensor", shape)):
        assert table.columnWidth(column) >= table.fontMetrics().horizontalAdvance(text) + 16


def test_regions_without_room_for_their_tabs_are_chosen_from_a_box(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1800, 900)
    open_laid_out(qtbot, window, transformer_report(160, training=True))
    graph = window.workspace.graph
    choice = graph.head.regions
    qtbot.waitUntil(lambda: is_seen(choice.tabs), timeout=2_000)
    assert not choice.box.isVisible()
    graph.show_grouping("modules")
    window.resize(1100, 700)
    QApplication.processEvents()
    assert is_seen(choice.box)
    assert not choice.tabs.isVisible(), "no arrows to scroll tabs with"
    assert [choice.box.itemText(i) for i in range(choice.box.count())] == ["region_0_forward", "region_0_backward"]
    choice.box.setFocus()
    qtbot.keyClick(choice.box, Qt.Key.Key_Down)
    assert graph.tabs.currentIndex() == 1
    window.resize(1800, 900)
    QApplication.processEvents()
    assert is_seen(choice.tabs)
    graph.tabs.setCurrentIndex(0)
    assert choice.box.currentIndex() == 0


def test_a_small_window_ends_where_its_inspector_does(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1024, 700)
    open_laid_out(qtbot, window, lab_report(60))
    dock = window.workspace.docks.inspector
    head = window.workspace.graph.head
    for box in (head.groupings, head.overlays):
        assert box.width() >= box.sizeHint().width(), "nothing of the bar is cut"
    for grouping in ("fusion", "modules"):
        window.workspace.graph.show_grouping(grouping)
        QApplication.processEvents()
        assert dock.geometry().right() < 1024, grouping
        assert dock.width() > 240


def test_panels_do_not_reach_over_the_inspector_of_a_window_made_small(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1400, 900)
    open_laid_out(qtbot, window, lab_report(60))
    docks = window.workspace.docks
    for width, height in ((1280, 800), (1024, 700), (1002, 530)):
        window.resize(width, height)
        settle()
        assert not docks.panels.geometry().intersects(docks.inspector.geometry()), width
        assert docks.inspector.geometry().right() < window.width()
