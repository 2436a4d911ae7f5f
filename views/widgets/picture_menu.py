"""The context menu of whatever is painted: copy the picture, save it as PNG or SVG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from views.widgets.place import not_written, with_ending


def picture_menu(widget: QWidget, picture: Callable[[], QPixmap], save: Callable[[Path], None]) -> QMenu:
    """A menu for ``widget``; ``save`` writes by the name's ending and raises OSError where that cannot be."""

    def ask(kind: str) -> None:
        from PySide6.QtWidgets import QFileDialog

        from views.widgets.question import tell

        name = widget.accessibleName().lower().replace(" ", "-")
        chosen, _ = QFileDialog.getSaveFileName(widget, "Save the picture", f"{name}.{kind}", f"*.{kind}")
        if not chosen:
            return
        try:
            save(with_ending(chosen, f".{kind}"))
        except OSError as error:
            tell(widget, "Not saved", f"{not_written(chosen, error)} Choose another place.")

    menu = QMenu(widget)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.addAction("Copy as picture").triggered.connect(lambda: QApplication.clipboard().setPixmap(picture()))
    menu.addAction("Save as PNG…").triggered.connect(lambda: ask("png"))
    menu.addAction("Save as SVG…").triggered.connect(lambda: ask("svg"))
    return menu
