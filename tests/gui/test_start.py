"""The first window: what it does without until it is on screen, and what it draws with."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.settings import Settings
from tests.gui.conftest import MakeWindow, printed
from views.look.icons import icon
from views.window.start_page import StartPage, samples

_OPEN = """
import sys
from app.settings import Settings
from app.worker.client import WorkerClient
from views.app import make_application
from views.main_window import MainWindow
application = make_application()
window = MainWindow(WorkerClient, Settings(), start_worker=False)
window.show()
print(sys.getswitchinterval(), *sys.modules)
"""
_RED, _BLUE = QColor(255, 0, 0), QColor(0, 0, 255)


def test_the_first_window_opens_without_what_only_a_report_needs() -> None:
    interval, *modules = printed(_OPEN).split()
    assert float(interval) <= 0.002, "a thread that computes makes the window wait for this long"
    assert "views.main_window" in modules
    later = {"numpy", "difflib", "app.finder", "app.filters", "app.layout", "views.window.workspace", "views.canvas"}
    assert later.isdisjoint(modules)
    assert "compiler.joining" not in modules


def test_the_first_window_makes_no_enums_of_the_style() -> None:
    """They take as long as the rest of the window; a class of Qt is made, with its enums, when it is first named."""
    code = _OPEN.replace("print(", "application.processEvents()\nimport enum, gc\nprint(", 1).replace(
        "sys.getswitchinterval(), *sys.modules",
        "*(kind.__qualname__ for kind in gc.get_objects() if isinstance(kind, enum.EnumMeta))",
    )
    enums = printed(code).split()
    assert "QSizePolicy.Policy" in enums
    assert not [name for name in enums if name.startswith(("QStyle.", "QFileDialog.", "QMessageBox."))]


def _colors(made: QIcon, size: int, mode: QIcon.Mode, state: QIcon.State) -> set[tuple[int, int, int]]:
    """The colours of what is drawn fully, or as fully as it gets."""
    image = made.pixmap(QSize(size, size), 1.0, mode, state).toImage()
    assert image.width() == image.height() == size
    pixels = [image.pixelColor(x, y) for x in range(size) for y in range(size)]
    most = max(pixel.alpha() for pixel in pixels)
    return {(pixel.red(), pixel.green(), pixel.blue()) for pixel in pixels if pixel.alpha() == most}


@pytest.mark.parametrize("size", [14, 18, 33])
def test_an_icon_is_drawn_at_the_size_that_is_asked_for(qtbot: QtBot, size: int) -> None:
    made = icon("play", _RED, _BLUE)
    assert _colors(made, size, QIcon.Mode.Normal, QIcon.State.Off) == {(255, 0, 0)}
    assert _colors(made, size, QIcon.Mode.Normal, QIcon.State.On) == {(0, 0, 255)}
    faint = made.pixmap(QSize(size, size), 1.0, QIcon.Mode.Disabled, QIcon.State.Off).toImage()
    assert 0 < max(faint.pixelColor(x, y).alpha() for x in range(size) for y in range(size)) < 192


def test_a_changed_copy_of_an_icon_draws_as_it_did(qtbot: QtBot) -> None:
    copy = QIcon(icon("play", _RED))
    copy.setIsMask(True)  # what Qt clones the engine for
    assert _colors(copy, 16, QIcon.Mode.Normal, QIcon.State.Off) == {(255, 0, 0)}
    assert _colors(icon("play", _RED), 16, QIcon.Mode.Normal, QIcon.State.Off) == {(255, 0, 0)}


def test_samples_are_read_once_the_page_is_on_screen(make_window: MakeWindow, qtbot: QtBot) -> None:
    page = make_window(worker=False).start_page
    assert isinstance(page, StartPage)
    first: Path = samples()[0]
    card = next(card for card in page.sample_grid.cards if card.objectName() == f"sample:{first.stem}")
    qtbot.waitUntil(lambda: "fusion groups" in card.text_label.text(), timeout=30_000)
    assert "on" in card.tag.text().lower()


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_an_icon_that_is_painted_has_the_pixels_of_its_screen(qtbot: QtBot, ratio: float) -> None:
    screen = QPixmap(round(16 * ratio), round(16 * ratio))
    screen.setDevicePixelRatio(ratio)
    screen.fill(QColor(255, 255, 255))
    with QPainter(screen) as painter:
        icon("app", _RED).paint(painter, QRect(0, 0, 16, 16))
    at_once = QPixmap(screen.size())
    at_once.fill(QColor(255, 255, 255))
    with QPainter(at_once) as painter:
        painter.drawPixmap(0, 0, icon("app", _RED).pixmap(screen.size(), 1.0))
    screen.setDevicePixelRatio(1.0)
    assert screen.toImage() == at_once.toImage()


def test_recent_files_are_known_by_their_names(make_window: MakeWindow, qtbot: QtBot) -> None:
    folder = Path.home() / "a-rather-long-folder-name" / "experiments" / "of-a-whole-year" / "2026-11"
    source = str(folder / "attention.py")
    window = make_window(Settings(recent=[source, "example:gpt2"]), worker=False)
    first, second = window.menus.recent.actions()
    assert first.text().startswith("attention.py\t~/a-rather")
    assert first.toolTip() == source
    assert second.text().strip() == "example:gpt2"
    (link,) = [one for one in window.start_page.findChildren(QPushButton) if one.text() == "attention.py"]
    assert source in link.toolTip()
    with qtbot.waitSignal(window.start_page.path_chosen) as told:
        qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
    assert told.args == [source]


def test_a_sample_is_called_as_in_the_gallery(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    cards = window.start_page.sample_grid.cards
    titles = ["GPT-2 by Fusescope", "GPT-2 by TorchInductor"]
    qtbot.waitUntil(lambda: [card.title_label.text() for card in cards] == titles, timeout=10_000)
    assert all("Eager, compiled, graph replay, Inductor" in card.text_label.text() for card in cards)
