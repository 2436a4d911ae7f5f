"""A main window with a stub worker and answers in place of dialogs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QThreadPool
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.layout import layout_region
from app.settings import Settings
from app.worker.client import WorkerClient
from compiler.report import Region, Report
from tests.fake_reports import transformer_region
from views.background.turns import is_waiting
from views.canvas.canvas import GraphCanvas
from views.look import theme
from views.main_window import MainWindow
from views.window.dialogs import Dialogs

ROOT = Path(__file__).parents[2]


@dataclass
class Answers(Dialogs):
    """What the user would say, and what was asked."""

    to_open: list[str] = field(default_factory=list)
    to_save: str = ""
    to_compare: str = ""
    agrees: bool = True
    to_import: str = ""
    leave: str = "discard"
    layout: str = ""
    asked: list[str] = field(default_factory=list)

    def open_files(self) -> list[str]:
        return self.to_open

    def trace_folder(self) -> str:
        return self.to_import

    def session_file(self) -> str:
        return self.to_compare

    def save_file(self, suggestion: str) -> str:
        self.asked.append(suggestion)
        return self.to_save

    def export_file(self, suggestion: str) -> str:
        self.asked.append(suggestion)
        return self.to_save

    def agree(self, title: str, text: str, action: str) -> bool:
        self.asked.append(text)
        return self.agrees

    def layout_name(self, known: list[str]) -> str:
        return self.layout

    def unsaved(self, name: str) -> str:
        self.asked.append(name)
        return self.leave


MakeWindow = Callable[..., MainWindow]


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    """The style that the app asks for."""
    return ["fusescope", "-style", "fusion"]


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def make_window(qtbot: QtBot, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeWindow]:
    """Make a shown window; ``gpu`` gives its worker one, ``worker`` False starts none."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))))
    made: list[MainWindow] = []

    def make(settings: Settings | None = None, *, gpu: bool = False, worker: bool = True) -> MainWindow:
        command = [sys.executable, "-m", "tests.gui.window_worker", *(["gpu"] if gpu else [])]
        window = MainWindow(
            partial(WorkerClient, command=command), settings or Settings(), dialogs=answers, start_worker=worker
        )
        window.resize(1440, 900)
        window.show()
        qtbot.waitExposed(window)
        made.append(window)
        return window

    yield make
    for window in made:
        answers.leave = "discard"
        window.close()
        window.deleteLater()


def open_laid_out(qtbot: QtBot, window: MainWindow, report: Report) -> None:
    """Open the report as a session of GPT-2, and wait until its graph is laid out."""
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        window.open_report(report, "example:gpt2")


def to_front(qtbot: QtBot, window: MainWindow) -> None:
    """Give the window the keyboard, as a click on it would."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=5_000)


def printed(code: str) -> str:
    """What the program prints in a process of its own, which has imported nothing before."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def settle() -> None:
    """Let what was begun on other threads, or waits for its turn, come to its end."""
    QThreadPool.globalInstance().waitForDone(10_000)
    QApplication.processEvents()
    while is_waiting():
        QApplication.processEvents()


def is_seen(widget: QWidget) -> bool:
    """Whether a user would see the widget now."""
    return widget.isVisible() and not widget.visibleRegion().isEmpty()


@pytest.fixture(scope="module")
def region() -> Region:
    """A transformer's, of seven hundred nodes."""
    return transformer_region(700)


@pytest.fixture
def canvas(qtbot: QtBot, region: Region) -> GraphCanvas:
    """On screen, with that region."""
    widget = GraphCanvas(theme=theme.light())
    qtbot.addWidget(widget)
    widget.resize(1000, 700)
    widget.set_region(region, layout_region(region))
    widget.show()
    qtbot.waitExposed(widget)
    return widget
