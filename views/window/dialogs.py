"""The few questions that block: files to open and save, consent, unsaved changes; and About.

Their classes are asked of QtWidgets when they are used: a class is made, with its enums, when it is first named.
"""

from __future__ import annotations

from pathlib import Path

from PySide6 import QtWidgets
from PySide6.QtCore import Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import label

OPEN_FILTER = "Sessions, models, logs (*.fscope *.py *.pt2 *.log);;All files (*)"
SAVE_FILTER = "Fusescope sessions (*.fscope)"
EXPORT_FILTER = "The whole graph as SVG (*.svg);;The view as PNG (*.png)"


class Dialogs:
    """Asks the user. Another object with these methods can answer in its place."""

    def __init__(self, parent: QWidget) -> None:
        self._parent = parent

    def open_file(self) -> str:
        """The path to open, or ""."""
        return QtWidgets.QFileDialog.getOpenFileName(self._parent, "Open", "", OPEN_FILTER)[0]

    def trace_folder(self) -> str:
        """The folder of a log to import, or ""."""
        return QtWidgets.QFileDialog.getExistingDirectory(self._parent, "Import a trace")

    def session_file(self) -> str:
        """The path of a session to compare with, or ""."""
        return QtWidgets.QFileDialog.getOpenFileName(self._parent, "Compare with", "", SAVE_FILTER)[0]

    def save_file(self, suggestion: str) -> str:
        """The path to save to, or ""."""
        path = QtWidgets.QFileDialog.getSaveFileName(self._parent, "Save session", suggestion, SAVE_FILTER)[0]
        return f"{path}.fscope" if path and not Path(path).suffix else path

    def agree(self, title: str, text: str, action: str) -> bool:
        """Whether the user agrees to ``action``. Cancel is the default."""
        kinds = QtWidgets.QMessageBox
        cancel = kinds.StandardButton.Cancel
        box = question(self._parent, title, text, cancel)
        yes = box.addButton(action, kinds.ButtonRole.AcceptRole)
        box.setDefaultButton(cancel)
        box.exec()
        return box.clickedButton() is yes

    def export_file(self, suggestion: str) -> str:
        """A path to export the graph to, or ""."""
        return QtWidgets.QFileDialog.getSaveFileName(self._parent, "Export the graph", suggestion, EXPORT_FILTER)[0]

    def layout_name(self, known: list[str]) -> str:
        """How a layout shall be called, or ""; a name of ``known`` is replaced."""
        title, text = "Keep this layout", "Name of the layout"
        return QtWidgets.QInputDialog.getItem(self._parent, title, text, ["", *known], 0, True)[0]

    def unsaved(self, name: str) -> str:
        """What to do with unsaved changes: "save", "discard" or "cancel"."""
        buttons = QtWidgets.QMessageBox.StandardButton
        text = f"The report of {name} is not saved."
        box = question(self._parent, "Unsaved session", text, buttons.Save | buttons.Discard | buttons.Cancel)
        box.setDefaultButton(buttons.Save)
        answer = box.exec()
        return {int(buttons.Save): "save", int(buttons.Discard): "discard"}.get(answer, "cancel")


def question(
    parent: QWidget, title: str, text: str, buttons: QtWidgets.QMessageBox.StandardButton
) -> QtWidgets.QMessageBox:
    """A box that asks, with a sign of ours and not the style's."""
    box = QtWidgets.QMessageBox(QtWidgets.QMessageBox.Icon.NoIcon, title, text, buttons, parent)
    box.setIconPixmap(pixmap("warning", parent.palette().highlight().color(), 30))
    for button in box.buttons():
        button.setIcon(QIcon())
        button.setAccessibleName(button.text().replace("&", ""))
    return box


def about_dialog(parent: QWidget, theme: Theme, facts: list[tuple[str, str]]) -> QtWidgets.QDialog:
    """What this is, and the versions at work."""
    dialog = QtWidgets.QDialog(parent)
    dialog.setWindowTitle("About Fusescope")
    column = QVBoxLayout(dialog)
    column.setContentsMargins(24, 22, 24, 18)
    column.setSpacing(14)
    head = QHBoxLayout()
    head.setSpacing(14)
    sign = QLabel()
    sign.setPixmap(pixmap("app", theme.accent, 52))
    head.addWidget(sign)
    texts = QVBoxLayout()
    texts.setSpacing(2)
    texts.addWidget(label("Fusescope", "title"))
    texts.addWidget(label("See how PyTorch compiles a model for a GPU.", "muted"))
    head.addLayout(texts, 1)
    head.setAlignment(texts, Qt.AlignmentFlag.AlignVCenter)
    column.addLayout(head)
    column.addLayout(_grid(facts))
    column.addWidget(label("MIT licence. Fonts Inter and JetBrains Mono under the SIL Open Font License.", "muted"))
    column.addWidget(close_button(dialog))
    return dialog


def _grid(rows: list[tuple[str, str]]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(26)
    grid.setVerticalSpacing(6)
    for row, (name, value) in enumerate(rows):
        grid.addWidget(label(name, "muted"), row, 0)
        grid.addWidget(label(value, selectable=True), row, 1)
    grid.setColumnStretch(1, 1)
    return grid


def close_button(dialog: QtWidgets.QDialog) -> QtWidgets.QDialogButtonBox:
    """The foot of a dialog that only tells something."""
    box = QtWidgets.QDialogButtonBox(QtWidgets.QDialogButtonBox.StandardButton.Close)
    box.rejected.connect(dialog.reject)
    close = box.button(QtWidgets.QDialogButtonBox.StandardButton.Close)
    close.setAccessibleName("Close")
    close.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return box
