"""Finding in a code view: the bar, what it found, and where one goes from there."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from views.background.jobs import Job
from views.code.caret import Place
from views.code.find_bar import FindBar
from views.code.search import LIMIT, Found, search
from views.code.text_view import TextView
from views.look.theme import Theme

_EDGE = 8  # pixels between the bar and the view's corner


class Finder(QObject):
    """Searches the text of ``view`` off the GUI thread, and goes from match to match."""

    changed = Signal()  # other matches, or another current one

    def __init__(self, view: TextView, theme: Theme) -> None:
        super().__init__(view)
        self._view = view
        self._job: Job | None = None
        self._found = Found([])
        self._current = -1
        self._from: Place = (0, 0)  # where the search began
        self.bar = FindBar(theme, view)
        self.bar.typed.connect(self._typed)
        self.bar.stepped.connect(self.step)
        self.bar.closed.connect(self.close)

    def open(self) -> None:
        """Ask what to find: what is selected, or what was last."""
        start, end = self._view.caret.selection
        selected = self._view.caret.text() if start[0] == end[0] else ""
        kept = "" if self.bar.asks_for_line else self.bar.edit.text()
        self._from = start
        self.bar.ask(False, selected or kept, "Find")
        self.place()

    def open_line(self) -> None:
        """Ask for a line."""
        self._from = self._view.caret.place
        self.bar.ask(True, "", f"Line, 1 to {self._view.line_count:,}")
        self.place()

    def close(self) -> None:
        """Take the bar and its matches away."""
        self._stop()
        self._set_found(Found([]))
        self.bar.hide()
        self._view.setFocus()

    def place(self) -> None:
        """Put the bar into the view's upper right corner."""
        area = self._view.viewport().geometry()
        wanted = self.bar.sizeHint()
        self.bar.resize(min(wanted.width(), area.width() - 2 * _EDGE), wanted.height())
        self.bar.move(area.right() - self.bar.width() - _EDGE, area.top() + _EDGE)

    def text_changed(self) -> None:
        """Search the view's new text."""
        self._from = (0, 0)
        self._set_found(Found([]))
        if self.bar.isVisible():
            self._typed(self.bar.edit.text(), go=False)

    def step(self, by: int) -> None:
        """Go to the next match, or the one before; round at the ends."""
        if self.bar.asks_for_line:
            self.close()
        elif self._found.matches:
            self._go((self._current + by) % len(self._found.matches))

    def found_in(self, line: int) -> list[tuple[int, int, bool]]:
        """First column, the one behind, whether it is the current one: the matches in a line (from 0)."""
        matches = self._found.matches
        return [(matches[n][0][1], matches[n][1][1], n == self._current) for n in self._found.by_line.get(line, ())]

    @property
    def count(self) -> int:
        """Matches found."""
        return len(self._found.matches)

    def _typed(self, text: str, go: bool = True) -> None:
        self._stop()
        if self.bar.asks_for_line:
            self._go_to_line(text)
            return
        whole = self._view.text
        self._job = Job(lambda cancelled: search(whole, text, cancelled), self)
        self._job.done.connect(lambda found: self._searched(found, go))
        self._job.start()

    def _searched(self, found: Found, go: bool) -> None:
        self._job = None
        self._set_found(found)
        if found.matches and go:
            self._go(found.at_or_after(self._from))
        else:
            self._tell()

    def _go(self, number: int) -> None:
        self._current = number
        start, end = self._found.matches[number]
        if not self._view.is_on_screen(start[0] + 1):
            self._view.center_line(start[0] + 1)
        self._view.select(start, end)
        self._tell()
        self.changed.emit()

    def _go_to_line(self, text: str) -> None:
        wanted = text.strip().replace(",", "")
        known = wanted.isdecimal() and 1 <= int(wanted) <= self._view.line_count
        self._view.center_line(int(wanted) if known else self._from[0] + 1)
        self.bar.tell("no line" if wanted and not known else "")

    def _set_found(self, found: Found) -> None:
        self._found, self._current = found, -1
        self.changed.emit()

    def _stop(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def _tell(self) -> None:
        count = self.count
        if not self.bar.edit.text():
            self.bar.tell("")
        elif not count:
            self.bar.tell("no match")
        else:
            more = "+" if count == LIMIT else ""
            self.bar.tell(f"{self._current + 1:,} of {count:,}{more}" if self._current >= 0 else f"{count:,}{more}")
        self.place()
