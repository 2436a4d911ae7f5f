"""Opens a session of 100 MB and walks over every panel, watching how long the GUI thread is busy at a stretch.

Each run is a process of its own, so that everything is a first time.

    python -m tests.benchmarks.bench_open FILE.fscope [-o FOLDER] [--runs 3]

FILE is made first where it is missing (half a minute). Interactive is when the report is on screen, its graph is laid
out, and a click on a group shows its kernel. Wall times on a busy machine count what it gave to others; CPU times do
not.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.session import save_session
from tests.benchmarks.big_session import big_report
from tests.benchmarks.driving import button, click, key, move, settle, show_window, wait, wheel
from tests.benchmarks.fresh import fresh
from tests.benchmarks.heartbeat import Blocks, Heartbeat
from views.main_window import MainWindow

_SIZE = (1440, 900)
CTRL, ALT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier


def open_once(file: Path) -> tuple[dict[str, float], dict[str, Blocks]]:
    """Milliseconds to each state after opening, and the blocks of each step of the walk."""
    window = show_window(*_SIZE)
    heart = Heartbeat(window)
    times, steps = {}, {}
    made: list[bool] = []
    window.on_demand.made.connect(lambda _: made.append(True))
    with heart.watch() as blocks:
        wait(lambda: bool(made))
        settle(0.2)
    steps["make the panels, after the first window"] = blocks
    laid_out: list[str] = []
    window.workspace.graph.laid_out.connect(laid_out.append)
    shown: list[float] = []
    start = time.perf_counter()
    window.report_shown.connect(lambda: shown.append(time.perf_counter()))
    with heart.watch() as blocks:
        window.open_path(str(file))
        wait(lambda: bool(shown))
        times["report on screen"] = (shown[0] - start) * 1e3
        settle(0.0)
        region = window.workspace.graph.region
        assert region is not None
        table = window.workspace.units.table
        wait(lambda: table.model().rowCount() > 0)
        click(table.viewport(), table.visualRect(table.model().index(3, 1)).center())
        kernel = window.workspace.inspector.kernel_panel
        wait(lambda: kernel.kernel is None or bool(kernel.code.text))
        times["a click shows its kernel"] = (time.perf_counter() - start) * 1e3
        wait(lambda: bool(laid_out))
        times["graph laid out"] = (time.perf_counter() - start) * 1e3
        settle(0.5)
    steps["open"] = blocks
    for name, step in walk(window):
        with heart.watch() as blocks:
            step()
            settle(0.6)
        steps[name] = blocks
    window.session.discard_changes()
    window.close()
    return times, steps


def walk(window: MainWindow, pace: float = 1.0) -> list[tuple[str, Callable[[], object]]]:
    """Every panel, and what people do in them, by real events; with less ``pace`` they wait shorter between them."""
    def pause(seconds: float) -> None:
        settle(seconds * pace)

    workspace = window.workspace
    panels, canvas, table = workspace.panels, workspace.graph.canvas, workspace.units.table
    keys = [getattr(Qt.Key, f"Key_{digit}") for digit in "1234567890"] + [Qt.Key.Key_Minus, Qt.Key.Key_Equal]
    steps: list[tuple[str, Callable[[], object]]] = [
        (f"show {panels.title(place)}", lambda place=place: key(window, keys[place], ALT))
        for place in range(panels.count())
    ]
    for place in range(panels.count()):
        steps.append((f"select with {panels.title(place)} in front", lambda place=place: (
            panels.setCurrentIndex(place), pause(0.2), click(table.viewport(), _row(table, 5 + place)),
        )))  # fmt: skip
    middle = QPoint(canvas.width() // 2, canvas.height() // 2)

    def hover() -> None:
        for x in range(20, canvas.width() - 20, 7):
            move(canvas.viewport(), QPoint(x, canvas.height() // 2))
            pause(0.004)

    def levels() -> None:
        tabs = workspace.inspector.kernel_panel.tabs
        for tab in range(tabs.count()):
            click(tabs, tabs.tabRect(tab).center())
            pause(0.15)

    def reach(which: Qt.Key) -> None:
        click(table.viewport(), _row(table, 4))
        pause(0.4)
        key(canvas, which)

    def sort() -> None:
        header = table.horizontalHeader()
        for place in range(header.count()):
            if not header.isSectionHidden(place):
                click(header.viewport(), QPoint(header.sectionViewportPosition(place) + 20, header.height() // 2))
                pause(0.05)

    def boxes() -> None:
        groupings = workspace.graph.groupings
        groupings.setFocus()
        key(groupings, Qt.Key.Key_End)
        for name in ("Open all boxes", "Close all boxes"):
            pause(0.5)
            click(button(workspace.graph, name))
        pause(0.5)
        key(groupings, Qt.Key.Key_Home)

    def colours() -> None:
        overlays = workspace.graph.overlays
        overlays.setFocus()
        for _ in range(overlays.count()):
            key(overlays, Qt.Key.Key_Down)
            pause(0.1)
        key(overlays, Qt.Key.Key_Home)

    def write() -> None:
        written: list[object] = []
        workspace.graph.exported.connect(written.append)
        with TemporaryDirectory() as folder:
            workspace.graph.export(Path(folder) / "graph.svg")
            wait(lambda: bool(written))

    def find() -> None:
        key(window, Qt.Key.Key_K, CTRL)
        for letter in "layers 7 mul":
            QTest.keyClick(window.finder.palette.line, letter)
            pause(0.05)
        key(window.finder.palette.line, Qt.Key.Key_Return)

    return [
        *steps,
        ("walk the history", lambda: [(key(window, Qt.Key.Key_Left, ALT), pause(0.1)) for _ in range(6)]),
        ("zoom", lambda: [(wheel(canvas.viewport(), middle, 1 - 2 * (i > 10)), pause(0.02)) for i in range(22)]),
        ("hover over the graph", hover),
        ("fit", lambda: key(window, Qt.Key.Key_0, CTRL)),
        ("every level of a kernel", levels),
        ("palette", find),
        ("all that a group depends on", lambda: reach(Qt.Key.Key_U)),
        ("all that depends on it", lambda: reach(Qt.Key.Key_D)),
        ("sort the groups", sort),
        ("boxes of modules", boxes),
        ("every way to colour", colours),
        ("write the graph as SVG", write),
        ("another theme", lambda: click(button(window.toolbar, "Light or dark"))),
    ]


def _row(table: object, row: int) -> QPoint:
    return table.visualRect(table.model().index(row, 1)).center()  # type: ignore[attr-defined]


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Open a large session and watch the GUI thread.")
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if not options.file.exists():
        save_session(options.file, big_report())
    runs = fresh(open_once, (options.file,), options.runs)
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    size = options.file.stat().st_size / 1e6
    lines = [
        "# Opening a large session",
        "",
        f"{machine}, offscreen, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d', time.gmtime())}. Script: "
        f"tests/benchmarks/bench_open.py, a file of {size:.0f} MB; medians of {len(runs)} runs.",
        "",
        "| from the wish to open | median ms | slowest ms |",
        "|---|---|---|",
    ]
    for name in runs[0][0]:
        values = [times[name] for times, _ in runs]
        lines.append(f"| {name} | {statistics.median(values):.0f} | {max(values):.0f} |")
    lines += ["", "| step | longest block, GUI thread's CPU ms | by the clock ms | over 16 ms |", "|---|---|---|---|"]
    for name in runs[0][1]:
        cpu = statistics.median(steps[name].worst_cpu_ms for _, steps in runs)
        wall = statistics.median(steps[name].worst_wall_ms for _, steps in runs)
        long = statistics.median(steps[name].too_long for _, steps in runs)
        lines.append(f"| {name} | {cpu:.1f} | {wall:.1f} | {long:.0f} |")
    print("\n".join(lines))
    if options.output is not None:
        (options.output / "open.md").write_text("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
