"""The Compare tab: two reports side by side. One of them is the report on screen; a click selects its nodes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.diff import Diff, Status
from app.diff.kept import kept_of_diff, nodes_shown
from app.filters import Kept
from compiler.report import Report
from views.code.code_view import CodeView
from views.compare.rows import (
    FIGURE_COLUMNS,
    GROUP_COLUMNS,
    KERNEL_COLUMNS,
    REGION,
    changes,
    figure_records,
    group_records,
    kernel_records,
    summary,
)
from views.look.theme import Theme
from views.selection.hidden_note import HiddenNote, hidden_text
from views.tables.data_table import DataTable
from views.widgets.basic import ElidedLabel, as_panel, push_button
from views.widgets.empty import Empty
from views.widgets.segments import Segments
from views.widgets.text_line import TextLine

_NOTHING = (
    "Compare this report with a session (Compare, With a session…), with what the other compiler makes of the same "
    "model, or change an option (Compile, What if…): what differs stands here."
)
_BETWEEN, _BESIDE = 16, 40  # pixels between the names of A and B, and around their row
PAGES = {"groups": "Groups", "kernels": "Kernels", "figures": "Figures"}


class ComparePanel(QWidget):
    """Shows a ``Diff``. "A" is the report before or ours, "B" the other; ``shown`` says which of them is on screen."""

    unit_chosen = Signal(str, str)  # region, group or extern call of the report on screen
    nodes_chosen = Signal(str, object)  # region, frozenset of FX nodes of the report on screen
    swap_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        as_panel(self)
        self._theme = theme
        self._diff: Diff | None = None
        self._shown = "b"
        self._pair: tuple[Report, Report] | None = None
        self._kept: dict[str, Kept] | None = None
        self._told_hidden: dict[str, str] = {}  # page -> what the filters hide of it
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 8, 4)
        column.setSpacing(6)
        column.addLayout(self._head())
        names = QHBoxLayout()
        names.setSpacing(_BETWEEN)
        self._titles = (ElidedLabel("", "strong", is_sentence=True), ElidedLabel("", "strong", is_sentence=True))
        for title in self._titles:
            names.addWidget(title)
        names.addStretch()
        self._told = ElidedLabel("", "muted", is_sentence=True)
        names.addWidget(self._told)
        self._summary = ("", "")
        column.addLayout(names)
        self.note = HiddenNote()
        column.addWidget(self.note)
        self.groups = DataTable("Groups compared", GROUP_COLUMNS)
        self.groups.chosen.connect(self._group_chosen)
        self.kernels = DataTable("Kernels compared", KERNEL_COLUMNS)
        self.kernels.chosen.connect(self._kernel_chosen)
        self.figures = DataTable("Figures compared", FIGURE_COLUMNS)
        self.code = CodeView(theme)
        self.code.setAccessibleName("Kernel sources compared")
        beside = QSplitter(Qt.Orientation.Horizontal)
        beside.setChildrenCollapsible(False)
        beside.addWidget(self.kernels)
        beside.addWidget(self.code)
        beside.setSizes([620, 380])
        self._pages = QStackedWidget()
        for page in (self.groups, beside, self.figures):
            self._pages.addWidget(page)
        column.addWidget(self._pages, 1)
        self._empty = Empty("columns", theme, _NOTHING)
        column.addWidget(self._empty, 1)
        self.clear()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.code.set_theme(theme)
        self._empty.set_theme(theme)
        self._fill()

    @property
    def diff(self) -> Diff | None:
        """What is shown."""
        return self._diff

    @property
    def titles(self) -> tuple[str, ...]:
        """What A and B are called."""
        return tuple(title.text() for title in self._titles)

    def clear(self) -> None:
        """Nothing is compared."""
        self.set_diff(None, None, "b")

    def set_diff(self, diff: Diff | None, pair: tuple[Report, Report] | None, shown: str) -> None:
        """Show a comparison of ``pair``; ``shown`` is "a" or "b", the side that the graph shows."""
        self._diff, self._pair = diff, pair
        self._shown = shown
        for part in (*self._parts, *self._titles, self._told, self._pages):
            part.setVisible(diff is not None)
        self._empty.setVisible(diff is None)
        if diff is not None:  # an empty table would look as if nothing had been compared
            groups = [group for region in diff.regions for group in region.groups]
            self.all.setChecked(all(group.status is Status.SAME for group in groups))
        self._fill()

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """What the filters leave of the report on screen, by region; None for everything."""
        if kept is not self._kept:
            self._kept = kept
            self._fill()

    def _head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        self.pages = Segments(PAGES, "What to compare")
        self.pages.chosen.connect(self._show_page)
        self.filter = TextLine()
        self.filter.setPlaceholderText("Filter")
        self.filter.setAccessibleName("Filter the comparison")
        self.filter.setClearButtonEnabled(True)
        self.filter.setMaximumWidth(200)
        self.filter.textChanged.connect(self._filter)
        self.all = QCheckBox("Also what is the same")
        self.all.setAccessibleName("Show also groups that are the same")
        self.all.toggled.connect(self._fill)
        self.swap = push_button("Show the other", self.swap_requested.emit, "", "Show the other report in the window")
        self._parts = (self.pages, self.filter, self.all, self.swap)
        for part in self._parts:
            row.addWidget(part)
        row.insertStretch(3)
        return row

    def _fill(self) -> None:
        diff = self._diff
        if diff is None:
            for table in (self.groups, self.kernels, self.figures):
                table.set_records([])
            self.note.tell("")
            return
        left = None
        if self._kept is not None and self._pair is not None:
            left = kept_of_diff(diff, *self._pair, shown=self._shown, kept=self._kept)
        same = "" if diff.title_a != diff.title_b else ", the same settings"
        for label_, side, title in zip(self._titles, "ab", (diff.title_a, diff.title_b + same), strict=True):
            label_.setText(f"{side.upper()}{' (shown)' if self._shown == side else ''}: {title}")
        self._summary = summary(diff)
        self._fit_summary()
        groups = group_records(diff, self._theme, all_of_them=self.all.isChecked())
        kernels = kernel_records(diff, self._theme)
        self._told_hidden = {}
        if left is not None:
            every = {"groups": len(groups), "kernels": len(kernels)}
            groups = [row for row in groups if _parts(row.target) in left.groups]
            kernels = [row for row in kernels if int(row.target) in left.kernels]
            for page, rows in (("groups", groups), ("kernels", kernels)):
                self._told_hidden[page] = hidden_text(every[page] - len(rows), every[page], "row")
            self._told_hidden["figures"] = "Figures are of the whole reports: the filters hide none of them."
        self.groups.setColumnHidden(REGION, len(diff.regions) < 2)
        self.groups.set_records(groups)
        self.kernels.set_records(kernels)
        self.figures.set_records(figure_records(diff, self._theme))
        self.code.set_code("Choose a kernel to see\nhow its source differs.", "diff")
        self.note.tell(self._told_hidden.get(self.pages.value, ""))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What differs goes before how that was found."""
        super().resizeEvent(event)
        self._fit_summary()

    def _fit_summary(self) -> None:
        whole = "  ·  ".join(filter(None, self._summary))
        measure = self._told.fontMetrics().horizontalAdvance
        names = sum(title.sizeHint().width() + _BETWEEN for title in self._titles)
        self._told.setText(whole if names + measure(whole) <= self.width() - _BESIDE else self._summary[0])

    def _show_page(self, page: str) -> None:
        self._pages.setCurrentIndex(list(PAGES).index(page))
        self.note.tell(self._told_hidden.get(page, ""))
        self.all.setEnabled(page == "groups")

    def show_page(self, page: str) -> None:
        """Bring "groups", "kernels" or "figures" to the front."""
        self.pages.choose(page)
        self._show_page(page)

    def _filter(self, text: str) -> None:
        for table in (self.groups, self.kernels, self.figures):
            table.set_filter(text)

    def _group_chosen(self, target: str) -> None:
        if self._diff is None:
            return
        number, entry = _parts(target)
        region = self._diff.regions[number]
        group = region.groups[entry]
        is_a = self._shown == "a"
        name, units = (region.a, group.a) if is_a else (region.b, group.b)
        if len(units) == 1:
            self.unit_chosen.emit(name, units[0])
            return
        nodes = nodes_shown(region, group, self._shown)
        if name and nodes:
            self.nodes_chosen.emit(name, frozenset(nodes))

    def _kernel_chosen(self, target: str) -> None:
        if self._diff is None:
            return
        kernel = self._diff.kernels[int(target)]
        if kernel.text:
            self.code.set_code(kernel.text, "diff")
        elif kernel.a and kernel.b:
            figures = "\n".join(changes(kernel)) or "The figures are, too."
            self.code.set_code(f"The sources are the same,\nnames and settings aside.\n\n{figures}\n", "diff")
        else:
            self.code.set_code(f"Only {'A' if kernel.a else 'B'} has this kernel.", "diff")


def _parts(target: str) -> tuple[int, int]:
    """A group's target: the numbers of its region and its entry."""
    region, _, entry = target.partition(":")
    return int(region), int(entry)
