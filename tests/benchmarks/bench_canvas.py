"""Frame times of the canvas, painted offscreen: pan and zoom over graphs of several sizes, in each grouping.

Run with ``python -m tests.benchmarks.bench_canvas``, with QT_SCALE_FACTOR=2 for a device pixel ratio of 2; prints a
markdown table. A frame is everything between a camera change and the finished widget, minimap included. CPU time is
beside wall time, because other work on the machine lengthens the latter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter, process_time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtWidgets import QApplication

from app.layout import GraphLayout, layout_region
from app.layout.module_layouts import ModuleLayouts
from app.overlays import LEVELS, Overlay
from compiler.report import Region
from tests.benchmarks.result_file import run
from tests.fake_reports import transformer_region
from views.canvas.camera import Camera, fitted
from views.canvas.canvas import GraphCanvas
from views.canvas.minimap import Minimap

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
    """Wall and CPU milliseconds of each frame of a case, (frames, 2)."""
    times = []
    for camera in case.cameras:
        started, used = perf_counter(), process_time()
        canvas.move_to(camera)
        QApplication.processEvents()
        times.append(((perf_counter() - started) * 1e3, (process_time() - used) * 1e3))
    return np.array(times)


def groupings(region: Region) -> Iterator[tuple[str, GraphLayout]]:
    """The layouts that a region is shown in."""
    yield "fusion groups", layout_region(region)
    modules = ModuleLayouts(region)
    yield "modules, as first shown", modules.lay_out(modules.first_folding())
    yield "modules, one of each stack open", modules.lay_out(modules.all_open(single=True))
    yield "modules, all open", modules.lay_out(modules.all_open(single=False))


def by_time(region: Region) -> Overlay:
    """An overlay that colours every unit."""
    units = [group.name for group in region.groups] + [call.name for call in region.extern_calls]
    return Overlay("time", True, units={name: i % LEVELS for i, name in enumerate(units)}, largest=1.0)


def show_times(name: str, canvas: GraphCanvas) -> None:
    """A row per way of moving."""
    for case in cases(canvas):
        times = frame_times(canvas, case)
        median, p95, worst = np.percentile(times[:, 0], [50, 95, 100])
        cpu, cpu95 = np.percentile(times[:, 1], [50, 95])
        print(
            f"| {name} | {case.name} | {median:.1f} | {p95:.1f} | {worst:.1f} | {cpu:.1f} | {cpu95:.1f} |", flush=True
        )


def main(sizes: list[int]) -> None:
    """Prints one table row per size, grouping and case."""
    app = QApplication.instance() or QApplication([])
    print(
        "| nodes | grouping | case | median ms | p95 ms | worst ms | median CPU ms | p95 CPU ms |"
        "\n|---|---|---|---|---|---|---|---|"
    )
    for size in sizes:
        region = transformer_region(size)
        for grouping, layout in groupings(region):
            started = perf_counter()
            canvas = GraphCanvas()
            Minimap(canvas)
            canvas.resize(WIDTH, HEIGHT)
            canvas.set_region(region, layout)
            loaded = (perf_counter() - started) * 1e3
            canvas.show()
            app.processEvents()
            name = f"{len(region.nodes):,} | {grouping}"
            show_times(name, canvas)
            canvas.set_overlay(by_time(region))
            app.processEvents()
            show_times(f"{name}, coloured by time", canvas)
            print(f"| {name} | set_region, once | {loaded:.0f} | | | | |")
            canvas.close()


if __name__ == "__main__":
    run(main, (1_000, 10_000, 50_000), "canvas", table=int(os.environ.get("QT_SCALE_FACTOR") == "2"))
