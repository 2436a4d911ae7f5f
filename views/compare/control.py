"""Comparisons: reads the other session, compares off the GUI thread, and keeps the report that was there before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QDialog, QWidget

from app.diff import Diff, compare
from app.session import SessionError, open_session
from app.titles import COMPILERS
from compiler.report import Report
from views.background.jobs import Job
from views.compare.panel import ComparePanel
from views.compile.control import Request, shared_options
from views.compile.what_if import WhatIf
from views.compile.worker_bridge import WorkerBridge
from views.look.theme import Theme
from views.window.message_bar import Message


class SessionDialogs(Protocol):
    """Who asks for a session to compare with."""

    def session_file(self) -> str:
        """A path, or "" for none."""


class CompareControl(QObject):
    """Holds the pair that is compared. ``other`` is the report of the pair that is not on screen."""

    message = Signal(object)
    compared = Signal(object)  # Diff
    show_requested = Signal(object)  # the Report to bring on screen

    def __init__(
        self,
        panel: ComparePanel,
        compile_request: Callable[[Request], object],
        dialogs: SessionDialogs,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._compile = compile_request
        self._dialogs = dialogs
        self._job: Job | None = None
        self._report: Report | None = None  # on screen
        self._before: Report | None = None  # the one that was on screen before
        self._pair: tuple[Report, Report] | None = None
        panel.swap_requested.connect(self._swap)

    @property
    def before(self) -> Report | None:
        """The report that was on screen before this one."""
        return self._before

    def set_report(self, report: Report) -> None:
        """Another report is on screen. A comparison that it is part of stays; any other makes no sense any more."""
        if report is self._report:
            return
        self._before, self._report = self._report, report
        if self._pair is None or all(report is not one for one in self._pair):
            self._drop()
        elif self._panel.diff is not None:
            self._panel.set_diff(self._panel.diff, self._pair, self._side(report))

    def with_session(self) -> None:
        """Ask for a session, and compare with it."""
        if self._report is not None and (path := self._dialogs.session_file()):
            self.with_file(path)

    def with_other_compiler(self) -> None:
        """Compile the same model with the other compiler, and compare."""
        if self._report is not None:
            other = next(name for name in COMPILERS if name != self._report.compiler)
            self._compile_again(self._report, other, shared_options(self._report.options))

    def what_if(self, bridge: WorkerBridge, theme: Theme, parent: QWidget) -> None:
        """Ask for other options, compile the same model with them, and compare."""
        if self._report is not None:
            dialog = WhatIf(bridge, self._report, theme, parent)
            if dialog.exec() == QDialog.DialogCode.Accepted:
                self._compile_again(self._report, self._report.compiler, dialog.options)
            dialog.deleteLater()

    def _compile_again(self, report: Report, compiler: str, options: Mapping[str, str]) -> None:
        target = "local" if report.target.local else report.target.name
        self._compile(Request(report.source, target, compiler, report.training, options=options, compare=True))

    def with_file(self, path: str) -> None:
        """Compare the report on screen with a session; a message says what is wrong with it."""
        report = self._report
        if report is None:
            return

        def work(cancelled: object) -> tuple[Report, Diff]:
            other = open_session(Path(path)).report
            return other, compare(report, other)

        self._start(Job(work, self), lambda made: self._show(report, made[0], made[1]))

    def with_before(self) -> None:
        """Compare with the report that was on screen before."""
        if self._report is not None and self._before is not None:
            self.pair(self._before, self._report)
        else:
            self.message.emit(
                Message("info", "There was no report before this one.", "Compile once more, or compare with a session.")
            )

    def pair(self, a: Report, b: Report) -> None:
        """Compare two reports, one of them on screen."""
        self._start(Job(lambda cancelled: compare(a, b), self), lambda diff: self._show(a, b, diff))

    def _start(self, job: Job, done: object) -> None:
        self._cancel()
        job.done.connect(done)
        job.failed.connect(self._failed)
        self._job = job.start()

    def _show(self, a: Report, b: Report, diff: Diff) -> None:
        self._job = None
        if self._report is not a and self._report is not b:
            return  # another report came meanwhile
        self._pair = (a, b)
        self._panel.set_diff(diff, self._pair, self._side(self._report))
        self.compared.emit(diff)

    def _side(self, report: Report) -> str:
        return "a" if self._pair is not None and report is self._pair[0] else "b"

    def _swap(self) -> None:
        if self._pair is not None and self._report is not None:
            a, b = self._pair
            self.show_requested.emit(b if self._report is a else a)

    def _drop(self) -> None:
        self._cancel()
        self._pair = None
        self._panel.clear()

    def _cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def _failed(self, error: Exception) -> None:
        self._job = None
        if isinstance(error, SessionError):
            self.message.emit(Message("error", error.message, error.hint))
        else:
            text = f"The reports cannot be compared: {type(error).__name__}."
            self.message.emit(Message("error", text, "The report on screen stays as it is.", str(error)))
