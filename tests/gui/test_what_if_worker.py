"""The What-if dialog pressed from end to end by keys, with the real worker: both compilers, for a GPU by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import UnionType

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.diff import Diff, Status
from app.settings import Settings
from app.worker.client import WorkerClient
from tests.gui.conftest import ROOT, Answers
from tests.gui.test_compare import in_dialog
from views.compile.what_if import WhatIf
from views.main_window import MainWindow

pytest.importorskip("torch")
KEY, CTRL, SHIFT = Qt.Key, Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
COMPILED_MS = 80_000


@pytest.fixture
def window(qtbot: QtBot, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[MainWindow]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))))
    made = MainWindow(WorkerClient, Settings(last_target="h100"), dialogs=answers)
    made.resize(1440, 900)
    made.show()
    with qtbot.waitActive(made):
        made.activateWindow()
    yield made
    answers.leave = "discard"
    made.close()
    made.deleteLater()


def focused(kind: type | UnionType) -> QWidget:
    widget = QApplication.focusWidget()
    assert isinstance(widget, kind), widget
    return widget


def compile_by_keys(qtbot: QtBot, window: MainWindow, source: str, compiler: str) -> None:
    QTest.keyClick(window, KEY.Key_L, CTRL)
    QTest.keyClicks(focused(QLineEdit), source)
    box = window.toolbar.compiler
    box.setFocus()
    while box.currentData() != compiler:
        QTest.keyClick(box, KEY.Key_Down)
    with qtbot.waitSignal(window.report_shown, timeout=COMPILED_MS):
        QTest.keyClick(window, KEY.Key_F5)


def change(dialog: WhatIf, option: str, value: str) -> None:
    """Find an option, set its value and press the button, by keys alone."""
    QTest.keyClicks(focused(QLineEdit), option)
    assert [dialog.table.model().index(row, 0).data() for row in range(dialog.table.model().rowCount())] == [option]
    QTest.keyClick(dialog.search, KEY.Key_Tab)
    assert QApplication.focusWidget() is dialog.table
    QTest.keyClick(dialog.table, KEY.Key_Right)
    QTest.keyClick(dialog.table, KEY.Key_F2)
    editor = focused(QLineEdit | QComboBox)
    QTest.keyClicks(editor, value)
    if isinstance(editor, QLineEdit):
        QTest.keyClick(editor, KEY.Key_Return)
    QTest.qWait(50)  # a line is taken in a turn of the event loop
    assert dialog.isVisible()
    assert dialog.model.changed == {option: value}
    while QApplication.focusWidget() is not dialog.compile_button:
        QTest.keyClick(QApplication.focusWidget(), KEY.Key_Tab)
    QTest.keyClick(dialog.compile_button, KEY.Key_Space)


def what_if(qtbot: QtBot, window: MainWindow, option: str, value: str) -> Diff:
    def use(dialog: WhatIf) -> None:
        qtbot.waitUntil(lambda: dialog.model.rowCount() > 0 and dialog.search.hasFocus(), timeout=COMPILED_MS)
        change(dialog, option, value)

    in_dialog(window, use)
    with qtbot.waitSignal(window.compare_control.compared, timeout=COMPILED_MS):
        QTest.keyClick(window, KEY.Key_O, CTRL | SHIFT)
    diff = window.workspace.panels.compare.diff
    assert diff is not None
    assert [(one.name, one.b) for one in diff.header] == [(f"option {option}", value)]
    return diff


def test_an_option_of_ours(window: MainWindow, qtbot: QtBot) -> None:
    compile_by_keys(qtbot, window, "example:softmax", "fusescope")
    before = {kernel.warps for kernel in window.session.report.kernels}
    assert before != {2}
    diff = what_if(qtbot, window, "num_warps", "2")
    assert {kernel.warps for kernel in window.session.report.kernels} == {2}
    assert Status.FIGURES in {kernel.status for kernel in diff.kernels}
    assert window.tabs.count() == 2, "the report before stays"


def test_an_option_of_inductor(window: MainWindow, qtbot: QtBot) -> None:
    compile_by_keys(qtbot, window, "example:rms_norm_residual", "inductor")
    groups = len(window.session.report.regions[0].groups)
    diff = what_if(qtbot, window, "max_fusion_size", "1")
    assert len(window.session.report.regions[0].groups) > groups
    assert diff.regions[0].groups
