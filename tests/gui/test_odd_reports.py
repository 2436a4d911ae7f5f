"""Reports that no compiler makes, as a damaged or hostile session may hold them: every panel stays up, one sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from compiler.report import Report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow
from views.widgets.basic import Choice

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


def test_a_report_with_no_region_leaves_nothing_of_the_one_before(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    first = lab_report(120)
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(first, "first")
    window.workspace.select_unit(first.regions[0].groups[0].name)
    empty = lab_report(60)
    empty.regions, empty.kernels, empty.traces = [], [], []
    window.open_report(empty, "empty")
    workspace = window.workspace
    assert workspace.graph.canvas.scene is None
    assert not workspace.units.table.records.shown
    assert workspace.inspector.title.text() == "No compiled region"
    assert workspace.inspector.kernel_panel.kernel is None
    told = [label.text() for label in workspace.inspector.page.findChildren(QLabel)]
    assert "Dynamo compiled nothing: the model may run no tensor op." in told
    assert "Compile a model" not in " ".join(told)
    qtbot.waitUntil(lambda: window.meter.meter is not None and not window.meter.meter.nodes.total, timeout=10_000)
    assert not window.meter.isVisible(), "there is nothing to trace back"
    with qtbot.waitSignal(workspace.graph.laid_out, timeout=20_000):
        window.open_report(lab_report(120), "third")
    assert workspace.graph.canvas.scene is not None
    assert workspace.units.table.records.shown


def test_what_the_assembler_refused_is_told_apart_from_facts(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    report = lab_report(120)
    report.kernels[0].error = "ptxas: too much shared memory"
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, "odd")
    groups = report.regions[0].groups
    failed = next(group for group in groups if group.kernel == report.kernels[0].name)
    window.workspace.select_unit(failed.name)
    panel = window.workspace.inspector.kernel_panel
    (told,) = [label for label in panel.findChildren(QLabel) if label.text() == report.kernels[0].error]
    assert told.property("role") == "danger"
    assert told.isVisible()
    window.workspace.select_unit(next(group.name for group in groups if group.kernel != failed.kernel))
    assert not told.isVisible()


def test_a_choice_that_does_not_fit_shows_both_of_its_ends(qtbot: QtBot) -> None:
    pictures = []
    for end in ("Max-Q", "Ti"):
        box = Choice("Target GPU")
        qtbot.addWidget(box)
        box.addItem(f"NVIDIA GeForce RTX 4090 Laptop GPU {end}")
        box.resize(180, 30)
        box.show()
        qtbot.waitExposed(box)
        pictures.append(box.grab().toImage())
    assert pictures[0] != pictures[1]
