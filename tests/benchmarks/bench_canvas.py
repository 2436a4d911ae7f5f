"""Frame times of the canvas, painted offscreen: pan and zoom over graphs of several sizes.

Run with ``python -m tests.benchmarks.bench_canvas``; prints a markdown table. A frame is everything between a camera
change and the finished widget, minimap included.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtWidgets import QApplication

from app.layout import layout_region
from tests.fake_reports import transformer_region
from views.canvas import GraphCanvas, Minimap
from views.canvas.camera import Camera, fitted

WIDTH, HEIGHT, FRAMES = 1600, 1000, 90


@dataclass(frozen=True)
class Case:
    """One way of moving: its name and the cameras, one a frame."""

    name: str
    cameras: list[Camera]


def cases(canvas: GraphCanvas) -> Iterator[Case]:
    """Pans and zooms at the scales that people use, from text to everything."""
    assert canvas.scene is not None
    bounds = canvas.scene.bounds
    middle = canvas.scene.node_rect[len(canvas.scene.node_rect) // 2]
    whole = fitted(bounds, WIDTH, HEIGHT)
    steps = np.linspace(0.0, 1.0, FRAMES)
    for scale in (1.0, 0.5, 0.3, 0.1):
        start = Camera().centred(float(middle[0]), float(middle[1]), WIDTH, HEIGHT, scale)
        yield Case(f"pan at {scale}", [start.panned(-13.0 * i, -21.0 * i) for i in range(FRAMES)])
    near = Camera().centred(float(middle[0]), float(middle[1]), WIDTH, HEIGHT, 1.5)
    yield Case("zoom from 1.5 to 0.1", [near.zoomed(float((0.1 / 1.5) ** s), 700.0, 400.0) for s in steps])
    yield Case("zoom from 1.5 to everything", [near.between(whole, float(s)) for s in steps])
    yield Case("pan over everything", [whole.panned(0.0, -3.0 * i) for i in range(FRAMES)])


def frame_times(canvas: GraphCanvas, case: Case) -> np.ndarray:
    """Milliseconds of each frame of a case."""
    times = []
    for camera in case.cameras:
        started = perf_counter()
        canvas.move_to(camera)
        QApplication.processEvents()
        times.append((perf_counter() - started) * 1e3)
    return np.array(times)


def main(sizes: list[int]) -> None:
    """Prints one table row per size and case."""
    app = QApplication.instance() or QApplication([])
    print("| nodes | case | median ms | p95 ms | worst ms |\n|---|---|---|---|---|")
    for size in sizes:
        region = transformer_region(size)
        layout = layout_region(region)
        started = perf_counter()
        canvas = GraphCanvas()
        Minimap(canvas)
        canvas.resize(WIDTH, HEIGHT)
        canvas.set_region(region, layout)
        loaded = (perf_counter() - started) * 1e3
        canvas.show()
        app.processEvents()
        for case in cases(canvas):
            times = frame_times(canvas, case)
            median, p95, worst = np.percentile(times, [50, 95, 100])
            print(f"| {len(region.nodes):,} | {case.name} | {median:.1f} | {p95:.1f} | {worst:.1f} |")
        print(f"| {len(region.nodes):,} | set_region, once | {loaded:.0f} | | |")
        canvas.close()


if __name__ == "__main__":
    main([int(value) for value in sys.argv[1:]] or [1_000, 10_000, 50_000])
