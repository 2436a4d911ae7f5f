"""Sessions recorded on an H200, opened where there is no GPU: the replay lab, the timeline and the graph's nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.session import open_session
from compiler.report import Measurement, Report
from tests.gui.conftest import settle
from tests.gui.test_lab_panels import cuda_graph_panel, shown, topology_view
from views.look.theme import light
from views.panels.timeline import TimelinePanel
from views.run.modes import mode_title
from views.run.panel import RunPanel
from views.selection.index import RegionIndex

ROOT = Path(__file__).parents[2]
SESSIONS = sorted([*ROOT.glob("resources/samples/*.fscope"), *ROOT.glob("tests/fixtures/recorded/*.fscope")])
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module", params=SESSIONS, ids=lambda path: path.stem)
def report(request: pytest.FixtureRequest) -> Report:
    return open_session(request.param).report


def measured(report: Report, mode: str) -> Measurement:
    return next(one for one in report.measurements if one.mode == mode)


def test_the_lab_plays_what_was_recorded(qtbot: QtBot, report: Report) -> None:
    run = RunPanel(light())
    shown(qtbot, run, 1100, 320)
    run.set_recorded(report.measurements)
    assert f"Recorded on {report.target.title}" in [label.text() for label in run.findChildren(QLabel)]
    rows = {row.mode: row for row in run.record.rows()}
    assert set(rows) == {one.mode for one in report.measurements}
    for one in report.measurements:
        row = rows[one.mode]
        assert row.iterations == one.iterations
        assert row.cpu == pytest.approx((one.cpu_us.p50, one.cpu_us.p90, one.cpu_us.p99), rel=1e-3)
        assert row.gpu == pytest.approx((one.gpu_us.p50, one.gpu_us.p90, one.gpu_us.p99), rel=1e-3)
    qtbot.mouseClick(run.start_button, LEFT)
    for _ in range(14):  # a turn of each mode that is on, and the beginning of the next
        run.player.tick()
    assert [segment.mode for segment in run.record.segments][:2] == ["compiled", "graph"]
    second = run.record.segments[1].start
    first, cpu, gpu = run.record.window(0, second)
    assert first == 0
    assert cpu.tolist() == measured(report, "compiled").cpu_samples[:second]
    assert gpu.tolist() == measured(report, "compiled").gpu_samples[:second]
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.mouseClick(run.views.button("compare"), LEFT)
    qtbot.waitUntil(lambda: bool(run.compare.found), timeout=10_000)
    assert run.compare.found["CPU time to submit"].verdict == "faster"
    assert "Graph replay is faster by" in run.compare.plot.accessibleDescription()


def test_the_timeline_has_launches_and_kernels_of_every_mode(qtbot: QtBot, report: Report) -> None:
    panel = TimelinePanel(light())
    shown(qtbot, panel)
    panel.set_report(report)
    settle()
    bands = {band.title: band.trace for band in panel.gantt.bands}
    assert list(bands) == [mode_title(trace.mode) for trace in report.traces]
    launches = {title: sum(event.lane == "cpu" for event in trace.events) for title, trace in bands.items()}
    kernels = {title: len(trace.events) - launches[title] for title, trace in bands.items()}
    assert launches["Graph replay"] < launches["Compiled"] / 4, "what capture is for"
    assert min(kernels.values()) > 0


def test_the_graphs_nodes_are_those_of_the_driver(qtbot: QtBot, report: Report) -> None:
    panel = cuda_graph_panel(qtbot, report)
    view = topology_view(qtbot, panel)
    graph = next(region.cuda_graph for region in report.regions if region.cuda_graph.nodes)
    assert len(view.scene.nodes) == graph.nodes == len(graph.topology)
    drawn = sorted(map(tuple, view.scene.layout.edges.tolist()))
    assert drawn == sorted((before, node.id) for node in graph.topology for before in node.dependencies)
    index = RegionIndex(report, report.regions[0])
    place = next(i for i, node in enumerate(graph.topology) if node.region == index.region.name and node.unit)
    node = graph.topology[place]
    view.choose(place)
    qtbot.waitUntil(lambda: view.viewport().rect().contains(view.rect_in_view(place).center().toPoint()))
    with qtbot.waitSignal(panel.unit_chosen, timeout=2_000) as told:
        qtbot.mouseClick(view.viewport(), LEFT, pos=view.rect_in_view(place).center().toPoint())
    assert told.args == [node.region, node.unit]
    facts = [" × ".join(map(str, sizes)) for sizes in (node.grid, node.block)]
    qtbot.waitUntil(
        lambda: set(facts) <= {label.text() for label in panel.topology.details.findChildren(QLabel)}, timeout=5_000
    )
    qtbot.mouseClick(panel.pages.button("check"), LEFT)
    qtbot.waitUntil(lambda: bool(panel.check.rows()), timeout=5_000)
