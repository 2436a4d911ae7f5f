"""The graph's context menu: copy what is selected, walk from it, take the picture along. Ctrl+C copies the name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QPixmap, QShortcut
from PySide6.QtWidgets import QApplication, QMenu

from views.canvas.canvas import GraphCanvas
from views.widgets.picture_menu import picture_menu


def add_canvas_menu(canvas: GraphCanvas, export: Callable[[Path], None]) -> None:
    """Give ``canvas`` its menu.

    ``export`` writes the graph by a name's ending, and raises OSError where the file cannot be written.
    """
    canvas.menu_wanted.connect(lambda where: _menu(canvas, export).popup(where))
    shortcut = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), canvas)
    shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
    shortcut.activated.connect(partial(_copy, canvas))


def _menu(canvas: GraphCanvas, export: Callable[[Path], None]) -> QMenu:
    menu = picture_menu(canvas, lambda: QPixmap.fromImage(canvas.render_image(canvas.viewport().size() * 2)), export)
    first, count = menu.actions()[0], len(canvas.selected)
    for text, call, is_possible in (
        ("Copy the name\tCtrl+C", partial(_copy, canvas), count > 0),
        ("Select all it depends on\tU", partial(canvas.show_cone, False), count > 0),
        ("Select all that depends on it\tD", partial(canvas.show_cone, True), count > 0),
        ("Select the paths between\tShift+P", canvas.show_path, count == 2),
    ):
        action = menu.addAction(text)
        action.triggered.connect(lambda _=False, call=call: call())
        action.setEnabled(is_possible)
        menu.insertAction(first, action)
    menu.insertSeparator(first)
    return menu


def _copy(canvas: GraphCanvas) -> None:
    if canvas.selected:
        QApplication.clipboard().setText("\n".join(canvas.selected))
