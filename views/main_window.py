"""The main window: composes the panels and connects them; each panel and each control has a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QShowEvent
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.session import Session
from app.settings import Settings
from app.sources import is_source
from app.sources.gallery import examples
from compiler.report import Report
from views.background.turns import in_a_turn
from views.compile.control import CompileControl, Request
from views.compile.progress import ProgressPanel
from views.compile.view import CompileView
from views.compile.worker_bridge import ClientFactory, WorkerBridge
from views.find.control import FindControl
from views.look import format as fmt
from views.look.icons import icon
from views.look.restyle import arrange_again
from views.look.sizes import SystemText, fit_again
from views.look.style import application, apply_theme, system_is_dark
from views.look.theme import Theme, by_name
from views.selection.filter_bar import FilterRow
from views.sessions.control import SessionControl
from views.sessions.documents import Document, DocumentTabs, Layouts
from views.sessions.dropped import DroppedFiles, OpenInTurn
from views.sessions.recent import RecentSources
from views.sessions.showing import Indexes, Showing, Step
from views.sessions.trace_import import TraceImport, is_trace
from views.widgets.tab_order import follow, tab_stops
from views.window.actions import build_menus
from views.window.commands import commands_of, take_tour
from views.window.dialogs import Dialogs
from views.window.layouts import LayoutMenu
from views.window.message_bar import Message, MessageBar
from views.window.meter_bar import MeterBar
from views.window.notify import Notifier
from views.window.panels_on_demand import PanelsOnDemand
from views.window.start_page import StartPage
from views.window.status import StatusFields
from views.window.toolbar import Toolbar

if TYPE_CHECKING:
    from app.meter import Meter
    from views.compare.control import CompareControl
    from views.run.control import RunControl
    from views.window.report_panels import ReportPanels
    from views.window.workspace import Workspace

_AFTER_PAINT_MS = 50


class MainWindow(QMainWindow):
    """Start page or report, with the toolbar above and the docks around.

    ``client_factory`` makes the worker's client, ``keep`` stores settings that changed, ``dialogs`` asks the user.
    With ``start_worker`` false the worker waits for the first compilation.
    """

    report_shown = Signal()

    def __init__(
        self,
        client_factory: ClientFactory,
        settings: Settings,
        keep: Callable[[Settings], object] = lambda settings: None,
        dialogs: Dialogs | None = None,
        *,
        start_worker: bool = True,
    ) -> None:
        super().__init__()
        self._start_worker = start_worker
        self.settings = settings
        self._keep = keep
        self.dialogs = dialogs or Dialogs(self)
        self._system_text = SystemText(self)
        self._system_text.changed.connect(self._resize_texts)
        self._theme = self._themed(settings.theme)
        apply_theme(application(), self._theme)
        self.setWindowTitle("Fusescope")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # Qt's own would hide the toolbar
        self.setWindowIcon(icon("app", self._theme.accent))
        self.resize(1440, 900)
        self.on_demand = PanelsOnDemand(self)
        self.on_demand.made.connect(self._take_panels)
        self.showing = Showing(self.on_demand, self._steps, self)
        self.showing.begun.connect(lambda document: self.statusBar().showMessage(f"Opening {document.name}…"))
        self.showing.shown.connect(self._shown)
        self.loaded: Report | None = None  # the one whose model the worker holds
        self.bridge = WorkerBridge(client_factory, self)
        self.session = SessionControl(self.dialogs, self._layouts, self)
        self._build_widgets()
        self.traces = TraceImport(self)
        self.compile_control = CompileControl(self.bridge, settings, self.dialogs.agree, self)
        self.menus = build_menus(self, commands_of(self))
        self.finder = FindControl(self, self.menus, self._workspace_in_sight, self._theme)
        self.menus.themes[settings.theme].setChecked(True)
        self.recent = RecentSources(settings, self.start_page, self.menus.recent, self.open_path)
        self.compile_view = CompileView(
            self.bridge, self.compile_control, self.toolbar, self.progress, self.status, Notifier(self)
        )
        self.layouts = LayoutMenu(self.menus.layouts, settings, lambda: self.workspace.docks, self.dialogs, keep)
        self._in_turn = OpenInTurn(lambda path: self.open_path(path), self._is_opening, self)
        self._connect()
        self.recent.show()
        self.show_start_page()
        if settings.geometry:
            self.restoreGeometry(settings.geometry)

    # What others call

    def open_path(self, path: str) -> None:
        """Open a session or a log of torch, or compile a .py, a .pt2 or any other SOURCE."""
        if is_source(path):
            self.toolbar.show_source(path)
            self.compile()
        elif is_trace(Path(path)):
            self.traces.open(Path(path))
        else:
            self.session.open(Path(path))

    def open_report(self, report: Report, title: str, layouts: dict[str, bytes] | None = None) -> None:
        """Show ``report``, not saved yet; ``title`` is its source as the toolbar shows it."""
        self._show_report(report, None, layouts or {}, modified=True)
        self.toolbar.show_report(report)
        self.toolbar.show_source(title)

    def show_session(self, session: Session) -> None:
        """Show a session read from a file."""
        self._show_report(session.report, session.path, session.layouts, modified=False, meter=session.meter)
        self.toolbar.show_report(session.report)
        self.recent.remember(str(session.path.resolve()))

    def compile(self) -> None:
        """Compile what the toolbar says."""
        source = self.toolbar.source.text().strip()
        if not source:
            self.toolbar.source.setFocus()
            self.post(Message("info", "Name a model to compile.", "For example example:gpt2, or a file my_model.py."))
            return
        bar = self.toolbar
        self.compile_control.start(
            Request(source, str(bar.target.currentData() or ""), bar.compiler.currentData(), bar.train.isChecked())
        )

    def show_start_page(self) -> None:
        """Back to the gallery; the report stays loaded, and its tab leads back to it."""
        if self._panels is not None:
            self.workspace.docks.show(False)
        self.filters.show_while_needed(False)
        self._stack.setCurrentWidget(self.start_page)
        self.tabs.show_single(True)
        self.status.show_report_fields(False)
        self.start_page.setFocus()
        self._enable_report_actions(False)
        self.toolbar.set_searchable(False)

    def show_workspace(self) -> None:
        """The graph with its docks."""
        self._stack.setCurrentWidget(self.workspace.graph)
        self.tabs.show_single(False)
        self.status.show_report_fields(True)
        self.workspace.graph.canvas.setFocus()
        self.workspace.docks.show(True)
        self.filters.show_while_needed(True)
        self._enable_report_actions(True)
        self.toolbar.set_searchable(True)

    def leave_start_page(self) -> bool:
        """Back to the report that is loaded; False where there is none, or it is on screen, or about to be."""
        if self.session.report is None or self.shows_report or self._panels is None or self.showing.is_under_way:
            return False
        self.show_workspace()
        return True

    def post(self, message: Message) -> None:
        """Tell the user something without blocking."""
        self.messages.post(message)

    def set_theme(self, name: str) -> None:
        """Use the theme called ``name`` ("system", "light", "dark") from now on."""
        self.settings.theme = name
        self.menus.themes[name].setChecked(True)
        self._apply_theme(self._themed(name))

    @property
    def workspace(self) -> Workspace:
        """The panels of a report, made at the first question."""
        return self.on_demand.get().workspace

    @property
    def run_control(self) -> RunControl:
        """Who drives the Run panel."""
        return self.on_demand.get().run

    @property
    def compare_control(self) -> CompareControl:
        """Who drives the Compare tab."""
        return self.on_demand.get().compare

    @property
    def _panels(self) -> ReportPanels | None:
        return self.on_demand.panels

    def _take_panels(self, made: ReportPanels) -> None:
        self._stack.addWidget(made.workspace.graph)
        follow(tab_stops(made.workspace.docks.units)[-1], tab_stops(made.workspace.graph))
        made.workspace.graph.view_history_changed.connect(self._enable_view_actions)
        made.numerics.checked.connect(self._numerics_checked)
        self._enable_report_actions(self.shows_report)

    @property
    def shows_report(self) -> bool:
        """Whether a report is on screen, and not the start page."""
        return self.session.report is not None and self._stack.currentWidget() is not self.start_page

    @property
    def theme(self) -> Theme:
        """The theme in use."""
        return self._theme

    # Building

    def _build_widgets(self) -> None:
        theme = self._theme
        gallery = examples()
        self.toolbar = Toolbar(theme, [info.name for info in gallery], self)
        self.toolbar.choose_target(self.settings.last_target)
        self.addToolBar(self.toolbar)
        self.messages = MessageBar(theme)
        self.progress = ProgressPanel(theme)
        self.start_page = StartPage(theme, gallery)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.start_page)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.tabs = DocumentTabs(theme)
        for widget in (self.tabs, self.messages, self.progress):
            column.addWidget(widget)
        column.addWidget(self._stack, 1)
        self.setCentralWidget(centre)
        self.filters = FilterRow(theme, self)
        self.addToolBarBreak()
        self.addToolBar(self.filters)
        self.meter = MeterBar(theme)
        self.status = StatusFields(self.statusBar(), self.bridge, self.meter)

    def _connect(self) -> None:
        bar, start = self.toolbar, self.start_page
        bar.compile_requested.connect(self.compile)
        bar.cancel_requested.connect(self.compile_control.cancel)
        bar.open_requested.connect(self.ask_and_open)
        bar.home_requested.connect(lambda: self.leave_start_page() or self.show_start_page())
        bar.theme_requested.connect(lambda: self.set_theme("light" if self._theme.is_dark else "dark"))
        for asked in (bar.filter_requested, self.filters.bar.add_wanted):
            asked.connect(lambda: self.finder.open_filters())
        bar.search_changed.connect(self._search)
        bar.search_next.connect(lambda: self.workspace.graph.canvas.next_match())
        self.progress.cancel_requested.connect(self.compile_control.cancel)
        start.open_requested.connect(self.ask_and_open)
        start.path_chosen.connect(self.open_path)
        start.tour_requested.connect(lambda: take_tour(self))
        start.example_chosen.connect(self._compile_example)
        self.traces.read.connect(lambda report: self.open_report(report, report.source))
        for control in (self.compile_control, self.session, self.traces):
            control.message.connect(self.post)
        self.compile_view.unloaded.connect(self._unload)
        self.compile_control.compiled.connect(self._compiled)
        DroppedFiles(self).dropped.connect(self._in_turn.open)
        for end in (self.report_shown, self.session.open_failed, self.traces.message, self.compile_control.ended):
            end.connect(self._in_turn.go_on)
        self.compile_control.cancelled.connect(self._in_turn.stop)
        self.session.opened.connect(self.show_session)
        self.session.open_failed.connect(self.recent.forget)
        self.session.changed.connect(self._retitle)
        self.tabs.document_chosen.connect(self._show_document)
        self.tabs.close_requested.connect(self.close_document)
        self.session.saved.connect(lambda path: self.statusBar().showMessage(f"Saved {path.name}", 4000))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._scheme_changed)

    # Reports

    def _show_report(
        self,
        report: Report,
        path: Path | None,
        layouts: dict[str, bytes],
        *,
        modified: bool,
        meter: Meter | None = None,
    ) -> None:
        document = self.session.set_report(report, path, lambda: layouts, modified=modified)
        document.meter = meter
        self.showing.show(document)

    def _show_document(self, document: Document) -> None:
        """Switch to another open report."""
        if document is self.session.current:
            self.leave_start_page()
            return
        self.session.show_document(document)
        self.showing.show(document)
        self.toolbar.show_report(document.report)

    def close_document(self, document: Document | None) -> None:
        """Close a report, asking about what is not saved."""
        self._keep_samples()
        if document is None or not self.session.close_document(document) or self.session.current is not None:
            return
        self.showing.cancel()
        if self.session.documents:
            self._show_document(self.session.documents[-1])
        else:
            self.show_start_page()
            for part in (self.finder, self.meter, self.status):
                part.clear()

    def _is_opening(self) -> bool:
        """Whether something is on its way to be shown."""
        is_read = self.session.is_opening or self.traces.is_reading or self.compile_control.is_busy
        return is_read or self.showing.is_under_way

    def _keep_samples(self) -> None:
        if self._panels is not None:
            self._panels.run.keep_samples()

    def _steps(self, document: Document, indexes: Indexes) -> list[Step]:
        """What shows a document, each step short enough for a frame."""
        report = document.report
        return [
            *self.workspace.showing(report, document.layouts(), indexes),
            lambda: self.run_control.set_report(report, loaded=report is self.loaded),
            lambda: self.finder.set_report(report),
            lambda: self.compare_control.set_report(report),
            lambda: self.meter.set_report(report, document.meter),
            self.show_workspace,
        ]

    def _shown(self, document: Document) -> None:
        self.statusBar().clearMessage()
        self.status.show_target(document.report.target.title)
        if not document.report.regions:
            self.post(Message("warning", "This report has no compiled region.", "The model may run no tensor op."))
        self.report_shown.emit()

    def _compiled(self, report: Report, request: Request) -> None:
        if not self._in_turn.are_several:  # else what is said of the other files stays
            self.messages.clear()
        before = self.session.report
        self.loaded = report
        self._show_report(report, None, {}, modified=True)
        if request.compare and before is not None:
            self.compare_control.pair(before, report)
        self.recent.remember(request.source)

    def check_numerics(self) -> None:
        """Compare every group of the report shown with float64."""
        if self._panels is not None and self.session.report is not None:
            self._panels.numerics.check(self.session.report)

    def show_measured(self) -> None:
        """A run of the report shown has ended, and its times are in it."""
        self.workspace.refresh()
        if self.session.report is not None:
            self.meter.refresh(self.session.report)

    def _numerics_checked(self, report: Report) -> None:
        self.session.touch(report)
        if report is self.session.report:
            self.workspace.refresh()
            self.workspace.graph.choose_overlay("error")

    def _compile_example(self, source: str, training: bool) -> None:
        self.toolbar.show_source(source)
        self.toolbar.train.setChecked(training)
        self.compile()

    def _search(self, text: str) -> None:
        found = self.workspace.graph.search(text)
        self.statusBar().showMessage(fmt.plural(len(found), "match", "matches") if text else "", 4000)

    def _unload(self) -> None:
        self.loaded = None
        if self._panels is not None:
            self._panels.run.release()

    # Small things

    def ask_and_open(self) -> None:
        """Ask for files and open them."""
        self._in_turn.open(self.dialogs.open_files())

    def _enable_report_actions(self, on: bool) -> None:
        self.menus.enable_report(on)
        undo, redo = self.workspace.graph.view_history if on and self._panels is not None else (False, False)
        self._enable_view_actions(undo, redo)

    def _enable_view_actions(self, can_undo: bool, can_redo: bool) -> None:
        self.menus.enable(("undo_view",), can_undo)
        self.menus.enable(("redo_view",), can_redo)

    def _workspace_in_sight(self) -> Workspace:
        """Where something was found is shown, also from the start page."""
        self.leave_start_page()
        return self.workspace

    def _layouts(self) -> Layouts:
        return self.workspace.graph.layout_bytes() if self._panels is not None else dict

    def _retitle(self) -> None:
        self.setWindowTitle(f"{self.session.name}[*] · Fusescope" if self.session.name else "Fusescope")
        self.setWindowModified(self.session.is_modified)
        self.tabs.set_documents(self.session.documents, self.session.current)

    def _scheme_changed(self) -> None:
        if self.settings.theme == "system":
            self._apply_theme(self._themed("system"))

    def _resize_texts(self) -> None:
        """The system's texts are larger or smaller now, and with them all of ours and what holds them."""
        self._apply_theme(self._themed(self.settings.theme))
        fit_again()
        arrange_again(application())

    def _themed(self, name: str) -> Theme:
        return by_name(name, system_is_dark()).sized(*self._system_text.size)

    def _apply_theme(self, theme: Theme) -> None:
        """Other colours, in turns: of each part first, and then of what the stylesheet says of it."""
        self._theme = theme
        parts = (self.toolbar, self.messages, self.progress, self.finder, self.meter, self.tabs, self.filters.bar)
        for part in (*parts, self.start_page):
            in_a_turn(part, partial(part.set_theme, theme))
        if self._panels is not None:
            self.workspace.set_theme(theme)
        apply_theme(application(), theme)

    # Qt events

    def showEvent(self, event: QShowEvent) -> None:
        """Start the worker and make the workspace once the window has been painted, so that it opens at once."""
        super().showEvent(event)
        if self._start_worker and not self.bridge.is_started:
            QTimer.singleShot(_AFTER_PAINT_MS, self, self.bridge.start)
        QTimer.singleShot(_AFTER_PAINT_MS, self.on_demand, self.on_demand.prepare)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about unsaved changes, remember the arrangement, end the worker."""
        self._keep_samples()
        if not self.session.may_leave():
            event.ignore()
            return
        self.on_demand.cancel()
        if self._panels is not None:
            self.workspace.panels.run.stop()
            self.workspace.graph.cancel_jobs()
            self.settings.window_state = self.workspace.docks.state()
            self.settings.splitters["inspector"] = bytes(self.workspace.inspector.splitter.saveState().data())
        self.bridge.close()
        self.settings.geometry = bytes(self.saveGeometry().data())
        self.settings.last_target = str(self.toolbar.target.currentData() or self.settings.last_target)
        self._keep(self.settings)
        super().closeEvent(event)
