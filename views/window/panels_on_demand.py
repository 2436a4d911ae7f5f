"""The panels of a report: made in turns once the window has been painted, or at once when somebody asks for them."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from views.background.jobs import Job
from views.background.turns import Making
from views.background.warm_up import import_anywhere, import_in_turns

if TYPE_CHECKING:
    from views.main_window import MainWindow
    from views.window.report_panels import ReportPanels


class PanelsOnDemand(QObject):
    """Holds the panels of one window. They bring numpy, which the start page does not need."""

    made = Signal(object)  # ReportPanels

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._making: Making[ReportPanels] | None = None
        self.panels: ReportPanels | None = None

    @property
    def is_making(self) -> bool:
        """Whether some of them are made, and not all."""
        return self._making is not None

    def prepare(self) -> None:
        """Import what they need on another thread, then begin to make them."""
        if self.panels is None and self._making is None:
            job = Job(lambda cancelled: import_anywhere(), self)
            job.done.connect(lambda _: self.begin())
            job.start()

    def begin(self) -> None:
        """Make them, a step in each turn of the event loop."""
        if self.panels is None and self._making is None:
            self._making = Making(self._in_turns(), self)
            self._making.made.connect(self._take)
            self._making.start()

    def get(self) -> ReportPanels:
        """Them; who asks before they are made has to wait."""
        self.begin()
        if self._making is not None:
            self._making.finish()
        assert self.panels is not None
        return self.panels

    def cancel(self) -> None:
        """What was not made yet is not made any more: the window closes."""
        if self._making is not None:
            self._making.cancel()
            self._making = None

    def _in_turns(self) -> Generator[object, None, ReportPanels]:
        yield from import_in_turns()
        from views.window.report_panels import report_panels_in_turns

        assert self._window.finder.palette is not None
        yield
        return (yield from report_panels_in_turns(self._window))

    def _take(self, made: ReportPanels) -> None:
        self.panels = made
        self._making = None
        self.made.emit(made)
