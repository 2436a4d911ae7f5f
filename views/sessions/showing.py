"""A document on its way into the panels: a small one at once, a large one a step in each turn of the event loop."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from compiler.report import Report
from views.background.jobs import Job, uncollected
from views.background.turns import Turns
from views.sessions.documents import Document

if TYPE_CHECKING:
    from views.selection.index import RegionIndex
    from views.window.panels_on_demand import PanelsOnDemand

Step = Callable[[], object]
Indexes = dict[str, "RegionIndex"]  # by region

_AT_ONCE = 1500  # nodes of a report whose look-ups take a frame or less


class Showing(QObject):
    """Shows one document; another wish takes the place of one that is under way."""

    begun = Signal(object)  # a Document that takes a while
    shown = Signal(object)  # Document

    def __init__(
        self, panels: PanelsOnDemand, steps: Callable[[Document, Indexes], list[Step]], parent: QObject
    ) -> None:
        """``steps`` are what shows a document by its look-ups, each short enough for a frame."""
        super().__init__(parent)
        self._panels = panels
        self._steps = steps
        self._waiting: Document | None = None  # for the panels
        self._work: Job | Turns | None = None
        panels.made.connect(self._show_waiting)

    @property
    def is_under_way(self) -> bool:
        """Whether a document is about to be shown."""
        return self._work is not None or self._waiting is not None

    def show(self, document: Document) -> None:
        """Show it, once the panels are there. The look-ups of a large one are made on another thread."""
        self.cancel()
        if self._panels.panels is None:
            self._waiting = document
            self._panels.begin()
            return
        from views.selection.index import indexes_of

        report = document.report
        if sum(len(region.nodes) for region in report.regions) <= _AT_ONCE:
            document.indexes = document.indexes or indexes_of(report)
            for step in self._all_steps(document, document.indexes):
                step()
        elif document.indexes is not None:
            self._show_in_turns(document, document.indexes)
        else:
            self.begun.emit(document)
            job = Job(lambda cancelled: _uncollected_indexes(report), self)
            job.done.connect(partial(self._show_in_turns, document))
            self._work = job.start()

    def cancel(self) -> None:
        """Nothing is under way any more."""
        self._waiting = None
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _show_waiting(self) -> None:
        if self._waiting is not None:
            self.show(self._waiting)

    def _show_in_turns(self, document: Document, indexes: Indexes) -> None:
        document.indexes = indexes
        self._work = Turns(self._all_steps(document, indexes), self).start()

    def _all_steps(self, document: Document, indexes: Indexes) -> list[Step]:
        return [*self._steps(document, indexes), lambda: self._end(document)]

    def _end(self, document: Document) -> None:
        self._work = None
        gc.freeze()  # a report is half a million objects: the collector must not walk over them again and again
        self.shown.emit(document)


def _uncollected_indexes(report: Report) -> Indexes:
    from views.selection.index import indexes_of

    with uncollected():
        return indexes_of(report)
