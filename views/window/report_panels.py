"""What a window has for a report: the workspace, and who drives its Run, Compare and numbers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from views.background.warm_up import use_in_turns
from views.compare.control import CompareControl
from views.compile.numerics_control import NumericsControl
from views.run.control import RunControl
from views.window.notify import Notifier
from views.window.start_page import samples
from views.window.workspace import Workspace, workspace_in_turns

if TYPE_CHECKING:
    from views.main_window import MainWindow


@dataclass(frozen=True)
class ReportPanels:
    """Made together at the first report, or once the window has been painted."""

    workspace: Workspace
    run: RunControl
    compare: CompareControl
    numerics: NumericsControl


def report_panels_in_turns(window: MainWindow) -> Generator[None, None, ReportPanels]:
    """The panels of ``window``, connected to it."""
    yield from use_in_turns()
    workspace = yield from workspace_in_turns(window, window.theme)
    yield
    _connect(window, workspace)
    yield
    panels = workspace.panels
    run = RunControl(window.bridge, panels.run, bool(samples()), window)
    run.measured.connect(window.session.touch)
    run.ended.connect(window.show_measured)
    panels.run.sample_requested.connect(lambda: window.open_path(str(samples()[0])))
    numerics = NumericsControl(window.bridge, lambda: window.loaded, Notifier(window), window)
    workspace.graph.numerics_requested.connect(window.check_numerics)
    numerics.over.connect(window.messages.dismiss)
    compare = CompareControl(panels.compare, window.compile_control.start, window.dialogs, window)
    compare.compared.connect(lambda _: workspace.show_panel(panels.compare))
    compare.show_requested.connect(lambda report: window.open_report(report, report.source))
    for told in (workspace.message, run.message, numerics.message, compare.message):
        told.connect(window.post)
    return ReportPanels(workspace, run, compare, numerics)


def _connect(window: MainWindow, made: Workspace) -> None:
    """The docks as they were left, with their places in the menus; messages told before are in their panel."""
    made.docks.restore(window.settings.window_state)
    if state := window.settings.splitters.get("inspector"):
        made.inspector.splitter.restoreState(state)
    for dock in made.docks.all:
        window.menus.docks.addAction(dock.toggleViewAction())
    panels = made.panels
    titles = [panels.title(place) for place in range(panels.count())]
    actions = window.menus.add_panels(titles, lambda place: made.show_panel(panels.page(place)))
    for button, action in zip(panels.rail.buttons, actions, strict=True):
        button.set_keys(action.shortcut().toString())
    for message in window.messages.history:
        panels.add_message(message)
    window.messages.posted.connect(panels.add_message)
    window.filters.follow(made.filters)
    made.region_changed.connect(window.toolbar.search.clear)
    made.graph.exported.connect(lambda path: window.statusBar().showMessage(f"Saved {path.name}", 4000))
    made.graph.around_wanted.connect(lambda around: window.toolbar.search.setText(around.search))
