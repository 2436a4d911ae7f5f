"""Timeline, CUDA Graph and memory panels by real mouse and key events, each as a widget of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from app.memory_plan import live_bytes, plan_rows
from compiler.report import BufferPlan, CudaGraph, GraphNodeKind, Memory, MemoryOrder, Report, Stage, Trace, TraceEvent
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, settle
from views.charts.gantt import busy_share
from views.charts.roofline_chart import point_lines
from views.charts.scale import (
    Scale,
    in_unit,
    linear_ticks,
    log_tick_texts,
    log_ticks,
    log_time_texts,
    tick_texts,
    time_unit,
)
from views.code.source import SourcePanel
from views.compile.progress import STAGES
from views.compile.stage_texts import explanation
from views.compile.stages import StagesPanel
from views.cuda_graph.panel import CudaGraphPanel
from views.cuda_graph.topology_view import TopologyScene, TopologyView
from views.look.theme import dark, light
from views.panels.memory import MemoryPanel, memory_text, order_text
from views.panels.roofline import RooflinePanel
from views.panels.timeline import TimelinePanel, trace_sentence
from views.selection.index import RegionIndex
from views.selection.selection import Selection
from views.tables.units_table import UnitsPanel

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def report() -> Report:
    return lab_report(120)


def shown(qtbot: QtBot, widget: QWidget, width: int = 860, height: int = 280) -> None:
    qtbot.addWidget(widget)
    widget.resize(width, height)
    widget.show()
    qtbot.waitExposed(widget)
    QApplication.processEvents()


def cuda_graph_panel(qtbot: QtBot, report: Report) -> CudaGraphPanel:
    """The panel with the report's first region."""
    panel = CudaGraphPanel(light())
    shown(qtbot, panel)
    panel.set_report(report)
    panel.set_region(RegionIndex(report, report.regions[0]))
    return panel


def topology_view(qtbot: QtBot, panel: CudaGraphPanel) -> TopologyView:
    """The panel's topology page, laid out."""
    qtbot.mouseClick(panel.pages.button("topology"), LEFT)
    view = panel.topology.view
    qtbot.waitUntil(lambda: view.scene is not None, timeout=10_000)
    return view


def wheel(widget: QWidget, at: QPoint, notches: int) -> None:
    event = QWheelEvent(
        QPointF(at), QPointF(widget.mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def test_timeline_click_chooses_the_unit(qtbot: QtBot, report: Report) -> None:
    panel = TimelinePanel(light())
    shown(qtbot, panel)
    panel.set_report(report)
    settle()
    assert [band.title for band in panel.gantt.bands] == ["Compiled", "Graph replay"]
    assert panel._note.text().startswith("Traced on Test GPU. "), "said once"
    events = panel.gantt.bands[0].trace.events
    place = max((i for i, e in enumerate(events) if e.lane != "cpu"), key=lambda i: events[i].duration_us)
    with qtbot.waitSignal(panel.unit_chosen, timeout=2_000) as told:
        qtbot.mouseClick(panel.gantt, LEFT, pos=panel.gantt.position_of(0, place).toPoint())
    assert "/".join(told.args) == events[place].unit


def test_timeline_zooms_about_the_mouse_pans_and_fits(qtbot: QtBot, report: Report) -> None:
    panel = TimelinePanel(dark())
    shown(qtbot, panel)
    panel.set_report(report)
    settle()
    gantt = panel.gantt
    whole = gantt.view
    at = gantt.position_of(0, 20).toPoint()
    wheel(gantt, at, 8)
    assert gantt.view[1] - gantt.view[0] < 0.3 * (whole[1] - whole[0])
    assert abs(gantt.position_of(0, 20).x() - at.x()) < 4  # half a pixel, zoomed
    before = gantt.view
    qtbot.mousePress(gantt, LEFT, pos=QPoint(400, 40))
    qtbot.mouseMove(gantt, QPoint(460, 40))
    qtbot.mouseMove(gantt, QPoint(500, 40))
    qtbot.mouseRelease(gantt, LEFT, pos=QPoint(500, 40))
    assert gantt.view[0] < before[0]
    qtbot.keyClick(gantt, Qt.Key.Key_Home)
    assert gantt.view == whole


def test_events_too_narrow_for_a_pixel_are_still_found(qtbot: QtBot) -> None:
    events = [TraceEvent(f"kernel_{i}", i * 10.0, 1.0, "stream 7", unit=f"r/u{i}") for i in range(5000)]
    panel = TimelinePanel(light())
    shown(qtbot, panel)
    report = lab_report(60)
    report.traces = [Trace("graph", "Test GPU", events, 50_000.0)]
    panel.set_report(report)
    settle()
    panel.gantt.grab()
    found = panel.gantt.event_at(panel.gantt.position_of(0, 2500))
    assert found is not None
    assert abs(found[1] - 2500) <= 4


def test_what_a_trace_says_in_a_sentence() -> None:
    events = [
        TraceEvent("launch", 0.0, 5.0, "cpu"), TraceEvent("a", 10.0, 20.0, "stream 7", 0),
        TraceEvent("b", 20.0, 30.0, "stream 8", 0),
    ]  # fmt: skip
    trace = Trace("compiled", "Test GPU", events, 100.0)
    assert busy_share(trace) == pytest.approx(0.4)
    assert trace_sentence(trace) == "100 µs, the GPU idles 60%: 1 launch (5 µs of CPU) for 2 GPU operations."


def test_cuda_graph_overview_says_figures_and_leads_to_the_node(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    assert "98.6% of kernels run inside graphs" in panel.life.accessibleDescription()
    assert "Capture 8.11 ms" in panel.life.accessibleDescription()
    QApplication.processEvents()
    (row,) = panel.reasons.rows()
    with qtbot.waitSignal(panel.node_chosen, timeout=2_000) as told:
        qtbot.mouseClick(row, LEFT)
    assert told.args == ["region_0", report.regions[0].cuda_graph.skip_reasons[0].node]


def test_topology_nodes_join_the_selection_both_ways(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    view = topology_view(qtbot, panel)
    nodes = report.regions[0].cuda_graph.topology
    place = next(i for i, node in enumerate(nodes) if node.unit)
    qtbot.waitUntil(lambda: view.viewport().rect().contains(view.rect_in_view(place).center().toPoint()))
    with qtbot.waitSignal(panel.unit_chosen, timeout=2_000) as told:
        qtbot.mouseClick(view.viewport(), LEFT, pos=view.rect_in_view(place).center().toPoint())
    assert told.args == [nodes[place].region, nodes[place].unit]
    qtbot.waitUntil(lambda: is_told(panel, nodes[place].name), timeout=2_000)
    last = next(i for i in reversed(range(len(nodes))) if nodes[i].unit)
    panel.show_selection(Selection("region_0", nodes[last].unit))
    assert view.chosen == last
    qtbot.waitUntil(lambda: view.viewport().rect().contains(view.rect_in_view(last).center().toPoint()))
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.chosen in nodes[last].dependencies


def test_a_kernel_under_the_mouse_says_what_its_sizes_are(qtbot: QtBot, report: Report) -> None:
    nodes = report.regions[0].cuda_graph.topology
    place = next(i for i, node in enumerate(nodes) if node.kind is GraphNodeKind.KERNEL)
    nodes[place].grid, nodes[place].block = [4, 72, 1], [64, 1, 1]
    panel = cuda_graph_panel(qtbot, report)
    view = topology_view(qtbot, panel)
    view.choose(place)
    qtbot.waitUntil(lambda: view.viewport().rect().contains(view.rect_in_view(place).center().toPoint()))
    qtbot.wait(250)  # it glides there
    qtbot.mouseMove(view.viewport(), view.rect_in_view(place).center().toPoint())
    assert "4×72 blocks of 64 threads" in QToolTip.text()
    QToolTip.hideText()


def test_only_where_there_is_another_path_is_one_critical(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    nodes = report.regions[0].cuda_graph.topology
    scene = topology_view(qtbot, panel).scene
    assert scene is not None
    assert scene.critical.any() == any(not node.critical for node in nodes)
    for node in nodes:
        node.critical = True
    chain = TopologyScene(nodes, scene.layout, {})
    assert not chain.critical.any(), "all of it would be red"
    nodes[-1].critical = False
    assert list(TopologyScene(nodes, scene.layout, {}).critical) == [node.critical for node in nodes]


def is_told(panel: CudaGraphPanel, text: str) -> bool:
    """Whether the facts beside the topology say ``text``."""
    parts = panel.topology.details.findChildren(QLabel)
    return any(text in (part.text(), part.accessibleName()) for part in parts)


def test_a_long_kernel_name_is_told_whole_and_copied(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    view = topology_view(qtbot, panel)
    nodes = report.regions[0].cuda_graph.topology
    place = next(i for i, node in enumerate(nodes) if len(node.name) > 50)
    view.choose(place)
    panel.topology.show_unit(nodes[place].region, nodes[place].unit)
    qtbot.waitUntil(lambda: is_told(panel, nodes[place].name), timeout=2_000)
    assert panel.topology.details.horizontalScrollBar().maximum() == 0
    name = next(
        part for part in panel.topology.details.findChildren(QLabel) if part.accessibleName() == nodes[place].name
    )
    name.actions()[0].trigger()
    assert QApplication.clipboard().text() == nodes[place].name


def test_inputs_and_their_routes_as_csv(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    qtbot.mouseClick(panel.pages.button("inputs"), LEFT)
    table = panel.inputs
    table.sortByColumn(4, Qt.SortOrder.DescendingOrder)
    lines = table.csv_text().splitlines()
    assert lines[0] == "Input,Way,Bytes,Nodes,CPU cost,Why"
    assert lines[1].startswith("input_ids,copied,65536,0,3.1,")
    assert lines[-1] == "wte_weight,static,77194752,0,,"
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(0, 0)).center())
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text().startswith("input_ids\tCopied")


def test_what_the_inputs_of_a_whole_iterations_graph_cost(qtbot: QtBot) -> None:
    report = lab_report(60)
    graph = report.regions[0].cuda_graph
    graph.routes = []
    panel = CudaGraphPanel(light())
    shown(qtbot, panel)
    panel.set_report(report)
    for captured, text in ((True, "none is copied"), (False, "Nothing was captured")):
        graph.captured = captured
        panel.set_region(RegionIndex(report, report.regions[0]))
        qtbot.mouseClick(panel.pages.button("inputs"), LEFT)
        assert text in panel.inputs.empty_text


def test_the_check_list_can_be_walked_by_keyboard(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    qtbot.mouseClick(panel.pages.button("check"), LEFT)
    qtbot.waitUntil(lambda: bool(panel.check.findings), timeout=5_000)
    assert panel.check.findings[0].title == "Graph break: print() is called on a tensor."
    row = next(row for row in panel.check.rows() if row.finding.target)
    with qtbot.waitSignal(panel.node_chosen, timeout=2_000):
        qtbot.keyClick(row, Qt.Key.Key_Return)


def test_without_a_captured_graph_it_says_so(qtbot: QtBot) -> None:
    bare = lab_report(60)
    bare.regions[0].cuda_graph = CudaGraph(capturable=True)
    panel = CudaGraphPanel(light())
    shown(qtbot, panel)
    panel.set_report(bare)
    panel.set_region(RegionIndex(bare, bare.regions[0]))
    assert not panel.life.isVisible()
    qtbot.mouseClick(panel.pages.button("topology"), LEFT)
    assert panel.topology._missing.isVisible()
    assert not panel.topology.view.isVisible()


def reuse_plan() -> Memory:
    buffers = [
        BufferPlan("buf0", "a", 1000, 0, 1), BufferPlan("buf1", "b", 500, 1, 2),
        BufferPlan("buf2", "c", 1000, 2, 3, reuses="buf0"), BufferPlan("buf3", "nothing", 0, 1, 1),
    ]  # fmt: skip
    return Memory(buffers, 1500, 2500)


def test_storages_hold_buffers_in_turn() -> None:
    rows = plan_rows(reuse_plan())
    assert [(buffer.name, int(row)) for buffer, row in zip(rows.buffers, rows.row, strict=True)] == [
        ("buf0", 0), ("buf2", 0), ("buf1", 1),
    ]  # fmt: skip
    assert rows.before.tolist() == [-1, 0, -1]
    assert rows.share.tolist() == [1.0, 1.0, 1.0]
    assert live_bytes(reuse_plan()).tolist() == [1000, 1500, 1500, 1000]


def test_a_buffer_written_over_its_operand_counts_once() -> None:
    buffers = [BufferPlan("buf0", "a", 1000, 0, 1), BufferPlan("buf1", "b", 1000, 1, 2, reuses="buf0")]
    assert live_bytes(Memory(buffers)).tolist() == [1000, 1000, 1000]


def test_the_chosen_order_is_explained() -> None:
    assert order_text(Memory()) == ""
    assert "captured order" in order_text(Memory(order=MemoryOrder.CAPTURED))
    moved = Memory(peak_bytes=750, order=MemoryOrder.BACKWARD, captured_peak_bytes=1000, moved_steps=3)
    text = order_text(moved)
    assert "3 steps moved (from the back" in text
    assert "would be 1.00 kB" in text
    assert text.endswith("now it is 25% lower.")


def test_memory_click_selects_and_selection_marks(qtbot: QtBot, report: Report) -> None:
    panel = MemoryPanel(light())
    shown(qtbot, panel)
    index = RegionIndex(report, report.regions[0])
    panel.set_region(index)
    settle()
    buffer = index.region.memory.buffers[2]
    with qtbot.waitSignal(panel.node_chosen, timeout=2_000) as told:
        qtbot.mouseClick(panel.map, LEFT, pos=panel.map.buffer_box(buffer.name).center().toPoint())
    assert told.args == [buffer.node]
    plain = panel.map.grab().toImage()
    panel.show_selection(Selection("region_0", "", buffer.node, frozenset((buffer.node,))))
    assert panel.map.grab().toImage() != plain
    assert "At the peak, step" in memory_text(index.region.memory, index)


def test_charts_are_saved_as_svg_and_png(qtbot: QtBot, report: Report, tmp_path: Path) -> None:
    panel = TimelinePanel(light())
    shown(qtbot, panel)
    panel.set_report(report)
    settle()
    panel.gantt.save(tmp_path / "a.svg")
    panel.gantt.save(tmp_path / "a.png")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    assert "Graph replay" in (tmp_path / "a.svg").read_text()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(OSError):
        panel.gantt.save(tmp_path / "no" / "a.png")


def test_one_selection_feeds_the_panels(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, report.source)
    panels = window.workspace.panels
    panels.setCurrentWidget(panels.timeline)
    settle()
    group = report.regions[0].groups[1]
    events = panels.timeline.gantt.bands[0].trace.events
    place = next(i for i, e in enumerate(events) if e.unit.endswith(f"/{group.name}") and e.lane == "cpu")
    qtbot.mouseClick(panels.timeline.gantt, LEFT, pos=panels.timeline.gantt.position_of(0, place).toPoint())
    assert window.workspace.selection.current.unit == group.name
    assert window.workspace.inspector.title.text() == group.name
    before = panels.height()
    qtbot.mouseClick(window.workspace.docks.enlarge, LEFT)
    qtbot.waitUntil(lambda: panels.height() > before + 100, timeout=3_000)
    qtbot.mouseClick(window.workspace.docks.enlarge, LEFT)
    qtbot.waitUntil(lambda: abs(panels.height() - before) < 12, timeout=3_000)


@pytest.mark.parametrize(
    ("low", "high", "room", "expected"),
    [
        (0, 10, 5, [0, 2, 4, 6, 8, 10]), (0, 0.9, 3, [0, 0.5]), (13, 29, 4, [15, 20, 25]), (5, 5, 4, [5]),
        (0, 29, 1, [0, 20]),  # where there is room for one step, two ticks all the same
    ],
)
def test_ticks_are_round(low: float, high: float, room: int, expected: list[float]) -> None:
    assert linear_ticks(low, high, room) == pytest.approx(expected)


def test_logarithmic_scales() -> None:
    scale = Scale(1.0, 1000.0, 0.0, 300.0, log=True)
    assert scale.px(10.0) == pytest.approx(100.0)
    assert scale.value(200.0) == pytest.approx(100.0)
    assert log_ticks(1.0, 1000.0, 3) == [1.0, 10.0, 100.0, 1000.0]
    assert log_ticks(0.06, 500.0, 4) == [0.1, 1.0, 10.0, 100.0]
    assert Scale(0.0, 1.0, 0.0, 600.0, whole=True).ticks() == [0.0, 1.0]


def test_ticks_of_an_axis_are_written_alike() -> None:
    assert tick_texts([0, 2500, 5000, 7500]) == ["0", "2,500", "5,000", "7,500"]
    assert tick_texts([0, 5000, 10_000, 15_000]) == ["0", "5k", "10k", "15k"]
    assert tick_texts([-1_000_000, 0, 500_000]) == ["−1M", "0", "0.5M"]
    assert log_tick_texts([0.01, 1, 1000, 100_000]) == ["0.01", "1", "1,000", "100k"]
    assert log_time_texts([0.1, 100, 1000, 1e7]) == ["0.1 µs", "100 µs", "1 ms", "10 s"]
    size, name = time_unit(7110.0)
    assert (in_unit([0, 2500, 5000], size), name) == (["0", "2.5", "5"], "ms")
    assert time_unit(7110.0, 50.0) == (1.0, "µs")


def test_roofline_click_chooses_and_says_what_is_measured(qtbot: QtBot, report: Report) -> None:
    panel = RooflinePanel(light())
    shown(qtbot, panel)
    index = RegionIndex(report, report.regions[0])
    panel.set_region(index)
    settle()
    unit = max(index.points.values(), key=lambda point: point.time.us).unit
    with qtbot.waitSignal(panel.unit_chosen, timeout=2_000) as told:
        qtbot.mouseClick(panel.chart, LEFT, pos=panel.chart.position_of(unit).toPoint())
    assert told.args == [unit]
    assert "measured" in point_lines(index.points[unit])[1]
    wasted = [index.points[panel.table.model().index(row, 0).data()].wasted_us for row in range(5)]
    assert wasted == sorted(wasted, reverse=True)
    assert not panel.table.isColumnHidden(2)
    bare = RegionIndex(transformer_report(60), transformer_report(60).regions[0])
    panel.set_region(bare)
    settle()
    assert panel.table.isColumnHidden(2), "every time is its roof where nothing was measured"
    assert panel._facts.text().startswith("Nothing was measured")


def test_source_lines_have_heat_and_select_their_nodes(qtbot: QtBot, report: Report) -> None:
    panel = SourcePanel(light())
    shown(qtbot, panel)
    panel.set_report(report)
    panel.set_region("region_0")
    qtbot.waitUntil(lambda: bool(panel.heat), timeout=10_000)
    line = max(panel.heat, key=lambda number: panel.heat[number].us)
    place = panel.code.line_rect(line)
    with qtbot.waitSignal(panel.nodes_chosen, timeout=2_000) as told:
        qtbot.mouseClick(panel.code.viewport(), LEFT, pos=QPoint(30, place.center().y()))
    assert told.args[0] == "region_0"
    assert told.args[1] == {node for _, node in panel.heat[line].nodes}
    panel.show_selection(Selection("region_0", "", "", frozenset(list(told.args[1])[:1])))
    assert panel.code.marked_lines == [line]


def test_names_of_another_compiler_s_stages_do_not_run_into_the_regions(qtbot: QtBot) -> None:
    panel = StagesPanel(light())
    qtbot.addWidget(panel)
    panel.set_stages([Stage("schedule and fuse", 700.0, "forward"), Stage("load", 90.0)])
    assert panel.bars.accessibleDescription().count("Schedule and fuse") == 1, "written as ours are"
    assert panel.bars.name_width > panel.bars.fontMetrics().horizontalAdvance("Schedule and fuse")


def test_the_only_region_of_a_report_takes_no_room_beside_its_stages(qtbot: QtBot) -> None:
    panel = StagesPanel(light())
    shown(qtbot, panel, 500, 200)
    named = Stage("lower", 90.0, "inference")

    def picture(stages: list[Stage]) -> QImage:
        panel.set_stages([Stage("capture", 100.0), *stages])
        QApplication.processEvents()
        return panel.bars.grab().toImage()

    assert picture([named]) == picture([Stage("lower", 90.0)])
    assert picture([named, Stage("lower", 90.0, "inference_1")]) != picture([Stage("lower", 90.0)] * 2)


def test_stages_are_explained_in_three_sentences(qtbot: QtBot, report: Report) -> None:
    panel = StagesPanel(light())
    shown(qtbot, panel)
    panel.set_stages(report.stages)
    assert panel.text.text() == explanation("capture")
    qtbot.mouseClick(panel.bars, LEFT, pos=QPoint(40, 26 * 2 + 10))
    assert panel.text.text() == explanation("fuse")
    qtbot.keyClick(panel.bars, Qt.Key.Key_Down)
    assert panel.text.text() == explanation("plan")
    for stage in (*STAGES, "of another compiler"):
        assert explanation(stage).count(". ") == 2, stage


def test_units_that_waste_most_come_first_where_measured(qtbot: QtBot, report: Report) -> None:
    panel = UnitsPanel(light())
    shown(qtbot, panel, 400, 300)
    index = RegionIndex(report, report.regions[0])
    panel.set_region(index)
    assert not panel.table.isColumnHidden(3)
    names = [panel.table.model().index(row, 1).data() for row in range(4)]
    wasted = [index.points[name].wasted_us for name in names]
    assert wasted == sorted(wasted, reverse=True)
    bare = transformer_report(60)
    panel.set_region(RegionIndex(bare, bare.regions[0]))
    assert [panel.table.model().index(row, 0).data() for row in range(3)] == ["0", "1", "2"]
    assert panel.table.isColumnHidden(3), "nothing was measured, so nothing is known to be wasted"
