"""The list of shortcuts is whole and true."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from tests.gui.conftest import MakeWindow
from views.code.code_view import CodeView
from views.look.theme import light
from views.window.shortcuts import CODE_KEYS, shortcuts_dialog

KEYS = [one for keys, _ in CODE_KEYS for one in keys.split(", ") if one not in ("Arrows", "Enter")]


@pytest.mark.parametrize("keys", [*KEYS, "Left", "Shift+Down", "Ctrl+Right", "Ctrl+Up", "Ctrl+Home", "Ctrl+End"])
def test_a_text_of_code_takes_the_keys_that_are_listed(qtbot: QtBot, keys: str) -> None:
    view = CodeView(light())
    qtbot.addWidget(view)
    pressed = QKeySequence.fromString(keys)[0]
    event = QKeyEvent(QEvent.Type.KeyPress, pressed.key(), pressed.keyboardModifiers())
    assert view.wants_key(event)


def test_all_that_has_keys_is_listed_and_nothing_is_wider_than_the_window(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(worker=False)
    window.resize(1024, 700)
    groups = window.menus.shortcuts()
    assert {"File", "Compile", "Compare", "View", "Help"} <= set(groups)
    dialog = shortcuts_dialog(window, groups)
    dialog.show()
    texts = [one.text() for one in dialog.findChildren(QLabel)]
    for title, rows in groups.items():
        assert title in texts
        assert all(any(text.removeprefix("Show ") in shown for shown in texts) for _, text in rows)
    assert {"In the graph", "In code", "Go to a line", "Ctrl+G", "Group by modules, or by fusion groups"} <= set(texts)
    assert dialog.width() <= window.width()
    assert dialog.height() <= window.height()
    dialog.close()
