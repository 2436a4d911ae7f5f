"""The context menu of a table: copy the row, copy or save everything as CSV. Ctrl+C copies the row."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu

from views.widgets.place import not_written, with_ending


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV; what is missing is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(list(header))
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    return stream.getvalue()


def add_table_menu(table: QAbstractItemView, make_csv: Callable[[], str]) -> None:
    """Give ``table`` its menu. ``make_csv`` returns its rows as they are sorted and filtered."""

    def copy_row() -> None:
        current, model = table.currentIndex(), table.model()
        if current.isValid():
            row = (current.siblingAtColumn(column).data() for column in range(model.columnCount(current.parent())))
            texts = [str(text or "") for text in row]
            QApplication.clipboard().setText("\t".join(texts))

    def save() -> None:
        from PySide6.QtWidgets import QFileDialog

        from views.widgets.question import tell

        name = table.accessibleName().lower().replace(" ", "-").replace(":", "").replace(",", "")
        chosen, _ = QFileDialog.getSaveFileName(table, "Save the table", f"{name}.csv", "*.csv")
        if not chosen:
            return
        try:
            with_ending(chosen, ".csv").write_text(make_csv(), encoding="utf-8")
        except OSError as error:
            tell(table, "Not saved", f"{not_written(chosen, error)} Choose another place.")

    def show(at: QPoint) -> None:
        menu = QMenu(table)
        menu.addAction("Copy row").triggered.connect(copy_row)
        menu.addAction("Copy table as CSV").triggered.connect(lambda: QApplication.clipboard().setText(make_csv()))
        menu.addAction("Save as CSV…").triggered.connect(save)
        menu.popup(table.viewport().mapToGlobal(at))

    table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    table.customContextMenuRequested.connect(show)
    shortcut = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), table)
    shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
    shortcut.activated.connect(copy_row)
