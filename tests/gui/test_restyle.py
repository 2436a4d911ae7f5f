"""Another theme: what is in sight at once and each widget once, what is out of sight in turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.settings import Settings
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.look import theme
from views.look.style import application, apply_theme
from views.main_window import MainWindow

_SHEETS = 2  # the old one is taken away, the new one put on


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


def test_each_widget_is_restyled_once_those_out_of_sight_in_turns(window: MainWindow) -> None:
    panels, app = window.workspace.panels, application()
    shown, hidden = panels.currentWidget(), panels.stages
    restyled = Restyled(app)
    window.set_theme("dark")
    assert 0 < restyled.times[shown] <= _SHEETS
    assert not restyled.times[hidden]
    assert not any(restyled.times[label] for label in hidden.findChildren(QLabel))
    settle()
    app.removeEventFilter(restyled)
    assert all(restyled.times[label] == 1 for label in hidden.findChildren(QLabel))
    assert max(restyled.times.values()) <= _SHEETS + 1


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
