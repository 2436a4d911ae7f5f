"""The reports that are open at once, and the tabs that switch between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QTabBar, QWidget

from app.titles import compiler_title, parts_beside
from compiler.report import Report
from views.look.theme import Theme
from views.widgets.basic import icon_button, recolor

if TYPE_CHECKING:
    from app.meter import Meter
    from views.selection.index import RegionIndex

Layouts = Callable[[], dict[str, bytes]]  # encodes the layouts made so far; may run off the GUI thread


@dataclass(eq=False)
class Document:
    """A report, the file it came from, and whether that file lacks something. ``state`` counts changes."""

    report: Report
    path: Path | None
    is_modified: bool
    layouts: Layouts
    state: int = 0
    meter: Meter | None = None  # as its session has it
    indexes: dict[str, RegionIndex] | None = None  # of its regions, once they are made

    @property
    def name(self) -> str:
        """The file's name, else the source."""
        return self.path.name if self.path is not None else self.report.source

    def is_replaced_by(self, report: Report, path: Path | None) -> bool:
        """Whether ``report`` is this document made anew: read again, or compiled again before anything was measured."""
        if report is self.report or (path is not None and path == self.path):
            return True
        if path is not None or self.path is not None or self.report.measurements:
            return False
        mine, other = (
            (r.source, r.compiler, r.target.name, r.training, r.options) for r in (self.report, report)
        )
        return mine == other


class DocumentTabs(QTabBar):
    """Shown where more than one report is open, or a single one is out of sight. A click on the current one counts."""

    document_chosen = Signal(object)
    close_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._documents: list[Document] = []
        self._least = 2  # open reports from which on there are tabs
        self.setAccessibleName("Open reports")
        self.setProperty("role", "documents")
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setUsesScrollButtons(True)
        self.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.currentChanged.connect(self._chosen)
        self.tabBarClicked.connect(lambda place: self._chosen(place) if place == self.currentIndex() else None)
        self.hide()

    def set_documents(self, documents: list[Document], current: Document | None) -> None:
        """Show these, without the signal."""
        self._documents = list(documents)
        self.blockSignals(True)
        while self.count() > len(documents):
            self.removeTab(self.count() - 1)
        for place, (document, name) in enumerate(zip(documents, names_among(documents), strict=True)):
            if place == self.count():
                self.addTab("")
                close = icon_button("close", "Close this report (Ctrl+W)", lambda: None, self._theme)
                close.clicked.connect(lambda _=False, button=close: self._close(button))
                close.setIconSize(QSize(12, 12))
                self.setTabButton(place, QTabBar.ButtonPosition.RightSide, close)
            report = document.report
            short = name.removeprefix("example:")
            self.setTabText(place, f"{short} •" if document.is_modified else short)
            made_by = f"{compiler_title(report.compiler)}, {report.target.title}"
            options = "".join(f"\n{name}={value}" for name, value in report.options.items())
            self.setTabToolTip(place, f"{document.path or report.source}\n{made_by}{options}")
        if current in documents:
            self.setCurrentIndex(documents.index(current))
        self.blockSignals(False)
        self.setVisible(len(documents) >= self._least)

    def show_single(self, on: bool) -> None:
        """Whether a single report has a tab, too."""
        self._least = 1 if on else 2
        self.setVisible(len(self._documents) >= self._least)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        recolor(self, theme)

    def _close(self, button: QWidget) -> None:
        for place, document in enumerate(self._documents):
            if self.tabButton(place, QTabBar.ButtonPosition.RightSide) is button:
                self.close_requested.emit(document)
                return

    def step(self, by: int) -> None:
        """The next tab or, with -1, the one before, around the end."""
        if self.count() == 1:
            self._chosen(0)
        elif self.count():
            self.setCurrentIndex((self.currentIndex() + by) % self.count())

    def _chosen(self, place: int) -> None:
        if 0 <= place < len(self._documents):
            self.document_chosen.emit(self._documents[place])


def names_among(documents: list[Document]) -> list[str]:
    """Their names; of those called the same with what each is beside the others, and a number where that is alike."""
    names = []
    for document in documents:
        others = [one for one in documents if one is not document and one.name == document.name]
        parts = [part for other in others for part in parts_beside(document.report, other.report)]
        if document.path is not None and any(other.path is not None for other in others):
            parts.insert(0, f"in {document.path.parent.name or document.path.parent}")
        names.append(f"{document.name} ({', '.join(dict.fromkeys(parts))})" if others else document.name)
    return [
        name if names.count(name) == 1 else f"{name} {names[:place].count(name) + 1}"
        for place, name in enumerate(names)
    ]
