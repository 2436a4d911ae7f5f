"""The system's size of texts: all of the window follows it, and nothing is cut where it is large."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QHeaderView, QLabel, QTableView, QWidget
from pytestqt.qtbot import QtBot

from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.look import sizes
from views.look.style import application, apply_theme
from views.look.theme import light
from views.main_window import MainWindow
from views.widgets.basic import ElidedLabel

LEFT = Qt.MouseButton.LeftButton
LARGE = 13.0


@pytest.fixture(params=["at the start", "later"])
def large(
    request: pytest.FixtureRequest, make_window: MakeWindow, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MainWindow]:
    """A window whose system has large texts: since before it was made, or since its panels were."""
    if request.param == "at the start":
        monkeypatch.setattr(sizes, "system_points", lambda: LARGE)
        yield make_window(worker=False)
    else:
        window = make_window(worker=False)
        assert window.workspace.panels.count() > 0
        monkeypatch.setattr(sizes, "system_points", lambda: LARGE)
        QApplication.sendEvent(window.windowHandle(), QEvent(QEvent.Type.ThemeChange))
        settle()
        yield window
    apply_theme(application(), light())
    settle()


def cut(root: QWidget) -> list[str]:
    """Labels, buttons and tables in sight that have less room than their texts need."""
    return [
        f"{type(widget).__name__} '{widget.text() if hasattr(widget, 'text') else widget.accessibleName()}'"
        for widget in root.findChildren(QWidget)
        if widget.isVisible() and not widget.visibleRegion().isEmpty() and _is_cut(widget)
    ]


def _is_cut(widget: QWidget) -> bool:
    line = widget.fontMetrics().height()
    if isinstance(widget, QLabel):
        if not widget.text():
            return False
        if widget.wordWrap():
            return widget.height() < widget.heightForWidth(widget.width())
        may_be_narrow = isinstance(widget, ElidedLabel)
        return widget.height() < line or (not may_be_narrow and widget.width() < widget.sizeHint().width())
    if isinstance(widget, QAbstractButton) and widget.text():
        padding = 4  # what may give way of it
        return widget.height() < line or widget.width() < widget.minimumSizeHint().width() - padding
    if isinstance(widget, QComboBox):
        return widget.height() < line
    if isinstance(widget, QTableView):
        return widget.verticalHeader().defaultSectionSize() < line
    is_head = isinstance(widget, QHeaderView) and widget.orientation() is Qt.Orientation.Horizontal
    return is_head and widget.height() < line


def test_sizes_keep_their_ratio_and_none_is_too_small(qapp: QApplication) -> None:
    theme = light().sized(LARGE, 96.0)
    assert theme.ui_font().pointSizeF() == LARGE
    assert theme.mono_font(8.5).pointSizeF() == pytest.approx(8.5 * 1.3)
    assert theme.zoom == pytest.approx(1.3)
    inside = theme.unzoomed()  # drawn through a painter that enlarges
    assert (inside.ui_font().pointSizeF(), inside.zoom) == (pytest.approx(10.0), 1.0)
    small = light().sized(9.0, 96.0)
    assert (small.ui_font().pointSizeF(), small.ui_font(8.0).pointSizeF(), small.zoom) == (9.0, 8.0, 1.0)
    assert light().sized(13.0, 72.0).zoom == 1.0, "on macOS, where a point is a pixel, that is the usual height"


@pytest.mark.parametrize(("system", "points"), [(13.0, 13.0), (6.0, 8.0), (None, 10.0)])
def test_the_systems_font_is_asked_where_there_is_a_desktop(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, system: float | None, points: float
) -> None:
    assert sizes.system_points() == 10.0, "pictures without one are alike everywhere"
    font = QFont()
    if system is None:
        font.setPixelSize(15)
    else:
        font.setPointSizeF(system)
    monkeypatch.setattr(QGuiApplication, "platformName", lambda: "xcb")
    monkeypatch.setattr(QFontDatabase, "systemFont", lambda kind: font)
    assert sizes.system_points() == points


def test_the_first_page_is_whole(large: MainWindow, qtbot: QtBot) -> None:
    assert application().font().pointSizeF() == LARGE
    qtbot.waitUntil(lambda: cut(large) == [], timeout=5_000)  # samples are read, and said to be there, meanwhile


def test_every_panel_is_whole(large: MainWindow, qtbot: QtBot) -> None:
    open_laid_out(qtbot, large, lab_report(160))
    panels, workspace = large.workspace.panels, large.workspace
    workspace.select_unit(workspace.graph.region.groups[0].name)
    qtbot.waitUntil(workspace.inspector.kernel_panel.code.isVisible, timeout=5_000)
    workspace.inspector.make_all()
    for place in range(panels.count()):
        panels.setCurrentIndex(place)
        settle()
        qtbot.wait(50)
        assert cut(large) == [], panels.title(place)


def test_the_graph_opens_with_texts_as_large_as_the_windows(large: MainWindow, qtbot: QtBot) -> None:
    open_laid_out(qtbot, large, lab_report(160))
    canvas = large.workspace.graph.canvas
    canvas.setFocus()
    assert canvas.camera.scale == pytest.approx(0.9 * 1.3)
    qtbot.keyClick(canvas, Qt.Key.Key_0)
    qtbot.waitUntil(lambda: canvas.camera.scale == pytest.approx(1.3), timeout=5_000)
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    qtbot.waitUntil(lambda: canvas.camera.scale < 0.65 * 1.3, timeout=5_000)
    canvas.center_on(large.workspace.graph.region.groups[2].nodes[0])
    qtbot.waitUntil(lambda: canvas.camera.scale == pytest.approx(1.3), timeout=5_000)


def test_an_open_graph_grows_with_the_texts_around_it(
    make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, lab_report(160))
    canvas = window.workspace.graph.canvas
    group = window.workspace.graph.region.groups[1].name
    window.workspace.select_unit(group)
    qtbot.waitUntil(lambda: canvas._motion.goal is None, timeout=5_000)
    scale = canvas.camera.scale
    monkeypatch.setattr(sizes, "system_points", lambda: LARGE)
    QApplication.sendEvent(window.windowHandle(), QEvent(QEvent.Type.ThemeChange))
    settle()
    assert canvas.camera.scale == pytest.approx(scale * 1.3)
    assert canvas.viewport().rect().contains(canvas.view_position(group)), "what was in the middle"
    assert cut(window) == []
    monkeypatch.undo()
    QApplication.sendEvent(window.windowHandle(), QEvent(QEvent.Type.ThemeChange))
    settle()
    assert application().font().pointSizeF() == 10.0
    assert canvas.camera.scale == pytest.approx(scale)


def test_a_size_is_fitted_until_its_owner_is_gone(qtbot: QtBot) -> None:
    widget, told = QWidget(), []
    sizes.fitted(widget, lambda: told.append(1))
    assert len(told) == 1
    sizes.fit_again()
    assert len(told) == 2
    widget.deleteLater()
    QApplication.sendPostedEvents(widget, QEvent.Type.DeferredDelete)
    sizes.fit_again()
    assert len(told) == 2


def test_the_mouse_is_where_charts_are_drawn(large: MainWindow, qtbot: QtBot) -> None:
    open_laid_out(qtbot, large, lab_report(160))
    workspace, panels = large.workspace, large.workspace.panels
    other, *names = (group.name for group in workspace.index.region.groups[2:])
    panels.setCurrentWidget(panels.roofline)
    qtbot.waitUntil(lambda: bool(panels.roofline.table.records.shown), timeout=10_000)
    chart = panels.roofline.chart
    assert chart.enlarged == pytest.approx(1.3)
    places = {name: chart.position_of(name) for name in names}
    group = max(names, key=lambda name: min((places[name] - places[o]).manhattanLength() for o in names if o != name))
    qtbot.mouseClick(chart, LEFT, pos=(chart.position_of(group) * chart.enlarged).toPoint())
    assert workspace.selection.current.unit == group
    panels.setCurrentWidget(panels.timeline)
    gantt = panels.timeline.gantt
    qtbot.waitUntil(lambda: len(gantt.bands) == 2, timeout=10_000)
    settle()
    place = next(i for i, event in enumerate(gantt.bands[1].trace.events) if event.unit.endswith(f"/{other}"))
    qtbot.mouseClick(gantt, LEFT, pos=(gantt.position_of(1, place) * gantt.enlarged).toPoint())
    assert workspace.selection.current.unit == other
    panels.setCurrentWidget(panels.memory)
    qtbot.waitUntil(lambda: bool(panels.memory.map._view.memory.buffers), timeout=10_000)
    settle()
    buffer = max(panels.memory.map._view.memory.buffers, key=lambda one: one.bytes)
    middle = panels.memory.map.buffer_box(buffer.name).center() * panels.memory.map.enlarged
    qtbot.mouseClick(panels.memory.map, LEFT, pos=middle.toPoint())
    assert workspace.selection.current.nodes == {buffer.node}
    panels.setCurrentWidget(panels.stages)
    bars = panels.stages.bars
    qtbot.mouseClick(bars, LEFT, pos=QPoint(50, round((26 * 3 + 13) * 1.3)))
    assert bars._chosen == 3
