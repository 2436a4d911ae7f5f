"""Layout times of inference and training graphs of several sizes.

Run with ``python -m tests.benchmarks.bench_layout``; prints a markdown table. The best of the runs counts: on a shared
machine the others measure the neighbours. CPU seconds are beside, of the run that took the fewest: a layout runs on one
thread and waits for nothing, so on an idle machine both are the same.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import perf_counter, process_time

from app.layout import GraphLayout, LayoutCancelled, layout_region
from compiler.report import Region
from tests.benchmarks.result_file import run
from tests.fake_reports import backward_region, transformer_region

RUNS = 5


def calibrate() -> float:
    """Seconds for a loop of ten million additions: how fast this Python runs here and now."""
    started = perf_counter()
    total = 0
    for i in range(10_000_000):
        total += i
    return perf_counter() - started


def best_time(region: Region) -> tuple[float, float, GraphLayout]:
    """The fastest of several layouts, in seconds of wall and of CPU time, and the layout."""
    walls, cpus = [], []
    for _ in range(RUNS):
        started, used = perf_counter(), process_time()
        layout = layout_region(region)
        walls.append(perf_counter() - started)
        cpus.append(process_time() - used)
    return min(walls), min(cpus), layout


def peak_memory(region: Region) -> float:
    """Peak of Python's and numpy's allocations during a layout, in MB."""
    tracemalloc.start()
    layout_region(region)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def cancel_delay(region: Region, after: float) -> float:
    """Longest CPU time between two polls of the cancel callback in ms, for a layout cancelled ``after`` seconds."""
    started = last = process_time()
    longest = 0.0

    def cancelled() -> bool:
        nonlocal last, longest
        now = process_time()
        longest = max(longest, now - last)
        last = now
        return now - started > after

    try:
        layout_region(region, cancelled=cancelled)
    except LayoutCancelled:
        longest = max(longest, process_time() - last)
    return longest * 1e3


def main(sizes: list[int]) -> None:
    """Prints one table row per graph."""
    print(f"Ten million additions in Python: {calibrate():.2f} s\n")
    print(
        "| graph | nodes | edges | seconds | CPU seconds | pieces | stubs | width × height | peak MB "
        "| longest wait to cancel, CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    kinds: list[tuple[str, Callable[[int], Region]]] = [
        ("inference", transformer_region),
        ("forward, saving", lambda size: transformer_region(size, kind="forward")),
        ("backward", backward_region),
    ]
    for size in sizes:
        for kind, make in kinds:
            region = make(size)
            seconds, cpu, layout = best_time(region)
            _, _, width, height = layout.bounds
            print(
                f"| {kind} | {len(layout.names):,} | {len(layout.edges):,} | {seconds:.3f} | {cpu:.3f} "
                f"| {len(layout.pieces):,} | {len(layout.stub_labels):,} | {width:,.0f} × {height:,.0f} "
                f"| {peak_memory(region):.0f} | {cancel_delay(region, 10.0):.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    run(main, (1_000, 10_000, 50_000), "layout")
