"""Frame times of the kernel panel's text: opening, scrolling, marking and hovering long levels, painted offscreen.

Run with ``python -m tests.benchmarks.bench_code_view [LINES...]``; prints a markdown table. A frame is everything from
the change to the painted widget. Times are the GUI thread's own (``time.thread_time``), so that what else runs on the
machine does not count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from time import thread_time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtWidgets import QApplication

from compiler.report import Kernel
from tests.benchmarks.result_file import run
from views.code.kernel import KernelPanel
from views.look.theme import light

WIDTH, HEIGHT, FRAMES, SOURCE_LINES = 1200, 900, 120, 60


def long_kernel(name: str, lines: int) -> Kernel:
    """A kernel whose PTX and SASS have ``lines`` lines each, every one from one of SOURCE_LINES source lines."""
    source = "\n".join(f"    tmp{i} = tl.load(in_ptr{i} + xindex, xmask)" for i in range(SOURCE_LINES))
    ptx = "\n".join(f"\tfma.rn.f32 \t%f{i}, %f{i % 97}, %f{i % 89}, 0f3DCCCCCD;" for i in range(lines))
    sass = "\n".join(
        f"        /*{16 * i:04x}*/   @!P2 LDG.E.128 R{i % 200}, desc[UR6][R28.64+{i:#x}] ;" for i in range(lines)
    )
    came_from = [1 + i * 7 % SOURCE_LINES for i in range(lines)]
    return Kernel(name, source=source, irs={"ptx": ptx, "sass": sass}, ir_lines={"ptx": came_from, "sass": came_from})


def timed(steps: Iterator[Callable[[], object]]) -> np.ndarray:
    """Milliseconds of each step with the painting that follows from it."""
    times = []
    for step in steps:
        started = thread_time()
        step()
        QApplication.processEvents()
        times.append((thread_time() - started) * 1e3)
    return np.array(times)


def opening(panel: KernelPanel, kernel: Kernel) -> np.ndarray:
    """The turn of the event loop that opens both texts, and every one after it until nothing is left to do."""
    turns = [lambda: panel.show_kernel(kernel, [1]), *[lambda: None] * 4]
    return timed(iter(turns))


def scrolling(panel: KernelPanel, step: int) -> np.ndarray:
    """Both levels scrolled by ``step`` lines a frame."""
    bars = [pane.code.verticalScrollBar() for pane in (panel.first, panel.second)]

    def move(frame: int) -> None:
        for bar in bars:
            bar.setValue(frame * step * bar.singleStep())

    return timed(partial(move, frame) for frame in range(FRAMES))


def measured(panel: KernelPanel, kernel: Kernel) -> dict[str, np.ndarray]:
    """Every case's frame times by its name."""
    whole = max(len(kernel.ir_lines["ptx"]) // FRAMES, 1)

    def mark(frame: int) -> None:
        panel.show_kernel(kernel, [1 + frame % SOURCE_LINES])

    def hover(frame: int) -> None:
        panel.show_hint(kernel.name, frozenset((1 + frame % SOURCE_LINES,)))

    return {
        "open both texts": opening(panel, kernel),
        "scroll by 3 lines": scrolling(panel, 3),
        "scroll by a page": scrolling(panel, 40),
        f"scroll end to end in {FRAMES} frames": scrolling(panel, whole),
        "mark another line and its partners": timed(partial(mark, frame) for frame in range(FRAMES)),
        "scroll by 3 lines, marked": scrolling(panel, 3),
        "hover another line": timed(partial(hover, frame) for frame in range(FRAMES)),
        "open another kernel as long": opening(panel, long_kernel("other", len(kernel.ir_lines["ptx"]))),
    }


def main(sizes: list[int]) -> None:
    """Prints one table row per size and case."""
    application = QApplication.instance() or QApplication([])
    print("| lines a level | case | frames | median ms | p95 ms | worst ms |\n|---|---|---|---|---|---|")
    for size in sizes:
        panel = KernelPanel(light())
        panel.resize(WIDTH, HEIGHT)
        panel.show()
        panel.show_kernel(long_kernel("small", 20), [])
        panel.show_two(True)
        panel.first.show_level("ptx")
        panel.second.show_level("sass")
        application.processEvents()
        for name, times in measured(panel, long_kernel("long", size)).items():
            median, p95, worst = np.percentile(times, [50, 95, 100])
            print(f"| {size:,} | {name} | {len(times)} | {median:.1f} | {p95:.1f} | {worst:.1f} |")
        panel.close()


if __name__ == "__main__":
    run(main, (2_000, 20_000, 100_000), "code_view")
