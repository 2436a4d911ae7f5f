"""Tells the user that long work has ended, where the window is not the one being looked at."""

from __future__ import annotations

import time

from PySide6 import QtWidgets
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QWidget

LONG_S = 10.0  # work that takes less is waited for


class Notifier(QObject):
    """The window asks for attention in the task bar, and the tray says why where the desktop has one."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._began = 0.0
        self._tray: QtWidgets.QSystemTrayIcon | None = None

    def begin(self) -> None:
        """Work begins."""
        self._began = time.monotonic()

    def end(self, text: str) -> bool:
        """Work has ended; whether the user was told so: it was long, and the window has not the keyboard."""
        if time.monotonic() - self._began < LONG_S or self._window.isActiveWindow():
            return False
        QApplication.alert(self._window)
        if QtWidgets.QSystemTrayIcon.isSystemTrayAvailable():
            if self._tray is None:
                self._tray = QtWidgets.QSystemTrayIcon(self._window.windowIcon(), self)
                self._tray.messageClicked.connect(self._window.activateWindow)
            self._tray.show()
            self._tray.showMessage("Fusescope", text)
        return True
