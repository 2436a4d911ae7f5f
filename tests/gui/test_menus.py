"""Every action of the menus by its keys, and by the mouse in its menu."""

from __future__ import annotations

from dataclasses import fields

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from tests.fake_runs import lab_report
from tests.gui.conftest import Answers, MakeWindow, open_laid_out, to_front
from views import main_window
from views.main_window import MainWindow
from views.window.actions import Commands

LEFT = Qt.MouseButton.LeftButton
ENDS = ("quit",)  # a window that is gone can be asked nothing


@pytest.fixture
def done() -> list[str]:
    """The names of commands that were given."""
    return []


@pytest.fixture
def window(
    make_window: MakeWindow, qtbot: QtBot, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> MainWindow:
    """One whose commands only write down that they were given."""

    def noted(_: MainWindow) -> Commands:
        return Commands(**{
            field.name: lambda *given, name=field.name: done.append(name) for field in fields(Commands)
        })  # fmt: skip

    monkeypatch.setattr(main_window, "commands_of", noted)
    made = make_window(worker=False)
    open_laid_out(qtbot, made, lab_report(60))
    to_front(qtbot, made)
    return made


def is_panel(name: str) -> bool:
    """Whether an action shows a panel; the rail's tests press those."""
    return name.startswith("panel_") and name != "panel_before"


def command_of(name: str) -> str:
    """The command that an action gives."""
    return "step_panel" if name in ("next_panel", "panel_before") else name


@pytest.mark.parametrize("where", ["graph", "table", "rail"])
def test_each_shortcut_does_what_it_is_listed_with(
    window: MainWindow, qtbot: QtBot, done: list[str], where: str
) -> None:
    workspace = window.workspace
    places = {"graph": workspace.graph.canvas, "table": workspace.units.table, "rail": workspace.panels.rail.buttons[0]}
    missed = {}
    for name, action in window.menus.by_name.items():
        if action.shortcut().isEmpty() or name in ENDS or is_panel(name):
            continue
        places[where].setFocus()
        action.setEnabled(True)  # also what there is nothing to do for now, as nothing to redo
        done.clear()
        keys = QKeySequence(action.shortcut())[0]
        qtbot.keyClick(places[where], keys.key(), keys.keyboardModifiers())
        if done != [command_of(name)]:
            missed[name] = list(done)
    assert missed == {}


def test_each_action_is_pressed_in_its_menu(window: MainWindow, qtbot: QtBot, done: list[str]) -> None:
    names = {id(action): name for name, action in window.menus.by_name.items()}
    pressed: set[str] = set()
    for title in window.menuBar().actions():
        for name in [names.get(id(one), "") for one in title.menu().actions()]:
            if not name or name in ENDS:
                continue
            done.clear()
            window.menus.by_name[name].setEnabled(True)
            choose(qtbot, window, title, window.menus.by_name[name])
            assert done == [command_of(name)], name
            pressed.add(name)
    assert pressed == {name for name in names.values() if not is_panel(name)} - set(ENDS)


def choose(qtbot: QtBot, window: MainWindow, *path: QAction) -> None:
    """Open a menu of the menu bar, those in it, and press the last action."""
    bar = window.menuBar()
    qtbot.mouseClick(bar, LEFT, pos=bar.actionGeometry(path[0]).center())
    menu: QMenu = path[0].menu()
    for action in path[1:]:
        qtbot.waitUntil(menu.isVisible, timeout=5_000)
        at, below = menu.actionGeometry(action).center(), action.menu()
        qtbot.mouseMove(menu, at)
        qtbot.mouseClick(menu, LEFT, pos=at)  # after which the action may be gone
        menu = below


def test_a_layout_is_kept_put_back_and_forgotten_by_the_mouse(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers
) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(60))
    answers.layout = "Graph only"
    docks = window.workspace.docks

    def in_layouts(*texts: str) -> None:
        view = next(one for one in window.menuBar().actions() if one.text() == "&View")
        path, menu = [view], window.menus.layouts
        path.append(menu.menuAction())
        for text in texts:
            path.append(next(one for one in menu.actions() if one.text() == text))
            menu = path[-1].menu() or menu
        choose(qtbot, window, *path)

    docks.units.close()
    in_layouts("&Keep this layout…")
    in_layouts("&Reset")
    assert docks.units.isVisible()
    in_layouts("Graph only")
    assert not docks.units.isVisible()
    in_layouts("&Forget", "Graph only")
    assert window.settings.layouts == {}


def test_a_theme_and_a_panel_are_chosen_in_their_menus(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(60))
    view = next(one for one in window.menuBar().actions() if one.text() == "&View")
    dark = window.menus.themes["dark"]
    themes = next(one for one in view.menu().actions() if one.menu() is not None and dark in one.menu().actions())
    choose(qtbot, window, view, themes, dark)
    assert window.theme.is_dark
    panels = window.workspace.panels
    choose(qtbot, window, view, window.menus.panels.menuAction(), window.menus.panels.actions()[3])
    assert panels.currentIndex() == 3
    dock = window.menus.docks.actions()[0]
    choose(qtbot, window, view, window.menus.docks.menuAction(), dock)
    assert not window.workspace.docks.units.isVisible()


def test_the_shortcuts_are_shown_by_their_key(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    seen: list[str] = []

    def close() -> None:
        dialog = QApplication.activeModalWidget()
        seen.append(dialog.windowTitle())
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)

    with qtbot.waitActive(window):
        window.activateWindow()
    QTimer.singleShot(100, window, close)
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert len(seen) == 1
    assert QApplication.activeModalWidget() is None
