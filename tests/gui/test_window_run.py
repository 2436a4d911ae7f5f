"""The Run panel: live with a stub worker, playback of recorded iterations, and its figures."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from compiler.report import Measurement, Percentiles, Report
from tests.fake_reports import transformer_report
from tests.gui.conftest import MakeWindow
from tests.gui.window_worker import LEVELS
from views.cards import Card
from views.main_window import MainWindow
from views.run_record import RunRecord, mode_key
from views.run_table import RunTableModel

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


def open_recorded(qtbot: QtBot, window: MainWindow, report: Report) -> None:
    window.open_report(report, report.source)
    qtbot.waitUntil(lambda: window.workspace.panels.run.plot is not None, timeout=20_000)


def plotted(window: MainWindow) -> tuple[Any, Any]:
    plot = window.workspace.panels.run.plot
    assert plot is not None
    return plot.cpu_curve.getData()[1], plot.gpu_curve.getData()[1]


def last_cpu(window: MainWindow) -> float:
    """The last point of the CPU curve; 0 while it is empty."""
    cpu = plotted(window)[0]
    return float(cpu[-1]) if cpu is not None and len(cpu) else 0.0


def switch(qtbot: QtBot, window: MainWindow) -> None:
    button = window.workspace.panels.run.switch
    qtbot.mouseClick(button, LEFT, pos=button.rect().center())


def test_playback_moves_and_follows_the_replay_switch(
    make_window: MakeWindow, qtbot: QtBot, recorded: Report
) -> None:
    window = make_window(worker=False)
    open_recorded(qtbot, window, recorded)
    run = window.workspace.panels.run
    assert run.mode == "compiled"
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.waitUntil(lambda: last_cpu(window) > 0, timeout=10_000)
    cpu, gpu = plotted(window)
    assert 300 <= min(cpu) <= max(cpu) < 310
    assert 200 <= min(gpu) <= max(gpu) < 210
    switch(qtbot, window)
    assert run.mode == "graph"
    qtbot.waitUntil(lambda: 0 < last_cpu(window) < 30, timeout=10_000)
    qtbot.mouseClick(run.modes.button("eager"), LEFT)
    qtbot.waitUntil(lambda: last_cpu(window) >= 1000, timeout=5_000)
    qtbot.mouseClick(run.start_button, LEFT)
    assert not run.is_running
    total = run.record.total
    qtbot.wait(150)
    assert run.record.total == total


def test_recording_is_labelled_with_its_gpu(make_window: MakeWindow, qtbot: QtBot, recorded: Report) -> None:
    window = make_window(worker=False)
    open_recorded(qtbot, window, recorded)
    labels = [w for w in window.workspace.panels.run.findChildren(object) if w.property("role") == "recorded"]
    assert [(w.text(), w.isVisible()) for w in labels] == [("Recorded on Test GPU", True)]


def test_modes_that_were_not_recorded_cannot_be_chosen(
    make_window: MakeWindow, qtbot: QtBot, recorded: Report
) -> None:
    recorded.measurements = [m for m in recorded.measurements if m.mode != "graph"]
    window = make_window(worker=False)
    open_recorded(qtbot, window, recorded)
    assert not window.workspace.panels.run.switch.isEnabled()
    assert window.workspace.panels.run.modes.button("eager").isEnabled()


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
    qtbot.waitUntil(lambda: run.plot is not None, timeout=20_000)
    qtbot.mouseClick(run.start_button, LEFT)
    qtbot.waitUntil(lambda: bool(run.record.rows()), timeout=10_000)
    switch(qtbot, window)
    qtbot.waitUntil(lambda: 0 < last_cpu(window) < LEVELS["compiled"], timeout=10_000)
    qtbot.mouseClick(run.start_button, LEFT)
    report = window.session.report
    assert report is not None
    qtbot.waitUntil(lambda: {m.mode for m in report.measurements} == {"compiled", "graph"}, timeout=10_000)
    assert window.isWindowModified()


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


@pytest.mark.parametrize(
    ("mode", "replay", "key"),
    [("eager", False, "eager"), ("eager", True, "eager"), ("compiled", False, "compiled"), ("compiled", True, "graph")],
)
def test_replay_turns_compiled_into_graph(mode: str, replay: bool, key: str) -> None:
    assert mode_key(mode, replay) == key


def test_figures_model(qtmodeltester: Any) -> None:
    record = RunRecord()
    record.add("eager", [1234.5] * 3, [10.0] * 3)
    model = RunTableModel()
    model.set_rows(record.rows())
    qtmodeltester.check(model)
    assert [model.index(0, column).data() for column in (0, 1, 4, 7)] == ["Eager", "1,234", "10.0", "1.00x"]
