"""What each action of the menus does in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer

from views.look.style import focus
from views.widgets.place import not_written, with_ending
from views.window.actions import Commands
from views.window.dialogs import about_dialog
from views.window.message_bar import Message
from views.window.start_page import samples

if TYPE_CHECKING:
    from views.canvas.canvas import GraphCanvas
    from views.main_window import MainWindow


def commands_of(window: MainWindow) -> Commands:
    """The commands of ``window``. Its panels are made at the first use of one that needs them."""

    def canvas() -> GraphCanvas:
        return window.workspace.graph.canvas

    return Commands(
        open=window.ask_and_open,
        import_trace=lambda: _import_trace(window),
        save=window.session.save,
        save_as=window.session.save_as,
        next_report=lambda: window.tabs.step(1),
        close_report=lambda: window.close_document(window.session.current),
        export=lambda: _export_graph(window),
        start_page=lambda: window.leave_start_page() or window.show_start_page(),
        compile=window.compile,
        cancel=lambda: _escape(window),
        what_if=lambda: window.compare_control.what_if(window.bridge, window.theme, window),
        check_numerics=window.check_numerics,
        compare_file=lambda: window.compare_control.with_session(),
        compare_before=lambda: window.compare_control.with_before(),
        compare_compilers=lambda: window.compare_control.with_other_compiler(),
        run=lambda: window.workspace.panels.run.toggle_run(),
        replay=lambda: window.workspace.panels.run.switch.click(),
        find=lambda: focus(window.toolbar.search),
        find_next=lambda: canvas().next_match(),
        find_anything=lambda: window.finder.open(),
        source=lambda: focus(window.toolbar.source),
        fit=lambda: canvas().fit(),
        zoom_in=lambda: canvas().zoom_in(),
        zoom_out=lambda: canvas().zoom_out(),
        undo_view=lambda: window.workspace.graph.undo_view(),
        redo_view=lambda: window.workspace.graph.redo_view(),
        back=lambda: window.workspace.selection.back(),
        forward=lambda: window.workspace.selection.forward(),
        focus_units=lambda: window.workspace.reveal(0, window.workspace.units.table),
        focus_graph=lambda: focus(canvas()),
        focus_inspector=lambda: window.workspace.reveal(1, window.workspace.inspector.entry),
        focus_panels=lambda: window.workspace.reveal(2, window.workspace.panels.rail),
        pin=lambda: window.workspace.selection.toggle_pin(),
        add_filter=lambda: window.finder.open_filters(),
        clear_filters=lambda: window.workspace.filters.clear(),
        step_panel=lambda by: window.workspace.step_panel(by),
        set_theme=window.set_theme,
        tour=lambda: take_tour(window),
        about=lambda: about_dialog(window, window.theme, window.status.versions()).exec(),
        shortcuts=lambda: _shortcuts(window),
    )


def take_tour(window: MainWindow) -> None:
    """Six steps over the report shown, or over the sample session where there is none."""
    if not window.shows_report:
        window.report_shown.connect(lambda: take_tour(window), Qt.ConnectionType.SingleShotConnection)
        window.open_path(str(samples()[0]))
        return
    from views.window.guide import Guide, steps_of

    for under_way in window.findChildren(Guide):
        under_way.leave()
    steps = steps_of(window.workspace, window.toolbar.search)
    QTimer.singleShot(0, window, lambda: Guide(window, steps, window.theme))


def _shortcuts(window: MainWindow) -> None:
    """Show them until closed."""
    from views.window.shortcuts import shortcuts_dialog  # when asked for: the window opens without it

    shortcuts_dialog(window, window.menus.shortcuts()).exec()


def _import_trace(window: MainWindow) -> None:
    """Ask for the folder of a log of torch, and open it."""
    if path := window.dialogs.trace_folder():
        window.open_path(path)


def _export_graph(window: MainWindow) -> None:
    """Ask for a place and write the graph there."""
    graph = window.workspace.graph
    path = window.dialogs.export_file(f"{graph.region.name}.svg") if graph.region is not None else ""
    if not path:
        return
    try:
        graph.export(with_ending(path, ".svg", ".png"))
    except OSError as error:
        window.post(Message("error", not_written(path, error), "Choose another place."))


def _escape(window: MainWindow) -> None:
    """Cancel what goes on, else leave the search, else select nothing; from the start page go back to the report."""
    if window.compile_control.is_busy:
        window.compile_control.cancel()
    elif window.toolbar.search.hasFocus():
        window.toolbar.search.clear()
        window.workspace.graph.canvas.setFocus()
    elif window.shows_report:
        window.workspace.selection.clear()
    else:
        window.leave_start_page()
