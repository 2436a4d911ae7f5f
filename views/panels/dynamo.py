"""What Dynamo did with the model: where it broke the graph, what it guards on, and why it compiled anew."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.filtered import KeptLines, kept_lines
from app.filters import Kept
from compiler.report import GraphBreak, Guard, Recompile, Report, SourceLine
from views.look import format as fmt
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.selection.hidden_note import HiddenNote, hidden_text
from views.tables.data_table import Column, DataTable, Record
from views.widgets.basic import as_panel, label
from views.widgets.rows import Finding, FindingList
from views.widgets.segments import Segments
from views.widgets.text_line import TextLine

_PAGES = {"breaks": "Graph breaks", "guards": "Guards", "recompiles": "Recompiles"}
_THINGS = {"breaks": "graph break", "guards": "guard", "recompiles": "recompilation"}
_FILTERS = {"guards": "Filter by kind, check, line", "recompiles": "Filter by function, guard, line"}
_NO_REPORT = "Compile a model to see where Dynamo breaks its graph, and what it guards on."
_NO_BREAKS = "Dynamo captured the whole model in one graph."
_NOTES = {
    "breaks": "Where a graph ends and Python runs before the next begins.",
    "guards": "What is checked before each call of the compiled code; where one fails, Dynamo compiles anew.",
    "recompiles": "Calls for which no compiled code's guards held.",
}


class DynamoPanel(QWidget):
    """Three pages; whatever comes from a line of the model leads to it.

    With filters a row is shown where they leave a node of its line, or where no node comes from its line.
    """

    line_chosen = Signal(str, int)  # source file, line

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: Report | None = None
        self._hidden: dict[str, str] = {}  # page -> what the filters hide of it
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 8, 4)
        column.setSpacing(6)
        head = QHBoxLayout()
        head.setSpacing(12)
        self.pages = Segments(_PAGES, "What Dynamo did")
        self.pages.chosen.connect(self.show_page)
        head.addWidget(self.pages)
        head.addStretch()
        self.filter = TextLine()
        self.filter.setAccessibleName("Filter guards and recompiles")
        self.filter.setClearButtonEnabled(True)
        fitted(self, lambda: self.filter.setFixedWidth(px(220)))
        head.addWidget(self.filter)
        column.addLayout(head)
        self._note = label("", "muted", wrap=True)
        column.addWidget(self._note)
        self.hidden = HiddenNote()
        column.addWidget(self.hidden)
        self._stack = QStackedWidget()
        self.breaks = FindingList("Graph breaks", theme)
        self.guards = DataTable(
            "Guards",
            [
                Column("Kind", 150, tip="Dynamo's name of the check"), Column("Checks", 260, is_name=True),
                Column("Code", 420), Column("Line", 300, tip="Where the model needs it"),
            ],
        )  # fmt: skip
        self.recompiles = DataTable(
            "Recompiles",
            [Column("Function", 160, is_name=True), Column("The guard that failed", 620), Column("Line", 300)],
        )
        self.guards.set_empty_text("The report has no guards of Dynamo's.")
        self.recompiles.set_empty_text("Nothing was compiled anew: the guards of the first compilation held.")
        for page in (self.breaks, self.guards, self.recompiles):
            self._stack.addWidget(page)
            page.chosen.connect(self._go)
        column.addWidget(self._stack, 1)
        self.filter.textChanged.connect(self.guards.set_filter)
        self.filter.textChanged.connect(self.recompiles.set_filter)
        self.breaks.set_findings([], _NO_REPORT)
        self.show_page("breaks")

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.breaks.set_theme(theme)

    def set_report(self, report: Report) -> None:
        """What Dynamo did with another report's model."""
        self._report = report
        self._show(report, None)

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """What the filters leave, by region; None for everything."""
        if self._report is not None:
            self._show(self._report, kept_lines(self._report, kept) if kept is not None else None)

    def _show(self, report: Report, lines: KeptLines | None) -> None:
        known = report.sources
        breaks, guards, recompiles = (
            [row for row in rows if lines is None or not lines.hides(row.source)]
            for rows in (report.graph_breaks, report.guards, report.recompiles)
        )
        broken = [_break(found, known) for found in breaks]
        self.breaks.set_findings(broken or ([] if report.graph_breaks else [Finding("success", _NO_BREAKS)]))
        self.guards.set_records([_guard(guard, known) for guard in guards])
        self.recompiles.set_records([_recompile(again, known) for again in recompiles])
        pages = {
            "breaks": (breaks, report.graph_breaks), "guards": (guards, report.guards),
            "recompiles": (recompiles, report.recompiles),
        }  # fmt: skip
        self._hidden = {}
        for key, (shown, found) in pages.items():
            self.pages.button(key).setText(f"{_PAGES[key]} ({fmt.count(len(found))})" if found else _PAGES[key])
            if lines is not None and found:
                self._hidden[key] = hidden_text(len(found) - len(shown), len(found), _THINGS[key])
        self.hidden.tell(self._hidden.get(self.pages.value, ""))

    def show_page(self, key: str) -> None:
        """ "breaks", "guards" or "recompiles"."""
        self.pages.choose(key)
        self._stack.setCurrentIndex(list(_PAGES).index(key))
        self.filter.setVisible(key in _FILTERS)
        self.filter.setPlaceholderText(_FILTERS.get(key, ""))
        self._note.setText(_NOTES[key])
        self.hidden.tell(self._hidden.get(key, ""))

    def _go(self, target: str) -> None:
        file, _, line = target.rpartition(":")
        if line.isdecimal():
            self.line_chosen.emit(file, int(line))


def _place(source: SourceLine | None) -> str:
    return f"{source.file}:{source.line}  {source.code.strip()}".strip() if source else ""


def _short_place(source: SourceLine | None) -> str:
    """For a narrow column: the folder would leave no room for the line."""
    return _place(msgspec.structs.replace(source, file=source.file.rpartition("/")[2])) if source else ""


def _target(source: SourceLine | None, known: dict[str, str]) -> str:
    """The line to go to, "" where the report has no text of its file."""
    return f"{source.file}:{source.line}" if source is not None and source.file in known else ""


def _break(found: GraphBreak, known: dict[str, str]) -> Finding:
    left = "The whole function is left to eager. " if found.skipped_frame else ""
    return Finding(
        "break", found.reason, f"{left}{found.detail}".strip(), "", _place(found.source),
        _target(found.source, known), "Go to the line",
    )  # fmt: skip


def _guard(guard: Guard, known: dict[str, str]) -> Record:
    texts = (guard.kind or "–", guard.subject or "–", guard.code, _short_place(guard.source))
    return Record(texts, texts, _target(guard.source, known), guard.code)


def _recompile(again: Recompile, known: dict[str, str]) -> Record:
    texts = (again.function or "–", again.reason, _short_place(again.source))
    return Record(texts, texts, _target(again.source, known), again.reason)
