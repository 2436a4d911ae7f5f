"""Sources and sessions used lately, in the settings, on the start page and in the menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from app.settings import Settings
from views.sessions.places import name_and_folder
from views.window.start_page import StartPage

_FOLDER = 340  # pixels of a folder in the menu


class RecentSources:
    """Keeps the three in step."""

    def __init__(self, settings: Settings, page: StartPage, menu: QMenu, open_path: Callable[[str], object]) -> None:
        self._settings = settings
        self._page = page
        self._menu = menu
        menu.setToolTipsVisible(True)
        self._open_path = open_path

    def remember(self, source: str) -> None:
        """It was used just now."""
        self._settings.remember(source)
        self.show()

    def forget(self, path: str) -> None:
        """It cannot be opened."""
        self._settings.forget(str(Path(path).resolve()))
        self.show()

    def show(self) -> None:
        """Fill page and menu."""
        self._page.set_recent(self._settings.recent)
        self._menu.clear()
        for source in self._settings.recent:
            name, folder = name_and_folder(source)
            place = self._menu.fontMetrics().elidedText(folder, Qt.TextElideMode.ElideMiddle, _FOLDER)
            action = self._menu.addAction(f"{name}\t{place}".replace("&", "&&"))
            action.setToolTip(source)
            action.triggered.connect(lambda _=False, source=source: self._open_path(source))
        self._menu.setEnabled(bool(self._settings.recent))
