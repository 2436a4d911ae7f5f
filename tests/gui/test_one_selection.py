"""One selection: pinned beside selected, previews while hovering, and the filter stack that every panel obeys."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.filters import Filter, FilterKind, choices, kept_of
from compiler.report import NodeKind
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.inspector.table import Table
from views.main_window import MainWindow

LEFT = Qt.MouseButton.LeftButton
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(200))
    QApplication.processEvents()
    return window


def click_unit(qtbot: QtBot, window: MainWindow, name: str) -> None:
    table = window.workspace.units.table
    index = table.records.index(table.records.row_of(name), 1)
    table.scrollTo(index)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())


def comparison(window: MainWindow) -> Table | None:
    page = window.workspace.inspector.page
    assert page is not None
    return next((table for table in page.findChildren(Table) if "(pinned)" in table.objectName()), None)


def test_a_pin_stays_and_is_compared_with_what_is_selected(window: MainWindow, qtbot: QtBot) -> None:
    groups = window.workspace.index.region.groups
    first, second = groups[0].name, groups[1].name
    click_unit(qtbot, window, first)
    qtbot.keyClick(window, Qt.Key.Key_P)
    assert window.workspace.selection.pinned.unit == first
    assert comparison(window) is None, "a thing is not compared with itself"
    click_unit(qtbot, window, second)
    table = comparison(window)
    assert table is not None
    rows = {table.topLevelItem(i).text(0): table.topLevelItem(i) for i in range(table.topLevelItemCount())}
    assert rows["Kernel"].text(1) == groups[0].kernel
    assert rows["Kernel"].text(2) == groups[1].kernel
    assert rows["Ops"].text(1) == str(len(groups[0].nodes))
    assert window.workspace.graph.canvas._marks.pinned
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert window.workspace.selection.current.unit == first
    assert window.workspace.selection.pinned.unit == first
    qtbot.mouseClick(window.workspace.inspector._pin, LEFT)
    assert window.workspace.selection.pinned is None
    assert not window.workspace.graph.canvas._marks.pinned


def test_typing_p_pins_nothing_while_a_field_has_the_keyboard(window: MainWindow, qtbot: QtBot) -> None:
    click_unit(qtbot, window, window.workspace.index.region.groups[0].name)
    qtbot.mouseClick(window.workspace.units.filter, LEFT)
    qtbot.keyClick(window.workspace.units.filter, Qt.Key.Key_P)
    assert window.workspace.units.filter.text() == "p"
    assert window.workspace.selection.pinned is None


def test_hovering_previews_from_every_panel(window: MainWindow, qtbot: QtBot) -> None:
    workspace, panels = window.workspace, window.workspace.panels
    index = workspace.index
    assert index is not None
    hinted: list[frozenset[str]] = []
    workspace.selection.hinted.connect(lambda hint: hinted.append(hint.nodes))
    before = workspace.selection.current

    def expect(nodes: list[str]) -> None:
        qtbot.waitUntil(lambda: bool(hinted) and hinted[-1] == frozenset(nodes), timeout=3_000)
        marked = workspace.graph.canvas._marks.hinted
        assert {index.region.nodes[node].name for node in marked} == set(nodes), "the graph shows it"
        hinted.clear()

    table = workspace.units.table
    group = index.region.groups[2]
    row = table.records.index(table.records.row_of(group.name), 1)
    table.scrollTo(row)
    QTest.mouseMove(table.viewport(), table.visualRect(row).center())
    expect(group.nodes)
    panels.setCurrentWidget(panels.roofline)
    chart = panels.roofline.chart
    qtbot.waitUntil(lambda: bool(panels.roofline.table.records.shown), timeout=10_000)
    QTest.mouseMove(chart, chart.position_of(group.name).toPoint())
    expect(group.nodes)
    panels.setCurrentWidget(panels.memory)
    qtbot.waitUntil(lambda: bool(panels.memory.map._view.memory.buffers), timeout=10_000)
    buffer = panels.memory.map._view.memory.buffers[0]
    QTest.mouseMove(panels.memory.map, panels.memory.map.buffer_box(buffer.name).center().toPoint())
    expect([buffer.node])
    panels.setCurrentWidget(panels.timeline)
    gantt = panels.timeline.gantt
    qtbot.waitUntil(lambda: len(gantt.bands) == 2, timeout=10_000)
    settle()
    place = next(i for i, event in enumerate(gantt.bands[0].trace.events) if event.unit.endswith(f"/{group.name}"))
    QTest.mouseMove(gantt, gantt.position_of(0, place).toPoint())
    expect(group.nodes)
    assert workspace.selection.current == before, "hovering selects nothing"


def test_a_dot_and_a_row_of_the_roofline_select(window: MainWindow, qtbot: QtBot) -> None:
    workspace, panel = window.workspace, window.workspace.panels.roofline
    window.workspace.panels.setCurrentWidget(panel)
    qtbot.waitUntil(lambda: bool(panel.table.records.shown), timeout=10_000)
    settle()
    dot, row = (group.name for group in workspace.index.region.groups[2:4])
    qtbot.mouseClick(panel.chart, LEFT, pos=panel.chart.position_of(dot).toPoint())
    assert workspace.selection.current.unit == dot
    place = panel.table.records.index(panel.table.records.row_of(row), 0)
    panel.table.scrollTo(place)
    qtbot.mouseClick(panel.table.viewport(), LEFT, pos=panel.table.visualRect(place).center())
    assert workspace.selection.current.unit == row


def test_filters_are_found_by_typing_and_shown_as_chips(window: MainWindow, qtbot: QtBot) -> None:
    workspace, index = window.workspace, window.workspace.index
    assert not window.filters.isVisible()
    qtbot.waitUntil(lambda: bool(window.finder._filters), timeout=10_000)
    qtbot.keyClick(window, Qt.Key.Key_F, CTRL | SHIFT)
    qtbot.keyClicks(window.finder.palette.line, "op: rsqrt")
    with qtbot.waitSignal(workspace.filters.changed, timeout=10_000):
        qtbot.keyClick(window.finder.palette.line, Qt.Key.Key_Return)
    op = workspace.filters.filters[0].value
    wanted = {node.name for node in index.region.nodes if node.op == op}
    units = {unit.name for unit in index.schedule if wanted & set(unit.nodes)}
    assert wanted
    assert 0 < len(units) < len(index.schedule)
    assert window.filters.isVisible()
    assert [chip.text() for chip in window.filters.bar.chips] == [f"op: {op.removeprefix('aten.')}"]
    assert {record.target for record in workspace.units.table.records.shown} == units
    canvas = workspace.graph.canvas
    assert {canvas.scene.layout.names[i] for i in canvas._marks.kept} == wanted
    panels = workspace.panels
    for panel, shown in (
        (panels.roofline, lambda: {record.target for record in panels.roofline.table.records.shown}),
        (panels.refusals, lambda: {p.refusal.a in wanted or p.refusal.b in wanted
                                   for rule in panels.refusals.model.rules for p in rule.pairs} - {True}),
        (panels.memory, lambda: {b.node for b in panels.memory.map._view.memory.buffers} - wanted),
        (panels.source, lambda: {n for line in panels.source.heat.values() for _, n in line.nodes} - wanted),
    ):  # fmt: skip
        panels.setCurrentWidget(panel)
        expected = units & set(index.points) if panel is panels.roofline else set()
        qtbot.waitUntil(lambda shown=shown, expected=expected: shown() == expected, timeout=10_000)
    chip = window.filters.bar.chips[0]
    qtbot.mouseClick(chip, LEFT)
    assert not window.filters.isVisible()
    assert len(workspace.units.table.records.shown) == len(index.schedule)
    assert canvas._marks.kept is None


def test_a_key_shows_everything_again(window: MainWindow, qtbot: QtBot) -> None:
    workspace = window.workspace
    with qtbot.waitSignal(workspace.filters.changed, timeout=10_000):
        workspace.filters.add(Filter(FilterKind.DTYPE, "int64"))
    assert workspace.filters.kept is not None
    qtbot.keyClick(window, Qt.Key.Key_X, CTRL | SHIFT)
    assert workspace.filters.kept is None
    assert not window.filters.isVisible()


def test_kinds_narrow_and_values_widen() -> None:
    report = lab_report(200)
    region = report.regions[0]
    ops = [f for f, _ in choices(report) if f.kind is FilterKind.OP][:2]

    def nodes(*filters: Filter) -> frozenset[str]:
        kept = kept_of(report, filters)
        assert kept is not None
        return kept[region.name].nodes

    assert kept_of(report, ()) is None
    assert nodes(*ops) == nodes(ops[0]) | nodes(ops[1])
    module = next(f for f, _ in choices(report) if f.kind is FilterKind.MODULE and "." in f.value)
    assert nodes(ops[0], module) == nodes(ops[0]) & nodes(module)
    group = Filter(FilterKind.GROUP, region.groups[0].name)
    assert nodes(group) == frozenset(region.groups[0].nodes)
    times = [f for f, _ in choices(report) if f.kind is FilterKind.TIME]
    assert times
    assert nodes(times[-1]) < nodes(times[0]) < {node.name for node in region.nodes}


def test_a_choice_always_leaves_something() -> None:
    report = lab_report(120)
    for one, _ in choices(report):
        kept = kept_of(report, [one])
        assert kept is not None
        assert any(k.nodes for k in kept.values()), one
    assert not any(f.value == NodeKind.PLACEHOLDER for f, _ in choices(report))
