"""Another theme: each widget once and in turns, what is in sight before what is not; nothing moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete, isValid

from app.settings import Settings
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.background.turns import is_waiting
from views.look import theme
from views.look.style import application, apply_theme
from views.main_window import MainWindow
from views.widgets.basic import label


class Restyled(QObject):
    """Counts how often each widget is restyled."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self.times: Counter[QWidget] = Counter()
        app.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.StyleChange and isinstance(watched, QWidget):
            self.times[watched] += 1
        return False


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> Iterator[MainWindow]:
    made = make_window(Settings(theme="light"), worker=False)
    open_laid_out(qtbot, made, lab_report(160))
    settle()
    yield made
    apply_theme(application(), theme.light())
    settle()


def test_each_widget_is_restyled_once_in_turns_those_in_sight_first(window: MainWindow) -> None:
    panels, app = window.workspace.panels, application()
    hidden, there = panels.stages, set(app.allWidgets())
    restyled = Restyled(app)
    window.set_theme("dark")
    assert {*restyled.times} <= {*app.topLevelWidgets()}, "all of it would take as long as two frames"
    settle()
    app.removeEventFilter(restyled)
    assert all(restyled.times[label] == 1 for label in hidden.findChildren(QLabel))
    assert max(restyled.times.values()) <= 2, "some have other properties then"
    order = [one for one in restyled.times if one in there and isValid(one) and window.isAncestorOf(one)]
    in_sight = [widget.isVisible() for widget in order]
    assert in_sight == sorted(in_sight, reverse=True)
    assert panels.currentWidget() in order
    assert all(widget.updatesEnabled() for widget in order)


def test_docks_stay_as_large_as_they_are(window: MainWindow) -> None:
    panels = window.workspace.panels
    height = panels.height()
    window.set_theme("dark")
    panels.stages.setMinimumHeight(height + 100)  # as a page without its new margins may
    for _ in range(8):  # what asks for room asks what is around it, which asks in turn
        QApplication.processEvents()
    assert is_waiting()
    assert panels.minimumSizeHint().height() > height
    panels.stages.setMinimumHeight(0)
    settle()
    assert panels.height() == height
    assert window.layout().isEnabled()
    window.resize(window.width(), window.height() - 100)
    settle()
    assert window.statusBar().geometry().bottom() == window.height() - 1


def test_a_switched_window_looks_like_one_that_began_so(
    window: MainWindow, make_window: MakeWindow, qtbot: QtBot
) -> None:
    def pictures(one: MainWindow) -> list[QImage]:
        panels = one.workspace.panels
        found = []
        for page in (panels.stages, panels.refusals, panels.dynamo, panels.messages):
            panels.setCurrentWidget(page)
            settle()
            page.resize(800, 300)  # docks may differ by a pixel
            found.append(page.grab().toImage())
        one.show_start_page()
        return [*found, one.start_page.grab().toImage()]

    window.set_theme("dark")
    settle()
    switched = pictures(window)
    window.close()
    fresh = make_window(Settings(theme="dark"), worker=False)
    open_laid_out(qtbot, fresh, lab_report(160))
    settle()
    assert pictures(fresh) == switched


def test_what_comes_to_the_place_of_a_widget_that_went_does_not_look_like_it(window: MainWindow, qtbot: QtBot) -> None:
    def labels(role: str) -> list[QLabel]:
        made = [label("x", role) for _ in range(200)]
        for one in made:
            column.addWidget(one)
            one.show()
        QApplication.processEvents()
        return made

    beside = QWidget()
    qtbot.addWidget(beside)
    column = QVBoxLayout(beside)
    beside.show()
    gone = labels("muted")
    window.set_theme("dark")
    settle()
    for one in gone:
        delete(one)  # Qt takes their places in memory again
    colors = {one.palette().windowText().color().name() for one in labels("strong")}
    assert colors == {theme.dark().text.name()}
