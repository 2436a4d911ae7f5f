"""Questions that block, by real keys and clicks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from views.widgets.question import Question
from views.window.dialogs import Dialogs

ENTER, ESCAPE = Qt.Key.Key_Return, Qt.Key.Key_Escape


@pytest.fixture
def dialogs(qtbot: QtBot) -> Dialogs:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()
    return Dialogs(parent)


def answered(qtbot: QtBot, ask: Callable[[], object], answer: Callable[[Question], object]) -> object:
    """What ``ask`` gives when ``answer`` was done to its dialog."""

    def when_there() -> None:
        (asked,) = [one for one in QApplication.topLevelWidgets() if isinstance(one, Question) and one.isVisible()]
        answer(asked)

    QTimer.singleShot(0, when_there)
    return ask()


def press(qtbot: QtBot, text: str) -> Callable[[Question], None]:
    def do(asked: Question) -> None:
        (button,) = [one for one in asked.findChildren(QPushButton) if one.text() == text]
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    return do


def test_unsaved_changes_are_saved_by_enter_and_kept_by_escape(qtbot: QtBot, dialogs: Dialogs) -> None:
    def ask() -> str:
        return dialogs.unsaved("example:gpt2")

    assert answered(qtbot, ask, lambda asked: qtbot.keyClick(asked, ENTER)) == "save"
    assert answered(qtbot, ask, lambda asked: qtbot.keyClick(asked, ESCAPE)) == "cancel"
    assert answered(qtbot, ask, press(qtbot, "Discard")) == "discard"


def test_consent_is_not_given_by_enter(qtbot: QtBot, dialogs: Dialogs) -> None:
    def ask() -> bool:
        return dialogs.agree("Run this file?", "model.py is run as a program.", "Run it")

    assert answered(qtbot, ask, lambda asked: qtbot.keyClick(asked, ENTER)) is False
    assert answered(qtbot, ask, press(qtbot, "Run it")) is True


def test_a_layout_is_named_by_typing(qtbot: QtBot, dialogs: Dialogs) -> None:
    def type_name(asked: Question) -> None:
        qtbot.keyClicks(asked.focusWidget(), "Timing 2")
        qtbot.keyClick(asked.focusWidget(), ENTER)

    assert answered(qtbot, lambda: dialogs.layout_name(["Timing"]), type_name) == "Timing 2"
    assert answered(qtbot, lambda: dialogs.layout_name([]), lambda asked: qtbot.keyClick(asked, ESCAPE)) == ""
