"""The texts of a region: its wrapper program, and its graph after each stage that kept one."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QVBoxLayout, QWidget

from app.program_lines import hidden_lines
from views.background.jobs import Job
from views.code.code_view import CodeView
from views.look.theme import Theme
from views.selection.hidden_note import HiddenNote
from views.selection.index import RegionIndex
from views.widgets.basic import as_panel, icon_button, recolor
from views.widgets.segments import Segments

_TITLES = {
    "wrapper": "Wrapper program",
    "fx": "ATen graph",
    "dynamo": "Dynamo graph",
    "joint": "Joint graph",
    "post_grad": "Post-grad graph",
}
_MISSING = "# The report has no such text for this region.\n"


class ProgramsPanel(QWidget):
    """One text at a time, put into the editor when it is seen; lines that the filters hide are faint."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._texts: dict[str, str] = {}
        self._index: RegionIndex | None = None
        self._shown: str | None = None
        self._faded: tuple[str, RegionIndex | None] = ("", None)
        self._job: Job | None = None
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 8, 0)
        column.setSpacing(6)
        row = QHBoxLayout()
        self.choice = Segments(_TITLES, "Program")
        self.choice.chosen.connect(self.show_text)
        row.addWidget(self.choice)
        row.addStretch()
        row.addWidget(icon_button("copy", "Copy the program", self._copy, theme), 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(row)
        self.note = HiddenNote()
        column.addWidget(self.note)
        self.code = CodeView(theme)
        self.code.setAccessibleName("Program")
        column.addWidget(self.code, 1)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.code.set_theme(theme)
        recolor(self, theme)

    def set_region(self, index: RegionIndex) -> None:
        """The texts of another region; only those that it has can be chosen."""
        self._index, region = index, index.region
        self._texts = {"wrapper": region.wrapper, "fx": region.fx_text, **region.graphs}
        for key in _TITLES:
            self.choice.button(key).setVisible(key in ("wrapper", "fx") or bool(self._texts.get(key)))
        self.show_text(self.choice.value if self._texts.get(self.choice.value) else "wrapper")

    def show_text(self, key: str) -> None:
        """One of the texts, by its key: "wrapper", "fx", "dynamo", ..."""
        self.choice.choose(key)
        if self.isVisible():
            self._fill()

    def showEvent(self, event: QShowEvent) -> None:
        """Fill what was set while hidden."""
        super().showEvent(event)
        self._fill()

    def _fill(self) -> None:
        text = self._texts.get(self.choice.value) or _MISSING
        if self._shown != text:
            self._shown = text
            self.code.set_code(text, "python")
            self._faded = ("", None)
        self._fade()

    def _fade(self) -> None:
        """Find the lines that the filters hide, off the GUI thread."""
        key, index = self.choice.value, self._index
        if index is None or self._faded == (key, index):
            return
        self._faded = (key, index)
        if self._job is not None:
            self._job.cancel()
            self._job = None
        kept, text = index.kept, self._texts.get(key, "")
        if kept is None or not text:
            self.code.fade_lines(())
            self.note.tell("")
            return
        region = index.region
        self._job = Job(lambda cancelled: hidden_lines(key, text, region, kept), self)
        self._job.done.connect(self._found)
        self._job.start()

    def _found(self, lines: list[int]) -> None:
        self._job = None
        self.code.fade_lines(lines)
        self.note.tell(f"{len(lines):,} of {self.code.line_count:,} lines do work that the filters hide (faint).")

    def _copy(self) -> None:
        QApplication.clipboard().setText(self._texts.get(self.choice.value, ""))
