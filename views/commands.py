"""What each action of the menus does in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from views.actions import Commands
from views.dialogs import about_dialog, shortcuts_dialog
from views.style import focus

if TYPE_CHECKING:
    from views.canvas import GraphCanvas
    from views.main_window import MainWindow


def commands_of(window: MainWindow) -> Commands:
    """The commands of ``window``. Its panels are made at the first use of one that needs them."""

    def canvas() -> GraphCanvas:
        return window.workspace.graph.canvas

    return Commands(
        open=window.ask_and_open,
        import_trace=window.import_trace,
        save=window.session.save,
        save_as=window.session.save_as,
        next_report=lambda: window.tabs.step(1),
        close_report=lambda: window.close_document(window.session.current),
        export=window.export_graph,
        start_page=window.show_start_page,
        compile=window.compile,
        cancel=window.escape,
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
        focus_graph=lambda: canvas().setFocus(),
        focus_inspector=lambda: window.workspace.reveal(1, window.workspace.inspector.kernel_panel.code),
        focus_panels=lambda: window.workspace.reveal(2, window.workspace.panels.rail),
        pin=lambda: window.workspace.selection.toggle_pin(),
        add_filter=lambda: window.finder.open_filters(),
        clear_filters=lambda: window.workspace.filters.clear(),
        step_panel=lambda by: window.workspace.step_panel(by),
        set_theme=window.set_theme,
        tour=window.take_tour,
        about=lambda: about_dialog(window, window.theme, window.status.versions()).exec(),
        shortcuts=lambda: shortcuts_dialog(window, window.menus.shortcuts()).exec(),
    )
