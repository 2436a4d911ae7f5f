"""The window as a desktop citizen: every control reached by Tab and named, layouts kept, long work announced."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.settings import Settings, load_settings, save_settings
from tests.fake_runs import lab_report
from tests.gui.conftest import Answers, MakeWindow, open_laid_out, settle, to_front
from views import main_window
from views.main_window import MainWindow
from views.window import notify

CTRL, ALT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier


def opened(make_window: MakeWindow, qtbot: QtBot, settings: Settings | None = None) -> MainWindow:
    window = make_window(settings, worker=False)
    open_laid_out(qtbot, window, lab_report(160))
    QApplication.processEvents()
    return window


def controls(window: MainWindow) -> list[QWidget]:
    """What the user can give the keyboard to now."""
    return [
        widget
        for widget in window.findChildren(QWidget)
        if widget.isVisible()
        and widget.isEnabled()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
        and not isinstance(widget, QLabel)  # text that the mouse can mark
    ]


def walked(window: MainWindow) -> set[QWidget]:
    """Where Tab comes by from the graph, until it is there again."""
    window.workspace.graph.canvas.setFocus()
    found: set[QWidget] = set()
    for _ in range(400):
        widget = QApplication.focusWidget()
        if widget is None or (widget in found and widget is window.workspace.graph.canvas):
            break
        found.add(widget)
        QTest.keyClick(widget, Qt.Key.Key_Tab)
    return found


def is_one_of_several(widget: QWidget) -> bool:
    """A button of a group: Tab goes to the one that is down, arrows to the others."""
    return isinstance(widget, QAbstractButton) and widget.group() is not None and not widget.isChecked()


def test_tab_reaches_every_control_and_each_has_a_name(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = opened(make_window, qtbot)
    panels = window.workspace.panels
    window.workspace.select_unit(window.workspace.index.region.groups[0].name)
    for place in range(panels.count()):
        panels.setCurrentIndex(place)
        qtbot.wait(120)
        reached = walked(window)
        for widget in controls(window):
            what = f"{type(widget).__name__} '{widget.accessibleName()}' with {panels.title(place)} in front"
            text = widget.text() if isinstance(widget, QAbstractButton) else ""
            assert widget.accessibleName() or text, f"no name: {what}"
            assert widget in reached or is_one_of_several(widget), f"out of Tab's way: {what}"


def test_the_start_page_too(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    reached: set[QWidget] = set()
    to_front(qtbot, window)
    window.start_page.setFocus()
    for _ in range(120):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        if (widget := QApplication.focusWidget()) is not None:
            reached.add(widget)
    for widget in controls(window):
        text = widget.text() if isinstance(widget, QAbstractButton) else ""
        assert widget.accessibleName() or text, type(widget).__name__
        assert widget in reached or isinstance(widget, QTabBar | QComboBox), f"'{widget.accessibleName()}' {text}"


def test_a_layout_is_kept_by_name_and_put_back(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = Settings()
    window = opened(make_window, qtbot, settings)
    docks = window.workspace.docks
    answers.layout = "Graph only"
    docks.units.close()
    docks.panels.close()
    window.layouts.keep_current()
    assert list(settings.layouts) == ["Graph only"]
    qtbot.keyClick(window, Qt.Key.Key_0, CTRL | ALT)
    assert all(dock.isVisible() for dock in docks.all)
    qtbot.keyClick(window, Qt.Key.Key_1, CTRL | ALT)
    assert not docks.units.isVisible()
    assert docks.inspector.isVisible()
    file = tmp_path_factory.mktemp("settings") / "settings.json"
    assert save_settings(file, settings)
    assert load_settings(file).layouts == settings.layouts
    forget = next(action.menu() for action in window.menus.layouts.actions() if action.menu() is not None)
    forget.actions()[0].trigger()
    assert settings.layouts == {}


@pytest.mark.parametrize("start_page", [True, False])
def test_a_layout_has_its_shares_in_a_window_of_another_size(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, start_page: bool
) -> None:
    window = make_window(worker=False)
    window.resize(2200, 1600)
    open_laid_out(qtbot, window, lab_report(60))
    docks = window.workspace.docks
    QApplication.processEvents()
    docks.reset()
    qtbot.waitUntil(lambda: docks.panels.height() > 500, timeout=5_000)
    answers.layout = "Large"
    window.layouts.keep_current()
    before = docks.panels.height() / window.height()
    if start_page:
        window.show_start_page()
    window.resize(1300, 900)
    if start_page:
        window.show_workspace()
    else:
        qtbot.keyClick(window, Qt.Key.Key_1, CTRL | ALT)
    qtbot.waitUntil(lambda: abs(docks.panels.height() / window.height() - before) < 0.06, timeout=5_000)
    assert window.workspace.graph.canvas.height() > window.height() // 4


def test_light_and_dark_follow_the_system_while_the_window_is_open(
    make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(make_window, qtbot, Settings(theme="system"))
    canvas = window.workspace.graph.canvas
    for dark in (True, False, True):
        monkeypatch.setattr(main_window, "system_is_dark", lambda dark=dark: dark)
        scheme = Qt.ColorScheme.Dark if dark else Qt.ColorScheme.Light
        QGuiApplication.styleHints().colorSchemeChanged.emit(scheme)
        assert window.theme.is_dark is dark
        settle()
        assert (canvas.grab().toImage().pixelColor(3, 3).lightness() < 90) is dark
        assert (window.palette().window().color().lightness() < 90) is dark
    window.set_theme("light")
    QGuiApplication.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert not window.theme.is_dark, "a theme that was chosen stays"


def test_the_end_of_long_work_is_announced_where_nobody_looks(
    make_window: MakeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make_window(worker=False)
    notifier = notify.Notifier(window)
    alerts: list[QWidget] = []
    monkeypatch.setattr(QApplication, "alert", lambda widget, ms=0: alerts.append(widget))
    clock = [100.0]
    monkeypatch.setattr(notify.time, "monotonic", lambda: clock[0])
    focused = [False]
    monkeypatch.setattr(window, "isActiveWindow", lambda: focused[0])
    notifier.begin()
    clock[0] += notify.LONG_S - 1
    assert not notifier.end("done"), "short work is waited for"
    clock[0] += 2
    focused[0] = True
    assert not notifier.end("done"), "the user is looking"
    focused[0] = False
    assert notifier.end("done")
    assert alerts == [window]


def test_what_takes_long_is_announced_when_it_ends(
    make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make_window(gpu=True)
    told: list[str] = []
    monkeypatch.setattr(notify.Notifier, "begin", lambda self: told.append("begins"))
    monkeypatch.setattr(notify.Notifier, "end", lambda self, text: told.append(text))
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        window.open_path("example:relu_add_mul")
    qtbot.keyClick(window, Qt.Key.Key_F8)
    qtbot.waitUntil(lambda: window.session.report.numerics is not None, timeout=30_000)
    compiled, checked = "The compilation of example:relu_add_mul has ended.", "The check of the numbers has ended."
    assert told == ["begins", compiled, "begins", checked]


def test_views_are_undone_from_the_menu_and_by_keys(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    undo, redo = (window.menus.by_name[name] for name in ("undo_view", "redo_view"))
    assert not undo.isEnabled()
    assert {"Ctrl+Z", "Ctrl+Shift+Z"} <= {keys for keys, _ in window.menus.shortcuts()["View"]}
    graph = window.workspace.graph
    with qtbot.waitSignal(graph.laid_out, timeout=20_000):
        window.open_report(lab_report(160), "example:gpt2")
    graph.overlays.setFocus()
    qtbot.keyClick(graph.overlays, Qt.Key.Key_Down)
    assert (undo.isEnabled(), redo.isEnabled()) == (True, False)
    qtbot.keyClick(window.workspace.units.table, Qt.Key.Key_Z, CTRL)  # wherever the keyboard is
    qtbot.waitUntil(lambda: graph.legend.kind == "decision", timeout=5_000)
    assert (undo.isEnabled(), redo.isEnabled()) == (False, True)
    redo.trigger()
    qtbot.waitUntil(lambda: graph.legend.kind == "time", timeout=5_000)
    assert (undo.isEnabled(), redo.isEnabled()) == (True, False)
    window.toolbar.search.setText("add")
    window.toolbar.search.setFocus()
    qtbot.keyClicks(window.toolbar.search, "x")
    qtbot.keyClick(window.toolbar.search, Qt.Key.Key_Z, CTRL)
    assert graph.legend.kind == "time", "in a line of text the key undoes the typing"
    window.show_start_page()
    assert not undo.isEnabled()
    window.show_workspace()
    assert undo.isEnabled()


def test_docks_come_one_by_one_and_all_of_them(make_window: MakeWindow, qtbot: QtBot) -> None:
    """Each is painted in a turn of its own, also where the start page came in between."""
    window = opened(make_window, qtbot)
    docks = window.workspace.docks.all
    qtbot.waitUntil(lambda: all(dock.updatesEnabled() for dock in docks), timeout=2_000)
    for _ in range(2):
        window.show_start_page()
        window.show_workspace()
    assert all(dock.isVisible() for dock in docks)
    assert not any(dock.updatesEnabled() for dock in docks)
    window.show_start_page()
    qtbot.waitUntil(lambda: all(dock.updatesEnabled() for dock in docks), timeout=2_000)
