"""The window drawn into a PNG with no display: for the command line, for documents, for looking at what we made."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QThreadPool

from app.overlays import OVERLAYS
from app.session import Session
from app.settings import Settings
from app.worker.client import WorkerClient
from compiler.report import Report
from views.app import make_application
from views.main_window import MainWindow

_RUN_VIEWS = {
    "run": "order", "run-overlaid": "overlaid", "run-side": "side", "run-histogram": "distribution",
    "run-compare": "compare",
}  # fmt: skip
_GROUPINGS = ("modules", "kernels")
_GRAPH_PAGES = {"cuda-graph": "overview", "topology": "topology", "inputs": "inputs", "capture-check": "check"}
_DYNAMO_PAGES = ("breaks", "guards", "recompiles")
_PANELS = ("timeline", "memory", "roofline", "source", "refusals", "compare", "stages", "messages")
_OVERLAYS = tuple(f"by-{kind}" for kind in OVERLAYS if kind != "decision")
VIEWS = (
    "graph", *_GROUPINGS, "start", *_RUN_VIEWS, *_GRAPH_PAGES, *_PANELS, *_DYNAMO_PAGES, "wrapper", "fx", *_OVERLAYS,
)  # fmt: skip
_SETTLE_S = 0.4
_LAYOUT_S = 60.0
_NAMED = 5


def screenshot(
    report: Report | Session | None,
    out: Path,
    *,
    view: str = "graph",
    select: str = "",
    size: tuple[int, int] = (1440, 900),
    theme: str = "light",
    compare: Report | None = None,
) -> None:
    """Write a picture of the window that shows ``report`` (the start page where it is None) to ``out``.

    ``view`` is one of VIEWS, ``select`` a group, an extern call or an FX node, ``compare`` what to compare it with.

    Raises:
        ValueError: no such view, or nothing called ``select``.
        OSError: ``out`` cannot be written.
    """
    view = view or "graph"
    if view not in VIEWS:
        raise ValueError(f"There is no view called '{view}'; there are {', '.join(VIEWS)}.")
    make_application()
    window = MainWindow(WorkerClient, Settings(theme=theme), start_worker=False)
    try:
        window.resize(*size)
        window.show()
        if report is not None:
            _show(window, report)
            show_view(window, view)
            if compare is not None and window.session.report is not None:
                window.compare_control.pair(window.session.report, compare)
                _wait(lambda: window.workspace.panels.compare.diff is not None, _LAYOUT_S)
            if select:
                _select(window, select)
            window.workspace.inspector.make_all()  # however slow this machine is
        _settle(_SETTLE_S)
        pixmap = window.grab()
    finally:
        window.session.discard_changes()
        window.close()
    if not pixmap.save(str(out), "PNG"):
        raise OSError(f"{out} cannot be written.")


def show_view(window: MainWindow, view: str) -> None:
    """Bring one of VIEWS to the front of a window that shows a report."""
    if view == "start":
        window.show_start_page()
        return
    window.show_workspace()
    tabs = window.workspace.panels
    kind = view.removeprefix("by-") if view in _OVERLAYS else "decision"
    window.workspace.graph.show_overlay(kind)
    window.workspace.graph.show_grouping(view if view in _GROUPINGS else "fusion")
    window.workspace.units.lead_with(kind)
    if view in _RUN_VIEWS:
        tabs.setCurrentWidget(tabs.run)
        tabs.run.show_view(_RUN_VIEWS[view])
    elif view in _GRAPH_PAGES:
        tabs.setCurrentWidget(tabs.cuda_graph)
        tabs.cuda_graph.show_page(_GRAPH_PAGES[view])
    elif view in _DYNAMO_PAGES:
        tabs.setCurrentWidget(tabs.dynamo)
        tabs.dynamo.show_page(view)
    elif view in ("wrapper", "fx"):
        tabs.setCurrentWidget(tabs.programs)
        tabs.programs.show_text(view)
    elif view in _PANELS:
        tabs.setCurrentWidget(getattr(tabs, view))


def _show(window: MainWindow, report: Report | Session) -> None:
    laid_out: list[str] = []
    shown: list[bool] = []
    window.report_shown.connect(lambda: shown.append(True))
    window.workspace.graph.laid_out.connect(laid_out.append)
    window.workspace.graph.layout_failed.connect(lambda fault: laid_out.append(""))
    if isinstance(report, Session):
        window.show_session(report)
    else:
        window.open_report(report, report.source)
    _wait(lambda: bool(shown), _LAYOUT_S)
    if window.workspace.graph.region is not None:
        _wait(lambda: bool(laid_out), _LAYOUT_S)


def _select(window: MainWindow, name: str) -> None:
    known: list[str] = []
    for region in window.workspace.graph.regions:
        units = [unit.name for unit in (*region.groups, *region.extern_calls)]
        if name in units or any(node.name == name for node in region.nodes):
            window.workspace.graph.show_region(region.name)
            (window.workspace.select_unit if name in units else window.workspace.select_node)(name)
            return
        known += [*units, *(node.name for node in region.nodes)]
    near = ", ".join(difflib.get_close_matches(name, known, _NAMED, 0)) or "none"
    raise ValueError(
        f"There is no group, extern call or node called '{name}' in this report; the nearest names are {near}."
    )


def _wait(done: Callable[[], bool], limit_s: float) -> None:
    loop = QEventLoop()
    end = time.monotonic() + limit_s
    while not done() and time.monotonic() < end:
        loop.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)


def _settle(seconds: float) -> None:
    QThreadPool.globalInstance().waitForDone(int(_LAYOUT_S * 1000))
    _wait(lambda: False, seconds)
