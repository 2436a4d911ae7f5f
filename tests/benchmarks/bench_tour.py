"""A tour of the window over GPT-2 in training, compiled by both compilers, by real events: how long each frame takes.

    python -m tests.benchmarks.bench_tour FOLDER [-o FOLDER]

FOLDER keeps the two sessions; where they are missing they are compiled first, for an H200 with no GPU (two minutes).
A frame is everything that one event causes in the GUI thread until the window is painted. The times are the thread's
own (CPU), for a busy machine would be counted otherwise; frames by the clock stand beside them.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTableView

from tests.benchmarks.driving import LEFT, NONE, button, click, key, make_window, move, settle, wait, wheel
from views.main_window import MainWindow

COMPILERS = ("fusescope", "inductor")
FRAME_MS = 1000 / 60
CTRL, ALT, SHIFT = (
    Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ShiftModifier
)  # fmt: skip
_KEYS = [getattr(Qt.Key, f"Key_{digit}") for digit in "1234567890"] + [Qt.Key.Key_Minus, Qt.Key.Key_Equal]
_GLIDE_FRAMES = 16  # of an animation, looked at one by one after an event that begins one


@dataclass
class Frames:
    """The frames of a step."""

    pace_s: float = FRAME_MS / 1e3  # between frames that nothing but time brings on
    cpu_ms: list[float] = field(default_factory=list)
    wall_ms: list[float] = field(default_factory=list)

    def take(self, action: Callable[[], object]) -> None:
        """One event, and everything it causes at once."""
        wall, cpu = time.perf_counter(), time.thread_time()
        action()
        QApplication.processEvents()
        self.cpu_ms.append((time.thread_time() - cpu) * 1e3)
        self.wall_ms.append((time.perf_counter() - wall) * 1e3)

    def run_on(self, frames: int = _GLIDE_FRAMES) -> None:
        """What goes on by itself: animations, and work that ends on another thread."""
        for _ in range(frames):
            time.sleep(self.pace_s)
            self.take(lambda: None)


Step = Callable[[MainWindow, Frames], None]


def sessions(folder: Path) -> list[Path]:
    """The two files, compiled where they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for compiler in COMPILERS:
        file = folder / f"gpt2-train-{compiler}.fscope"
        if not file.exists():
            command = [
                sys.executable, "main.py", "compile", "example:gpt2", "--train", "--target", "h200",
                "--compiler", compiler, "-o", str(file),
            ]  # fmt: skip
            subprocess.run(command, check=True)
        files.append(file)
    return files


def select(window: MainWindow, frames: Frames) -> None:
    """Rows of the table, one after another, by the mouse and by the arrows."""
    table = window.workspace.units.table
    for row in range(2, 12):
        frames.take(lambda row=row: click(table.viewport(), _row(table, row)))
        frames.run_on()
    for _ in range(10):
        frames.take(lambda: key(table, Qt.Key.Key_Down))
        frames.run_on(6)


def pan(window: MainWindow, frames: Frames) -> None:
    """The graph, dragged in a circle, at the scale that a selection leaves."""
    canvas = window.workspace.graph.canvas.viewport()
    middle = canvas.rect().center()
    QTest.mousePress(canvas, LEFT, NONE, middle)
    for angle in np.linspace(0.0, 6.28, 60):
        at = middle + QPoint(round(150 * np.cos(angle)) - 150, round(150 * np.sin(angle)))
        frames.take(lambda at=at: QTest.mouseMove(canvas, at))
    QTest.mouseRelease(canvas, LEFT, NONE, middle)


def zoom(window: MainWindow, frames: Frames) -> None:
    """Out to everything, and in again."""
    canvas = window.workspace.graph.canvas.viewport()
    for steps in (-1,) * 20 + (1,) * 20:
        frames.take(lambda steps=steps: wheel(canvas, canvas.rect().center(), steps))
        frames.run_on(1)
    frames.take(lambda: key(window, Qt.Key.Key_0, CTRL))
    frames.run_on()


def hover(window: MainWindow, frames: Frames) -> None:
    """The mouse across the graph, then down the table."""
    canvas, table = window.workspace.graph.canvas.viewport(), window.workspace.units.table
    for x in range(10, canvas.width() - 10, 8):
        frames.take(lambda x=x: move(canvas, QPoint(x, canvas.height() // 2)))
    for y in range(4, table.viewport().height() - 4, 6):
        frames.take(lambda y=y: move(table.viewport(), QPoint(60, y)))


def expand(window: MainWindow, frames: Frames) -> None:
    """The graph by modules: all boxes opened, then all closed."""
    graph = window.workspace.graph
    frames.take(lambda: graph.groupings.setFocus())
    frames.take(lambda: key(graph.groupings, Qt.Key.Key_End))
    frames.run_on(30)
    for name in ("Open all boxes", "Close all boxes"):
        frames.take(lambda name=name: click(button(graph, name)))
        frames.run_on(30)
    frames.take(lambda: key(graph.groupings, Qt.Key.Key_Home))
    frames.run_on(30)


def panels(window: MainWindow, frames: Frames) -> None:
    """Every panel, twice: the first time it is made."""
    for _ in range(2):
        for place in range(window.workspace.panels.count()):
            frames.take(lambda place=place: key(window, _KEYS[place], ALT))
            frames.run_on(10)


def overlays(window: MainWindow, frames: Frames) -> None:
    """Every way to colour the graph."""
    box = window.workspace.graph.overlays
    frames.take(lambda: box.setFocus())
    for _ in range(box.count()):
        frames.take(lambda: key(box, Qt.Key.Key_Down))
        frames.run_on(4)
    frames.take(lambda: key(box, Qt.Key.Key_Home))


def filters(window: MainWindow, frames: Frames) -> None:
    """A filter found by typing, and taken away."""
    frames.take(lambda: key(window, Qt.Key.Key_F, CTRL | SHIFT))
    for letter in "op: add.Tensor":
        frames.take(lambda letter=letter: QTest.keyClick(window.finder.palette.line, letter))
    frames.take(lambda: key(window.finder.palette.line, Qt.Key.Key_Return))
    frames.run_on()
    frames.take(lambda: key(window, Qt.Key.Key_X, CTRL | SHIFT))
    frames.run_on()


def find(window: MainWindow, frames: Frames) -> None:
    """The palette, letter by letter."""
    frames.take(lambda: key(window, Qt.Key.Key_K, CTRL))
    for letter in "add tensor":
        frames.take(lambda letter=letter: QTest.keyClick(window.finder.palette.line, letter))
        frames.run_on(2)
    frames.take(lambda: key(window.finder.palette.line, Qt.Key.Key_Return))
    frames.run_on()


def pin(window: MainWindow, frames: Frames) -> None:
    """A pin, other selections beside it, and back through the history."""
    table = window.workspace.units.table
    frames.take(lambda: click(table.viewport(), _row(table, 3)))
    frames.take(lambda: key(window, Qt.Key.Key_P))
    for row in (4, 6, 8):
        frames.take(lambda row=row: click(table.viewport(), _row(table, row)))
        frames.run_on()
    frames.take(lambda: key(window, Qt.Key.Key_P))
    for _ in range(4):
        frames.take(lambda: key(window, Qt.Key.Key_Left, ALT))
        frames.run_on(8)


def compare(window: MainWindow, frames: Frames) -> None:
    """This report with the one before."""
    frames.take(lambda: key(window, Qt.Key.Key_D, CTRL | SHIFT))
    wait(lambda: (frames.run_on(2), window.workspace.panels.compare.diff is not None)[1])
    frames.run_on()


def documents(window: MainWindow, frames: Frames) -> None:
    """The other report, and this one again."""
    for _ in range(4):
        frames.take(lambda: key(window, Qt.Key.Key_PageDown, CTRL))
        frames.run_on(30)


STEPS: tuple[tuple[str, Step], ...] = (
    ("select", select), ("pan", pan), ("zoom", zoom), ("hover", hover), ("expand and collapse", expand),
    ("switch panels", panels), ("overlays", overlays), ("filter", filters), ("find", find), ("pin and history", pin),
    ("compare both compilers", compare), ("switch reports", documents),
)  # fmt: skip


def _row(table: QTableView, row: int) -> QPoint:
    index = table.model().index(row, 1)
    table.scrollTo(index)
    return table.visualRect(index).center()


def walk(window: MainWindow, pace_s: float = FRAME_MS / 1e3) -> Iterator[tuple[str, Frames]]:
    """Every step over the reports that ``window`` has open, one after another."""
    for name, step in STEPS:
        frames = Frames(pace_s)
        step(window, frames)
        yield name, frames
        settle(18 * pace_s)


def tour(files: Iterable[Path], size: tuple[int, int]) -> dict[str, Frames]:
    """Walk through every step with both sessions open."""
    window = make_window(*size)
    laid_out: list[str] = []
    window.workspace.graph.laid_out.connect(laid_out.append)
    for number, file in enumerate(files, 1):
        window.open_path(str(file))
        wait(lambda number=number: len(laid_out) >= number)
        settle(1.0)
    found = dict(walk(window))
    window.session.discard_changes()
    window.close()
    return found


def main() -> int:
    """Walk, print and write."""
    parser = argparse.ArgumentParser(description="Frame times of a tour over GPT-2 by both compilers.")
    parser.add_argument("folder", type=Path, help="where the two sessions are, or will be")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--size", default="1440x900")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    found = tour(sessions(options.folder), (width, height))
    lines = [
        "# A tour of GPT-2 in training, by both compilers",
        "",
        f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}, offscreen, {options.size}, "
        f"load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d', time.gmtime())}. Script: "
        "tests/benchmarks/bench_tour.py. Milliseconds of each frame.",
        "",
        "| step | frames | p50 | p95 | worst | over 16.7 | p95 by the clock |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, frames in found.items():
        p50, p95, worst = np.percentile(frames.cpu_ms, [50, 95, 100])
        late = sum(1 for ms in frames.cpu_ms if ms > FRAME_MS)
        wall = np.percentile(frames.wall_ms, 95)
        lines.append(f"| {name} | {len(frames.cpu_ms)} | {p50:.1f} | {p95:.1f} | {worst:.1f} | {late} | {wall:.1f} |")
    print("\n".join(lines))
    if options.output is not None:
        (options.output / "tour.md").write_text("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
