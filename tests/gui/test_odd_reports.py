"""Reports that no compiler makes, as a damaged or hostile session may hold them: every panel stays up, one sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytestqt.qtbot import QtBot

from compiler.report import Report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow

HUGE = 2**62


def _dangling(report: Report) -> None:
    region = report.regions[0]
    region.nodes[5].inputs = ["nowhere"]
    region.groups[0].nodes = ["ghost"]
    region.groups[1].kernel = "no_kernel"
    region.cuda_graph.topology[3].dependencies = [99_999]
    for trace in report.traces:
        for event in trace.events[:20]:
            event.launch = 10**9


def _huge(report: Report) -> None:
    region = report.regions[0]
    for node in region.nodes:
        node.estimated_bytes = node.estimated_flops = HUGE
    for group in region.groups:
        group.estimated_bytes, group.order = HUGE, 2**40
    for buffer in region.memory.buffers:
        buffer.bytes = HUGE
    for measurement in report.measurements:
        measurement.cpu_samples, measurement.gpu_samples = [1e308] * 50, [float("inf")] * 50
    for trace in report.traces:
        for event in trace.events:
            event.duration_us = 1e300


def _cycle(report: Report) -> None:
    first, second = report.regions[0].nodes[10], report.regions[0].nodes[20]
    first.inputs, second.inputs = [second.name], [first.name]


def _twice(report: Report) -> None:
    nodes = report.regions[0].nodes
    nodes.append(nodes[3])


@pytest.mark.parametrize("change", [_dangling, _huge, _cycle, _twice])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_every_panel_stays_up(make_window: MakeWindow, qtbot: QtBot, change: Callable[[Report], None]) -> None:
    window = make_window(worker=False)
    report = lab_report(120)
    change(report)
    messages: list[str] = []
    window.messages.posted.connect(lambda message: messages.append(message.text))
    with qtbot.captureExceptions() as exceptions:
        window.open_report(report, "odd")
        for place in range(window.workspace.panels.count()):
            window.workspace.panels.setCurrentIndex(place)
            qtbot.wait(60)
        for unit in list(window.workspace.index.units)[:3]:
            window.workspace.select_unit(unit)
            qtbot.wait(60)
    assert not exceptions
    assert len(messages) <= 1, "one sentence at most: that the graph cannot be laid out"
    assert window.isVisible()
