"""Files dropped on the window by real drag and drop events, and several chosen at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.session import save_session
from compiler.report import Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import Answers, MakeWindow
from tests.gui.test_window import show, texts
from views.main_window import MainWindow

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def report() -> Report:
    return transformer_report(160)


def drop(window: MainWindow, paths: list[Path]) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, no_keys = Qt.DropAction.CopyAction, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(9, 9), copy, mime, LEFT, no_keys)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(window, QDropEvent(QPointF(9, 9), copy, mime, LEFT, no_keys))


def test_dropped_session_opens(make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path) -> None:
    save_session(tmp_path / "a.fscope", report)
    window = make_window(worker=False)
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        drop(window, [tmp_path / "a.fscope"])


def test_each_of_several_dropped_files_has_a_tab(
    make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path
) -> None:
    sessions = [tmp_path / f"{name}.fscope" for name in ("one", "two", "three")]
    for path in sessions:
        save_session(path, report)
    models = [tmp_path / f"{name}.py" for name in ("first", "second")]
    for path in models:
        path.write_text("x = 1")
    window = make_window()
    drop(window, [sessions[0], tmp_path / "gone.fscope", models[0], sessions[1], models[1], sessions[2]])
    names = ["one.fscope", str(models[0]), "two.fscope", str(models[1]), "three.fscope"]
    qtbot.waitUntil(lambda: [document.name for document in window.session.documents] == names, timeout=60_000)
    assert [window.tabs.tabText(place).removesuffix(" •") for place in range(window.tabs.count())] == names
    assert texts(window) == [f"There is no file {tmp_path / 'gone.fscope'}."]


def test_what_one_file_failed_with_goes_when_it_is_compiled(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window()
    for name, messages in (("mlp", 1), ("relu", 0)):
        (tmp_path / f"{name}.py").write_text("x = 1")
        drop(window, [tmp_path / f"{name}.py"])
        qtbot.waitUntil(lambda: not window.compile_control.is_busy, timeout=30_000)
        qtbot.waitUntil(lambda messages=messages: len(texts(window)) == messages, timeout=10_000)


def test_several_files_are_chosen_at_once(
    make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path, answers: Answers
) -> None:
    for name in ("one", "two"):
        save_session(tmp_path / f"{name}.fscope", report)
        answers.to_open.append(str(tmp_path / f"{name}.fscope"))
    window = make_window(worker=False)
    (button,) = [one for one in window.start_page.findChildren(QPushButton) if one.text() == "Open…"]
    qtbot.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: window.tabs.count() == 2, timeout=20_000)
    answers.to_open.clear()
    qtbot.mouseClick(button, LEFT)  # and nothing is chosen
    assert window.tabs.count() == 2


def test_cancelling_leaves_the_other_dropped_files_alone(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, answers: Answers
) -> None:
    models = [tmp_path / name for name in ("softmax.py", "two.py")]  # the first one takes for ever
    for path in models:
        path.write_text("x = 1")
    window = make_window()
    with qtbot.waitActive(window):
        window.activateWindow()
    drop(window, models)
    qtbot.waitUntil(lambda: window.compile_control.current_id > 0, timeout=30_000)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    qtbot.wait(50)
    assert not window.compile_control.is_busy
    assert len(answers.asked) == 1, "the second was not asked about"


def test_a_file_dropped_on_a_line_of_text_is_opened_too(
    make_window: MakeWindow, qtbot: QtBot, report: Report, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    opened: list[str] = []
    window.open_path = opened.append
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "a.fscope"))])
    mime.setText("file:///a.fscope")  # as file managers say beside
    copy, no_keys = Qt.DropAction.CopyAction, Qt.KeyboardModifier.NoModifier
    lines = [line for line in window.findChildren(QLineEdit) if line.isVisible() and line.isEnabled()]
    assert len(lines) >= 3
    for line in lines:
        before = line.text()
        QApplication.sendEvent(line, QDragEnterEvent(QPoint(2, 2), copy, mime, LEFT, no_keys))
        QApplication.sendEvent(line, QDropEvent(QPointF(2, 2), copy, mime, LEFT, no_keys))
        assert line.text() == before
    assert opened == [str(tmp_path / "a.fscope")] * len(lines)
    words = QMimeData()
    words.setText("addmm")
    QApplication.sendEvent(window.toolbar.search, QDragEnterEvent(QPoint(2, 2), copy, words, LEFT, no_keys))
    QApplication.sendEvent(window.toolbar.search, QDropEvent(QPointF(2, 2), copy, words, LEFT, no_keys))
    assert window.toolbar.search.text() == "addmm", "words are typed"
