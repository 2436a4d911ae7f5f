"""Ctrl+K: what can be found, and how to go there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from compiler.report import Report
from views.background.jobs import Job
from views.look.theme import Theme
from views.window.actions import THEMES, Actions

if TYPE_CHECKING:
    from app.finder import Entry
    from views.find.palette import Palette
    from views.window.workspace import Workspace


class FindControl(QObject):
    """Gathers the entries of a report off the GUI thread; the palette itself is made when first asked for.

    What finds them is imported then, too: the window opens without it.
    """

    def __init__(self, window: QWidget, actions: Actions, workspace: Callable[[], Workspace], theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._actions = actions
        self._workspace = workspace
        self._theme = theme
        self._found: list[Entry] = []
        self._filters: list[Entry] = []
        self._among: Callable[[], list[Entry]] = list  # what the palette asks for
        self._job: Job | None = None
        self._palette: Palette | None = None

    @property
    def palette(self) -> Palette:
        """The palette over the window."""
        if self._palette is None:
            from views.find.palette import Palette

            self._palette = Palette(self._window, self._theme)
            self._palette.chosen.connect(self._go)
        return self._palette

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        if self._palette is not None:
            self._palette.set_theme(theme)

    def set_report(self, report: Report) -> None:
        """Another report can be searched."""
        if self._job is not None:
            self._job.cancel()
        self._found, self._filters = [], []
        self._job = Job(lambda cancelled: _gather(report), self)
        self._job.done.connect(self._gathered)
        self._job.start()

    def clear(self) -> None:
        """No report is open: only commands are found."""
        if self._job is not None:
            self._job.cancel()
        self._job, self._found, self._filters = None, [], []

    def open(self) -> None:
        """Ask."""
        self._among = lambda: [*self._commands(), *self._found]
        self.palette.open(self._among())

    def open_filters(self) -> None:
        """Ask for a filter to put on the stack."""
        self._among = lambda: self._filters
        self.palette.open(self._among(), "Show only an op, dtype, module, group, or what takes some time")

    def _gathered(self, made: tuple[list[Entry], list[Entry]]) -> None:
        self._job = None
        self._found, self._filters = made
        if self._palette is not None and self._palette.isVisible():
            self._palette.set_entries(self._among())

    def _commands(self) -> list[Entry]:
        """Every action that can be done now, panels among them, and every theme."""
        from app.finder import Entry

        made = [
            Entry("command", self._actions.title(name), action.shortcut().toString(), ("action", name))
            for name, action in self._actions.by_name.items()
            if action.isEnabled() and name != "find_anything"
        ]
        made += [
            Entry("command", f"Layout: {name.replace('&', '')}", layout.shortcut().toString(), ("layout", name))
            for name, layout in self._layouts().items()
        ]
        return made + [Entry("command", f"Theme: {text}", "setting", ("theme", name)) for name, text in THEMES.items()]

    def _go(self, entry: Entry) -> None:
        target = entry.target
        if entry.kind == "command":
            self._do(*target)
            return
        workspace = self._workspace()
        if entry.kind == "filter":
            from app.filters import Filter, FilterKind

            workspace.filters.add(Filter(FilterKind(target[0]), target[1]))
        elif entry.kind == "source line":
            panels = workspace.panels
            panels.setCurrentWidget(panels.source)
            workspace.reveal(2, panels.source.code)
            panels.source.show_line(target[0], int(target[1]))
        elif entry.kind == "region":
            workspace.graph.show_region(target[0])
        elif entry.kind in ("group", "extern call", "kernel"):
            workspace.select_unit_of(*target)
        else:
            workspace.select_node_of(*target)

    def _do(self, what: str, name: str) -> None:
        known = {"action": self._actions.by_name, "theme": self._actions.themes, "layout": self._layouts()}
        known[what][name].trigger()

    def _layouts(self) -> dict[str, QAction]:
        """The layouts that can be put back."""
        actions = self._actions.layouts.actions()
        return {action.text(): action for action in actions if action.menu() is None and not action.isSeparator()}


def _gather(report: Report) -> tuple[list[Entry], list[Entry]]:
    from app.finder import entries, filter_entries

    return entries(report), filter_entries(report)
