"""Several reports open at once: tabs by mouse and keys, changes asked about, records land in their own report."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QTabBar
from pytestqt.qtbot import QtBot

from app.session import open_session, save_session
from app.worker.protocol import Measured
from compiler.report import Measurement, Percentiles, Trace, TraceEvent
from tests.fake_reports import transformer_report
from tests.gui.conftest import Answers, MakeWindow, to_front
from views.main_window import MainWindow
from views.run.control import keep_measured
from views.sessions.documents import Document
from views.window.guide import Guide, steps_of
from views.window.message_bar import Message

LEFT, CTRL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier


def show(qtbot: QtBot, window: MainWindow, nodes: int, source: str) -> None:
    report = transformer_report(nodes)
    report.source = source
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, source)


def close_button(window: MainWindow, place: int) -> QAbstractButton:
    button = window.tabs.tabButton(place, QTabBar.ButtonPosition.RightSide)
    assert isinstance(button, QAbstractButton)
    return button


def test_tabs_of_one_source_say_what_tells_them_apart(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "one.py")
    window.session.report.options = {"num_warps": "8"}
    show(qtbot, window, 60, "one.py")
    texts = [window.tabs.tabText(place) for place in range(2)]
    assert texts == ["one.py (Fusescope, num_warps=8) •", "one.py (Fusescope, num_warps=default) •"]
    show(qtbot, window, 60, "two.py")
    assert window.tabs.tabText(2) == "two.py •"


def test_tabs_of_reports_that_differ_in_what_was_measured_or_in_nothing(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    measured = Measurement("graph", "GPU", 1, Percentiles(1.0, 1.0, 1.0), Percentiles(1.0, 1.0, 1.0))
    texts: list[str] = []
    for _ in range(3):
        show(qtbot, window, 60, "one.py")
        texts = [window.tabs.tabText(place).removesuffix(" •") for place in range(window.tabs.count())]
        keep_measured(window.session.report, Measured(1, measured))
    measured_twice = ["one.py (Fusescope, measured) 1", "one.py (Fusescope, measured) 2"]
    assert texts == [*measured_twice, "one.py (Fusescope, not measured)"]


def test_tabs_of_files_that_are_called_the_same_name_their_folders(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        save_session(tmp_path / folder / "run.fscope", transformer_report(60))
        with qtbot.waitSignal(window.report_shown, timeout=20_000):
            window.open_path(str(tmp_path / folder / "run.fscope"))
    texts = [window.tabs.tabText(place) for place in range(2)]
    assert texts == ["run.fscope (in before, Fusescope)", "run.fscope (in after, Fusescope)"]


def test_tabs_switch_and_close(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, tmp_path: Path
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "one.py")
    assert not window.tabs.isVisible(), "one report needs no tab"
    show(qtbot, window, 120, "two.py")
    assert window.tabs.isVisible()
    assert [window.tabs.tabText(i) for i in range(2)] == ["one.py •", "two.py •"]
    first, second = window.session.documents
    qtbot.mouseClick(window.tabs, LEFT, pos=window.tabs.tabRect(0).center())
    assert window.session.report is first.report
    assert window.workspace.graph.regions == first.report.regions
    assert window.toolbar.source.text() == "one.py"
    qtbot.waitUntil(lambda: window.workspace.graph.canvas.scene is not None, timeout=10_000)
    qtbot.keyClick(window, Qt.Key.Key_PageDown, CTRL)
    assert window.session.report is second.report
    answers.to_save = str(tmp_path / "two.fscope")
    with qtbot.waitSignal(window.session.saved, timeout=10_000):
        qtbot.keyClick(window, Qt.Key.Key_S, CTRL)
    assert window.tabs.tabText(1) == "two.fscope"
    assert open_session(tmp_path / "two.fscope").report.source == "two.py"
    answers.leave = "cancel"
    qtbot.mouseClick(close_button(window, 0), LEFT)
    assert len(window.session.documents) == 2, "the user stayed"
    answers.leave = "discard"
    qtbot.mouseClick(close_button(window, 0), LEFT)
    assert window.session.documents == [second]
    assert not window.tabs.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_W, CTRL)
    assert window.session.documents == []
    assert window.start_page.isVisible()


def test_the_same_file_opens_once(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window(worker=False)
    save_session(tmp_path / "a.fscope", transformer_report(60))
    for name in ("a.fscope", "a.fscope", f"../{tmp_path.name}/a.fscope"):
        with qtbot.waitSignal(window.report_shown, timeout=20_000):
            window.open_path(f"{tmp_path}/{name}")
    assert len(window.session.documents) == 1


def test_what_was_measured_is_not_lost_by_opening_its_file_again(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, tmp_path: Path
) -> None:
    window, file = make_window(worker=False), str(tmp_path / "a.fscope")
    save_session(Path(file), transformer_report(60))
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        window.open_path(file)
    report = window.session.report
    window.session.touch(report)
    answers.leave = "cancel"
    window.open_path(file)
    assert answers.asked == ["a.fscope"]
    assert window.session._opening is None, "it stays as it is"
    answers.leave = "discard"
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        window.open_path(file)
    assert window.session.report is not report
    assert not window.session.is_modified


def test_of_large_reports_only_the_last_wish_is_shown(make_window: MakeWindow, qtbot: QtBot) -> None:
    """They are shown in turns: another report may be wanted, and one closed, before the last turn."""
    window = make_window(worker=False)
    show(qtbot, window, 1600, "example:first")
    show(qtbot, window, 1700, "example:second")
    first, second = window.session.documents
    shown: list[str] = []
    window.report_shown.connect(lambda: shown.append(window.workspace.graph.region.name))
    for _ in range(3):
        qtbot.keyClick(window, Qt.Key.Key_PageDown, CTRL)
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        pass
    assert window.session.current is first
    assert window.workspace.graph.regions == first.report.regions
    assert window.status.target.text() == f"Target: {first.report.target.title}"
    qtbot.wait(30)
    assert len(shown) == 1, "the wishes before it ended early"
    qtbot.keyClick(window, Qt.Key.Key_PageDown, CTRL)
    window.session.discard_changes()
    for document in (second, first):
        window.close_document(document)
    qtbot.wait(30)
    assert window.start_page.isVisible(), "no turn of a closed report brings its panels back"


def test_what_was_measured_keeps_its_tab() -> None:
    report = transformer_report(60)
    document = Document(report, None, True, dict)
    assert document.is_replaced_by(transformer_report(60), None), "compiled again"
    measured = Percentiles(1.0, 1.0, 1.0)
    (region, *_), (group, *_) = report.regions, report.regions[0].groups
    ran = TraceEvent(group.kernel, 0.0, 3.5, "stream 7", unit=f"{region.name}/{group.name}")
    event = Measured(1, Measurement("graph", "GPU", 1, measured, measured), None, Trace("graph", "GPU", [ran]))
    keep_measured(report, event)
    keep_measured(report, event)
    assert [m.mode for m in report.measurements] == ["graph"]
    assert len(report.traces) == 1
    assert {kernel.name: kernel.measured_us for kernel in report.kernels if kernel.measured_us} == {group.kernel: 3.5}
    assert not document.is_replaced_by(transformer_report(60), None)
    assert document.is_replaced_by(report, None)


def test_the_tour_goes_through_six_steps(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    button = next(b for b in window.start_page.findChildren(QAbstractButton) if b.text().startswith("Take the tour"))
    with qtbot.waitSignal(window.report_shown, timeout=20_000):
        qtbot.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: window.findChild(Guide) is not None, timeout=5_000)
    guide = window.findChild(Guide)
    titles = []
    for _ in range(6):
        titles.append(guide.title.text())
        assert window.rect().contains(guide.card.geometry()), titles[-1]
        assert guide.text.height() >= guide.text.heightForWidth(guide.text.width()), "all of the text is there"
        qtbot.keyClick(guide.next, Qt.Key.Key_Space if len(titles) % 2 else Qt.Key.Key_Return)
    assert len(set(titles)) == 6
    qtbot.waitUntil(lambda: window.findChild(Guide) is None, timeout=5_000)
    assert window.workspace.panels.currentWidget() is window.workspace.panels.cuda_graph


def test_the_tour_is_left_by_escape_and_with_the_report(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "one.py")
    to_front(qtbot, window)
    tour = window.menus.by_name["tour"]

    def begin() -> Guide:
        before = window.findChildren(Guide)
        tour.trigger()
        qtbot.waitUntil(lambda: len(window.findChildren(Guide)) == 1 and window.findChild(Guide) not in before)
        return window.findChild(Guide)

    guide = begin()
    qtbot.keyClick(guide.next, Qt.Key.Key_Escape)
    assert not guide.card.isVisible()
    assert QApplication.focusWidget() is window.workspace.graph.canvas
    begin()
    guide = begin()  # the one before ends
    window.workspace.docks.units.close()
    qtbot.keyClick(guide.next, Qt.Key.Key_Space)
    assert window.workspace.units.isVisible(), "what a step is about is brought back"
    assert guide.place == 1
    qtbot.keyClick(window, Qt.Key.Key_H, CTRL)
    qtbot.waitUntil(lambda: window.findChild(Guide) is None, timeout=5_000)


def test_the_tour_stays_with_what_it_is_about(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "one.py")
    canvas = window.workspace.graph.canvas
    guide = Guide(window, steps_of(window.workspace, window.toolbar.search), window.theme)
    before = canvas.mapTo(window, QPoint(0, 0))
    window.post(Message("info", "The graph makes room for this.", "So it moves down."))
    qtbot.waitUntil(lambda: canvas.mapTo(window, QPoint(0, 0)).y() > before.y(), timeout=5_000)
    place = QRect(canvas.mapTo(window, QPoint(0, 0)), canvas.size())
    assert guide._frame.geometry() == place.adjusted(-3, -3, 3, 3)
    guide.leave()


def test_every_way_back_from_the_start_page(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    assert not window.tabs.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.start_page.isVisible(), "there is nothing to go back to"
    show(qtbot, window, 60, "one.py")
    graph = window.workspace.graph
    home = next(b for b in window.toolbar.findChildren(QAbstractButton) if b.accessibleName().startswith("Start page"))

    def at_the_tab() -> None:
        qtbot.mouseClick(window.tabs, LEFT, pos=window.tabs.tabRect(0).center())

    for back in (
        lambda: qtbot.keyClick(window, Qt.Key.Key_Escape),
        lambda: qtbot.keyClick(window, Qt.Key.Key_H, CTRL),
        lambda: qtbot.keyClick(window, Qt.Key.Key_PageDown, CTRL),
        lambda: qtbot.mouseClick(home, LEFT),
        at_the_tab,
    ):
        qtbot.mouseClick(home, LEFT)
        assert window.start_page.isVisible()
        assert window.tabs.isVisible(), "what is loaded is named"
        back()
        assert graph.isVisible()
        assert not window.tabs.isVisible()
    show(qtbot, window, 80, "two.py")
    for place in (1, 0):
        qtbot.keyClick(window, Qt.Key.Key_H, CTRL)
        qtbot.mouseClick(window.tabs, LEFT, pos=window.tabs.tabRect(place).center())
        qtbot.waitUntil(graph.isVisible, timeout=10_000)
        assert graph.report is window.session.documents[place].report


def test_what_is_found_is_shown_from_the_start_page_too(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "one.py")
    qtbot.waitUntil(lambda: bool(window.finder._found), timeout=10_000)
    group = window.session.report.regions[0].groups[0].name
    qtbot.keyClick(window, Qt.Key.Key_H, CTRL)
    qtbot.keyClick(window, Qt.Key.Key_K, CTRL)
    qtbot.keyClicks(window.finder.palette.line, group)
    qtbot.waitUntil(lambda: window.finder.palette._job is None, timeout=10_000)
    qtbot.keyClick(window.finder.palette.line, Qt.Key.Key_Return)
    assert window.workspace.graph.isVisible()
    assert window.workspace.selection.current.unit == group


def test_nothing_is_left_of_the_last_report_that_was_closed(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "one.py")
    qtbot.waitUntil(lambda: bool(window.finder._found) and window.meter.isVisible(), timeout=10_000)
    assert window.windowTitle() == "one.py[*] · Fusescope"
    window.session.discard_changes()
    qtbot.keyClick(window, Qt.Key.Key_W, CTRL)
    assert window.windowTitle() == "Fusescope"
    for left in (window.tabs, window.meter, window.status.target):
        assert not left.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_K, CTRL)
    assert {entry.kind for entry in window.finder.palette.results.entries} == {"command"}
    qtbot.keyClick(window.finder.palette.line, Qt.Key.Key_Escape)
    show(qtbot, window, 80, "two.py")
    assert window.status.target.isVisible()
    window.show_start_page()
    for of_report in (window.meter, window.status.target):
        assert not of_report.isVisible(), "the start page is of no report"
    window.show_workspace()
    assert window.status.target.isVisible()


def test_another_report_takes_over_no_selection_but_that_of_its_own_model(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 160, "one.py")
    selection = window.workspace.selection
    group = window.session.report.regions[0].groups[2].name
    window.workspace.select_unit(window.session.report.regions[0].groups[1].name)
    window.workspace.select_unit(group)
    show(qtbot, window, 160, "two.py")
    assert selection.current.is_empty, "what has the same name there is something else"
    assert selection.current.region == window.workspace.graph.region.name
    assert window.workspace.inspector.title.text() == window.workspace.graph.region.name
    assert len(selection._history.items) == 1
    window.workspace.select_unit(group)
    show(qtbot, window, 160, "two.py")
    assert selection.current.unit == group, "the same model, compiled again"
    assert selection.current.nodes == set(window.workspace.index.units[group].nodes)
    window.workspace.select_node(window.workspace.index.units[group].nodes[0])
    show(qtbot, window, 60, "two.py")
    assert selection.current.node in ("", *window.workspace.index.nodes)


def test_a_tab_of_the_gallery_goes_without_the_word_for_it(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    show(qtbot, window, 60, "example:softmax")
    show(qtbot, window, 60, "one.py")
    assert window.tabs.tabText(0) == "softmax •"
    assert window.tabs.tabToolTip(0).startswith("example:softmax")
