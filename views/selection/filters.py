"""The one filter stack of the window: what is in it, and what it leaves of the report shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.filters import Filter, Kept, kept_of
from compiler.report import Report
from views.background.jobs import Job


class FilterStack(QObject):
    """Makes ``kept`` off the GUI thread; ``changed`` tells when it is there."""

    changed = Signal()
    asked = Signal()  # ``filters`` are others; what they leave is being found

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.filters: tuple[Filter, ...] = ()
        self.kept: dict[str, Kept] | None = None
        self._report: Report | None = None
        self._job: Job | None = None

    def set_report(self, report: Report) -> None:
        """Another report: filters are about one report, so none are left."""
        self._report = report
        self._cancel()
        self.filters, self.kept = (), None
        self.changed.emit()

    def add(self, one: Filter) -> None:
        """Put a filter on the stack."""
        if one not in self.filters:
            self._set((*self.filters, one))

    def remove(self, one: Filter) -> None:
        """Take a filter away."""
        self._set(tuple(other for other in self.filters if other != one))

    def clear(self) -> None:
        """Show everything."""
        self._set(())

    def put(self, filters: tuple[Filter, ...]) -> None:
        """Have these filters and no others."""
        if filters != self.filters:
            self._set(filters)

    def refresh(self) -> None:
        """The report has grown, as by measured times."""
        self._set(self.filters)

    def sentence(self) -> str:
        """What is left, in figures."""
        if self.kept is None or self._report is None:
            return ""
        nodes = sum(len(kept.nodes) for kept in self.kept.values())
        units = sum(len(kept.units) for kept in self.kept.values())
        every = sum(len(region.nodes) for region in self._report.regions)
        launches = sum(len(region.groups) + len(region.extern_calls) for region in self._report.regions)
        return f"{nodes:,} of {every:,} nodes, {units:,} of {launches:,} groups and calls"

    def _set(self, filters: tuple[Filter, ...]) -> None:
        report = self._report
        self._cancel()
        self.filters = filters
        self.asked.emit()
        if report is None or not filters:
            self.kept = None
            self.changed.emit()
            return
        self._job = Job(lambda cancelled: kept_of(report, filters), self)
        self._job.done.connect(self._made)
        self._job.start()

    def _made(self, kept: dict[str, Kept] | None) -> None:
        self._job = None
        self.kept = kept
        self.changed.emit()

    def _cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None
