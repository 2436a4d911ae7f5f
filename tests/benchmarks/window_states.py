"""States of the window that are no panel's: selections, tips, messages, dialogs, menus, the tour, odd reports.

Each brings a window to its state and returns what is to be drawn above it: dialogs, menus and tips are windows of
their own. Pictures of them are made by ``python -m tests.benchmarks.screenshots FOLDER --states``.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QPushButton, QToolTip, QWidget

from app.worker.protocol import StageFinished, StageStarted
from compiler.report import Region
from views.compile.progress import STAGES
from views.main_window import MainWindow
from views.screenshot import show_view
from views.window.dialogs import about_dialog, layout_question, unsaved_question
from views.window.guide import Guide, steps_of
from views.window.message_bar import Message
from views.window.shortcuts import shortcuts_dialog

Show = Callable[[MainWindow], "QWidget | None"]

_LONG = "/home/someone/projects/a-rather-long-folder-name/experiments/2026-11/attention_with_a_long_name.py"
_TRACEBACK = "\n".join(
    ["Traceback (most recent call last):"]
    + [f'  File "model.py", line {line}, in forward\n    x = self.layer_{line}(x)' for line in range(12, 19)]
    + ["torch._dynamo.exc.Unsupported: Tensor.item() of a value that is known only at run time"]
)


def _region(window: MainWindow) -> Region:
    region = window.workspace.graph.region
    assert region is not None
    return region


def _first_group(window: MainWindow) -> str:
    return max(_region(window).groups, key=lambda group: len(group.nodes)).name


def _select_group(window: MainWindow) -> None:
    show_view(window, "run")
    window.workspace.select_unit(_first_group(window))


def _select_level(level: str) -> Show:
    def show(window: MainWindow) -> None:
        _select_group(window)
        window.workspace.inspector.kernel_panel.first.show_level(level)

    return show


def _select_two_levels(window: MainWindow) -> None:
    _select_group(window)
    window.workspace.inspector.kernel_panel.show_two(True)


def _select_node(window: MainWindow) -> None:
    show_view(window, "source")
    window.workspace.select_node(_region(window).groups[0].nodes[-1])


def _select_extern(window: MainWindow) -> None:
    show_view(window, "graph")
    window.workspace.select_unit(_region(window).extern_calls[0].name)


def _select_pair(window: MainWindow) -> None:
    refusal = next((one for one in _region(window).refusals if one.a and one.b), None)
    if refusal is not None:
        window.workspace.panels.pair_chosen.emit(_region(window).name, refusal.a, refusal.b)


def _pinned(window: MainWindow) -> None:
    groups = _region(window).groups
    window.workspace.select_unit(groups[0].name)
    window.workspace.selection.toggle_pin()
    window.workspace.select_unit(groups[-1].name)


def _unpin(window: MainWindow) -> None:
    window.workspace.selection.toggle_pin()
    window.workspace.selection.clear()


def _cone(window: MainWindow) -> None:
    window.workspace.select_node(_region(window).groups[1].nodes[0])
    window.workspace.graph.canvas.show_cone(down=True)


def _path(window: MainWindow) -> None:
    region, canvas = _region(window), window.workspace.graph.canvas
    canvas.select_nodes({region.groups[0].nodes[0], region.groups[2].nodes[-1]})
    canvas.show_path()


def _search(window: MainWindow) -> None:
    window.workspace.selection.clear()
    window.toolbar.search.setFocus()
    window.toolbar.search.setText("add")


def _unsearch(window: MainWindow) -> None:
    window.toolbar.search.clear()


def _fit(window: MainWindow) -> None:
    _unsearch(window)
    window.workspace.selection.clear()
    window.workspace.graph.canvas.fit()


def _near(window: MainWindow) -> None:
    window.workspace.graph.canvas.center_on(_region(window).groups[0].nodes[0])
    QTest.qWait(500)
    for _ in range(3):
        window.workspace.graph.canvas.zoom_in()


def _tip(name: Callable[[Region], str]) -> Show:
    def show(window: MainWindow) -> QWidget | None:
        canvas = window.workspace.graph.canvas
        wanted = name(_region(window))
        canvas.center_on(wanted)
        QTest.qWait(500)
        return tip_at(canvas.viewport(), canvas.view_position(wanted))

    return show


def tip_at(widget: QWidget, at: QPoint) -> QWidget | None:
    """The tool tip that a mouse resting there brings up."""
    point = QPointF(at)
    everywhere = QPointF(widget.mapToGlobal(at))
    none = Qt.MouseButton.NoButton
    moved = QMouseEvent(QEvent.Type.MouseMove, point, everywhere, none, none, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(widget, moved)
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, at, everywhere.toPoint()))
    QTest.qWait(150)
    shown = [one for one in QApplication.topLevelWidgets() if one.inherits("QTipLabel") and one.isVisible()]
    return shown[0] if shown else None


def _messages(window: MainWindow) -> None:
    QToolTip.hideText()
    window.messages.clear()
    window.post(Message("info", "There was no report before this one.", "Compile once more, or open a session."))
    window.post(Message("success", "Compiled in 12.3 s: 37 fusion groups, 61 extern calls."))
    window.post(
        Message(
            "error",
            f"{_LONG} cannot be compiled: forward() got an unexpected keyword argument 'attention_mask'.",
            "Check what the function returns beside the module: the example inputs, as a tuple.",
            _TRACEBACK,
        )
    )


def _details(window: MainWindow) -> None:
    window.messages.clear()
    window.post(Message("error", "The model cannot be compiled.", "Details say where it stopped.", _TRACEBACK))
    window.messages.findChildren(QPushButton)[-1].click()


def _message_panel(window: MainWindow) -> None:
    window.messages.clear()
    show_view(window, "messages")


def _warning(window: MainWindow) -> None:
    window.messages.clear()
    window.post(
        Message("warning", "The worker ended while it measured.", "It starts again.", "", "Measure again", lambda: None)
    )


def _progress(window: MainWindow) -> None:
    window.messages.clear()
    window.progress.begin("Compiling example:gpt2 with Fusescope", "for NVIDIA H200")
    window.toolbar.set_compiling(True)
    names = list(STAGES)
    for number, name in enumerate(names[:5]):
        window.progress.stage_event(StageStarted(1, name, number / len(names), "region_0"))
        if number < 4:
            window.progress.stage_event(StageFinished(1, name, (number + 1) / len(names), 12.5 * 9**number))


def _progress_ends(window: MainWindow) -> None:
    window.progress.end()
    window.toolbar.set_compiling(False)


def _tour(place: int) -> Show:
    def show(window: MainWindow) -> None:
        for old in window.findChildren(Guide):
            old.leave()
        show_view(window, "graph")
        Guide(window, steps_of(window.workspace, window.toolbar.search), window.theme).go(place)

    return show


def _leave_tour(window: MainWindow) -> None:
    for old in window.findChildren(Guide):
        old.leave()


def _dialog(make: Callable[[MainWindow], QDialog]) -> Show:
    def show(window: MainWindow) -> QWidget:
        _leave_tour(window)
        made = make(window)
        made.open()
        made.move((window.width() - made.width()) // 2, max((window.height() - made.height()) // 2, 0))
        return made

    return show


def _layout_name(window: MainWindow) -> QDialog:
    return layout_question(window, ["Timing", "Kernels"])[0]


def _unsaved(window: MainWindow) -> QDialog:
    return unsaved_question(window, "example:gpt2")


def _palette(text: str) -> Show:
    def show(window: MainWindow) -> None:
        _leave_tour(window)
        show_view(window, "graph")
        window.finder.open()
        QTest.keyClicks(window.finder.palette.line, text)

    return show


def _filters(window: MainWindow) -> None:
    window.finder.palette.close_palette()
    window.finder.open_filters()


def _menu(title: str, inner: str = "") -> Show:
    def show(window: MainWindow) -> QWidget | None:
        window.finder.palette.hide()
        bar = window.menuBar()
        action = next(one for one in bar.actions() if one.text().replace("&", "") == title)
        menu = action.menu()
        assert isinstance(menu, QMenu)
        menu.popup(bar.mapToGlobal(bar.actionGeometry(action).bottomLeft()))
        return menu

    return show


def _completer(window: MainWindow) -> QWidget | None:
    source = window.toolbar.source
    source.setFocus()
    source.clear()
    QTest.keyClicks(source, "ex")
    QTest.qWait(100)
    popup = source.completer().popup()
    return popup if popup.isVisible() else None


def _focus(find: Callable[[MainWindow], QWidget]) -> Show:
    def show(window: MainWindow) -> None:
        window.finder.palette.hide()
        window.activateWindow()
        find(window).setFocus(Qt.FocusReason.TabFocusReason)

    return show


def _find_in_code(window: MainWindow) -> None:
    _select_group(window)
    code = window.workspace.inspector.kernel_panel.code
    code.setFocus()
    code.finder.open()
    QTest.keyClicks(code.finder.bar.edit, "tl")


STATES: dict[str, Show] = {
    "group": _select_group,
    **{level: _select_level(level) for level in ("ttir", "ttgir", "llir", "ptx", "sass")},
    "two-levels": _select_two_levels,
    "code-find": _find_in_code,
    "node": _select_node,
    "extern": _select_extern,
    "pair": _select_pair,
    "pinned": _pinned,
    "cone": lambda window: (_unpin(window), _cone(window))[1],
    "path": _path,
    "search": _search,
    "fit": _fit,
    "near": _near,
    "focus-canvas": _focus(lambda window: window.workspace.graph.canvas),
    "focus-table": _focus(lambda window: window.workspace.units.table),
    "focus-tabs": _focus(lambda window: window.workspace.graph.tabs),
    "focus-compile": _focus(lambda window: window.toolbar.compile_button),
    "focus-train": _focus(lambda window: window.toolbar.train),
    "focus-combo": _focus(lambda window: window.workspace.graph.overlays),
    "focus-rail": _focus(lambda window: window.workspace.panels.rail),
    "tip-node": _tip(lambda region: region.groups[0].nodes[0]),
    "tip-group": _tip(lambda region: region.groups[0].name),
    "tip-extern": _tip(lambda region: region.extern_calls[0].nodes[-1]),
    "messages-three": _messages,
    "messages-details": _details,
    "messages-panel": _message_panel,
    "messages-warning": _warning,
    "progress": _progress,
    "progress-over": _progress_ends,
    **{f"tour-{place + 1}": _tour(place) for place in range(6)},
    "shortcuts": _dialog(lambda window: shortcuts_dialog(window, window.menus.shortcuts())),
    "unsaved": _dialog(_unsaved),
    "about": _dialog(lambda window: about_dialog(window, window.theme, window.status.versions())),
    "layout-name": _dialog(_layout_name),
    "palette": _palette(""),
    "palette-query": _palette("addmm"),
    "palette-nothing": _palette("zzzz"),
    "palette-filters": _filters,
    "completer": _completer,
    **{f"menu-{title.lower()}": _menu(title) for title in ("File", "Compile", "Compare", "View", "Help")},
}
