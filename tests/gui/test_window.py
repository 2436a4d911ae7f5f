"""The main window by real mouse and key events, with a stub worker process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QImage
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QLineEdit, QTreeWidget, QWidget
from pytestqt.qtbot import QtBot

from app.session import open_session
from app.settings import Settings
from app.sources.gallery import examples
from compiler.report import Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import Answers, MakeWindow, is_seen, printed, settle, to_front
from views.code.code_view import CodeView
from views.code.detail import Detail
from views.inspector.table import Table
from views.look.theme import light
from views.main_window import MainWindow
from views.screenshot import screenshot
from views.selection.index import RegionIndex
from views.tables.units_table import UnitsPanel
from views.widgets.cards import Card
from views.window.message_bar import Message

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def report() -> Report:
    return transformer_report(160)


def show(qtbot: QtBot, window: MainWindow, report: Report) -> None:
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, report.source)
    QApplication.processEvents()


def click_row(qtbot: QtBot, table: QTreeWidget, name: str) -> None:
    item = next(
        table.topLevelItem(i) for i in range(table.topLevelItemCount()) if table.topLevelItem(i).text(0) == name
    )
    table.scrollToItem(item)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualItemRect(item).center())


def click_in_graph(qtbot: QtBot, window: MainWindow, name: str) -> None:
    canvas = window.workspace.graph.canvas
    canvas.center_on(name)
    qtbot.wait(400)  # the view glides there
    qtbot.mouseClick(canvas.viewport(), LEFT, pos=canvas.view_position(name))


def compile_example(qtbot: QtBot, window: MainWindow, name: str) -> None:
    card = window.start_page.gallery.findChild(Card, f"example:{name}")
    qtbot.mouseClick(card, LEFT)


def texts(window: MainWindow) -> list[str]:
    return [message.text for message in window.messages.messages]


def test_start_page_lists_the_gallery(make_window: MakeWindow) -> None:
    window = make_window(worker=False)
    cards = window.start_page.gallery.cards
    assert [card.objectName() for card in cards] == [f"example:{info.name}" for info in examples()]
    assert all(is_seen(dock) is False for dock in window.workspace.docks.all)


def test_gallery_card_compiles_and_the_groups_source_is_on_screen(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=30_000):
        compile_example(qtbot, window, "relu_add_mul")
    report = window.session.report
    assert report is not None
    assert report.source == "example:relu_add_mul"
    group = report.regions[0].groups[0]
    click_in_graph(qtbot, window, group.nodes[0])
    code = window.workspace.inspector.kernel_panel.code
    kernel = report.kernel(group.kernel)
    assert kernel is not None
    assert code.text == kernel.source
    qtbot.waitUntil(lambda: is_seen(code), timeout=5_000)


def test_selecting_a_row_of_the_table_shows_the_group_everywhere(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    table = window.workspace.units.table
    index = table.model().index(2, 1)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())
    name = index.data()
    assert window.workspace.selection.current.unit == name
    assert window.workspace.inspector.title.text() == name


def test_inspector_op_selects_in_the_graph_and_the_reverse(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    group = next(g for g in report.regions[0].groups if len(g.nodes) > 3)
    window.workspace.select_unit(group.name)
    table = window.workspace.inspector.page.findChild(Table, "Ops")
    click_row(qtbot, table, group.nodes[1])
    assert window.workspace.selection.current.node == group.nodes[1]
    assert window.workspace.inspector.title.text() == group.nodes[1]
    click_in_graph(qtbot, window, group.nodes[2])
    assert window.workspace.selection.current.nodes == {group.nodes[2]}
    ops = window.workspace.inspector.page.findChildren(Table, "Ops")[-1]
    assert ops.currentItem().text(0) == group.nodes[2]


def test_line_of_triton_selects_its_nodes(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    group = report.regions[0].groups[0]
    kernel = report.kernel(group.kernel)
    assert kernel is not None
    line = max(kernel.line_nodes)
    expected = {name.split("/")[1] for name in kernel.line_nodes[line]}
    window.workspace.select_unit(group.name)
    code = window.workspace.inspector.kernel_panel.code
    code.mark_lines([line])
    qtbot.mouseClick(code.viewport(), LEFT, pos=QPoint(30, code.line_rect(line).center().y()))
    assert window.workspace.selection.current.nodes == expected
    assert code.marked_lines
    assert line in code.marked_lines


def test_history_walks_back_and_forward(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    first, second = report.regions[0].groups[:2]
    window.workspace.select_unit(first.name)
    window.workspace.select_unit(second.name)
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert window.workspace.selection.current.unit == first.name
    qtbot.keyClick(window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert window.workspace.selection.current.unit == second.name


def test_filter_and_sort_of_the_table(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    model = window.workspace.units.table.model()
    qtbot.keyClicks(window.workspace.units.filter, "extern")
    columns = {model.headerData(i, Qt.Orientation.Horizontal).strip(): i for i in range(model.columnCount())}
    kinds = {model.index(row, columns["Kind"]).data() for row in range(model.rowCount())}
    assert kinds == {"extern"}
    assert model.rowCount() == len(report.regions[0].extern_calls)
    window.workspace.units.filter.clear()
    window.workspace.units.table.sortByColumn(columns["Bytes"], Qt.SortOrder.DescendingOrder)
    largest = max(u.estimated_bytes for u in (*report.regions[0].groups, *report.regions[0].extern_calls))
    name = model.index(0, 1).data()
    assert window.workspace.index is not None
    assert window.workspace.index.units[name].estimated_bytes == largest


def test_search_by_keyboard(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is window.toolbar.search
    qtbot.keyClicks(window.toolbar.search, "addmm")
    expected = sum("addmm" in node.name or "addmm" in node.op for node in report.regions[0].nodes)
    assert window.statusBar().currentMessage() == f"{expected:,} matches"


def test_worker_that_crashes_while_compiling(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window()
    show(qtbot, window, report)
    window.session.discard_changes()
    window.toolbar.source.setText("example:layer_norm")
    qtbot.keyClick(window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(texts(window)), timeout=30_000)
    (message,) = window.messages.messages
    assert "worker process ended while it compiled example:layer_norm in stage capture (signal SIGABRT)" in message.text
    assert "the last words" in message.detail
    assert "crashed outside of Python" in message.hint
    assert "Compile again" in message.hint
    assert window.session.report is report
    assert not window.progress.isVisible()
    window.messages.clear()
    window.toolbar.source.setText("example:relu_add_mul")  # a new worker does the next one
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.toolbar.compile_button, LEFT)


def test_cancel_by_escape(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    compile_example(qtbot, window, "softmax")
    qtbot.waitUntil(lambda: window.compile_control.current_id > 0, timeout=30_000)
    assert window.progress.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.progress.isVisible()
    assert texts(window) == ["The compilation was cancelled."]
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        compile_example(qtbot, window, "relu_add_mul")


def test_another_compilation_is_refused_aloud_while_one_runs(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    compile_example(qtbot, window, "softmax")
    qtbot.waitUntil(lambda: window.compile_control.current_id > 0, timeout=30_000)
    window.toolbar.source.setText("example:relu_add_mul")
    qtbot.keyClick(window, Qt.Key.Key_F5)
    assert texts(window) == ["example:softmax is being compiled."]
    assert window.progress.isVisible(), "it goes on"


@pytest.mark.parametrize("place", ["toolbar", "progress"])
def test_the_keyboard_stays_with_compile_and_cancel(make_window: MakeWindow, qtbot: QtBot, place: str) -> None:
    window = make_window(worker=False)
    bar = window.toolbar
    to_front(qtbot, window)
    bar.source.setText("example:softmax")
    bar.compile_button.setFocus()
    qtbot.keyClick(bar.compile_button, Qt.Key.Key_Space)
    assert QApplication.focusWidget() is bar.cancel_button
    cancel = getattr(window, place).cancel_button
    cancel.setFocus()
    qtbot.keyClick(cancel, Qt.Key.Key_Space)
    assert texts(window) == ["The compilation was cancelled."]
    assert QApplication.focusWidget() is bar.compile_button


def test_failure_is_one_sentence_with_details_on_request(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    compile_example(qtbot, window, "mlp")
    qtbot.waitUntil(lambda: bool(texts(window)), timeout=30_000)
    assert texts(window) == ["The model asks for more than there is."]
    buttons = {button.text(): button for button in window.messages.findChildren(QAbstractButton)}
    qtbot.mouseClick(buttons["Details"], LEFT)
    detail = window.messages.findChild(Detail)
    qtbot.waitUntil(lambda: is_seen(detail.viewport()), timeout=5_000)
    assert detail.text == "Traceback …"
    assert buttons["Details"].text() == "Hide details"
    qtbot.mouseClick(buttons["Details"], LEFT)
    assert not detail.isVisible()
    panels = window.workspace.panels
    panels.setCurrentWidget(panels.messages)
    (more,) = [button for button in panels.messages.findChildren(QAbstractButton) if button.text() == "Details"]
    qtbot.mouseClick(more, LEFT)
    assert panels.messages.findChild(Detail).text == "Traceback …"


def test_messages_on_screen_follow_the_theme(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(Settings(theme="light"), worker=False)
    window.post(Message("error", "It cannot be compiled.", "", "Traceback …"))
    (button,) = [one for one in window.messages.findChildren(QAbstractButton) if one.text() == "Details"]
    qtbot.mouseClick(button, LEFT)
    sign = window.messages.findChildren(QLabel)[0]
    before, text = sign.pixmap().toImage(), window.messages.findChild(Detail).viewport().grab().toImage()
    window.set_theme("dark")
    qtbot.waitUntil(lambda: sign.pixmap().toImage() != before)
    assert window.messages.findChild(Detail).viewport().grab().toImage() != text


def test_unsafe_file_is_asked_about_and_sent_again(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, tmp_path: Path
) -> None:
    program = tmp_path / "model.pt2"
    program.write_bytes(b"PK")
    window = make_window()
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        window.open_path(str(program))
    assert "is code" in answers.asked[0]
    assert "pickled" in answers.asked[1]
    answers.asked.clear()
    window.session.discard_changes()
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        window.open_path(str(program))
    assert len(answers.asked) == 1, "consent to the same state of the file is remembered"


def test_code_is_not_run_without_consent(make_window: MakeWindow, answers: Answers, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("x = 1")
    answers.agrees = False
    window = make_window(worker=False)
    window.open_path(str(model))
    assert not window.compile_control.is_busy
    assert not window.bridge.is_started


def test_save_and_open_again(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, report: Report, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    assert window.isWindowModified()
    answers.to_save = str(tmp_path / "a.fscope")
    with qtbot.waitSignal(window.session.saved, timeout=10_000):
        qtbot.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert not window.isWindowModified()
    assert open_session(tmp_path / "a.fscope").layout(report.regions[0].name)
    window.close()
    other = make_window(worker=False)
    with qtbot.waitActive(other):
        other.activateWindow()
    answers.to_open = [answers.to_save]
    with qtbot.waitSignal(other.report_shown, timeout=20_000):
        qtbot.keyClick(other, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    assert other.session.report == report
    assert other.settings.recent == [str(tmp_path / "a.fscope")]


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 cut short"])
def test_bad_session_is_one_sentence(
    make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "bad.fscope"
    path.write_bytes(content)
    window = make_window(worker=False)
    show(qtbot, window, report)
    window.session.discard_changes()
    window.open_path(str(path))
    qtbot.waitUntil(lambda: bool(texts(window)), timeout=10_000)
    (text,) = texts(window)
    assert text.startswith("bad.fscope")
    assert text.count(".") == 2
    assert window.session.report is report


@pytest.mark.parametrize("path", ["missing.fscope", ".", "nothing:like:that"])
def test_what_cannot_be_opened_is_said(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, path: str) -> None:
    window = make_window(worker=False)
    window.open_path(str(tmp_path / path))
    qtbot.waitUntil(lambda: len(texts(window)) == 1, timeout=10_000)


def test_a_function_that_python_can_import_is_compiled(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        window.open_path("package.module:make")
    assert window.session.report.source == "package.module:make"


def test_place_that_cannot_be_written(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, report: Report, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    answers.to_save = str(tmp_path / "no" / "such" / "folder" / "a.fscope")
    qtbot.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: len(texts(window)) == 1, timeout=10_000)
    assert window.isWindowModified()


def test_what_comes_while_saving_is_not_taken_for_saved(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, report: Report, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    answers.to_save = str(tmp_path / "a.fscope")
    with qtbot.waitSignal(window.session.saved, timeout=10_000):
        qtbot.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
        assert window.session.is_saving
        window.session.touch(report)
    assert window.isWindowModified()
    answers.leave = "save"
    assert window.close()
    assert not window.session.is_modified


def test_closing_asks_about_unsaved_changes(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, report: Report
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    answers.leave = "cancel"
    assert not window.close()
    assert window.isVisible()
    answers.leave = "discard"
    assert window.close()
    assert answers.asked == ["example:gpt2", "example:gpt2"]


def test_window_arrangement_is_remembered(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    settings = Settings()
    window = make_window(settings, worker=False)
    show(qtbot, window, report)
    window.workspace.docks.units.close()
    window.close()
    again = make_window(settings, worker=False)
    show(qtbot, again, report)
    assert again.workspace.docks.units.isHidden()
    assert not again.workspace.docks.inspector.isHidden()


def test_theme_button_changes_every_part(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(Settings(theme="light"), worker=False)
    show(qtbot, window, report)
    window.workspace.select_unit(report.regions[0].groups[0].name)
    buttons = {button.accessibleName(): button for button in window.toolbar.findChildren(QAbstractButton)}
    qtbot.mouseClick(buttons["Light or dark"], LEFT)
    assert window.theme.is_dark
    assert window.settings.theme == "dark"
    settle()
    image = window.grab().toImage()
    panels = window.workspace
    for part in (panels.graph.canvas, panels.inspector.kernel_panel.code, panels.units.table):
        corner = part.mapTo(window, QPoint(part.width() - 3, part.height() // 2))
        assert image.pixelColor(corner).lightness() < 90, part


def test_training_report_has_a_tab_a_region(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, transformer_report(160, training=True))
    assert window.workspace.graph.tabs.count() == 2
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        qtbot.mouseClick(window.workspace.graph.tabs, LEFT, pos=window.workspace.graph.tabs.tabRect(1).center())
    assert window.workspace.inspector.title.text() == "region_0_backward"
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert window.workspace.graph.region is not None
    assert window.workspace.graph.region.name == "region_0_forward"


def test_every_control_has_a_name_for_screen_readers(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    window.workspace.select_unit(report.regions[0].groups[0].name)
    nameless = [
        widget
        for kind in (QAbstractButton, QLineEdit, QComboBox, CodeView)
        for widget in window.findChildren(kind)
        # Qt's own overflow buttons and clear buttons are named by Qt
        if not (_accessible_name(widget) or widget.objectName().startswith("qt_"))
        and not isinstance(widget.parent(), QLineEdit)
    ]
    assert [(type(w).__name__, type(w.parent()).__name__) for w in nameless] == []


def _accessible_name(widget: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)


def test_units_model(qtmodeltester: Any, qtbot: QtBot, report: Report) -> None:
    panel = UnitsPanel(light())
    qtbot.addWidget(panel)
    panel.set_region(RegionIndex(report, report.regions[0]))
    model = panel.table.records
    qtmodeltester.check(model)
    assert model.rowCount() == len(report.regions[0].groups) + len(report.regions[0].extern_calls)


def test_screenshot_shows_what_was_selected(report: Report, tmp_path: Path, qtbot: QtBot) -> None:
    screenshot(report, tmp_path / "plain.png", size=(1100, 640))
    screenshot(report, tmp_path / "chosen.png", size=(1100, 640), select=report.regions[0].groups[1].name)
    plain, chosen = QImage(str(tmp_path / "plain.png")), QImage(str(tmp_path / "chosen.png"))
    assert (plain.width(), plain.height()) == (1100, 640)
    assert plain != chosen
    group = report.regions[0].groups[1].name
    with pytest.raises(ValueError, match=f"called '{group}s' in this report; the nearest names are {group},"):
        screenshot(report, tmp_path / "x.png", select=f"{group}s")
    left = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    assert not left, "a window left open takes the mouse from the next one"


def test_first_window_needs_no_heavy_library() -> None:
    code = (
        "import sys; from app.settings import Settings; from views.app import make_application;"
        "from views.main_window import MainWindow; app = make_application();"
        "window = MainWindow(lambda on_event: None, Settings(), start_worker=False); window.show();"
        "heavy = ('torch', 'triton', 'numpy', 'networkx', 'pygments');"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert printed(code).strip() == "[]"
