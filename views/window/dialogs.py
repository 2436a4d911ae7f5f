"""The few questions that block: files to open and save, consent, unsaved changes; and About.

Their classes are asked of QtWidgets when they are used: a class is made, with its enums, when it is first named.
"""

from __future__ import annotations

from pathlib import Path

from PySide6 import QtWidgets
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import label
from views.widgets.question import Answer, Question

OPEN_FILTER = "Sessions, models, logs (*.fscope *.py *.pt2 *.log);;All files (*)"
SAVE_FILTER = "Fusescope sessions (*.fscope)"
EXPORT_FILTER = "The whole graph as SVG (*.svg);;The view as PNG (*.png)"


class Dialogs:
    """Asks the user. Another object with these methods can answer in its place."""

    def __init__(self, parent: QWidget) -> None:
        self._parent = parent

    def open_files(self) -> list[str]:
        """The paths to open."""
        return QtWidgets.QFileDialog.getOpenFileNames(self._parent, "Open", "", OPEN_FILTER)[0]

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
        answers = [Answer("yes", action), Answer("", "Cancel", is_default=True)]
        asked = Question(self._parent, title, text, answers)
        asked.exec()
        return asked.answer == "yes"

    def export_file(self, suggestion: str) -> str:
        """A path to export the graph to, or ""."""
        return QtWidgets.QFileDialog.getSaveFileName(self._parent, "Export the graph", suggestion, EXPORT_FILTER)[0]

    def layout_name(self, known: list[str]) -> str:
        """How a layout shall be called, or ""; a name of ``known`` is replaced."""
        asked, line = layout_question(self._parent, known)
        asked.exec()
        return line.currentText() if asked.answer else ""

    def unsaved(self, name: str) -> str:
        """What to do with unsaved changes: "save", "discard" or "cancel"."""
        asked = unsaved_question(self._parent, name)
        asked.exec()
        return asked.answer or "cancel"


def unsaved_question(parent: QWidget, name: str) -> Question:
    """Before a report is left that is in no file."""
    answers = [Answer("discard", "Discard"), Answer("cancel", "Cancel"), Answer("save", "Save…", is_default=True)]
    return Question(parent, "Save this session?", f"The report of {name} is not saved.", answers)


def layout_question(parent: QWidget, known: list[str]) -> tuple[Question, QtWidgets.QComboBox]:
    """How a layout shall be called, and the line that is typed into."""
    line = QtWidgets.QComboBox()
    line.setAccessibleName("Name of the layout")
    line.setEditable(True)
    line.addItems(known)
    line.setCurrentIndex(-1)
    line.lineEdit().setPlaceholderText("Name of the layout")
    answers = [Answer("", "Cancel"), Answer("keep", "Keep", is_default=True)]
    text = "Where the docks are and how large, to come back to from View, Layouts."
    return Question(parent, "Keep this layout", text, answers, line), line


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
