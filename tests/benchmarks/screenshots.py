"""Pictures of every panel, light and dark, at a small and a large size, to be looked at.

    python -m tests.benchmarks.screenshots FOLDER [--session X.fscope] [--compare Y.fscope] [--only WORD] [--small]
                                                  [--filter KIND:VALUE] [--states] [--odd] [--size 1024x700]

Writes FOLDER/SIZE-THEME-VIEW.png, with --small in 256 colours, for documents. Without a session it is the sample that
ships with the app; without another one to compare it with, a copy of it in which half of the groups are changed.
--states takes selections, tips, messages, dialogs, menus and the tour instead of panels (window_states.py), and states
of panels (panel_states.py), --odd reports at the ends of what is shown (odd_reports.py). QT_SCALE_FACTOR=2 is a screen
of high density.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import msgspec
import numpy as np
from PySide6.QtCore import QEventLoop, QPoint, QThreadPool
from PySide6.QtGui import QImage, QPainter

from app.filters import Filter, FilterKind
from app.session import Session, open_session
from app.settings import Settings
from app.worker.client import WorkerClient
from compiler.report import NodeCheck, Numerics, Report
from tests.benchmarks.odd_reports import ODD, ODD_VIEWS
from tests.benchmarks.panel_states import PANEL_STATES
from tests.benchmarks.window_states import STATES
from views.app import make_application
from views.main_window import MainWindow
from views.screenshot import VIEWS, show_view
from views.window.start_page import samples

SIZES = ((1280, 800), (2560, 1440))
_SETTLE_S = 0.35
_LIMIT_S = 60.0


def changed(report: Report) -> Report:
    """A copy with groups split and kernels slower, so that there is something to compare."""
    other: Report = msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report)
    for region in other.regions:
        groups = []
        for number, group in enumerate(region.groups):
            half = len(group.nodes) // 2
            if number % 2 or not half:
                groups.append(group)
                continue
            for side, nodes in (("a", group.nodes[:half]), ("b", group.nodes[half:])):
                more = int(group.estimated_bytes * 0.6)
                groups.append(msgspec.structs.replace(group, name=group.name + side, nodes=nodes, estimated_bytes=more))
        region.groups = groups
    for kernel in other.kernels[::3]:
        kernel.registers = (kernel.registers or 32) + 8
    return other


def with_numerics(report: Report) -> None:
    """Errors that grow along the schedule, where the session has none; pictures are all they are for."""
    if report.numerics is not None:
        return
    checks = [
        NodeCheck(region.name, unit.name, unit.nodes[-1], 1e-8 * 1.1 ** (unit.order % 70), 9e-9, "float32")
        for region in report.regions
        for unit in (*region.groups, *region.extern_calls)
    ]
    report.numerics = Numerics("made up for this picture", checks)


def in_few_colors(image: QImage, count: int = 256) -> QImage:
    """The same picture in ``count`` colours, a third of the size as PNG: the commonest ones, each pixel's nearest."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    height, width = plain.height(), plain.width()
    pixels = np.frombuffer(plain.constBits(), np.uint32).reshape(height, -1)[:, :width] & 0xFFFFFF
    colors, place, often = np.unique(pixels, return_inverse=True, return_counts=True)
    parts = np.stack([colors >> 16, colors >> 8 & 255, colors & 255], axis=1).astype(np.float32)
    chosen = parts[np.argsort(-often, kind="stable")[:count]]
    for _ in range(4):  # move each towards the pixels that are nearest to it
        nearest = _nearest(parts, chosen)
        total = np.bincount(nearest, often, count)
        for axis in range(3):
            sums = np.bincount(nearest, often * parts[:, axis], count)
            chosen[:, axis] = np.where(total > 0, sums / np.maximum(total, 1), chosen[:, axis])
    codes = _nearest(parts, chosen).astype(np.uint8)[place.reshape(height, width)]
    rows = np.zeros((height, -(-width // 4) * 4), np.uint8)
    rows[:, :width] = codes
    made = QImage(rows.tobytes(), width, height, rows.shape[1], QImage.Format.Format_Indexed8).copy()
    made.setColorTable([0xFF000000 | r << 16 | g << 8 | b for r, g, b in chosen.round().astype(int).tolist()])
    return made


def _nearest(colors: np.ndarray, among: np.ndarray) -> np.ndarray:
    parts = [
        ((colors[i : i + 2048, None] - among[None]) ** 2).sum(axis=-1).argmin(axis=1)
        for i in range(0, len(colors), 2048)
    ]
    return np.concatenate(parts)


def settle(seconds: float = _SETTLE_S) -> None:
    """Let jobs and animations end."""
    QThreadPool.globalInstance().waitForDone(int(_LIMIT_S * 1000))
    loop, end = QEventLoop(), time.monotonic() + seconds
    while time.monotonic() < end:
        loop.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)


def shoot(
    session: Session,
    other: Report,
    folder: Path,
    views: list[str],
    size: tuple[int, int],
    *,
    small: bool,
    filters: tuple[Filter, ...],
) -> None:
    """Every view at one size in both themes."""
    window = opened(session, size, "light")
    run = window.workspace.panels.run
    for mode in ("eager", "compiled", "graph", "inductor", "inductor-graph"):
        if mode not in run.modes:
            run.toggle_mode(mode)
    window.compare_control.pair(session.report, other)
    window.workspace.filters.put(filters)
    for theme in ("light", "dark"):
        window.set_theme(theme)
        settle()
        for view in views:
            show_view(window, view)
            settle()
            image = window.grab().toImage()
            save(in_few_colors(image) if small else image, folder / f"{size[0]}x{size[1]}-{theme}-{view}.png")
    window.session.discard_changes()
    window.close()


def shoot_states(session: Session, other: Report, folder: Path, only: str, size: tuple[int, int], theme: str) -> None:
    """The states of the window one after the other, each from the one before."""
    window = opened(session, size, theme)
    window.compare_control.pair(session.report, other)
    for name, bring in (STATES | PANEL_STATES).items():
        above = bring(window)
        settle()
        if only in name:
            picture = window.grab()
            if above is not None:
                with QPainter(picture) as painter:
                    painter.drawPixmap(window.mapFromGlobal(above.mapToGlobal(QPoint(0, 0))), above.grab())
            save(picture.toImage(), folder / f"{size[0]}x{size[1]}-{theme}-{name}.png")
        if above is not None:
            above.close()
    window.session.discard_changes()
    window.close()


def shoot_odd(folder: Path, only: str, size: tuple[int, int], theme: str) -> None:
    """Each odd report, with nothing selected, in the panels that show what is odd, and with a group selected."""
    for name, make in ODD.items():
        if only not in name:
            continue
        window = opened(make(), size, theme)
        save(window.grab().toImage(), folder / f"{size[0]}x{size[1]}-{theme}-{name}.png")
        for view in ODD_VIEWS.get(name, ()):
            show_view(window, view)
            settle()
            save(window.grab().toImage(), folder / f"{size[0]}x{size[1]}-{theme}-{name}-{view}.png")
        region = window.workspace.graph.region
        if region is not None:
            window.workspace.select_unit(region.groups[0].name)
            settle(1.0)
            save(window.grab().toImage(), folder / f"{size[0]}x{size[1]}-{theme}-{name}-selected.png")
        window.session.discard_changes()
        window.close()


def opened(shown: Session | Report, size: tuple[int, int], theme: str) -> MainWindow:
    """A window that shows a report, laid out."""
    window = MainWindow(WorkerClient, Settings(theme=theme), start_worker=False)
    window.resize(*size)
    window.show()
    window.activateWindow()
    ready: list[str] = []
    window.workspace.graph.laid_out.connect(ready.append)
    if isinstance(shown, Report):
        window.open_report(shown, shown.source)
    else:
        window.show_session(shown)
    report = shown if isinstance(shown, Report) else shown.report
    end = time.monotonic() + _LIMIT_S
    while report.regions and not ready and time.monotonic() < end:
        settle(0.05)
    settle(1.0)
    return window


def save(image: QImage, path: Path) -> None:
    """Write it, and say so."""
    if not image.save(str(path), "PNG", 0):
        raise OSError(f"{path} cannot be written.")
    print(path, flush=True)


def main() -> int:
    """Parse, open, shoot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--session", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="", help="views whose names contain this")
    parser.add_argument("--small", action="store_true", help="in 256 colours")
    parser.add_argument("--filter", action="append", default=[], help="op:aten.add.Tensor, module:h.0, time:20, ...")
    parser.add_argument("--states", action="store_true", help="states of the window, and not its panels")
    parser.add_argument("--odd", action="store_true", help="odd reports, and not a session's panels")
    parser.add_argument("--size", action="append", default=[], help="1024x700; else 1280x800 and 2560x1440")
    options = parser.parse_args()
    sizes = [(int(width), int(height)) for width, _, height in (size.partition("x") for size in options.size)] or SIZES
    filters = tuple(Filter(FilterKind(kind), value) for kind, _, value in (f.partition(":") for f in options.filter))
    options.folder.mkdir(parents=True, exist_ok=True)
    make_application()
    session = open_session(options.session or samples()[0])
    with_numerics(session.report)
    other = open_session(options.compare).report if options.compare else changed(session.report)
    views = [view for view in VIEWS if options.only in view]
    for size, theme in itertools.product(sizes, ("light", "dark") if options.states or options.odd else ()):
        if options.states:
            shoot_states(session, other, options.folder, options.only, size, theme)
        if options.odd:
            shoot_odd(options.folder, options.only, size, theme)
    for size in () if options.states or options.odd else sizes:
        shoot(session, other, options.folder, views, size, small=options.small, filters=filters)
    return 0


if __name__ == "__main__":
    sys.exit(main())
