"""The main window: composes the panels and connects them; each panel and each control has a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QShowEvent
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.session import Session
from app.settings import Settings
from app.sources.gallery import examples
from app.worker.protocol import Ready, StageFinished, StageStarted, WorkerDied
from compiler.report import Report
from views.actions import Commands, build_menus
from views.bottom_panel import BottomPanel
from views.compile_control import CompileControl, Request
from views.dialogs import Dialogs, about_dialog, shortcuts_dialog
from views.docks import Docks
from views.graph_panel import GraphPanel
from views.icons import icon
from views.index import RegionIndex
from views.inspector import Inspector
from views.message_bar import Message, MessageBar
from views.progress_panel import ProgressPanel
from views.run_control import RunControl
from views.selection import Selection, SelectionModel
from views.session_control import SessionControl
from views.start_page import StartPage, samples
from views.style import apply_theme
from views.theme import Theme, by_name
from views.toolbar import Toolbar
from views.units_table import UnitsPanel
from views.worker_bridge import ClientFactory, WorkerBridge

_REPORT_ACTIONS = (
    "save", "save_as", "run", "replay", "find", "find_next", "fit", "zoom_in", "zoom_out",
    "focus_units", "focus_graph", "focus_inspector", "focus_panels",
)


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
        self._dialogs = dialogs or Dialogs(self)
        self._theme = by_name(settings.theme, _system_is_dark())
        apply_theme(_application(), self._theme)
        self.setWindowTitle("Fusescope")
        self.setWindowIcon(icon("app", self._theme.accent))
        self.setAcceptDrops(True)
        self.resize(1440, 900)
        self._indexes: dict[str, RegionIndex] = {}
        self.selection = SelectionModel(self)
        self.bridge = WorkerBridge(client_factory, self)
        self.session = SessionControl(self._dialogs, self)
        self._build_widgets()
        self.compile_control = CompileControl(self.bridge, settings, self._dialogs.agree, self)
        self.run_control = RunControl(self.bridge, self.panels.run, bool(samples()), self)
        self._actions = build_menus(self, self._commands())
        self._actions.themes[settings.theme].setChecked(True)
        for dock in self.docks.all:
            self._actions.docks.addAction(dock.toggleViewAction())
        self._connect()
        self._show_recent()
        self.show_start_page()
        self._restore()

    # What others call

    def open_path(self, path: str) -> None:
        """Open a session, or compile a .py, a .pt2 or any other SOURCE."""
        source = path.split("?")[0]
        name = source.rsplit(":", 1)[0] if ".py:" in source else source
        if source.startswith("example:") or Path(name).suffix in (".py", ".pt2"):
            self.toolbar.source.setText(path)
            self.compile()
        elif Path(path).is_dir():
            text = f"{Path(path).name} is a folder."
            self.post(Message("error", text, "Open a session (.fscope), a .py file or a .pt2 program."))
        elif self._may_leave():
            self.session.open(Path(path))

    def open_report(self, report: Report, title: str, layouts: dict[str, bytes] | None = None) -> None:
        """Show ``report``, not saved yet; ``title`` is its source as the toolbar shows it."""
        self._show_report(report, None, layouts or {}, modified=True, loaded=False)
        self.toolbar.source.setText(title)
        self.toolbar.show_target(report.target)

    def show_session(self, session: Session) -> None:
        """Show a session read from a file."""
        layouts = {}
        for region in session.report.regions:
            stored = session.layout(region.name)
            if stored is not None:
                layouts[region.name] = stored
        self._show_report(session.report, session.path, layouts, modified=False, loaded=False)
        self.toolbar.source.setText(session.report.source)
        self.toolbar.train.setChecked(session.report.training)
        self.toolbar.show_target(session.report.target)
        self._remember(str(session.path.resolve()))

    def compile(self) -> None:
        """Compile what the toolbar says."""
        source = self.toolbar.source.text().strip()
        if not source:
            self.toolbar.source.setFocus()
            self.post(Message("info", "Name a model to compile.", "For example example:gpt2, or a file my_model.py."))
            return
        if self.compile_control.is_busy or not self._may_leave():
            return
        bar = self.toolbar
        self.compile_control.start(
            Request(source, str(bar.target.currentData() or ""), bar.compiler.currentData(), bar.train.isChecked())
        )

    def show_start_page(self) -> None:
        """Back to the gallery; the report stays loaded."""
        self.docks.show(False)
        self._stack.setCurrentWidget(self.start_page)
        self.start_page.setFocus()
        self._actions.enable(_REPORT_ACTIONS, False)
        self.toolbar.set_searchable(False)

    def show_workspace(self) -> None:
        """The graph with its docks."""
        self._stack.setCurrentWidget(self.graph)
        self.graph.canvas.setFocus()
        self.docks.show(True)
        self._actions.enable(_REPORT_ACTIONS, True)
        self.toolbar.set_searchable(True)

    def post(self, message: Message) -> None:
        """Tell the user something without blocking."""
        self.messages.post(message)

    def select_node(self, name: str) -> None:
        """Select one FX node, and with it the unit that computes it."""
        index = self.index
        if index is not None and name in index.nodes:
            unit = index.unit_of(name)
            current = self.selection.current.unit
            if current in index.units_of.get(name, ()):
                unit = current  # a recomputed node stays in the unit that is being looked at
            self.selection.select(Selection(index.region.name, unit, name, frozenset((name,))))

    def select_unit(self, name: str) -> None:
        """Select a whole group or extern call."""
        index = self.index
        if index is not None and (unit := index.units.get(name)) is not None:
            self.selection.select(Selection(index.region.name, name, "", frozenset(unit.nodes)))

    def set_theme(self, name: str) -> None:
        """Use the theme called ``name`` ("system", "light", "dark") from now on."""
        self.settings.theme = name
        self._actions.themes[name].setChecked(True)
        self._apply_theme(by_name(name, _system_is_dark()))

    @property
    def index(self) -> RegionIndex | None:
        """Look-ups of the region shown."""
        region = self.graph.region
        return self._indexes.get(region.name) if region is not None else None

    @property
    def theme(self) -> Theme:
        """The theme in use."""
        return self._theme

    # Building

    def _build_widgets(self) -> None:
        theme = self._theme
        self.toolbar = Toolbar(theme, [info.name for info in examples()], self)
        self.toolbar.choose_target(self.settings.last_target)
        self.addToolBar(self.toolbar)
        self.messages = MessageBar(theme)
        self.progress = ProgressPanel(theme)
        self.start_page = StartPage(theme)
        self.graph = GraphPanel(theme)
        self.units = UnitsPanel(theme)
        self.inspector = Inspector(theme)
        self.panels = BottomPanel(theme)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.start_page)
        self._stack.addWidget(self.graph)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self.messages, self.progress):
            column.addWidget(widget)
        column.addWidget(self._stack, 1)
        self.setCentralWidget(centre)
        self.docks = Docks(self, self.units, self.inspector, self.panels, theme)
        self._status: dict[str, QLabel] = {}
        for name in ("target", "torch", "worker"):
            self._status[name] = QLabel()
            self._status[name].setAccessibleName(f"Status: {name}")
            self.statusBar().addPermanentWidget(self._status[name])
        self.statusBar().setSizeGripEnabled(False)
        self.bridge.started.connect(lambda: self._status["worker"].setText("Worker: starting"))

    def _commands(self) -> Commands:
        canvas = self.graph.canvas
        return Commands(
            open=self._open,
            save=lambda: self.session.save(self.graph.layout_bytes()),
            save_as=lambda: self.session.save_as(self.graph.layout_bytes()),
            start_page=self.show_start_page,
            compile=self.compile,
            cancel=self._escape,
            run=self.panels.run.toggle_run,
            replay=self.panels.run.switch.click,
            find=lambda: _focus(self.toolbar.search),
            find_next=canvas.next_match,
            source=lambda: _focus(self.toolbar.source),
            fit=canvas.fit,
            zoom_in=canvas.zoom_in,
            zoom_out=canvas.zoom_out,
            back=self.selection.back,
            forward=self.selection.forward,
            focus_units=lambda: self._reveal(0, self.units.table),
            focus_graph=canvas.setFocus,
            focus_inspector=lambda: self._reveal(1, self.inspector.kernel_panel.code),
            focus_panels=lambda: self._reveal(2, self.panels.tabBar()),
            set_theme=self.set_theme,
            about=lambda: about_dialog(self, self._theme, self._versions()).exec(),
            shortcuts=lambda: shortcuts_dialog(self, self._actions.shortcuts()).exec(),
        )

    def _connect(self) -> None:
        bar, start = self.toolbar, self.start_page
        bar.compile_requested.connect(self.compile)
        bar.cancel_requested.connect(self.compile_control.cancel)
        bar.open_requested.connect(self._open)
        bar.home_requested.connect(self.show_start_page)
        bar.theme_requested.connect(lambda: self.set_theme("light" if self._theme.is_dark else "dark"))
        bar.search_changed.connect(self._search)
        bar.search_next.connect(self.graph.canvas.next_match)
        self.progress.cancel_requested.connect(self.compile_control.cancel)
        start.open_requested.connect(self._open)
        start.path_chosen.connect(self.open_path)
        start.example_chosen.connect(self._compile_example)
        self.messages.posted.connect(self.panels.add_message)
        for control in (self.compile_control, self.run_control, self.session):
            control.message.connect(self.post)
        self.compile_control.began.connect(self._compile_began)
        self.compile_control.ended.connect(self._compile_ended)
        self.compile_control.compiled.connect(self._compiled)
        self.run_control.measured.connect(self.session.touch)
        self.panels.run.sample_requested.connect(lambda: self.open_path(str(samples()[0])))
        self.session.opened.connect(self.show_session)
        self.session.open_failed.connect(self._forget)
        self.session.changed.connect(self._retitle)
        bridge = self.bridge
        bridge.ready.connect(self._worker_ready)
        bridge.died.connect(self._worker_died)
        bridge.stage_started.connect(self._stage_event)
        bridge.stage_finished.connect(self._stage_event)
        self.graph.region_changed.connect(self._region_changed)
        self.graph.node_clicked.connect(self.select_node)
        self.graph.group_clicked.connect(self.select_unit)
        self.graph.background_clicked.connect(self.selection.clear)
        self.graph.layout_failed.connect(self._layout_failed)
        self.units.unit_chosen.connect(self.select_unit)
        self.inspector.node_chosen.connect(self.select_node)
        self.inspector.unit_chosen.connect(self.select_unit)
        self.inspector.lines_chosen.connect(self._select_line)
        self.inspector.back_requested.connect(self.selection.back)
        self.inspector.forward_requested.connect(self.selection.forward)
        self.selection.changed.connect(self._selected)
        self.selection.history_changed.connect(self.inspector.set_history)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._scheme_changed)

    # Reports

    def _show_report(
        self, report: Report, path: Path | None, layouts: dict[str, bytes], *, modified: bool, loaded: bool
    ) -> None:
        self._indexes = {region.name: RegionIndex(report, region) for region in report.regions}
        self.panels.set_report(report)
        self.graph.set_report(report, layouts)
        self.session.set_report(report, path, modified=modified)
        self.run_control.set_report(report, loaded=loaded)
        self._status["target"].setText(f"Target: {report.target.title}")
        self.show_workspace()
        if not report.regions:
            self.post(Message("warning", "This report has no compiled region.", "The model may run no tensor op."))
        self.report_shown.emit()

    def _compiled(self, report: Report, request: Request) -> None:
        self.messages.clear()
        self._show_report(report, None, {}, modified=True, loaded=True)
        self._remember(request.source)

    def _compile_example(self, source: str, training: bool) -> None:
        self.toolbar.source.setText(source)
        self.toolbar.train.setChecked(training)
        self.compile()

    def _compile_began(self, request: Request) -> None:
        self.run_control.release()
        self.toolbar.set_compiling(True)
        note = "" if self.bridge_is_up else "Starting the worker, which imports torch"
        self.progress.begin(f"Compiling {request.source}", note)

    def _compile_ended(self) -> None:
        self.toolbar.set_compiling(False)
        self.progress.end()

    def _stage_event(self, event: StageStarted | StageFinished) -> None:
        if event.id == self.compile_control.current_id:
            self.progress.stage_event(event)

    # Selection

    def _region_changed(self, name: str) -> None:
        index = self._indexes[name]
        self.units.set_region(index)
        self.inspector.set_region(index)
        self.panels.set_region(index.region)
        if self.toolbar.search.text():
            self.toolbar.search.clear()
        if self.selection.current.region != name:
            self.selection.select(Selection(region=name))
        else:
            self.selection.reset(Selection(region=name))

    def _selected(self, selection: Selection) -> None:
        if self.graph.region is not None and selection.region not in ("", self.graph.region.name):
            self.graph.show_region(selection.region)
        self.inspector.show_selection(selection)
        self.units.show_unit(selection.unit)
        self.graph.show_selection(selection)

    def _select_line(self, kernel: str, line: int) -> None:
        index = self.index
        found = index.kernels.get(kernel) if index is not None else None
        if index is None or found is None:
            return
        nodes = index.line_nodes(found, line)
        if nodes:
            current = self.selection.current
            node = nodes[0] if len(nodes) == 1 else ""
            self.selection.select(Selection(index.region.name, current.unit, node, frozenset(nodes)))

    def _search(self, text: str) -> None:
        found = self.graph.canvas.set_search(text)
        self.statusBar().showMessage(f"{len(found):,} matches" if text else "", 4000)

    # Worker

    @property
    def bridge_is_up(self) -> bool:
        """Whether the worker said that it is ready."""
        return self._status["worker"].text() == "Worker: ready"

    def _worker_ready(self, event: Ready) -> None:
        self._status["worker"].setText("Worker: ready")
        self._status["torch"].setText(f"torch {event.versions.get('torch', '?')}")
        self.toolbar.set_targets(event.gpu, event.targets)

    def _worker_died(self, event: WorkerDied) -> None:
        no_torch = "No module named 'torch'" in event.stderr_tail
        self._status["worker"].setText("Worker: torch is not installed" if no_torch else "Worker: starting again")
        if no_torch:
            self.toolbar.set_no_targets("No torch here")

    # Small things

    def _open(self) -> None:
        path = self._dialogs.open_file()
        if path:
            self.open_path(path)

    def _escape(self) -> None:
        if self.compile_control.is_busy:
            self.compile_control.cancel()
        elif self.toolbar.search.hasFocus():
            self.toolbar.search.clear()
            self.graph.canvas.setFocus()
        else:
            self.selection.clear()

    def _reveal(self, dock: int, widget: QWidget) -> None:
        self.docks.all[dock].show()
        self.docks.all[dock].raise_()
        widget.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _layout_failed(self, fault: Exception) -> None:
        text = f"The graph cannot be laid out: {type(fault).__name__}."
        self.post(Message("error", text, "The other panels still work.", str(fault)))

    def _may_leave(self) -> bool:
        return self.session.may_leave(self.graph.layout_bytes())

    def _remember(self, source: str) -> None:
        self.settings.remember(source)
        self._show_recent()

    def _forget(self, source: str) -> None:
        self.settings.forget(str(Path(source).resolve()))
        self._show_recent()

    def _show_recent(self) -> None:
        self.start_page.set_recent(self.settings.recent)
        menu = self._actions.recent
        menu.clear()
        for source in self.settings.recent:
            menu.addAction(source).triggered.connect(lambda _=False, source=source: self.open_path(source))
        menu.setEnabled(bool(self.settings.recent))

    def _retitle(self) -> None:
        self.setWindowTitle(f"{self.session.name}[*] · Fusescope")
        self.setWindowModified(self.session.is_modified)

    def _versions(self) -> list[tuple[str, str]]:
        import platform

        from PySide6 import __version__

        facts = [("Python", platform.python_version()), ("Qt", __version__)]
        return [*facts, ("Worker", self._status["torch"].text() or self._status["worker"].text())]

    def _scheme_changed(self) -> None:
        if self.settings.theme == "system":
            self._apply_theme(by_name("system", _system_is_dark()))

    def _apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        apply_theme(_application(), theme)
        for part in (
            self.toolbar, self.messages, self.progress, self.start_page, self.graph, self.units, self.inspector,
            self.panels, self.docks,
        ):
            part.set_theme(theme)

    def _restore(self) -> None:
        if self.settings.geometry:
            self.restoreGeometry(self.settings.geometry)
        self.docks.restore(self.settings.window_state)
        if state := self.settings.splitters.get("inspector"):
            self.inspector.splitter.restoreState(state)

    # Qt events

    def showEvent(self, event: QShowEvent) -> None:
        """Start the worker once the window has been painted, so that it opens at once."""
        super().showEvent(event)
        if self._start_worker and not self.bridge.is_started:
            QTimer.singleShot(50, self, self.bridge.start)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about unsaved changes, remember the arrangement, end the worker."""
        if not self._may_leave():
            event.ignore()
            return
        self.panels.run.stop()
        self.graph.cancel_jobs()
        self.bridge.close()
        self.settings.geometry = bytes(self.saveGeometry().data())
        self.settings.window_state = self.docks.state()
        self.settings.splitters["inspector"] = bytes(self.inspector.splitter.saveState().data())
        self.settings.last_target = str(self.toolbar.target.currentData() or self.settings.last_target)
        self._keep(self.settings)
        super().closeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files can be dropped anywhere."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the first file dropped."""
        urls = [url for url in event.mimeData().urls() if url.isLocalFile()]
        if urls:
            event.acceptProposedAction()
            self.open_path(urls[0].toLocalFile())


def _application() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app


def _system_is_dark() -> bool:
    return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark


def _focus(widget: QWidget) -> None:
    widget.setFocus(Qt.FocusReason.ShortcutFocusReason)
    select = getattr(widget, "selectAll", None)
    if select is not None:
        select()
