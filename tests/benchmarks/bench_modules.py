"""How long opening and closing modules and fusion groups takes, and whether what was clicked stays where it is.

Run with ``python -m tests.benchmarks.bench_modules``; prints a markdown table. A change is everything from the click to
the finished widget, painted offscreen with the new layout, minimap included: layout on a worker thread, scene, picture.
CPU time is beside wall time, because other work on the machine lengthens the latter. First times are rows of their own:
the tree and the layouts of all boxes are made anew for each of them, and the last of them begins with neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter, process_time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtWidgets import QApplication

from app.layout.folding import Folding
from app.layout.group_tree import build_group_tree
from app.layout.module_layouts import ModuleLayouts
from compiler.report import Region, Report
from tests.benchmarks.result_file import run
from tests.fake_reports import H100, backward_region, transformer_region
from views.canvas.module_scene import ModuleScene
from views.graph.panel import GraphPanel
from views.look import theme

WIDTH, HEIGHT, TIMES, FIRST_TIMES = 1600, 1000, 9, 5


def change(panel: GraphPanel, act: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU milliseconds until a change is on screen."""
    made: list[str] = []
    views = (panel.modules, panel.kernels)
    connections = [view.ready.connect(lambda *_: made.append("")) for view in views]
    wall, cpu = perf_counter(), process_time()
    act()
    while not made:
        QApplication.processEvents()
    QApplication.processEvents()
    took = ((perf_counter() - wall) * 1e3, (process_time() - cpu) * 1e3)
    for view, connection in zip(views, connections, strict=True):
        view.ready.disconnect(connection)
    return took


def corner(panel: GraphPanel, key: str) -> np.ndarray:
    """Where a box's left top corner is in view pixels."""
    assert panel.canvas.scene is not None
    rect = panel.canvas.scene.locate(key)
    assert rect is not None
    return np.array(panel.canvas.camera.to_view(rect[0], rect[1]))


def first_times(region: Region) -> None:
    """Changes for which nothing was made before, each in a panel of its own."""
    layouts = ModuleLayouts(region)
    stack = max((box for box in layouts.tree.containers if box.is_stack), key=lambda box: len(box.members))
    shown_first = layouts.first_folding()
    cases: dict[str, tuple[Folding | None, Callable[[GraphPanel], None]]] = {
        "a stack never opened before, all its modules": (
            shown_first, lambda panel: panel._toggle(stack.key, whole_stack=True)
        ),
        "everything, in a graph just shown": (
            shown_first, lambda panel: panel.modules.open_all(region, stacks=True)
        ),
        "everything, as the first thing shown": (
            None, lambda panel: panel.modules.set_folding(region, layouts.all_open(single=False))
        ),
    }  # fmt: skip
    for name, (before, act) in cases.items():
        walls, cpus = [], []
        for _ in range(FIRST_TIMES):
            panel = shown_panel(region)
            panel._set_grouping("modules")
            if before is not None:
                change(panel, lambda panel=panel, before=before: panel.modules.set_folding(region, before))
            wall, cpu = change(panel, lambda panel=panel, act=act: act(panel))
            walls.append(wall)
            cpus.append(cpu)
            shown = things_shown(panel)
            panel.cancel_jobs()
            panel.close()
        print(
            f"| {len(region.nodes):,} {region.kind} | {name} | {shown:,} | {np.median(walls):.0f} | {min(walls):.0f} "
            f"| {np.median(cpus):.0f} | | |",
            flush=True,
        )


def shown_panel(region: Region) -> GraphPanel:
    """A panel on screen with the region, laid out by nothing but fusion groups."""
    panel = GraphPanel(theme.light())
    panel.resize(WIDTH, HEIGHT)
    panel.show()
    panel.set_report(Report("fusescope", "benchmark", H100, regions=[region]), {})
    return panel


def things_shown(panel: GraphPanel) -> int:
    """Nodes and closed boxes on the canvas."""
    scene = panel.canvas.scene
    assert isinstance(scene, ModuleScene)
    return int(scene.nested.shown.sum() + scene.is_closed.sum())


def row(panel: GraphPanel, region: Region, name: str, key: str, whole: bool, tree_ms: float) -> None:
    """Opens and closes one box several times."""
    panel.canvas.center_on(key)
    QApplication.processEvents()
    while panel.canvas._motion.goal is not None:
        QApplication.processEvents()
    walls, cpus, moved = [], [], 0.0
    for _ in range(TIMES * 2):
        before = corner(panel, key)
        wall, cpu = change(panel, lambda: panel._toggle(key, whole))
        moved = max(moved, float(np.abs(corner(panel, key) - before).max()))
        walls.append(wall)
        cpus.append(cpu)
    shown = things_shown(panel)
    print(
        f"| {len(region.nodes):,} {region.kind} | {name} | {shown:,} | {np.median(walls):.0f} | {min(walls):.0f} "
        f"| {np.median(cpus):.0f} | {moved:.2f} | {tree_ms:.0f} |",
        flush=True,
    )


def rows(region: Region) -> None:
    """A row for each state in which one box is opened and closed again."""
    panel = shown_panel(region)
    started = process_time()
    layouts = ModuleLayouts(region)
    tree_ms = (process_time() - started) * 1e3
    panel.show_grouping("modules")
    change(panel, lambda: panel.modules.close_all(region))
    stacks = [box for box in layouts.tree.containers if box.is_stack]
    stack = max(stacks, key=lambda box: len(box.members))
    around: list[str] = []
    number = layouts.number_of[stack.key]
    while (number := layouts.tree.containers[number].parent) > 0:
        around.append(layouts.tree.containers[number].key)
    module = layouts.tree.containers[~stack.children[len(stack.children) // 2]]
    states = {
        "a stack, one for all": (Folding(frozenset(around)), stack.key, False),
        "a stack, all its modules": (Folding(frozenset(around)), stack.key, True),
        "a module of the stack": (Folding(frozenset({*around, stack.key})), module.key, False),
        "a module, all others open": (layouts.all_open(single=False).toggled(module.key), module.key, False),
    }
    for name, (folding, key, whole) in states.items():
        change(panel, lambda folding=folding: panel.modules.set_folding(region, folding))
        row(panel, region, name, key, whole, tree_ms)
    started = process_time()
    ModuleLayouts(region, None, build_group_tree)
    tree_ms = (process_time() - started) * 1e3
    change(panel, lambda: panel.show_grouping("kernels"))
    change(panel, lambda: panel.kernels.close_all(region))
    largest = max(region.groups, key=lambda group: len(group.nodes))
    row(panel, region, "a fusion group, all others closed", largest.name, False, tree_ms)
    panel.cancel_jobs()
    panel.close()


def main(sizes: list[int]) -> None:
    """Prints the table."""
    app = QApplication.instance() or QApplication([])
    print(
        "| nodes | what is opened and closed | things shown | median ms | fastest ms | median CPU ms "
        "| clicked box moves, px | tree, once, CPU ms |\n|---|---|---|---|---|---|---|---|"
    )
    for size in sizes:
        for make in (transformer_region, backward_region):
            rows(make(size))
            first_times(make(size))
            app.processEvents()


if __name__ == "__main__":
    run(main, (1_000, 10_000, 50_000), "modules")
