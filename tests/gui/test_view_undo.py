"""Ctrl+Z walks back through every change of the view: filters, search, pin, colours, grouping, boxes, region."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.filters import Filter, FilterKind
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out
from tests.gui.test_one_selection import click_unit
from views.graph.view_history import Around
from views.main_window import MainWindow

LEFT = Qt.MouseButton.LeftButton
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    report = lab_report(200)
    report.regions.append(msgspec.structs.replace(report.regions[0], name="region_1"))
    window = make_window(worker=False)
    open_laid_out(qtbot, window, report)
    QApplication.processEvents()
    window.workspace.graph.canvas.setFocus()
    return window


def undo(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window.workspace.graph.canvas, Qt.Key.Key_Z, CTRL)
    at_rest(qtbot, window)


def redo(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window.workspace.graph.canvas, Qt.Key.Key_Z, CTRL | SHIFT)
    at_rest(qtbot, window)


def at_rest(qtbot: QtBot, window: MainWindow) -> None:
    graph, filters = window.workspace.graph, window.workspace.filters
    qtbot.waitUntil(lambda: filters._job is None and (filters.kept is None) == (not filters.filters), timeout=10_000)
    qtbot.waitUntil(lambda: graph._goal is None and graph.canvas._motion.goal is None, timeout=10_000)


def dimmed(window: MainWindow) -> bool:
    return window.workspace.graph.canvas._marks.kept is not None


def steps(window: MainWindow) -> int:
    return len(window.workspace.graph._history.before)


def test_filters_come_back_one_by_one(window: MainWindow, qtbot: QtBot) -> None:
    filters = window.workspace.filters
    first, second = Filter(FilterKind.DTYPE, "int64"), Filter(FilterKind.GROUP, "group0")
    filters.add(first)
    at_rest(qtbot, window)
    filters.add(second)
    at_rest(qtbot, window)
    qtbot.mouseClick(window.filters.bar.chips[0], LEFT)
    at_rest(qtbot, window)
    assert filters.filters == (second,)
    qtbot.keyClick(window, Qt.Key.Key_X, CTRL | SHIFT)
    assert not dimmed(window)
    for expected in ((second,), (first, second), (first,), ()):
        undo(qtbot, window)
        assert filters.filters == expected
        assert dimmed(window) is bool(expected)
        assert len(window.filters.bar.chips) == len(expected)
    redo(qtbot, window)
    assert filters.filters == (first,)
    assert dimmed(window)


def test_a_search_is_one_step(window: MainWindow, qtbot: QtBot) -> None:
    search, canvas = window.toolbar.search, window.workspace.graph.canvas
    before = steps(window)
    qtbot.keyClicks(search, "add")
    assert canvas._matches
    assert steps(window) == before + 1
    undo(qtbot, window)
    assert search.text() == ""
    assert not canvas._matches
    redo(qtbot, window)
    assert search.text() == "add"
    assert canvas._matches
    search.setFocus()
    qtbot.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    undo(qtbot, window)
    assert search.text() == "add"


def test_what_is_searched_for_stays_marked_in_another_layout(window: MainWindow, qtbot: QtBot) -> None:
    graph = window.workspace.graph
    qtbot.keyClicks(window.toolbar.search, "rsqrt")
    found = set(graph.canvas._matches) & set(graph.canvas.scene.index)
    assert found
    with qtbot.waitSignal(graph.modules.ready, timeout=10_000):
        qtbot.keyClick(graph.canvas, Qt.Key.Key_M)
    assert set(graph.canvas._matches) & set(graph.canvas.scene.index) == found
    with qtbot.waitSignal(graph.modules.ready, timeout=10_000):
        qtbot.keyClick(graph.canvas, Qt.Key.Key_BracketRight)
    marks = graph.canvas._marks
    graph.canvas.set_search("rsqrt")
    assert graph.canvas._marks == marks, "closed boxes are marked as a search in this layout would"


def test_a_pin_comes_back(window: MainWindow, qtbot: QtBot) -> None:
    selection = window.workspace.selection
    click_unit(qtbot, window, "group0")
    qtbot.keyClick(window, Qt.Key.Key_P)
    pinned = selection.pinned
    assert pinned is not None
    at_rest(qtbot, window)
    undo(qtbot, window)
    assert selection.pinned is None
    assert not window.workspace.graph.canvas._marks.pinned
    redo(qtbot, window)
    assert selection.pinned == pinned
    assert window.workspace.graph.canvas._marks.pinned


def changes(window: MainWindow, qtbot: QtBot) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """How a user changes something, and what is different then."""
    graph = window.workspace.graph
    return {
        "overlay": (
            lambda: qtbot.keyClick(graph.overlays, Qt.Key.Key_Down),
            lambda: (graph.legend.kind, window.workspace.units.table.horizontalHeader().visualIndex(2)),
        ),
        "grouping": (lambda: qtbot.keyClick(graph.canvas, Qt.Key.Key_M), lambda: graph.grouping),
        "region": (lambda: graph.tabs.setCurrentIndex(1), lambda: graph.region.name),
        "jump": (lambda: qtbot.keyClick(graph.canvas, Qt.Key.Key_F), lambda: round(graph.canvas.camera.scale, 4)),
    }


@pytest.mark.parametrize("kind", ["overlay", "grouping", "region", "jump"])
def test_each_change_is_undone_with_filters_in_place(window: MainWindow, qtbot: QtBot, kind: str) -> None:
    change, state = changes(window, qtbot)[kind]
    window.workspace.filters.add(Filter(FilterKind.GROUP, "group0"))
    at_rest(qtbot, window)
    before = state()
    change()
    qtbot.waitUntil(lambda: state() != before, timeout=10_000)
    graph = window.workspace.graph
    qtbot.waitUntil(lambda: graph.canvas.scene.region is graph.region, timeout=10_000)
    qtbot.waitUntil(lambda: graph._shown_grouping == graph.grouping, timeout=10_000)
    at_rest(qtbot, window)
    changed = state()
    undo(qtbot, window)
    qtbot.waitUntil(lambda: state() == before, timeout=10_000)
    assert len(window.workspace.filters.filters) == 1
    assert dimmed(window)
    redo(qtbot, window)
    qtbot.waitUntil(lambda: state() == changed, timeout=10_000)


def test_open_boxes_come_back_and_the_search_with_them(window: MainWindow, qtbot: QtBot) -> None:
    graph = window.workspace.graph
    with qtbot.waitSignal(graph.modules.ready, timeout=10_000):
        qtbot.keyClick(graph.canvas, Qt.Key.Key_M)
    opened = len(graph.canvas.scene.boxes)
    with qtbot.waitSignal(graph.modules.ready, timeout=10_000):
        qtbot.keyClick(graph.canvas, Qt.Key.Key_BracketLeft)
    more = len(graph.canvas.scene.boxes)
    assert more > opened
    qtbot.keyClicks(window.toolbar.search, "add")
    undo(qtbot, window)
    assert (window.toolbar.search.text(), len(graph.canvas.scene.boxes)) == ("", more)
    undo(qtbot, window)
    assert len(graph.canvas.scene.boxes) == opened
    redo(qtbot, window)
    assert len(graph.canvas.scene.boxes) == more
    redo(qtbot, window)
    assert window.toolbar.search.text() == "add"


def test_undoing_filters_moves_nothing_else(window: MainWindow, qtbot: QtBot) -> None:
    graph = window.workspace.graph
    window.workspace.filters.add(Filter(FilterKind.GROUP, "group0"))
    at_rest(qtbot, window)
    scene, camera = graph.canvas.scene, graph.canvas.camera
    undo(qtbot, window)
    assert graph.canvas.scene is scene, "the layout is not made or shown anew"
    assert graph.canvas.camera == camera


def test_another_report_has_nothing_to_undo(window: MainWindow, qtbot: QtBot) -> None:
    window.workspace.filters.add(Filter(FilterKind.GROUP, "group0"))
    qtbot.keyClicks(window.toolbar.search, "add")
    at_rest(qtbot, window)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(lab_report(120), "another")
    QApplication.processEvents()
    assert window.workspace.graph.around == Around()
    assert window.toolbar.search.text() == ""
    assert not window.menus.by_name["undo_view"].isEnabled()


def test_what_counts_as_going_on_with_a_search() -> None:
    typed = [Around(search=text) for text in ("", "a", "ad", "x")]
    assert not typed[1].goes_on(typed[0])
    assert typed[2].goes_on(typed[1])
    assert typed[1].goes_on(typed[2])
    assert not typed[3].goes_on(typed[2])
    assert not typed[0].goes_on(typed[1])
    assert not Around((Filter(FilterKind.OP, "o"),), "ad").goes_on(typed[1])


def test_a_filter_brings_what_it_leaves_into_sight_and_one_undo_goes_back(window: MainWindow, qtbot: QtBot) -> None:
    graph, filters = window.workspace.graph, window.workspace.filters
    canvas = graph.canvas
    last = graph.region.groups[-1]
    before = canvas.camera
    assert not canvas.shows(last.nodes[:1])
    filters.add(Filter(FilterKind.GROUP, last.name))
    at_rest(qtbot, window)
    assert canvas.shows(last.nodes[:1])
    undo(qtbot, window)
    assert not filters.filters
    assert canvas.camera == before
    redo(qtbot, window)
    assert canvas.shows(last.nodes[:1])
    seen = canvas.camera
    filters.add(Filter(FilterKind.OP, next(node.op for node in graph.region.nodes if node.name == last.nodes[0])))
    at_rest(qtbot, window)
    assert canvas.camera == seen, "what is left is in sight already"
