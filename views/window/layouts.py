"""Named layouts of the window: where the docks are and how large, kept in the settings, put back from the View menu."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu

from app.settings import Settings

if TYPE_CHECKING:
    from views.window.docks import Docks

_KEYS = 9  # layouts with a key


class AsksForName(Protocol):
    """Who asks how a layout shall be called."""

    def layout_name(self, known: list[str]) -> str:
        """A name, or "" for none."""


class LayoutMenu(QObject):
    """Fills a menu with the layouts that there are. ``docks`` gives the docks once a report was shown."""

    def __init__(
        self,
        menu: QMenu,
        settings: Settings,
        docks: Callable[[], Docks],
        dialogs: AsksForName,
        keep: Callable[[Settings], object],
    ) -> None:
        super().__init__(menu)
        self._menu, self._settings, self._docks = menu, settings, docks
        self._dialogs, self._keep = dialogs, keep
        self.show()

    def show(self) -> None:
        """Make the menu anew."""
        menu = self._menu
        menu.clear()
        reset = menu.addAction("&Reset")
        reset.setShortcut(QKeySequence("Ctrl+Alt+0"))
        reset.triggered.connect(lambda: self._docks().reset())
        names = list(self._settings.layouts)
        if names:
            menu.addSeparator()
        for place, name in enumerate(names):
            action = menu.addAction(name.replace("&", "&&"))
            if place < _KEYS:
                action.setShortcut(QKeySequence(f"Ctrl+Alt+{place + 1}"))
            action.triggered.connect(lambda _=False, name=name: self._docks().apply(self._settings.layouts[name]))
        menu.addSeparator()
        menu.addAction("&Keep this layout…").triggered.connect(lambda: self.keep_current())
        if names:
            forget = menu.addMenu("&Forget")
            for name in names:
                action = forget.addAction(name.replace("&", "&&"))
                action.triggered.connect(lambda _=False, name=name: self._forget(name))

    def keep_current(self) -> None:
        """Ask for a name, and keep the layout as it is now under it."""
        name = self._dialogs.layout_name(list(self._settings.layouts)).strip()
        if name:
            self._settings.layouts[name] = self._docks().state()
            self._keep(self._settings)
            self.show()

    def _forget(self, name: str) -> None:
        del self._settings.layouts[name]
        self._keep(self._settings)
        self.show()
