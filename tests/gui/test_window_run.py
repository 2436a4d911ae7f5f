"""The Run panel: live with a stub worker, playback of recorded iterations, and its figures."""

from __future__ import annotations

import os
import signal
import statistics
from typing import Any

import pytest
from msgspec import structs
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from compiler.report import Measurement, Percentiles, Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import Answers, MakeWindow, is_seen
from tests.gui.window_worker import LEVELS
from views.look.theme import light
from views.run.panel import RunPanel
from views.run.record import KEPT, RunRecord
from views.run.table import RunTableModel
from views.widgets.cards import Card

LEFT = Qt.MouseButton.LeftButton


def measurement(mode: str, cpu: float, gpu: float) -> Measurement:
    cpu_us = [cpu + (i % 7) for i in range(400)]
    gpu_us = [gpu + (i % 3) for i in range(400)]
    some = Percentiles(cpu, cpu, cpu)
    return Measurement(mode, "Test GPU", 400, some, some, cpu_samples=cpu_us, gpu_samples=gpu_us, warmup=10)


@pytest.fixture
def recorded() -> Report:
    report = transformer_report(60)
    report.measurements = [
        measurement("eager", 1000, 900), measurement("compiled", 300, 200), measurement("graph", 20, 180)
    ]
    return report


def open_recorded(qtbot: QtBot, report: Report) -> RunPanel:
    """The panel alone, as large as in the window, with the report's recordings."""
    run = RunPanel(light())
    qtbot.addWidget(run)
    run.resize(900, 280)
    run.show()
    run.set_recorded(report.measurements)
    qtbot.waitExposed(run)
    QApplication.processEvents()
    return run


def latest(run: RunPanel) -> tuple[float, float]:
    """The last point of the CPU and of the GPU curve; zeros while they are empty."""
    (facet,) = run.plot.facets
    cpu, gpu = (curve.values for curve in facet.curves)
    return (float(cpu[-1]), float(gpu[-1])) if len(cpu) else (0.0, 0.0)


def switch(qtbot: QtBot, run: RunPanel) -> None:
    button = run.switch
    qtbot.mouseClick(button, LEFT, pos=button.rect().center())


def click_mode(qtbot: QtBot, run: RunPanel, mode: str) -> None:
    table = run.table
    index = table.figures.index(table.figures.modes.index(mode), 0)
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())


def show_view(qtbot: QtBot, run: RunPanel, view: str) -> None:
    qtbot.mouseClick(run.views.button(view), LEFT)


def test_playback_moves_and_follows_the_switches(qtbot: QtBot, recorded: Report) -> None:
    run = open_recorded(qtbot, recorded)
    assert run.modes == ["compiled", "graph"]
    assert run.record.total == 800, "the beginnings of both are there before anything plays"
    click_mode(qtbot, run, "graph")
    assert run.modes == ["compiled"]
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.waitUntil(lambda: 0 < run.record.total < 400 and 300 <= latest(run)[0] < 310, timeout=10_000)
    assert 200 <= latest(run)[1] < 210
    switch(qtbot, run)
    assert run.modes == ["graph"]
    qtbot.waitUntil(lambda: 0 < latest(run)[0] < 30, timeout=10_000)
    click_mode(qtbot, run, "eager")
    assert run.modes == ["eager", "graph"]
    qtbot.waitUntil(lambda: latest(run)[0] >= 1000, timeout=5_000)
    qtbot.waitUntil(lambda: latest(run)[0] < 30, timeout=5_000)  # they take turns
    qtbot.mouseClick(run.start_button, LEFT)
    assert not run.is_running
    total = run.record.total
    qtbot.wait(150)
    assert run.record.total == total


def test_the_last_mode_stays_on(qtbot: QtBot, recorded: Report) -> None:
    run = open_recorded(qtbot, recorded)
    click_mode(qtbot, run, "graph")
    click_mode(qtbot, run, "compiled")
    assert run.modes == ["compiled"]
    qtbot.keyClick(run.table, Qt.Key.Key_Up)
    qtbot.keyClick(run.table, Qt.Key.Key_Space)
    assert run.modes == ["eager", "compiled"]


def test_layouts_of_the_plot(qtbot: QtBot, recorded: Report) -> None:
    run = open_recorded(qtbot, recorded)
    plot = run.plot
    show_view(qtbot, run, "side")
    assert [facet.title for facet in plot.facets] == ["Compiled", "Graph replay"]
    show_view(qtbot, run, "overlaid")
    assert [[curve.mode for curve in facet.curves] for facet in plot.facets] == [["compiled", "graph"]] * 2
    assert plot.facets[1].curves[1].values.max() < 190
    show_view(qtbot, run, "order")
    (facet,) = plot.facets
    assert [name for _, name in facet.marks] == ["Compiled", "Graph replay"]


def test_what_is_looked_at_before_a_start_has_every_mode_from_its_first_iteration(
    qtbot: QtBot, recorded: Report
) -> None:
    some = measurement("eager", 1000, 900)
    long = [*some.cpu_samples * 6][:2300]
    modes = ("eager", "compiled", "graph", "inductor", "inductor-graph")
    recorded.measurements = [structs.replace(some, mode=mode, cpu_samples=long, gpu_samples=long) for mode in modes]
    run = open_recorded(qtbot, recorded)
    for mode in set(modes) - set(run.modes):
        click_mode(qtbot, run, mode)
    (facet,) = run.plot.facets
    assert [name for _, name in facet.marks] == ["Eager", "Compiled", "Graph replay", "Inductor", "Inductor replay"]
    assert facet.span[0] == 0
    show_view(qtbot, run, "overlaid")
    assert {curve.first for facet in run.plot.facets for curve in facet.curves} == {0}


def test_an_outlier_can_be_clicked_and_jumped_to(qtbot: QtBot, recorded: Report) -> None:
    slow = next(m for m in recorded.measurements if m.mode == "compiled")
    slow.cpu_samples[321] = 900.0
    run = open_recorded(qtbot, recorded)
    qtbot.mouseClick(run.later, LEFT)
    assert run.state_text.startswith("Compiled, iteration 321: CPU 900 µs (2.97× p50")
    show_view(qtbot, run, "side")
    QApplication.processEvents()
    run.plot.grab()
    box, x, y = run.plot._boxes(QRectF(run.plot.rect()))[0]
    run._state.setText("")
    qtbot.mouseClick(run.plot, LEFT, pos=QPoint(round(x.px(321)) + 1, round(max(y.px(900.0), box.top()))))
    assert run.state_text.startswith("Compiled, iteration 321: CPU 900 µs")
    qtbot.keyClick(run.plot, Qt.Key.Key_Right)
    assert run.state_text.startswith("Compiled, iteration 322: CPU 300 µs")


def test_histogram_and_comparison(qtbot: QtBot, recorded: Report) -> None:
    same = measurement("inductor", 300, 200)
    recorded.measurements.append(same)
    run = open_recorded(qtbot, recorded)
    show_view(qtbot, run, "distribution")
    cpu, gpu = run.distribution.panels
    assert [histogram.mode for histogram in cpu.histograms] == ["compiled", "graph"]
    assert gpu.histograms[0].marks[0] == 201.0
    show_view(qtbot, run, "compare")
    qtbot.waitUntil(lambda: bool(run.compare.found), timeout=10_000)
    assert run.compare.found["CPU time to submit"].verdict == "faster"
    assert "Graph replay is faster by 280 µs" in run.compare.plot.accessibleDescription()
    qtbot.keyClicks(run.compare.second, "Inductor")
    qtbot.keyClick(run.compare.second, Qt.Key.Key_Return)
    run.compare.second.activated.emit(run.compare.second.currentIndex())
    qtbot.waitUntil(lambda: "beyond noise" in run.compare.plot.accessibleDescription(), timeout=10_000)


def test_wheel_zooms_and_double_click_follows_again(qtbot: QtBot, recorded: Report) -> None:
    run = open_recorded(qtbot, recorded)
    plot = run.plot
    plot.grab()
    middle = plot.rect().center()
    wheel = QWheelEvent(
        QPointF(middle), QPointF(plot.mapToGlobal(middle)), QPoint(), QPoint(0, 480), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(plot, wheel)
    assert plot.facets[0].span[1] - plot.facets[0].span[0] < 400
    qtbot.mouseDClick(plot, LEFT, pos=middle)
    assert plot.facets[0].span == (0, 800)


def test_recording_is_labelled_with_its_gpu(qtbot: QtBot, recorded: Report) -> None:
    run = open_recorded(qtbot, recorded)
    labels = [w for w in run.findChildren(object) if w.property("role") == "recorded"]
    assert [(w.text(), w.isVisible()) for w in labels] == [("Recorded on Test GPU", True)]


def test_modes_that_were_not_recorded_cannot_be_chosen(qtbot: QtBot, recorded: Report) -> None:
    recorded.measurements = [m for m in recorded.measurements if m.mode != "graph"]
    run = open_recorded(qtbot, recorded)
    assert not run.switch.isEnabled()
    assert [mode for mode in run.table.figures.modes if run.table.figures.is_available(mode)] == ["eager", "compiled"]
    click_mode(qtbot, run, "graph")
    assert run.modes == ["compiled"]


def test_without_gpu_the_panel_says_so(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.start_page.gallery.findChild(Card, "example:relu_add_mul"), LEFT)
    qtbot.waitUntil(lambda: "no CUDA GPU" in window.workspace.panels.run.sentence, timeout=10_000)
    assert not window.workspace.panels.run.is_running


def test_live_run_changes_mode_and_is_kept_for_saving(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(gpu=True)
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.start_page.gallery.findChild(Card, "example:relu_add_mul"), LEFT)
    assert window.toolbar.target.itemText(0) == "Test GPU (this machine)"
    run = window.workspace.panels.run
    qtbot.waitUntil(lambda: is_seen(run.plot), timeout=20_000)
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.waitUntil(lambda: bool(run.record.rows()), timeout=10_000)
    qtbot.waitUntil(lambda: run.plot.facets[0].shades == [(0, 10)], timeout=5_000)  # the warm-up
    switch(qtbot, run)
    qtbot.waitUntil(lambda: 0 < latest(run)[0] < LEVELS["compiled"], timeout=10_000)
    qtbot.mouseClick(run.start_button, LEFT)
    report = window.session.report
    assert report is not None
    qtbot.waitUntil(lambda: {m.mode for m in report.measurements} == {"compiled", "graph"}, timeout=10_000)
    assert window.isWindowModified()
    panels = window.workspace.panels
    panels.setCurrentWidget(panels.timeline)
    qtbot.waitUntil(lambda: len(panels.timeline.gantt.bands) == 2, timeout=10_000)
    assert {trace.mode for trace in report.traces} == {"compiled", "graph"}
    panels.setCurrentWidget(panels.cuda_graph)
    assert panels.cuda_graph.topology._nodes == report.regions[0].cuda_graph.topology
    assert window.workspace.index is not None
    assert all(point.time.measured for point in window.workspace.index.points.values())
    qtbot.waitUntil(lambda: window.meter.meter is not None and window.meter.meter.time_measured, timeout=10_000)


@pytest.mark.parametrize("fault", ["killed", "failed"])
def test_a_run_that_ends_before_its_end_keeps_what_came(make_window: MakeWindow, qtbot: QtBot, fault: str) -> None:
    window = make_window(gpu=True)
    name = "conv_bn_relu" if fault == "failed" else "relu_add_mul"
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.start_page.gallery.findChild(Card, f"example:{name}"), LEFT)
    report = window.session.report
    report.measurements = [measurement("graph", 20.0, 10.0)]  # of an earlier run, and longer than what comes now
    window.session.discard_changes()
    run = window.workspace.panels.run
    qtbot.waitUntil(lambda: is_seen(run.plot), timeout=20_000)
    for mode in ("eager", "graph", "compiled"):
        if (mode in run.modes) is not (mode != "compiled"):
            click_mode(qtbot, run, mode)
    qtbot.mouseClick(run.start_button, LEFT)
    if fault == "killed":
        qtbot.waitUntil(lambda: len(run.record.rows()) == 2, timeout=10_000)
        os.kill(window.bridge._client._process._popen.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: len(report.measurements) == 2, timeout=10_000)
    earlier, came = report.measurements
    assert (earlier.mode, earlier.iterations) == ("graph", 400), "the longer record stays"
    assert (came.mode, came.gpu, came.warmup) == ("eager", "Test GPU", 10)
    assert came.iterations == len(came.cpu_samples) > 0
    assert came.cpu_samples[0] == LEVELS["eager"]
    assert came.cpu_us.p50 == pytest.approx(statistics.median(came.cpu_samples))
    assert came.warmup_gpu_samples == [2 * LEVELS["eager"]] * 10
    assert window.isWindowModified()
    told = [message.text for message in window.messages.messages]
    assert told[-1] == f"The run's {came.iterations} iterations until then are kept."
    assert len(told) == 2, "what happened is told before"
    if fault == "killed":
        qtbot.waitUntil(lambda: "recorded iterations" in run.state_text, timeout=5_000)
    assert not run.is_running


@pytest.mark.parametrize("closes", ["window", "report"])
def test_closing_in_the_midst_of_a_run_asks_about_what_came(
    make_window: MakeWindow, qtbot: QtBot, answers: Answers, closes: str
) -> None:
    window = make_window(gpu=True)
    with qtbot.waitSignal(window.report_shown, timeout=30_000):
        qtbot.mouseClick(window.start_page.gallery.findChild(Card, "example:relu_add_mul"), LEFT)
    report, run = window.session.report, window.workspace.panels.run
    window.session.discard_changes()
    qtbot.waitUntil(lambda: is_seen(run.plot), timeout=20_000)
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.waitUntil(lambda: bool(run.record.rows()), timeout=10_000)
    answers.leave = "cancel"
    if closes == "window":
        window.close()
    else:
        qtbot.keyClick(window, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert answers.asked == ["example:relu_add_mul"]
    assert [m.mode for m in report.measurements] == ["compiled"]
    assert report.measurements[0].iterations > 0
    assert run.is_running, "the user stays, and it goes on"
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.waitUntil(lambda: bool(report.traces), timeout=10_000)
    assert [m.mode for m in report.measurements] == ["compiled"], "the run's own record takes its place"


def test_percentiles_and_speedups() -> None:
    record = RunRecord()
    record.add("eager", [100.0] * 10, [50.0] * 10, warmup=True)
    record.add("eager", [float(v) for v in range(101)], [10.0] * 101)
    record.add("graph", [5.0] * 10, [25.0] * 10)
    eager, graph = record.rows()
    assert eager.cpu == (50.0, 90.0, 99.0)
    assert eager.iterations == 101
    assert eager.speedup == 1.0
    assert graph.speedup == 2.0  # 50 µs of eager's CPU against 25 µs of the graph's GPU
    assert [(s.start, s.mode, s.warmup) for s in record.segments] == [
        (0, "eager", True), (10, "eager", False), (111, "graph", False)
    ]


def test_without_eager_there_is_no_speedup() -> None:
    record = RunRecord()
    record.add("graph", [5.0], [25.0])
    assert record.rows()[0].speedup is None


def test_what_takes_no_time_is_shown(qtbot: QtBot, recorded: Report) -> None:
    recorded.measurements = [measurement("eager", 1000, 900), measurement("compiled", 300, 200)]
    nothing = [0.0] * 400
    eager, compiled = recorded.measurements
    eager.gpu_samples = compiled.gpu_samples = compiled.cpu_samples = nothing
    run = open_recorded(qtbot, recorded)
    assert [row.speedup for row in run.record.rows()] == [1.0, None]
    run.plot.jump("compiled", 5)
    assert run.state_text == "Compiled, iteration 5: CPU 0 µs (above 0.0%); GPU 0 µs (above 0.0%)"
    show_view(qtbot, run, "distribution")
    show_view(qtbot, run, "compare")
    qtbot.waitUntil(lambda: bool(run.compare.found), timeout=10_000)
    told = run.compare.plot.accessibleDescription()
    assert told.startswith("CPU time to submit: Eager is slower by 1.00 ms (+1.00 ms to +1.00 ms). GPU time: No")


def test_record_finds_iterations_again_after_it_dropped_early_ones() -> None:
    record = RunRecord()
    for turn in range(40):
        record.add("eager", [float(turn)] * 1000, [0.0] * 1000)
        record.add("graph", [float(turn)] * 1000, [1.0] * 1000)
    assert record.total == 80_000
    assert 0 < record.first <= 80_000 - KEPT
    assert record.place(79_999) == ("graph", 39_999, False)
    assert record.run_number("graph", 39_999) == 79_999
    assert record.run_number("eager", 10) is None
    series = record.series("eager")
    assert series.first + len(series.cpu) == 40_000
    assert series.cpu[-1] == 39.0
    (eager, graph) = record.measurements("GPU", 0)
    assert (eager.iterations + eager.warmup, graph.iterations + graph.warmup) == (40_000, 40_000)
    assert [m.iterations for m in record.measurements("GPU", 79_500)] == [500]
    assert record.segments[0].start <= record.first


def test_figures_model(qtmodeltester: Any) -> None:
    record = RunRecord()
    record.add("eager", [1234.5] * 3, [10.0] * 3)
    model = RunTableModel(light())
    model.set_rows(record.rows())
    qtmodeltester.check(model)
    assert [model.index(0, column).data() for column in (0, 1, 4, 7)] == ["Eager", "1,234", "10.0", "1.00×"]
    assert model.index(1, 1).data() == "–"
