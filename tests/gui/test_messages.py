"""The panel of messages: the latest is above the others, and what is open stays so when one more comes."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel
from pytestqt.qtbot import QtBot

from tests.gui.conftest import is_seen
from views.code.detail import Detail
from views.look import theme
from views.panels.messages import MessagesPanel
from views.widgets.empty import Empty
from views.window.message_bar import Message


def shown(qtbot: QtBot) -> MessagesPanel:
    panel = MessagesPanel(theme.light())
    qtbot.addWidget(panel)
    panel.resize(600, 300)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def told(panel: MessagesPanel) -> list[str]:
    """The sentences, from top to bottom."""
    QApplication.processEvents()
    labels = [one for one in panel.findChildren(QLabel) if one.isVisible() and one.text().startswith("Message ")]
    return [one.text() for one in sorted(labels, key=lambda one: one.mapTo(panel, one.pos()).y())]


def test_the_latest_message_is_above_the_others(qtbot: QtBot) -> None:
    panel = shown(qtbot)
    assert panel.findChild(Empty).isVisible()
    for number in range(3):
        panel.add(Message("info", f"Message {number}"))
    assert told(panel) == ["Message 2", "Message 1", "Message 0"]
    assert not panel.findChild(Empty).isVisible()


def test_details_stay_open_when_one_more_comes_and_follow_the_theme(qtbot: QtBot) -> None:
    panel = shown(qtbot)
    panel.add(Message("error", "Message 0", detail="Traceback …"))
    assert told(panel) == ["Message 0"]
    (more,) = panel.findChildren(QAbstractButton)
    qtbot.mouseClick(more, Qt.MouseButton.LeftButton)
    panel.add(Message("info", "Message 1"))
    assert told(panel) == ["Message 1", "Message 0"]
    detail = panel.findChild(Detail)
    assert more.text() == "Hide details"
    assert is_seen(detail.viewport())
    before = detail.grab().toImage().pixelColor(2, 2)
    panel.set_theme(theme.dark())
    assert is_seen(detail.viewport())
    assert detail.grab().toImage().pixelColor(2, 2) != before


def test_of_very_many_messages_the_oldest_go(qtbot: QtBot) -> None:
    panel = shown(qtbot)
    for number in range(203):
        panel.add(Message("info", f"Message {number}"))
    assert panel.count == 200
    assert told(panel) == [f"Message {number}" for number in range(202, 2, -1)]
