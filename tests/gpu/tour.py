"""The window on a GPU, offscreen: load an example, compile, click a group, run every mode, toggle replay, trace.

    python -m tests.gpu.tour FOLDER [EXAMPLE]

Writes seven screenshots and the session into FOLDER, prints what was seen, and fails where something did not happen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QPoint, Qt
from PySide6.QtTest import QTest

from app.session import save_session
from app.settings import Settings
from app.statistics import compare_medians
from app.worker.client import WorkerClient
from views.app import make_application
from views.main_window import MainWindow
from views.run.compare import sentence
from views.run.modes import MODE_TITLES
from views.run.panel import RunPanel
from views.window.bottom_panel import BottomPanel

SECONDS_A_MODE = 3.0


def said(window: MainWindow) -> None:
    """Print what the worker says of the run as it goes."""
    from app.worker.protocol import Failed, RunState, WorkerDied

    def tell(event: object) -> None:
        if isinstance(event, RunState):
            print(f"run: {event.state} {event.mode} {event.text}", flush=True)
        elif isinstance(event, Failed | WorkerDied):
            print(f"run: {event}", flush=True)

    window.bridge.run_state.connect(tell)
    window.bridge.failed.connect(tell)
    window.bridge.died.connect(tell)


def wait_until(done: Callable[[], bool], limit_s: float, what: str) -> float:
    """Process events until ``done``; the seconds it took. Raises TimeoutError after ``limit_s``."""
    loop, start = QEventLoop(), time.monotonic()
    while not done():
        if time.monotonic() - start > limit_s:
            raise TimeoutError(f"{what} did not happen within {limit_s:.0f} s")
        loop.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
    return time.monotonic() - start


def main(folder: Path, example: str) -> int:
    """Run the tour."""
    folder.mkdir(parents=True, exist_ok=True)
    application = make_application()
    window = MainWindow(WorkerClient, Settings(theme="light"))
    window.resize(1440, 900)
    window.show()
    shown: list[str] = []
    ready: list[object] = []
    window.bridge.ready.connect(ready.append)
    said(window)
    window.report_shown.connect(lambda: shown.append("report"))
    laid_out: list[str] = []
    window.workspace.graph.laid_out.connect(laid_out.append)
    wait_until(lambda: bool(ready), 60, "the worker's start")
    window.grab().save(str(folder / "start.png"))
    window._compile_example(f"example:{example}", False)
    took = wait_until(lambda: bool(shown), 120, "the compilation")
    print(f"{example} from click to report: {took:.1f} s")
    wait_until(lambda: bool(laid_out), 30, "the layout")
    region = window.workspace.graph.regions[0]
    window.workspace.select_unit(region.groups[1 if len(region.groups) > 1 else 0].name)
    wait_until(_after(0.6), 5, "painting")
    window.grab().save(str(folder / f"{example}-graph.png"))
    panels = window.workspace.panels
    run = panels.run
    panels.setCurrentWidget(run)
    click_mode(run, "eager")
    click_mode(run, "compiled")
    QTest.mouseClick(run.start_button, Qt.MouseButton.LeftButton)
    wait_until(lambda: _recorded(run, "eager"), 180, "the first live iteration")
    wait_until(_after(SECONDS_A_MODE), 10, "the eager run")
    click_mode(run, "compiled")
    click_mode(run, "eager")
    wait_until(_after(SECONDS_A_MODE), 10, "the compiled run")
    start = time.monotonic()
    middle = QPoint(run.switch.width() // 2, run.switch.height() // 2)
    QTest.mouseClick(run.switch, Qt.MouseButton.LeftButton, pos=middle)
    wait_until(lambda: _recorded(run, "graph"), 10, "the switch to replay")
    print(f"from the replay switch to its first iteration on the plot: {time.monotonic() - start:.2f} s")
    wait_until(_after(SECONDS_A_MODE), 10, "the replay")
    window.grab().save(str(folder / f"{example}-run.png"))
    for mode in ("inductor", "inductor-graph", "eager", "compiled"):
        start = time.monotonic()
        click_mode(run, mode)
        wait_until(lambda mode=mode: _recorded(run, mode), 300, f"the first iteration of {mode}")
        print(f"from switching {mode} on to its first iteration on the plot: {time.monotonic() - start:.2f} s")
    wait_until(_after(2 * SECONDS_A_MODE), 20, "five modes in turn")
    run.show_view("overlaid")
    wait_until(_after(1.0), 5, "painting")
    window.grab().save(str(folder / f"{example}-lab.png"))
    QTest.mouseClick(run.start_button, Qt.MouseButton.LeftButton)
    report = window.session.report
    assert report is not None
    wait_until(lambda: {m.mode for m in report.measurements} == set(MODE_TITLES), 120, "the measurements")
    wait_until(lambda: len(report.traces) == len(MODE_TITLES), 120, "the traces")
    graph = report.regions[0].cuda_graph
    print(f"CUDA Graph: {len(graph.topology)} nodes, {len(graph.routes)} inputs, covered {graph.covered_time}")
    wait_until(_after(0.5), 5, "painting")
    for name, theme, view in (
        ("timeline", "light", lambda: panels.setCurrentWidget(panels.timeline)),
        ("topology", "light", lambda: show_topology(panels)),
        ("roofline", "dark", lambda: panels.setCurrentWidget(panels.roofline)),
    ):
        window.set_theme(theme)
        view()
        wait_until(_after(1.0), 5, "painting")
        window.grab().save(str(folder / f"{example}-{name}.png"))
    for first, second in (("compiled", "graph"), ("inductor-graph", "graph")):
        a, b = (next(m.gpu_samples for m in report.measurements if m.mode == mode) for mode in (first, second))
        found = compare_medians(a, b)
        print(f"GPU time of {second} against {first}: {found and sentence(first, second, found)}")
    for m in report.measurements:
        print(f"{m.mode}: CPU p50 {m.cpu_us.p50:.1f} µs, GPU p50 {m.gpu_us.p50:.1f} µs over {m.iterations} iterations")
    save_session(folder / f"{example}-h200.fscope", report)
    window.session.discard_changes()
    window.close()
    application.processEvents()
    return 0


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def click_mode(run: RunPanel, mode: str) -> None:
    """Switch a mode on or off by a click on its row."""
    table = run.table
    place = table.visualRect(table.figures.index(table.figures.modes.index(mode), 0)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def show_topology(panels: BottomPanel) -> None:
    """The nodes of the captured graph, one of them in focus."""
    panels.setCurrentWidget(panels.cuda_graph)
    panels.cuda_graph.show_page("topology")


def _recorded(run: RunPanel, mode: str) -> bool:
    return any(row.mode == mode for row in run.record.rows())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "gpt2"))
