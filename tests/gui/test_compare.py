"""The Compare tab and the What-if dialog by real events, with the stub worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.diff import Diff, Status
from app.session import save_session
from compiler.options import Options, describe_options
from compiler.report import Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import Answers, MakeWindow, is_seen, open_laid_out, settle
from tests.gui.test_window import compile_example, show
from tests.test_diff import cut
from views.compare.control import CompareControl
from views.compare.rows import REGION
from views.compile.options_model import OptionsModel
from views.compile.what_if import WhatIf
from views.look.theme import light
from views.main_window import MainWindow
from views.tables.data_table import DataTable

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def report() -> Report:
    return transformer_report(160)


def row_with(table: DataTable, text: str) -> QPoint:
    """The middle of the first row whose first cell begins with ``text``."""
    model = table.model()
    row = next(row for row in range(model.rowCount()) if str(model.index(row, 0).data()).startswith(text))
    table.scrollTo(model.index(row, 0))
    return table.visualRect(model.index(row, 0)).center()


def compared(qtbot: QtBot, window: MainWindow, start: Callable[[], object]) -> None:
    with qtbot.waitSignal(window.compare_control.compared, timeout=20_000):
        start()
    QApplication.processEvents()


def trigger(window: MainWindow, name: str) -> Callable[[], None]:
    return window.menus.by_name[name].trigger


def test_with_a_session_shows_who_grouped_what_and_selects(
    make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path, answers: Answers
) -> None:
    save_session(tmp_path / "other.fscope", cut(report))
    answers.to_compare = str(tmp_path / "other.fscope")
    window = make_window(worker=False)
    show(qtbot, window, report)
    panel = window.workspace.panels.compare
    assert not panel.groups.isVisible()
    compared(qtbot, window, trigger(window, "compare_file"))
    assert is_seen(panel.groups)
    assert [panel.groups.model().index(row, 0).data() for row in range(panel.groups.model().rowCount())] == ["split"]
    first = report.regions[0].groups[0]
    qtbot.mouseClick(panel.groups.viewport(), LEFT, pos=row_with(panel.groups, "split"))
    assert window.workspace.selection.current.unit == first.name
    qtbot.mouseClick(panel.all, LEFT, pos=QPoint(8, panel.all.height() // 2))
    assert panel.groups.model().rowCount() == len(panel.diff.regions[0].groups)
    qtbot.keyClicks(panel.filter, "split")
    assert panel.groups.model().rowCount() == 1
    # the other report on screen: the pair stays, and the click selects what that one has
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        qtbot.mouseClick(panel.swap, LEFT)
    assert window.session.report is not report
    assert panel.diff is not None
    qtbot.mouseClick(panel.groups.viewport(), LEFT, pos=row_with(panel.groups, "split"))
    assert window.workspace.selection.current.nodes == frozenset(first.nodes)


def test_a_file_that_is_no_session_is_told(
    make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path, answers: Answers
) -> None:
    (tmp_path / "bad.fscope").write_bytes(b"nonsense")
    answers.to_compare = str(tmp_path / "bad.fscope")
    window = make_window(worker=False)
    show(qtbot, window, report)
    trigger(window, "compare_file")()
    qtbot.waitUntil(lambda: bool(window.messages.messages), timeout=5_000)
    assert "bad.fscope" in window.messages.messages[-1].text
    trigger(window, "compare_before")()
    assert window.messages.messages[-1].text == "There was no report before this one."


def test_kernels_side_by_side(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    other = msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report)
    other.kernels[1].source = other.kernels[1].source.replace("tl.store", "tl.atomic_add")
    other.kernels[2].registers = 99
    window = make_window(worker=False)
    show(qtbot, window, report)
    compared(qtbot, window, lambda: window.compare_control.pair(report, other))
    panel = window.workspace.panels.compare
    QTest.mouseClick(panel.pages.button("kernels"), LEFT)
    assert is_seen(panel.kernels)
    qtbot.mouseClick(panel.kernels.viewport(), LEFT, pos=row_with(panel.kernels, "changed"))
    assert "+    tl.atomic_add" in panel.code.text
    qtbot.mouseClick(panel.kernels.viewport(), LEFT, pos=row_with(panel.kernels, "figures"))
    assert "registers 32 → 99" in panel.code.text
    QTest.mouseClick(panel.pages.button("figures"), LEFT)
    assert is_seen(panel.figures)
    names = [panel.figures.model().index(row, 0).data() for row in range(panel.figures.model().rowCount())]
    assert {"Groups", "Launches", "Most registers"} <= set(names)


def test_the_other_compiler_is_compiled_and_compared(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=30_000):
        compile_example(qtbot, window, "relu_add_mul")
    ours = window.session.report
    ours.options = {"num_warps": "8", "rows": "64"}
    compared(qtbot, window, trigger(window, "compare_compilers"))
    report, panel = window.session.report, window.workspace.panels.compare
    assert (report.compiler, report.options) == ("inductor", {"rows": "64"})
    assert window.compare_control.before is ours
    assert [c.name for c in panel.diff.header][:1] == ["compiler"]
    assert panel.titles == ("A: Fusescope, num_warps=8", "B (shown): TorchInductor")


def in_dialog(window: MainWindow, use: Callable[[WhatIf], object]) -> None:
    """Use the dialog that opens next; whatever happens, it is closed then, for it blocks."""

    def act() -> None:
        dialog = QApplication.activeModalWidget()
        if not isinstance(dialog, WhatIf):
            QTimer.singleShot(20, window, act)  # not there yet
            return
        try:
            use(dialog)
        finally:
            if dialog.isVisible():
                dialog.reject()

    QTimer.singleShot(20, window, act)


def test_what_if(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=30_000):
        compile_example(qtbot, window, "relu_add_mul")
    window.session.report.options = {"rows": "64"}
    told: list[str] = []

    def use(dialog: WhatIf) -> None:
        assert dialog.table.isVisible() == (dialog.model.rowCount() > 0), "no empty table while the worker is asked"
        qtbot.waitUntil(lambda: dialog.model.rowCount() > 0, timeout=10_000)
        assert dialog.table.isVisible()
        assert not dialog.compile_button.isEnabled()
        qtbot.keyClicks(dialog.search, "warps of every")
        (row,) = range(dialog.table.model().rowCount())
        value = dialog.table.model().index(row, 1)
        dialog.table.setCurrentIndex(value)
        told.append(dialog._doc.text())
        qtbot.keyClick(dialog.table, Qt.Key.Key_F2)
        box = dialog.table.findChild(QComboBox)
        box.setCurrentText("8")
        box.activated.emit(box.currentIndex())
        assert dialog.options == {"rows": "64", "num_warps": "8"}
        qtbot.mouseClick(dialog.compile_button, LEFT)

    in_dialog(window, use)
    compared(qtbot, window, trigger(window, "what_if"))
    assert told[0].startswith("num_warps: Warps of every kernel.")
    assert window.session.report.options == {"rows": "64", "num_warps": "8"}
    diff = window.workspace.panels.compare.diff
    assert [(c.name, c.b) for c in diff.header] == [("option num_warps", "8")]
    assert {kernel.status for kernel in diff.kernels} == {Status.FIGURES}


def test_return_after_a_value_takes_it_and_compiles_nothing(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window()
    show(qtbot, window, report)
    seen: list[dict[str, str]] = []

    def use(dialog: WhatIf) -> None:
        qtbot.waitUntil(lambda: dialog.model.rowCount() > 0 and dialog.search.hasFocus(), timeout=10_000)
        for name, value in (("max_fused_loops", "3"), ("graph_capacity", "2")):
            dialog.search.clear()
            qtbot.keyClicks(dialog.search, name)
            dialog.table.setFocus()
            dialog.table.setCurrentIndex(dialog.table.model().index(0, 1))
            qtbot.keyClick(dialog.table, Qt.Key.Key_F2)
            editor = QApplication.focusWidget()
            qtbot.keyClicks(editor, value)
            qtbot.keyClick(editor, Qt.Key.Key_Return)
            qtbot.waitUntil(lambda name=name: name in dialog.model.changed, timeout=5_000)
            assert dialog.isVisible()
        seen.append(dict(dialog.model.changed))
        qtbot.mouseClick(dialog.reset_button, LEFT)
        seen.append(dict(dialog.model.changed))

    in_dialog(window, use)
    qtbot.keyClick(window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert seen == [{"max_fused_loops": "3", "graph_capacity": "2"}, {}]
    assert not window.compile_control.is_busy


def test_what_if_can_be_left(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window()
    show(qtbot, window, report)

    in_dialog(window, lambda dialog: QTest.keyClick(dialog, Qt.Key.Key_Escape))
    trigger(window, "what_if")()
    assert not window.compile_control.is_busy


def test_options_can_be_edited_and_taken_back(qtbot: QtBot, qtmodeltester: ModelTester) -> None:
    model = OptionsModel(light())
    model.set_options(describe_options(Options(num_warps=2)), {"max_fused_loops": "7", "rows": "64"})
    qtmodeltester.check(model)
    names = [model.info(row).name for row in range(model.rowCount())]
    assert model.changed == {"max_fused_loops": "7"}
    row = names.index("num_warps")
    assert model.index(row, 1).data() == "2", "the value in force"
    model.setData(model.index(row, 1), "4")
    assert model.changed == {"max_fused_loops": "7", "num_warps": "4"}
    model.setData(model.index(row, 1), "2")
    assert "num_warps" not in model.changed
    model.reset()
    assert model.changed == {}
    assert not model.setData(model.index(row, 0), "x")


def test_the_newest_comparison_wins_and_another_report_drops_it(
    qtbot: QtBot, make_window: MakeWindow, report: Report
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    control: CompareControl = window.compare_control
    panel = window.workspace.panels.compare
    assert all(edit.accessibleName() for edit in panel.findChildren(QLineEdit))
    seen: list[Diff] = []
    control.compared.connect(seen.append)
    control.pair(report, cut(report))
    control.pair(report, report)
    qtbot.waitUntil(lambda: bool(seen), timeout=10_000)
    qtbot.wait(100)
    assert [diff.is_empty for diff in seen] == [True]
    assert panel._told.text() == "No difference."
    assert panel.all.isChecked(), "where nothing differs, all of it is shown"
    assert panel.groups.model().rowCount() == len(seen[0].regions[0].groups)
    show(qtbot, window, transformer_report(90))
    assert panel.diff is None
    compared(qtbot, window, trigger(window, "compare_before"))
    assert panel.diff is not None


def test_regions_of_a_comparison_are_a_column_and_names_stand_alone(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    window.resize(1280, 800)
    report = transformer_report(160, training=True)
    open_laid_out(qtbot, window, report)
    compared(qtbot, window, lambda: window.compare_control.pair(report, cut(report)))
    panel = window.workspace.panels.compare
    window.workspace.panels.setCurrentWidget(panel)
    settle()
    assert not panel.groups.isColumnHidden(REGION)
    record = panel.groups.records.shown[0]
    assert record.texts[REGION] in {region.name for region in report.regions}
    assert ":" not in record.texts[REGION + 1]
    titles = panel._titles
    assert all(title.fontMetrics().horizontalAdvance(title.text()) <= title.width() for title in titles)
    told = panel._told.text()
    panel.setFixedWidth(420)
    QApplication.processEvents()
    assert panel._told.text() == told.partition("  ·  ")[0], "what was found goes before how"
    figures = [record.texts[0] for record in panel.figures.records.shown]
    assert "Memory traffic, estimated" in figures, "as the inspector calls it"
    alone = transformer_report(60)
    open_laid_out(qtbot, window, alone)
    compared(qtbot, window, lambda: window.compare_control.pair(alone, cut(alone)))
    assert panel.groups.isColumnHidden(REGION)
