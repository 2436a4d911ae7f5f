"""The filter stack in the panels whose rows are not nodes: Run, Compare, Stages, Dynamo, Programs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.diff import compare
from app.diff.kept import kept_of_diff
from app.filtered import gpu_work
from app.filters import Filter, FilterKind, kept_of
from app.program_lines import graph_lines, hidden_lines, wrapper_lines
from app.source_heat import source_heat
from compiler.report import (
    ExternCall,
    ExternReason,
    Group,
    GroupKind,
    Guard,
    Node,
    NodeKind,
    Region,
    Report,
    SourceLine,
    Stage,
)
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, is_seen
from tests.test_diff import cut
from views.compare.rows import REGION
from views.main_window import MainWindow
from views.run.kept_note import kept_sentence

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def opened(make_window: MakeWindow, qtbot: QtBot, report: Report) -> MainWindow:
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, report.source)
    QApplication.processEvents()
    return window


def filtered(window: MainWindow, qtbot: QtBot, *filters: Filter) -> None:
    for one in filters:
        with qtbot.waitSignal(window.workspace.filters.changed, timeout=10_000):
            window.workspace.filters.add(one)


def show_everything(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.keyClick(window, Qt.Key.Key_X, CTRL | SHIFT)
    assert window.workspace.filters.kept is None


def in_front(window: MainWindow, panel: QWidget) -> None:
    window.workspace.panels.setCurrentWidget(panel)
    QApplication.processEvents()


def lines_of(report: Report, op: str) -> set[tuple[str, int]]:
    nodes = (node for region in report.regions for node in region.nodes if node.op == op)
    return {(frame.file, frame.line) for node in nodes for frame in node.provenance.frames}


def test_run_says_how_much_of_an_iteration_is_left(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = lab_report(200)
    window = opened(make_window, qtbot, report)
    group = report.regions[0].groups[3]
    run = window.workspace.panels.run
    in_front(window, run)
    assert not is_seen(run.note)
    filtered(window, qtbot, Filter(FilterKind.GROUP, group.name))
    qtbot.waitUntil(lambda: is_seen(run.note), timeout=10_000)
    event = next(e for e in report.traces[0].events if e.unit.endswith(f"/{group.name}") and e.lane != "cpu")
    works = gpu_work(report, window.workspace.filters.kept)
    assert {work.mode: work.left_us for work in works} == {"compiled": event.duration_us, "graph": event.duration_us}
    assert "Compiled" in run.note.text()
    show_everything(window, qtbot)
    qtbot.waitUntil(lambda: not is_seen(run.note), timeout=10_000)


def test_run_adds_up_kernels_where_nothing_was_traced() -> None:
    for report, measured in ((lab_report(200), True), (transformer_report(200), False)):
        report.traces = []
        kept = kept_of(report, [Filter(FilterKind.GROUP, report.regions[0].groups[3].name)])
        (work,) = gpu_work(report, kept)
        assert work.measured is measured
        assert 0 < work.left_us < work.every_us
        assert ("~" in kept_sentence(report, kept)) is not measured


def test_stages_of_other_regions_are_faint(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = transformer_report(160)
    first = report.regions[0]
    second = msgspec.structs.replace(first, name="region_1", nodes=[n for n in first.nodes if "rsqrt" not in n.op])
    report.regions = [first, second]
    report.stages = [Stage("capture", 5.0), Stage("lower", 3.0, first.name), Stage("lower", 4.0, "region_1")]
    window = opened(make_window, qtbot, report)
    panel = window.workspace.panels.stages
    in_front(window, panel)
    op = next(node.op for node in first.nodes if "rsqrt" in node.op)
    filtered(window, qtbot, Filter(FilterKind.OP, op))
    assert panel.bars.faint == {2}
    assert panel.note.text().startswith("1 of 3 stages are faint by the filters, 4")
    assert is_seen(panel.note)
    show_everything(window, qtbot)
    assert panel.bars.faint == frozenset()
    assert not is_seen(panel.note)


def test_dynamo_hides_what_belongs_to_lines_of_hidden_nodes(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = transformer_report(160)
    every = {(f.file, f.line): f for r in report.regions for n in r.nodes for f in n.provenance.frames}
    report.guards = [Guard(f"n == {i}", "EQUALS_MATCH", "L['n']", source) for i, source in enumerate(every.values())]
    report.guards.append(Guard("global state", "GLOBAL_STATE"))
    window = opened(make_window, qtbot, report)
    panel = window.workspace.panels.dynamo
    in_front(window, panel)
    qtbot.mouseClick(panel.pages.button("guards"), Qt.MouseButton.LeftButton)
    op = next(op for node in report.regions[0].nodes if len(lines_of(report, op := node.op)) == 1)
    filtered(window, qtbot, Filter(FilterKind.OP, op))
    left = lines_of(report, op)
    assert len(left) < len(every)
    assert panel.guards.model().rowCount() == len(left) + 1, "what is of no line of a node stays"
    hidden = len(every) - len(left)
    assert panel.hidden.text() == f"{hidden} of {len(every) + 1} guards are hidden by the filters."
    assert is_seen(panel.hidden)
    show_everything(window, qtbot)
    assert panel.guards.model().rowCount() == len(report.guards)
    assert not is_seen(panel.hidden)


def test_compare_shows_rows_of_what_is_left(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = transformer_report(160)
    window = opened(make_window, qtbot, report)
    panel = window.workspace.panels.compare
    with qtbot.waitSignal(window.compare_control.compared, timeout=20_000):
        window.compare_control.pair(report, cut(report))
    QApplication.processEvents()
    qtbot.mouseClick(panel.all, Qt.MouseButton.LeftButton, pos=QPoint(8, panel.all.height() // 2))
    every = panel.groups.model().rowCount()
    wanted = report.regions[0].groups[0]
    filtered(window, qtbot, Filter(FilterKind.GROUP, wanted.name))
    assert panel.groups.model().rowCount() == 1
    assert str(panel.groups.model().index(0, REGION + 1).data()) == wanted.name
    assert panel.note.text() == f"{every - 1} of {every} rows are hidden by the filters."
    qtbot.mouseClick(panel.pages.button("kernels"), Qt.MouseButton.LeftButton)
    kernels = {panel.diff.kernels[int(record.target)].a for record in panel.kernels.records.shown}
    assert wanted.kernel in kernels
    assert len(kernels) < len(panel.diff.kernels)
    qtbot.mouseClick(panel.pages.button("figures"), Qt.MouseButton.LeftButton)
    assert panel.note.text().startswith("Figures are of the whole reports")
    show_everything(window, qtbot)
    assert panel.groups.model().rowCount() == every
    assert not is_seen(panel.note)


def test_the_other_reports_rows_follow_the_nodes_that_match() -> None:
    a = transformer_report(160)
    b = cut(a)
    diff = compare(a, b)
    group = a.regions[0].groups[0]
    for shown, report in (("a", a), ("b", b)):
        units = [u for u in report.regions[0].groups if set(u.nodes) & set(group.nodes)]
        kept = kept_of(report, [Filter(FilterKind.GROUP, unit.name) for unit in units])
        left = kept_of_diff(diff, a, b, shown=shown, kept=kept)
        assert [diff.regions[r].groups[e].a for r, e in left.groups] == [[group.name]]


def programs_report() -> Report:
    """A region whose wrapper shares a kernel between groups, names one call and leaves another to its place."""
    source = SourceLine("m.py", 4, "forward", "x = x.relu()")
    report = transformer_report(120)
    names = ("a", "b", "mm", "conv")
    nodes = [Node("x", NodeKind.PLACEHOLDER, "input")] + [
        Node(name, NodeKind.CALL, f"aten.{name}.default", ["x"]) for name in names
    ]
    nodes[1].provenance = msgspec.structs.replace(nodes[1].provenance, frames=[source])
    region = Region(
        "region_0", "inference", nodes,
        [Group("g0", GroupKind.POINTWISE, ["a"], "k", "", order=0),
         Group("g1", GroupKind.POINTWISE, ["b"], "k", "", order=3)],
        [ExternCall("ext_mm", ["mm"], "aten.mm", ExternReason.LIBRARY_IS_FASTER, order=1),
         ExternCall("call2", ["conv"], "aten.conv", ExternReason.LIBRARY_IS_FASTER, order=2)],
        wrapper=(
            "def call(args):\n"
            "    buf0 = empty_strided((4,), (1,))\n"
            "    k(x, buf0)\n"
            "    ext_mm_0, ext_mm_1 = torch.mm(buf0, buf0)\n"
            "    k.run(ext_mm_0, buf0)\n"
            "    extern_kernels.conv(buf0, out=buf1)\n"
        ),
        fx_text=(
            "class G:\n"
            "    def forward(self, x):\n"
            '        a: "f32[4]" = torch.ops.aten.a.default(x);  x = None\n'
            '        b: "f32[4]" = torch.ops.aten.b.default(a)\n'
            '        mm: "f32[4]" = torch.ops.aten.other.default(a)\n'
        ),
        graphs={"dynamo": "    # File: m.py:4 in forward, code: x.relu()\n    relu = x.relu()\n\n    y = relu + 1\n"},
    )  # fmt: skip
    report.regions, report.kernels = [region], []
    return report


def test_lines_of_programs_are_told_from_their_texts() -> None:
    region = programs_report().regions[0]
    assert wrapper_lines(region.wrapper, region) == {3: "g0", 4: "ext_mm", 5: "g1"}, "a call out of place is nobody's"
    assert graph_lines(region.fx_text, region) == {3: "a", 4: "b"}, "another node of the same name is not ours"
    kept = kept_of(programs_report(), [Filter(FilterKind.GROUP, "g1")])["region_0"]
    assert hidden_lines("wrapper", region.wrapper, region, kept) == [3, 4]
    assert hidden_lines("fx", region.fx_text, region, kept) == [3]
    assert hidden_lines("dynamo", region.graphs["dynamo"], region, kept) == [2]


def test_programs_fade_what_is_hidden(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = opened(make_window, qtbot, programs_report())
    panel = window.workspace.panels.programs
    in_front(window, panel)
    before = panel.code.grab().toImage()
    filtered(window, qtbot, Filter(FilterKind.GROUP, "g1"))
    qtbot.waitUntil(lambda: panel.code.faded_lines == {3, 4}, timeout=10_000)
    assert panel.note.text().startswith("2 of 7 lines")
    assert panel.code.grab().toImage() != before
    qtbot.mouseClick(panel.choice.button("fx"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: panel.code.faded_lines == {3}, timeout=10_000)
    show_everything(window, qtbot)
    assert not panel.code.faded_lines
    assert not is_seen(panel.note)


@pytest.mark.parametrize("name", ["refusals", "source"])
def test_another_report_is_shown_whole(make_window: MakeWindow, qtbot: QtBot, name: str) -> None:
    window = opened(make_window, qtbot, transformer_report(160))
    panels = window.workspace.panels
    shown: dict[str, Callable[[], int]] = {
        "refusals": lambda: sum(len(rule.pairs) for rule in panels.refusals.model.rules),
        "source": lambda: sum(len(line.nodes) for line in panels.source.heat.values()),
    }
    in_front(window, getattr(panels, name))
    qtbot.waitUntil(lambda: shown[name]() > 0, timeout=10_000)
    every = shown[name]()
    index = window.workspace.index
    group = next(g for pair in index.region.refusals if (g := index.unit_of(pair.a)))
    filtered(window, qtbot, Filter(FilterKind.GROUP, group))
    qtbot.waitUntil(lambda: 0 < shown[name]() < every, timeout=10_000)
    larger = transformer_report(300)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(larger, "another")
    whole = {
        "refusals": sum(len(region.refusals) for region in larger.regions),
        "source": sum(len(line.nodes) for lines in source_heat(larger, None).values() for line in lines.values()),
    }
    qtbot.waitUntil(lambda: shown[name]() == whole[name] > every, timeout=10_000)


def test_the_graphs_rows_follow_their_nodes(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = lab_report(200)
    window = opened(make_window, qtbot, report)
    panel = window.workspace.panels.cuda_graph
    in_front(window, panel)
    assert len(panel.reasons.findings) == 1
    group = report.regions[0].groups[3]
    filtered(window, qtbot, Filter(FilterKind.GROUP, group.name))
    assert panel.reasons.findings == [], "it is about another node"
    assert panel.note.text() == "1 of 1 reason is hidden by the filters."
    qtbot.mouseClick(panel.pages.button("inputs"), Qt.MouseButton.LeftButton)
    known = sum(route.name in window.workspace.index.nodes for route in report.regions[0].cuda_graph.routes)
    assert known > 0
    assert panel.inputs.model().rowCount() == len(report.regions[0].cuda_graph.routes) - known
    qtbot.mouseClick(panel.pages.button("topology"), Qt.MouseButton.LeftButton)
    assert not is_seen(panel.note), "its nodes are dimmed, not hidden"
    qtbot.mouseClick(panel.pages.button("check"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(panel._findings), timeout=10_000)
    assert len(panel.check.findings) == sum(panel._shows(finding.target) for finding in panel._findings)
    show_everything(window, qtbot)
    assert panel.check.findings == panel._findings
    qtbot.mouseClick(panel.pages.button("inputs"), Qt.MouseButton.LeftButton)
    assert panel.inputs.model().rowCount() == len(report.regions[0].cuda_graph.routes)


def test_the_roofline_says_how_many_units_are_hidden(make_window: MakeWindow, qtbot: QtBot) -> None:
    report = lab_report(200)
    window = opened(make_window, qtbot, report)
    panel = window.workspace.panels.roofline
    in_front(window, panel)
    filtered(window, qtbot, Filter(FilterKind.GROUP, report.regions[0].groups[3].name))
    every = len(window.workspace.index.points)
    told = f"{every - 1} of {every} units are hidden by the filters."
    qtbot.waitUntil(lambda: panel._facts.text().startswith(told), timeout=10_000)


def test_where_filters_hide_everything_that_is_what_is_said(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = opened(make_window, qtbot, lab_report(200))
    workspace = window.workspace
    panel, table = workspace.panels.roofline, workspace.units.table
    in_front(window, panel)
    filtered(window, qtbot, Filter(FilterKind.OP, "aten.nowhere.default"))
    every = len(workspace.index.points)
    told = f"{every} of {every} units are hidden by the filters."
    qtbot.waitUntil(lambda: panel._facts.text() == told, timeout=10_000)
    assert table.records.rowCount() == 0
    assert table.empty_text == "The filters hide every group and extern call."
    qtbot.keyClicks(workspace.units.filter, "add")
    assert table.empty_text == "No group or extern call has all of these words."
