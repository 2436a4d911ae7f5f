"""Times the window as its user waits for it, offscreen: process start to first paint, and click to Triton source.

    python -m tests.benchmarks.bench_window [-o FOLDER]

Each figure is the median of RUNS runs after one that is thrown away. With -o the table is written there too.
Modules are compiled in that first run, and kept, as Python does wherever it is not told otherwise.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.fresh import environment

RUNS = 7
_FIRST_PAINT = """
import sys
from PySide6.QtCore import QTimer
from app.settings import Settings
from app.worker.client import WorkerClient
from views.app import make_application
from views.main_window import MainWindow
application = make_application()
window = MainWindow(WorkerClient, Settings(theme="light"), start_worker=False)
window.show()
application.processEvents()
window.grab()
sys.stdout.write("painted")
sys.stdout.flush()
import os
os._exit(0)
"""


def first_paint_ms(bytecode: str) -> float:
    """Process start until the start page is painted; ``bytecode`` is the folder that compiled modules are kept in."""
    command = [sys.executable, "-c", _FIRST_PAINT]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(bytecode))
    if done.stdout != "painted":
        raise RuntimeError(done.stderr)
    return (time.perf_counter() - start) * 1e3


def click_to_source_ms(example: str, runs: int) -> list[float]:
    """The click on an example's card until its kernel's source is in the code view, with a warm worker."""
    from PySide6.QtCore import QEventLoop

    from app.settings import Settings
    from app.worker.client import WorkerClient
    from views.app import make_application
    from views.main_window import MainWindow

    application = make_application()
    window = MainWindow(WorkerClient, Settings(theme="light"))
    window.show()
    loop = QEventLoop()

    def wait(done: Callable[[], bool], limit_s: float = 120.0) -> None:
        end = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > end:
                raise TimeoutError("the window did not get there")
            loop.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 5)

    shown: list[object] = []
    laid_out: list[str] = []
    window.report_shown.connect(lambda: shown.append(1))
    window.workspace.graph.laid_out.connect(laid_out.append)
    times = []
    for _ in range(runs):
        shown.clear()
        laid_out.clear()
        window.session.discard_changes()  # else it asks whether to keep the report before
        start = time.perf_counter()
        window._compile_example(f"example:{example}", False)
        wait(lambda: bool(shown) and bool(laid_out))
        window.workspace.select_unit(window.workspace.graph.regions[0].groups[0].name)
        wait(lambda: "@triton.jit" in window.workspace.inspector.kernel_panel.code.text)
        times.append((time.perf_counter() - start) * 1e3)
    window.session.discard_changes()
    window.close()
    application.processEvents()
    return times


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="The window's times as its user waits for it.")
    parser.add_argument("-o", "--output", type=Path, help="the folder of the files of results")
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as bytecode:
        paints = [first_paint_ms(bytecode) for _ in range(RUNS + 1)][1:]
    clicks = click_to_source_ms("relu_add_mul", RUNS + 1)[1:]
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    lines = [
        "# The window's times",
        "",
        f"{machine}, offscreen, {time.strftime('%Y-%m-%d', time.gmtime())}. Script: tests/benchmarks/bench_window.py; "
        f"medians of {RUNS} runs, the first run thrown away.",
        "",
        "| what | median ms | slowest ms |",
        "|---|---|---|",
        f"| process start to first window painted | {statistics.median(paints):.0f} | {max(paints):.0f} |",
        f"| relu_add_mul: click to Triton source on screen, warm worker | {statistics.median(clicks):.0f} "
        f"| {max(clicks):.0f} |",
        "",
    ]
    print("\n".join(lines))
    if options.output is not None:
        (options.output / "window.md").write_text("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
