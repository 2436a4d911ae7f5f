"""A text of code with line numbers, marked lines, a search, and signals for the line under the mouse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import QEvent, QKeyCombination, QRect, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QWidget

from views.code.finder import Finder
from views.code.text_view import TextView
from views.look.theme import Theme, mix

_Key = QKeySequence.StandardKey
_READ = 500  # characters of a line that are read out
_GO_TO_LINE = QKeyCombination(Qt.KeyboardModifier.ControlModifier, Qt.Key.Key_G)


class CodeView(TextView):
    """Shows one text. ``marked`` lines belong to the selection, ``hinted`` ones to what the mouse is over."""

    line_clicked = Signal(int)  # 1-based
    line_hovered = Signal(int)  # 1-based; 0 when the mouse leaves

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._marked: list[int] = []
        self._hinted: list[int] = []
        self._marked_set: frozenset[int] = frozenset()  # the same, to be asked for each line that is painted
        self._hinted_set: frozenset[int] = frozenset()
        self._faded: frozenset[int] = frozenset()
        self._hovered = 0
        self._finder: Finder | None = None
        super().__init__(theme, parent)
        self.setAccessibleName("Code")
        self.caret_moved.connect(self._describe)

    @property
    def finder(self) -> Finder:
        """The search, made when it is first asked for."""
        if self._finder is None:
            self._finder = Finder(self, self._theme)
            self._finder.changed.connect(self.viewport().update)
        return self._finder

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and font of ``theme``."""
        self._strong = mix(theme.surface, theme.selection, 0.13)
        self._light = mix(theme.surface, theme.selection, 0.06)
        self._veil = QColor(theme.surface)
        self._veil.setAlphaF(0.64)
        super().set_theme(theme)
        if self._finder is not None:
            self._finder.bar.set_theme(theme)

    def set_code(self, text: str, language: str) -> None:
        """Show ``text``; ``language`` is "python", "diff" or the name of an IR ("ptx", "ttir", ...)."""
        self._set_marked([])
        self._hinted, self._hinted_set, self._faded = [], frozenset(), frozenset()
        self.set_text(text, language)
        if self._finder is not None:
            self._finder.text_changed()

    def mark_lines(self, lines: Iterable[int], reveal: bool = True) -> None:
        """Highlight these lines (1-based), and scroll to the first where none of them is on screen."""
        known = range(1, self.line_count + 1)
        self._set_marked([line for line in lines if line in known])
        if self._marked and reveal and self._marked_set.isdisjoint(self.lines_on_screen()):
            self.center_line(self._marked[0])
        self.viewport().update()

    def hint_lines(self, lines: Iterable[int]) -> None:
        """Highlight these lines lightly, until told otherwise; never scrolls."""
        hinted = list(lines)
        if hinted != self._hinted:
            self._hinted, self._hinted_set = hinted, frozenset(hinted)
            self.viewport().update()

    def fade_lines(self, lines: Iterable[int]) -> None:
        """Paint these lines (1-based) faintly, until told otherwise."""
        self._faded = frozenset(lines)
        self.viewport().update()

    @property
    def faded_lines(self) -> frozenset[int]:
        """The lines that are painted faintly (1-based)."""
        return self._faded

    @property
    def marked_lines(self) -> list[int]:
        """The highlighted lines (1-based)."""
        return list(self._marked)

    @property
    def hinted_lines(self) -> list[int]:
        """The lightly highlighted lines (1-based)."""
        return list(self._hinted)

    def reveal_line(self, line: int) -> None:
        """Bring a line into sight."""
        if not self.is_on_screen(line):
            self.center_line(line)

    def line_back(self, number: int) -> QColor | None:
        """The colour of a marked or hinted line."""
        if number + 1 in self._marked_set:
            return self._strong
        return self._light if number + 1 in self._hinted_set else None

    def line_veil(self, number: int) -> QColor | None:
        """What is faint is the text under a veil of the surface's colour."""
        return self._veil if number + 1 in self._faded else None

    def found_in(self, number: int) -> list[tuple[int, int, bool]]:
        """What the search found in a line."""
        return self._finder.found_in(number) if self._finder is not None else []

    def paint_gutter(self, painter: QPainter, number: int, area: QRect) -> None:
        """A bar at lines that are marked; their numbers and the caret's are clearer."""
        is_marked = number + 1 in self._marked_set
        if is_marked:
            painter.fillRect(QRect(0, area.top(), 3, area.height()), self._theme.selection)
        if is_marked or (self.hasFocus() and number == self.caret.place[0]):
            painter.setPen(self._theme.text)
            self.draw_number(painter, number, area)

    def wants_key(self, event: QKeyEvent) -> bool:
        """Also those that search."""
        return super().wants_key(event) or self._search_of(event) is not None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter on a line is a click on it; Ctrl+F searches, Ctrl+G goes to a line."""
        begin = self._search_of(event)
        if begin is not None:
            begin()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.line_clicked.emit(self.caret.place[0] + 1)
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that selects no text is a click on its line."""
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.caret.has_selection:
            self.line_clicked.emit(self.place_at(event.position())[0] + 1)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell which line the mouse is over, once for each."""
        super().mouseMoveEvent(event)
        self._set_hovered(self.place_at(event.position())[0] + 1)

    def leaveEvent(self, event: QEvent) -> None:
        """The mouse is over no line any more."""
        super().leaveEvent(event)
        self._set_hovered(0)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy, select, search."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction("Copy", QKeySequence(_Key.Copy), self.copy)
        copy.setEnabled(self.caret.has_selection)
        menu.addAction("Copy everything", lambda: QGuiApplication.clipboard().setText(self.text))
        menu.addAction("Select all", QKeySequence(_Key.SelectAll), self.select_all)
        menu.addSeparator()
        menu.addAction("Find…", QKeySequence(_Key.Find), self.finder.open)
        menu.addAction("Go to line…", QKeySequence(_GO_TO_LINE), self.finder.open_line)
        menu.popup(event.globalPos())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The search bar stays in its corner."""
        super().resizeEvent(event)
        if self._finder is not None:
            self._finder.place()

    def _search_of(self, event: QKeyEvent) -> Callable[[], None] | None:
        """What a key does to the search, if anything."""
        if event.matches(_Key.Find):
            return self.finder.open
        if event.keyCombination() == _GO_TO_LINE:
            return self.finder.open_line
        if self._finder is None or not self._finder.bar.isVisible():
            return None
        if event.key() == Qt.Key.Key_F3:
            return partial(self._finder.step, -1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        return self._finder.close if event.key() == Qt.Key.Key_Escape else None

    def _describe(self) -> None:
        """Let a screen reader read the caret's line."""
        number = self.caret.place[0]
        line = self.lines[number].strip()[:_READ] or "blank"
        told = f"Line {number + 1:,} of {self.line_count:,}: {line}"
        if told != self.accessibleDescription():
            self.setAccessibleDescription(told)
            if QAccessible.isActive():
                QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, line))

    def _set_hovered(self, line: int) -> None:
        if line != self._hovered:
            self._hovered = line
            self.line_hovered.emit(line)

    def _set_marked(self, lines: list[int]) -> None:
        self._marked, self._marked_set = lines, frozenset(lines)
