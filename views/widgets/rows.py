"""A list of findings: a sign, a title, what it means, what to do, and a way to the place it is about."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from views.look.icons import pixmap
from views.look.theme import Theme
from views.widgets.basic import add_copy, as_panel, label


@dataclass(frozen=True)
class Finding:
    """One row. ``target`` is handed back when it is chosen; "" makes it plain text."""

    level: str  # "error", "warning", "info", "success", "break"
    title: str
    detail: str = ""
    advice: str = ""
    place: str = ""  # "model.py:12  x = y.item()"
    target: str = ""
    goal: str = "Go to the node"  # what choosing it does


class FindingRow(QFrame):
    """A row; with a target it is a button."""

    chosen = Signal(str)

    def __init__(self, finding: Finding, theme: Theme) -> None:
        super().__init__()
        self.finding = finding
        self.setProperty("role", "finding")
        self.setAccessibleName(" ".join((finding.title, finding.detail, finding.advice)).strip())
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 6, 10, 6)
        row.setSpacing(10)
        sign = label()
        colors = {"error": theme.danger, "warning": theme.warning, "success": theme.success}
        name = "split" if finding.level == "break" else finding.level
        sign.setPixmap(pixmap(name, colors.get(finding.level, theme.accent), 16))
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(label(finding.title, "strong", wrap=True))
        if finding.detail:
            texts.addWidget(label(finding.detail, "muted", wrap=True))
        if finding.advice:
            texts.addWidget(label(finding.advice, wrap=True))
        if finding.place:
            place = label(finding.place, "link" if finding.target else "muted", wrap=True)
            place.setFont(theme.mono_font(9.0))
            texts.addWidget(place)
        row.addLayout(texts, 1)
        parts = (finding.title, finding.detail, finding.advice, finding.place)
        add_copy(self, lambda: "\n".join(part for part in parts if part))
        if finding.target:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.setToolTip(finding.goal)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._choose()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space choose."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._choose()
        else:
            super().keyPressEvent(event)

    def _choose(self) -> None:
        if self.finding.target:
            self.chosen.emit(self.finding.target)


class FindingList(QScrollArea):
    """Findings below one another."""

    chosen = Signal(str)  # a finding's target

    def __init__(self, name: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._theme = theme
        self._findings: list[Finding] = []
        self._empty = ""

    @property
    def findings(self) -> list[Finding]:
        """What is shown."""
        return list(self._findings)

    def rows(self) -> list[FindingRow]:
        """The rows in order."""
        return self.findChildren(FindingRow)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._fill()

    def set_findings(self, findings: list[Finding], empty: str = "") -> None:
        """Show these, or ``empty`` where there are none; rows that are there already stay as they are."""
        if (findings, empty) != (self._findings, self._empty) or self.widget() is None:
            self._findings, self._empty = findings, empty
            self._fill()

    def _fill(self) -> None:
        page = QWidget()
        as_panel(page)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 8, 8)
        column.setSpacing(2)
        for finding in self._findings:
            row = FindingRow(finding, self._theme)
            row.chosen.connect(self.chosen)
            column.addWidget(row)
        if not self._findings and self._empty:
            column.addWidget(label(self._empty, "muted", wrap=True))
        column.addStretch()
        self.setWidget(page)
