"""States of the panels at the bottom: what plays, an outlier picked, pages of a comparison, selections, tips, filters.

Each brings a window that shows a session with measurements to its state, from the one before.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.filters import Filter, FilterKind
from app.worker.protocol import OptionsListed
from compiler.options import OptionInfo
from views.compile.what_if import WhatIf
from views.main_window import MainWindow
from views.screenshot import show_view
from views.window.bottom_panel import BottomPanel

Show = Callable[[MainWindow], "QWidget | None"]

_FILTERS = (Filter(FilterKind("op"), "aten.add.Tensor"), Filter(FilterKind("module"), "h.0"))
_OPTIONS = [
    OptionInfo("cuda_graph", "bool", "True", "Capture the whole run in a CUDA Graph.", choices=["True", "False"]),
    OptionInfo("max_fused_nodes", "int", "64", "How many nodes a fused kernel may have at most; more are split."),
    OptionInfo("an_option_whose_name_says_all_that_it_does_and_more", "str", "(1, 2, 4, 8, 16, 32)", "Sizes."),
    *(OptionInfo(f"option_{number}", "int", str(number), f"What option {number} does.") for number in range(24)),
]


def _panels(window: MainWindow) -> BottomPanel:
    return window.workspace.panels


def _playing(window: MainWindow) -> None:
    show_view(window, "run")
    _panels(window).run.toggle_run()
    QTest.qWait(2500)


def _played(window: MainWindow) -> None:
    run = _panels(window).run
    run.stop()
    run.jump_to_outlier(1)


def _log(view: str) -> Show:
    def show(window: MainWindow) -> None:
        show_view(window, view)
        _panels(window).run.log_box.setChecked(True)

    return show


def _compared(page: str) -> Show:
    def show(window: MainWindow) -> None:
        _panels(window).run.log_box.setChecked(False)
        show_view(window, "compare")
        compare = _panels(window).compare
        compare.show_page(page)
        if compare.kernels.records.shown:
            compare.kernels.clicked.emit(compare.kernels.records.index(0, 0))

    return show


def _compared_whole(window: MainWindow) -> None:
    _panels(window).compare.show_page("groups")
    _panels(window).compare.all.setChecked(True)


def _selected(view: str) -> Show:
    def show(window: MainWindow) -> None:
        show_view(window, view)
        window.workspace.select_unit(window.workspace.units.table.records.shown[3].target)

    return show


def _tip(view: str, chart: Callable[[BottomPanel], QWidget], at: Callable[[BottomPanel], QPointF]) -> Show:
    def show(window: MainWindow) -> None:
        show_view(window, view)
        QTest.qWait(100)
        QTest.mouseMove(chart(_panels(window)), at(_panels(window)).toPoint())

    return show


def _focused(view: str, find: Callable[[BottomPanel], QWidget]) -> Show:
    def show(window: MainWindow) -> None:
        show_view(window, view)
        window.activateWindow()
        find(_panels(window)).setFocus(Qt.FocusReason.TabFocusReason)

    return show


def _filtered(view: str) -> Show:
    def show(window: MainWindow) -> None:
        window.workspace.filters.put(_FILTERS)
        show_view(window, view)

    return show


def _what_if(*, listed: bool) -> Show:
    def show(window: MainWindow) -> QWidget:
        window.workspace.filters.clear()
        report = window.session.report
        assert report is not None
        dialog = WhatIf(window.bridge, report, window.theme, window)
        dialog.show()
        if listed:
            window.bridge.options_listed.emit(OptionsListed(dialog._id, report.compiler, _OPTIONS))
            dialog.model.setData(dialog.model.index(1, 1), "32")
            dialog.table.selectRow(1)
        return dialog

    return show


def _first_buffer(panels: BottomPanel) -> QPointF:
    chart = panels.memory.map
    return chart.buffer_box(chart._view.rows.buffers[0].name).center()


PANEL_STATES: dict[str, Show] = {
    "playing": _playing,
    "outlier": _played,
    "log-side": _log("run-side"),
    "log-histogram": _log("run-histogram"),
    **{f"compare-{page}": _compared(page) for page in ("kernels", "figures")},
    "compare-whole": _compared_whole,
    **{f"selected-{view}": _selected(view) for view in ("topology", "memory", "roofline", "timeline", "refusals")},
    "tip-histogram": _tip("run-histogram", lambda p: p.run.distribution, lambda p: QPointF(QPoint(70, 110))),
    "tip-roofline": _tip(
        "roofline", lambda p: p.roofline.chart,
        lambda p: p.roofline.chart.position_of(p.roofline.table.records.shown[0].target),
    ),
    "tip-timeline": _tip("timeline", lambda p: p.timeline.gantt, lambda p: p.timeline.gantt.position_of(0, 40)),
    "tip-memory": _tip("memory", lambda p: p.memory.map, _first_buffer),
    "focus-start": _focused("run", lambda p: p.run.start_button),
    "focus-switch": _focused("run", lambda p: p.run.switch),
    "focus-modes": _focused("run", lambda p: p.run.table),
    "focus-plot": _focused("run", lambda p: p.run.plot),
    "focus-stages": _focused("stages", lambda p: p.stages.bars),
    **{f"filtered-{view}": _filtered(view) for view in
       ("run", "timeline", "cuda-graph", "memory", "roofline", "refusals", "compare", "stages", "guards")},
    "what-if-waits": _what_if(listed=False),
    "what-if": _what_if(listed=True),
}  # fmt: skip
