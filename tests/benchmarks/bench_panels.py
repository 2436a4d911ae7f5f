"""Frame times of the panels beside the graph, painted offscreen over a report of 10,000 nodes.

    python -m tests.benchmarks.bench_panels [-o FOLDER]

Each case is one thing that a user does again and again (the mouse moves, a zoom, a scroll, new samples, a resize); a
frame is everything from there until the widget is painted. The figure that counts is the time the GUI thread works:
it does not depend on what else the machine does. Wall time is beside it. With -o the table is written there.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QPointF, Qt, QThreadPool
from PySide6.QtWidgets import QApplication, QWidget

from compiler.report import Measurement, Report
from tests.fake_runs import lab_report
from views.app import make_application
from views.background.turns import is_waiting
from views.charts.chart import Chart
from views.look.style import apply_theme
from views.look.theme import Theme, light
from views.panels.memory import MemoryPanel
from views.panels.roofline import RooflinePanel
from views.panels.timeline import TimelinePanel
from views.run.panel import RunPanel
from views.selection.index import RegionIndex
from views.tables.units_table import UnitsPanel

NODES, ITERATIONS, FRAMES = 10_000, 20_000, 40
SIZES = {"1280x800": (1250, 330), "2560x1440": (2530, 640)}  # a panel's share of a window


@dataclass(frozen=True)
class Case:
    """What is done before each frame, and the widget that is painted."""

    panel: str
    name: str
    widget: QWidget
    step: Callable[[int], object]


def long_runs(measurements: list[Measurement]) -> None:
    """Repeat each recording, with noise, until it has ITERATIONS samples."""
    noise = np.random.default_rng(0)
    for measurement in measurements:
        for samples in (measurement.cpu_samples, measurement.gpu_samples):
            longer = np.resize(np.array(samples), ITERATIONS) * noise.normal(1.0, 0.01, ITERATIONS)
            samples[:] = longer.tolist()
        measurement.iterations = ITERATIONS


def hover(panel: str, chart: Chart, name: str = "the mouse moves") -> Case:
    """Follow the mouse over a chart."""

    def step(frame: int) -> None:
        chart._mouse = QPointF(90 + frame * (chart.width() - 120) / FRAMES, 40 + frame * 4 % (chart.height() - 60))
        chart.update()

    return Case(panel, name, chart, step)


def resized(panel: str, chart: Chart) -> Case:
    """Everything anew, as for each step of a resize."""
    return Case(panel, "resized", chart, lambda frame: chart.redraw())


def cases(report: Report, size: tuple[int, int], theme: Theme) -> Iterator[Case]:
    """Every panel in turn."""
    index = RegionIndex(report, report.regions[0])

    def shown(widget: QWidget, width: int = size[0], height: int = size[1]) -> None:
        widget.resize(width, height)
        widget.show()
        QThreadPool.globalInstance().waitForDone()
        QApplication.processEvents()
        while is_waiting():
            QApplication.processEvents()

    memory = MemoryPanel(theme)
    memory.set_region(index)
    shown(memory)
    yield hover("memory map", memory.map)
    nodes = [buffer.node for buffer in index.region.memory.buffers]
    yield Case("memory map", "a buffer is selected", memory.map, lambda i: memory.map.show_nodes(frozenset({nodes[i]})))
    yield resized("memory map", memory.map)

    roofline = RooflinePanel(theme)
    roofline.set_region(index)
    shown(roofline)
    yield hover("roofline", roofline.chart)
    yield Case(
        "roofline", "a unit is selected", roofline.chart, lambda i: roofline.show_unit(index.schedule[i * 7].name)
    )
    yield resized("roofline", roofline.chart)

    timeline = TimelinePanel(theme)
    timeline.set_report(report)
    shown(timeline)
    gantt = timeline.gantt
    yield hover("timeline", gantt)
    yield resized("timeline", gantt)
    yield Case("timeline", "zoom", gantt, lambda i: gantt._zoom(1.2 if i < FRAMES / 2 else 1 / 1.2, size[0] / 2))
    yield Case(
        "timeline", "a unit is selected", gantt,
        lambda i: timeline.show_unit(index.region.name, index.schedule[i * 7].name),
    )  # fmt: skip

    units = UnitsPanel(theme)
    units.set_region(index)
    shown(units, 560, size[1] * 2)
    bar, table = units.table.verticalScrollBar(), units.table.viewport()
    yield Case("units table", "scroll", table, lambda i: bar.setValue(i * 9))
    yield Case("units table", "repaint", table, lambda i: table.update())
    orders = (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder)
    yield Case("units table", "sort", table, lambda i: units.table.sortByColumn(i % 6, orders[i % 2]))

    run = RunPanel(theme)
    run.set_recorded(report.measurements)
    run._set_on({measurement.mode for measurement in report.measurements})
    shown(run)
    for view, title in (("overlaid", "replay plots, overlaid"), ("side", "replay plots, side by side")):
        run.show_view(view)
        shown(run)
        yield hover(title, run.plot)
        yield Case(title, "new samples", run.plot, lambda i: run.plot.show_record(run.record, run.modes))
        run.plot._view = (0, ITERATIONS)
        run.plot._refresh()
        yield Case(title, "all iterations, zoom", run.plot, lambda i: zoom_out(run, i))
    run.show_view("distribution")
    shown(run)
    yield hover("replay histogram", run.distribution)
    yield resized("replay histogram", run.distribution)


def zoom_out(run: RunPanel, frame: int) -> None:
    """Another range of all iterations."""
    run.plot._view = (frame * 10, ITERATIONS - frame * 10)
    run.plot._refresh()


def frame_times(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds of each frame: the GUI thread's work, and wall time."""
    work, wall = [], []
    for frame in range(FRAMES):
        began, worked = time.perf_counter(), time.thread_time()
        case.step(frame)
        QApplication.processEvents()
        work.append((time.thread_time() - worked) * 1e3)
        wall.append((time.perf_counter() - began) * 1e3)
    return np.array(work), np.array(wall)


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Frame times of the panels beside the graph.")
    parser.add_argument("-o", "--output", type=Path, help="the folder of the files of results")
    options = parser.parse_args()
    make_application()
    theme = light()
    apply_theme(QApplication.instance(), theme)
    report = lab_report(NODES)
    long_runs(report.measurements)
    region = report.regions[0]
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    lines = [
        "# Frames of the panels",
        "",
        f"{machine}, offscreen, {time.strftime('%Y-%m-%d', time.gmtime())}. Script: tests/benchmarks/bench_panels.py; "
        f"{FRAMES} frames a case. {len(region.nodes):,} FX nodes, "
        f"{len(region.groups) + len(region.extern_calls):,} units, {len(region.memory.buffers):,} buffers, "
        f"{max(len(trace.events) for trace in report.traces):,} events in the longer trace, five modes of "
        f"{ITERATIONS:,} iterations. Work is the GUI thread's CPU time; wall time has what else the machine did in it.",
        "",
        "| window | panel | frame | work, median ms | work, p95 ms | wall, median ms |",
        "|---|---|---|---|---|---|",
    ]
    for name, size in SIZES.items():
        for case in cases(report, size, theme):
            work, wall = frame_times(case)
            figures = f"{np.median(work):.1f} | {np.percentile(work, 95):.1f} | {np.median(wall):.1f}"
            lines.append(f"| {name} | {case.panel} | {case.name} | {figures} |")
            print(lines[-1], flush=True)
    if options.output is not None:
        (options.output / "panels.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
