"""The inspector: what it says of several nodes, and that it looks right also while it is being made."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QGridLayout, QLabel, QTreeWidget, QWidget
from pytestqt.qtbot import QtBot

from app.session import open_session
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.code.kernel_lines import KernelLines
from views.inspector.page_area import PageArea
from views.inspector.sections import Page
from views.look import format as fmt
from views.look.theme import light
from views.main_window import MainWindow

DROPOUT = Path(__file__).parents[1] / "fixtures" / "recorded" / "inductor_dropout.fscope"


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    made = make_window(worker=False)
    made.resize(1280, 800)
    open_laid_out(qtbot, made, lab_report(300))
    return made


def parts_of(page: Page) -> list[QWidget]:
    return page.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)


def texts(page: Page) -> list[str]:
    return [one.text() for one in page.findChildren(QLabel)]


def test_sections_never_overlap_while_more_are_made(window: MainWindow, qtbot: QtBot) -> None:
    inspector = window.workspace.inspector
    group = max(window.workspace.graph.region.groups, key=lambda group: len(group.nodes))
    window.workspace.select_unit(group.name)
    inspector._turn()
    QApplication.processEvents()
    page = inspector._made
    assert isinstance(page, Page)
    for _ in range(4):
        page.go_on()
        assert all(part.isVisible() for part in parts_of(page))
        assert page.height() >= page.layout().totalHeightForWidth(page.width())


def test_another_page_begins_at_its_top_and_takes_the_place_of_the_one_before(window: MainWindow, qtbot: QtBot) -> None:
    inspector, region = window.workspace.inspector, window.workspace.graph.region
    area = inspector.findChild(PageArea)
    first, second = sorted(region.groups, key=lambda group: -len(group.nodes))[:2]
    window.workspace.select_unit(first.name)
    before = inspector.page
    QApplication.processEvents()
    area.verticalScrollBar().setValue(60)
    assert area.verticalScrollBar().value() == 60
    window.workspace.select_unit(second.name)
    page = inspector.page
    assert page is not before
    assert area.verticalScrollBar().value() == 0
    assert (before.isVisible(), page.isVisible()) == (False, True)
    assert before.window() is window, "else all that is in it would be styled once more, only to go"
    with qtbot.waitSignal(before.destroyed):
        pass
    assert area.page is page


def test_where_there_is_little_room_the_name_goes_before_its_kind(window: MainWindow) -> None:
    inspector = window.workspace.inspector
    group = max(window.workspace.graph.region.groups, key=lambda group: len(group.name))
    window.workspace.select_unit(group.name)
    inspector.resize(480, 600)
    assert not inspector._chip.isHidden()
    inspector.resize(300, 600)
    assert inspector._chip.isHidden()


def test_sections_stay_together_while_more_are_made(window: MainWindow) -> None:
    """What the page is too tall for is below them: they do not move up when the last one comes."""
    inspector = window.workspace.inspector
    window.workspace.select_unit(window.workspace.graph.region.extern_calls[0].name)
    inspector._turn()
    QApplication.processEvents()
    page = inspector._made
    assert isinstance(page, Page)
    first = page.findChild(QLabel)
    before = first.geometry()
    assert page.has_more
    inspector.make_all()
    QApplication.processEvents()
    after = first.geometry()  # narrower where a scroll bar came
    assert (after.topLeft(), after.height()) == (before.topLeft(), before.height())


def test_values_of_all_facts_begin_below_one_another(window: MainWindow) -> None:
    window.workspace.selection.clear()
    page = window.workspace.inspector.page
    QApplication.processEvents()
    grids = page.findChildren(QGridLayout)
    assert len(grids) == 2
    assert len({grid.itemAtPosition(0, 1).widget().x() for grid in grids}) == 1


def test_nodes_on_a_path_are_told_as_nodes(window: MainWindow, qtbot: QtBot) -> None:
    region = window.workspace.graph.region
    names = frozenset(node for group in region.groups[:3] for node in group.nodes)
    window.workspace.graph.nodes_clicked.emit(region.name, names)
    inspector = window.workspace.inspector
    assert inspector.title.text() == f"{len(names)} nodes"
    page = inspector.page
    assert f"{len(names)} of {len(region.nodes)}" in texts(page)
    lists = {tree.objectName(): tree for tree in page.findChildren(QTreeWidget)}
    assert lists["Units"].topLevelItemCount() == 3
    assert lists["Ops"].topLevelItemCount() == len(names)
    with qtbot.waitSignal(page.unit_chosen) as chosen:
        lists["Units"].itemClicked.emit(lists["Units"].topLevelItem(1), 0)
    assert chosen.args == [region.groups[1].name]


def test_a_list_of_very_many_nodes_ends(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(900))
    region = window.workspace.graph.region
    names = frozenset(node.name for node in region.nodes)
    window.workspace.graph.nodes_clicked.emit(region.name, names)
    page = window.workspace.inspector.page
    assert f"Ops (the first 200 of {len(names):,})" in texts(page)
    assert next(t for t in page.findChildren(QTreeWidget) if t.objectName() == "Ops").topLevelItemCount() == 200


def test_without_source_the_facts_have_all_the_room(window: MainWindow, qtbot: QtBot) -> None:
    region, inspector = window.workspace.graph.region, window.workspace.inspector
    window.workspace.select_unit(region.groups[0].name)
    settle()
    beside = inspector._area.height()
    assert inspector.kernel_panel.isVisible()
    assert beside > inspector.splitter.height() // 3, "the source does not take it all"
    window.workspace.select_unit(region.extern_calls[0].name)
    settle()
    assert not inspector.kernel_panel.isVisible()
    assert inspector._area.height() > beside * 3 // 2
    assert any(text.endswith("so there is no generated source.") for text in texts(inspector.page))
    window.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert inspector.isAncestorOf(QApplication.focusWidget()), "the keyboard comes in at the facts"
    window.workspace.select_unit(region.groups[0].name)
    settle()
    assert inspector._area.height() == beside


def test_a_line_of_code_without_room_ends_in_an_ellipsis(qtbot: QtBot) -> None:
    page = Page()
    qtbot.addWidget(page)
    page.code("resources/examples/gpt2.py:25  for part in self.c_attn(x).split(width, dim=2)", light())
    page.resize(200, 60)
    page.show()
    (line,) = page.findChildren(QLabel)
    line.grab()
    assert line.toolTip() == line.text(), "the whole of it is told"
    page.resize(900, 60)
    QApplication.processEvents()
    line.grab()
    assert not line.toolTip()


def test_an_extern_call_says_why_in_one_sentence(window: MainWindow) -> None:
    call = window.workspace.graph.region.extern_calls[0]
    call.detail = "a matrix product with bias: cuBLAS"
    window.workspace.select_unit(call.name)
    told = texts(window.workspace.inspector.page)
    assert any(text.endswith(" (a matrix product with bias: cuBLAS).") for text in told)


def test_a_time_says_how_it_is_known(make_window: MakeWindow, qtbot: QtBot) -> None:
    """Inductor's kernels are known by their names, its library calls by the order of launches."""
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.show_session(open_session(DROPOUT))
    index = window.workspace.index
    assert index is not None
    for name, known in (("call3", "measured, joined by order"), ("group2", "measured")):
        window.workspace.select_unit(name)
        time = fmt.microseconds(index.points[name].time.us)
        assert f"{time} ({known})" in texts(window.workspace.inspector.page)


def test_a_second_level_follows_after_what_has_no_kernel(window: MainWindow, qtbot: QtBot) -> None:
    region, panel = window.workspace.graph.region, window.workspace.inspector.kernel_panel
    first, second = region.groups[0], next(g for g in region.groups if g.kernel != region.groups[0].kernel)
    window.workspace.select_unit(first.name)
    panel.show_two(True)
    levels = (panel.first.level, panel.second.level)
    window.workspace.select_unit(region.extern_calls[0].name)
    window.workspace.select_unit(second.name)
    assert panel.kernel is not None
    assert panel.kernel.name == second.kernel
    told = KernelLines(panel.kernel)
    qtbot.waitUntil(lambda: panel.second.level in told.levels, timeout=5_000)  # a turn after the first
    assert panel.second.code.text == told.text(panel.second.level)
    assert (panel.first.level, panel.second.level) == levels, "each stays where it was"
    assert panel.second.tabs.count() == panel.first.tabs.count()
