"""The kernel's levels: lines lead to their partners, the graph's nodes and back, by real mouse events."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.meter import meter
from compiler.report import Group, Kernel, Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import MakeWindow, is_seen
from tests.gui.test_window import show
from views.code.code_view import CodeView
from views.code.kernel import KernelPanel, kernel_facts
from views.code.kernel_lines import KernelLines
from views.main_window import MainWindow
from views.window.meter_bar import overall

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def report() -> Report:
    return transformer_report(160)


def line_position(code: CodeView, line: int) -> QPoint:
    """The middle of a line's first characters in viewport pixels, scrolled into sight."""
    code.center_line(line)
    QApplication.processEvents()
    return QPoint(code.gutter_width() + 20, code.line_rect(line).center().y())


def opened(qtbot: QtBot, window: MainWindow, report: Report) -> tuple[KernelPanel, Kernel, Group]:
    show(qtbot, window, report)
    group = next(group for group in report.regions[0].groups if len(group.nodes) > 3)
    window.workspace.select_unit(group.name)
    kernel = report.kernel(group.kernel)
    assert kernel is not None
    QApplication.processEvents()
    return window.workspace.inspector.kernel_panel, kernel, group


def line_of(kernel: Kernel, group: Group, node: str) -> int:
    """The one source line that computes ``node`` (loads and stores of it aside)."""
    return next(n for n, names in kernel.line_nodes.items() if names == [f"region_0/{node}"] and n > 9)


def test_a_line_of_ptx_selects_its_node_and_marks_its_partners(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window(worker=False)
    panel, kernel, group = opened(qtbot, window, report)
    panel.show_two(True)
    panel.first.show_level("ttir")
    panel.second.show_level("ptx")
    source = line_of(kernel, group, group.nodes[2])
    ptx = [number for number, line in enumerate(kernel.ir_lines["ptx"], 1) if line == source]
    code = panel.second.code
    qtbot.mouseClick(code.viewport(), LEFT, pos=line_position(code, ptx[-1]))
    selection = window.workspace.selection.current
    assert (selection.node, selection.line, selection.unit) == (group.nodes[2], source, group.name)
    assert code.marked_lines == ptx
    assert panel.first.code.marked_lines == [kernel.ir_lines["ttir"].index(source) + 1]
    panel.first.show_level("source")
    assert panel.first.code.marked_lines == [source]
    marks = window.workspace.graph.canvas._marks
    assert [report.regions[0].nodes[i].name for i in marks.nodes] == [group.nodes[2]]


def test_lines_that_compute_no_node(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    panel, kernel, group = opened(qtbot, window, report)
    assert 8 not in kernel.line_nodes, "an index, which serves the whole group"
    qtbot.mouseClick(panel.code.viewport(), LEFT, pos=line_position(panel.code, 8))
    assert window.workspace.selection.current.nodes == frozenset(group.nodes)
    assert panel.code.marked_lines == [8]
    panel.first.show_level("ptx")
    before = window.workspace.selection.current
    qtbot.mouseClick(panel.code.viewport(), LEFT, pos=line_position(panel.code, 1))
    assert window.workspace.selection.current == before
    assert panel._notice.isVisible()
    assert panel._notice.text() == "Line 1 of PTX comes from no line of the kernel."
    kernel.ir_lines = {}
    window.workspace.select_unit(report.regions[0].groups[0].name)
    window.workspace.select_unit(group.name)
    qtbot.mouseClick(panel.code.viewport(), LEFT, pos=line_position(panel.code, 6))
    assert panel._notice.text() == "The report does not say where the lines of PTX come from."


def test_hovering_lights_up_partners_and_nodes_without_selecting(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window(worker=False)
    panel, kernel, group = opened(qtbot, window, report)
    panel.show_two(True)
    panel.second.show_level("ptx")
    before = window.workspace.selection.current
    source = line_of(kernel, group, group.nodes[2])
    code = panel.first.code
    qtbot.mouseMove(code.viewport(), line_position(code, source))
    qtbot.waitUntil(lambda: code.hinted_lines == [source], timeout=2_000)
    assert panel.second.code.hinted_lines == [n for n, line in enumerate(kernel.ir_lines["ptx"], 1) if line == source]
    canvas = window.workspace.graph.canvas
    assert [report.regions[0].nodes[i].name for i in canvas._marks.hinted] == [group.nodes[2]]
    assert window.workspace.selection.current == before
    canvas.hovered.emit(group.nodes[1])
    assert source not in code.hinted_lines
    assert line_of(kernel, group, group.nodes[1]) in code.hinted_lines
    canvas.hovered.emit("")
    assert code.hinted_lines == panel.second.code.hinted_lines == []


def test_two_levels_keep_their_choice_over_kernels(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    panel, _, group = opened(qtbot, window, report)
    assert not panel.second.isVisible()
    qtbot.mouseClick(panel.first.extra_button, LEFT)
    assert panel.second.isVisible()
    assert (panel.first.level, panel.second.level) == ("source", "ptx")
    other = next(g for g in report.regions[0].groups if g.kernel != group.kernel)
    window.workspace.select_unit(other.name)
    assert other.kernel not in panel.second.code.text, "two long texts in one turn would take over a frame"
    qtbot.waitUntil(lambda: other.kernel in panel.second.code.text)
    assert (panel.first.level, panel.second.level) == ("source", "ptx")
    qtbot.mouseClick(panel.second.copy_button, LEFT)
    assert QApplication.clipboard().text() == panel.second.code.text
    qtbot.mouseClick(panel.second.extra_button, LEFT)
    assert not panel.second.isVisible()


def test_facts_of_a_kernel(report: Report) -> None:
    facts = kernel_facts(report.kernels[0]).replace("\u00a0", " ")
    for fact in ("4 warps", "1 stage", "32 registers", "0 B spilled", "occupancy 75%"):
        assert fact in facts
    assert "num_warps" not in facts
    within_a_loop = msgspec.structs.replace(report.kernels[0], launches=0)
    assert "launches not counted" in kernel_facts(within_a_loop).replace("\u00a0", " ")


def test_look_ups_both_ways(report: Report) -> None:
    lines = KernelLines(report.kernels[0])
    assert lines.levels == ["source", "ttir", "ptx"]
    for level in lines.levels:
        for source in report.kernels[0].line_nodes:
            partners = lines.partners(level, [source])
            assert partners
            assert {lines.source_line(level, line) for line in partners} == {source}
    assert lines.source_line("ptx", 10**6) == lines.source_line("ptx", 0) == 0
    assert lines.partners("ptx", [0, 10**6]) == []


def test_line_numbers_of_a_damaged_file_belong_to_no_line() -> None:
    lines = KernelLines(Kernel("k", irs={"ptx": "a\nb\nc"}, ir_lines={"ptx": [2**64 - 1, -1, 7]}))
    assert lines.partners("ptx", [7, 8]) == [3]
    assert lines.partners("ttir", [7]) == []


def test_a_line_of_the_model_lights_up_its_kernel_lines_and_the_meter_says_how_many_do(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window(worker=False)
    panel, _, group = opened(qtbot, window, report)
    qtbot.waitUntil(lambda: is_seen(window.meter), timeout=5_000)
    assert window.meter.meter == meter(report)
    assert "100% kernels lead to ops" in window.meter.toolTip()
    exact, inferred = overall(window.meter.meter)
    assert 0.5 < exact < 1
    assert inferred == 0
    source = window.workspace.panels.source
    window.workspace.panels.setCurrentWidget(source)
    qtbot.waitUntil(lambda: bool(source.heat), timeout=10_000)
    qtbot.mouseMove(source.code.viewport(), line_position(source.code, next(iter(source.heat))))
    qtbot.waitUntil(lambda: bool(panel.code.hinted_lines), timeout=2_000)
    source.nodes_hovered.emit(frozenset())
    assert panel.code.hinted_lines == []
    window.workspace.graph.canvas.hovered.emit(group.nodes[0])
    assert source.code.hinted_lines
