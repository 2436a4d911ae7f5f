"""Starts the desktop app. Plot and lexer libraries are imported later, when a panel first needs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication

from app.settings import load_settings, save_settings, settings_path
from app.worker.client import WorkerClient
from views.main_window import MainWindow

_SWITCH_S = 0.001  # how long a thread that computes keeps the others waiting; 5 ms are too long for a frame


def make_application(arguments: Sequence[str] = ()) -> QApplication:
    """The QApplication of this process, made where there is none."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    QApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    # asking for the style by name later would make the enums of QStyle, half a thousand members, for nothing
    app = QApplication(["fusescope", "-style", "fusion", *arguments])
    app.setApplicationName("Fusescope")
    app.setDesktopFileName("fusescope")
    sys.setswitchinterval(_SWITCH_S)
    return app


def run(paths: Sequence[str]) -> int:
    """Open the window, and the first of ``paths`` (a session, a .py, a .pt2) in it. Returns the exit code."""
    app = make_application()
    path = settings_path()
    window = MainWindow(WorkerClient, load_settings(path), lambda settings: save_settings(path, settings))
    window.show()
    if paths:
        QTimer.singleShot(0, window, lambda: window.open_path(paths[0]))
    return app.exec()
