"""Ctrl+K by real keys: find, walk, go; commands and settings too."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.finder import Entry
from tests.fake_runs import lab_report
from tests.gui.conftest import Answers, MakeWindow, is_seen, open_laid_out
from views.find.palette import Palette
from views.look.theme import light

CTRL = Qt.KeyboardModifier.ControlModifier


def test_find_walk_and_go(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = lab_report(120)
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, report.source)
    qtbot.waitUntil(lambda: bool(window.finder._found), timeout=10_000)
    palette = window.finder.palette

    def ask(text: str) -> None:
        qtbot.keyClick(window, Qt.Key.Key_K, CTRL)
        assert palette.isVisible()
        assert QApplication.focusWidget() is palette.line
        qtbot.keyClicks(palette.line, text)

    group = report.regions[0].groups[2]
    ask(group.name)
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert window.workspace.selection.current.unit == group.name
    ask("addmm")
    first = palette.list.currentIndex().row()
    qtbot.keyClick(palette.line, Qt.Key.Key_Down)
    assert palette.list.currentIndex().row() == first + 1
    target = palette.results.entries[first + 1].target
    place = palette.list.visualRect(palette.list.currentIndex()).center()
    qtbot.mouseClick(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert target[1] in (window.workspace.selection.current.unit, window.workspace.selection.current.node)
    before = window.workspace.selection.current
    ask("x")
    qtbot.keyClick(palette.line, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert window.workspace.selection.current == before, "Escape closed the palette and nothing else"
    ask("self.attn")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    panels = window.workspace.panels
    assert panels.currentWidget() is panels.source
    assert panels.source.code.marked_lines == [3]
    ask("show roofline")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert panels.currentWidget() is panels.roofline
    ask("theme dark")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    assert window.theme.is_dark


def test_enter_waits_for_what_was_typed_among_many(qtbot: QtBot) -> None:
    """They are searched on another thread: Enter must not choose what an earlier letter found."""
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(900, 700)
    window.show()
    palette = Palette(window, light())
    palette.open([Entry("node", f"add_{i}", "aten.add.Tensor", ("region_0", f"add_{i}")) for i in range(9_000)])
    assert palette.results.entries[0].title == "add_0", "what is there before anything is typed"
    with qtbot.waitSignal(palette.chosen, timeout=5_000) as told:
        qtbot.keyClicks(palette.line, "add_8765")
        qtbot.keyClick(palette.line, Qt.Key.Key_Return)
        assert palette.isVisible()
    assert told.args[0].title == "add_8765"
    assert not palette.isVisible()
    chosen: list[Entry] = []
    palette.chosen.connect(chosen.append)
    palette.open(palette._entries)
    qtbot.keyClicks(palette.line, "add_77")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    qtbot.keyClick(palette.line, Qt.Key.Key_Escape)
    qtbot.wait(100)
    assert chosen == [], "Escape takes the Enter back"


def test_what_is_gathered_meanwhile_is_what_was_asked_for(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        window.open_report(lab_report(120), "example:gpt2")
    finder = window.finder
    shift = Qt.KeyboardModifier.ShiftModifier
    for key, modifiers, kind, other in (
        (Qt.Key.Key_F, CTRL | shift, "filter", "group"),
        (Qt.Key.Key_K, CTRL, "group", "filter"),
    ):
        qtbot.waitUntil(lambda: finder._job is None, timeout=10_000)
        finder.set_report(window.session.report)  # as when another one is opened
        qtbot.keyClick(window, key, modifiers)
        assert finder._job is not None
        qtbot.waitUntil(lambda: finder._job is None, timeout=10_000)
        kinds = {entry.kind for entry in finder.palette.results.entries}
        assert kind in kinds
        assert other not in kinds
        qtbot.keyClick(finder.palette.line, Qt.Key.Key_Escape)


def test_commands_before_there_is_a_report(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    with qtbot.waitActive(window):
        window.activateWindow()
    qtbot.keyClick(window, Qt.Key.Key_K, CTRL)
    titles = [entry.title for entry in window.finder.palette.results.entries]
    assert "Open" in titles
    assert "Save" not in titles, "there is nothing to save"


def test_graph_and_tables_are_exported(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, tmp_path: Path
) -> None:
    report = lab_report(120)
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, report.source)
    for name, head in (("graph.svg", b"<?xml"), ("graph.png", b"\x89PNG")):
        answers.to_save = str(tmp_path / name)
        with qtbot.waitSignal(window.workspace.graph.exported):
            qtbot.keyClick(window, Qt.Key.Key_E, CTRL)
        assert (tmp_path / name).read_bytes().startswith(head)
        assert window.statusBar().currentMessage() == f"Saved {name}"
    answers.to_save = str(tmp_path / "no" / "graph.svg")
    qtbot.keyClick(window, Qt.Key.Key_E, CTRL)
    assert "cannot be written" in window.messages.messages[-1].text
    units = window.workspace.units
    lines = units.csv_text().splitlines()
    assert lines[0] == "order,name,kind,kernel,time_us,measured,wasted_us,bytes,flops,error,eager_error"
    assert len(lines) == 1 + len(report.regions[0].groups) + len(report.regions[0].extern_calls)
    wasted = [float(line.split(",")[6]) for line in lines[1:]]
    assert wasted == sorted(wasted, reverse=True)
    assert window.workspace.panels.run.table.csv_text().splitlines()[1].startswith("eager,1200,")


def test_comparisons_are_found_by_what_they_do(make_window: MakeWindow, qtbot: QtBot) -> None:
    """Their menu is called Compare, and is not beside them here."""
    window = make_window(worker=False)
    assert ("Ctrl+D", "Compare with a session") in window.menus.shortcuts()["Compare"]
    open_laid_out(qtbot, window, lab_report(120))
    qtbot.waitUntil(lambda: bool(window.finder._found), timeout=10_000)
    qtbot.keyClick(window, Qt.Key.Key_K, CTRL)
    qtbot.keyClicks(window.finder.palette.line, "compare with the other")
    qtbot.waitUntil(
        lambda: "Compare with the other compiler" in [e.title for e in window.finder.palette.results.entries]
    )


def test_what_is_not_found_is_said_and_the_palette_is_no_taller_than_that(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(900, 700)
    window.show()
    palette = Palette(window, light())
    palette.open([Entry("node", f"add_{number}", "aten.add.Tensor", ("node", "")) for number in range(30)])
    tall = palette.height()
    qtbot.keyClicks(palette.line, "zzzz")
    assert is_seen(palette.nothing)
    assert palette.nothing.text() == "Nothing has 'zzzz' in its name."
    assert palette.height() < tall / 2
    palette.line.clear()
    assert palette.height() == tall
    assert not palette.nothing.isVisible()
