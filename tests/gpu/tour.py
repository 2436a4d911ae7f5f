"""The window on a GPU, offscreen: load an example, compile, click a group, toggle replay, and see the plot move.

    python -m tests.gpu.tour FOLDER [EXAMPLE]

Writes screenshots and the session into FOLDER, prints what was seen, and exits 1 where something did not happen.
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
from app.worker.client import WorkerClient
from views.app import make_application
from views.main_window import MainWindow

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
    run = window.workspace.panels.run
    window.workspace.panels.setCurrentWidget(run)
    run.toggle_mode("eager")
    run.toggle_mode("compiled")
    QTest.mouseClick(run.start_button, Qt.MouseButton.LeftButton)
    wait_until(lambda: _points(window) > 0, 180, "the first live iteration")
    wait_until(_after(SECONDS_A_MODE), 10, "the eager run")
    window.grab().save(str(folder / f"{example}-run-eager.png"))
    run.toggle_mode("compiled")
    run.toggle_mode("eager")
    wait_until(_after(SECONDS_A_MODE), 10, "the compiled run")
    start = time.monotonic()
    middle = QPoint(run.switch.width() // 2, run.switch.height() // 2)
    QTest.mouseClick(run.switch, Qt.MouseButton.LeftButton, pos=middle)
    wait_until(lambda: any(row.mode == "graph" for row in run.record.rows()), 10, "the switch to replay")
    wait_until(lambda: _points(window) > 0, 10, "the plot of replayed iterations")
    print(f"from the replay switch to its first iteration on the plot: {time.monotonic() - start:.2f} s")
    wait_until(_after(SECONDS_A_MODE), 10, "the replay")
    window.grab().save(str(folder / f"{example}-run.png"))
    QTest.mouseClick(run.start_button, Qt.MouseButton.LeftButton)
    report = window.session.report
    assert report is not None
    wait_until(lambda: len(report.measurements) >= 3, 30, "the measurements")
    wait_until(_after(0.5), 5, "painting")
    window.set_theme("dark")
    wait_until(_after(0.5), 5, "painting")
    window.grab().save(str(folder / f"{example}-dark.png"))
    for m in report.measurements:
        print(f"{m.mode}: CPU p50 {m.cpu_us.p50:.1f} µs, GPU p50 {m.gpu_us.p50:.1f} µs over {m.iterations} iterations")
    save_session(folder / f"{example}-h200.fscope", report)
    window.session.is_modified = False
    window.close()
    application.processEvents()
    return 0


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _points(window: MainWindow) -> int:
    return window.workspace.panels.run.record.total


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "gpt2"))
