"""Logs of torch through the File menu, and what is no log."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytestqt.qtbot import QtBot

from tests.gui.conftest import Answers, MakeWindow

TRACES = Path(__file__).parents[1] / "fixtures" / "traces"


def test_a_folder_with_a_log_opens(make_window: MakeWindow, answers: Answers, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window(worker=False)
    shutil.copy(TRACES / "h100.log", tmp_path / "dedicated_log_torch_trace_x.log")
    answers.to_import = str(tmp_path)
    window.menus.by_name["import_trace"].trigger()
    qtbot.waitUntil(lambda: window.session.report is not None, timeout=20_000)
    report = window.session.report
    assert report is not None
    assert report.source == "trace:dedicated_log_torch_trace_x.log"
    assert window.session.is_modified  # it is no session file yet
    assert window.workspace.graph.canvas.isVisible()


def test_another_folder_is_refused_in_a_sentence(
    make_window: MakeWindow, answers: Answers, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    answers.to_import = str(tmp_path)
    window.menus.by_name["import_trace"].trigger()
    qtbot.waitUntil(lambda: bool(window.messages.history), timeout=20_000)
    assert "TORCH_TRACE" in window.messages.history[-1].text
    assert window.session.report is None
