"""One level of a kernel: tabs to choose it, and its text with the lines that belong to the selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QApplication, QHBoxLayout, QTabBar, QVBoxLayout, QWidget

from views.code.code_view import CodeView
from views.code.kernel_lines import SOURCE, KernelLines
from views.look.theme import Theme
from views.widgets.basic import icon_button


class LevelPane(QWidget):
    """Tabs Triton / TTIR / TTGIR / LLIR / PTX / SASS, as far as the kernel has them, over a code view."""

    line_clicked = Signal(str, int)  # level, its 1-based line
    line_hovered = Signal(str, int)  # level, its 1-based line, 0 for none
    level_changed = Signal()

    def __init__(
        self, theme: Theme, name: str, button: tuple[str, str, Callable[[], object]], parent: QWidget | None = None
    ) -> None:
        """``button`` is one more button at the end of the tabs: icon, tool tip, what it does."""
        super().__init__(parent)
        self.lines: KernelLines | None = None  # of the kernel shown
        self._levels: list[str] = []
        self._shown = ("", "")
        self._wanted = SOURCE  # the level that was in front last
        self._marked: frozenset[int] = frozenset()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        head = QHBoxLayout()
        head.setContentsMargins(4, 2, 8, 0)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(f"{name}: level")
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(True)
        self.tabs.currentChanged.connect(self._show_tab)
        head.addWidget(self.tabs, 1)
        self.copy_button = icon_button("copy", "Copy the shown text", self._copy, theme)
        head.addWidget(self.copy_button)
        icon, tip, action = button
        self.extra_button = icon_button(icon, tip, action, theme)
        head.addWidget(self.extra_button)
        column.addLayout(head)
        self.code = CodeView(theme)
        self.code.setAccessibleName(name)
        self.code.line_clicked.connect(lambda line: self.line_clicked.emit(self.level, line))
        self.code.line_hovered.connect(lambda line: self.line_hovered.emit(self.level, line))
        column.addWidget(self.code, 1)

    @property
    def level(self) -> str:
        """The level in front; "" where there is none."""
        position = self.tabs.currentIndex()
        return self._levels[position] if 0 <= position < len(self._levels) else ""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.code.set_theme(theme)

    def show_kernel(self, lines: KernelLines | None) -> None:
        """Show another kernel; the level in front stays where the kernel has it, also after what has none."""
        self.lines = lines
        levels = lines.levels if lines is not None else []
        self._wanted = self.level or self._wanted
        self.tabs.blockSignals(True)
        while self.tabs.count():
            self.tabs.removeTab(0)
        for level in levels:
            language = lines.kernel.language if lines is not None else ""
            self.tabs.addTab(language.capitalize() if level == SOURCE else level.upper())
        self._levels = levels
        if self._wanted in levels:
            self.tabs.setCurrentIndex(levels.index(self._wanted))
        self.tabs.blockSignals(False)
        self._shown = ("", "")
        self._marked = frozenset()
        self.copy_button.setEnabled(bool(levels))
        self._show_tab(self.tabs.currentIndex())

    def show_level(self, level: str) -> None:
        """Bring ``level`` to the front, where the kernel has it."""
        if level in self._levels:
            self.tabs.setCurrentIndex(self._levels.index(level))

    def mark(self, source_lines: Iterable[int], reveal: bool = True) -> None:
        """Mark what belongs to these lines of the kernel's source."""
        self._marked = frozenset(source_lines)
        if self.lines is not None and self.level:
            self.code.mark_lines(self.lines.partners(self.level, self._marked), reveal)

    def hint(self, source_lines: Iterable[int]) -> None:
        """Mark lightly what belongs to these lines of the kernel's source."""
        if self.lines is not None and self.level:
            self.code.hint_lines(self.lines.partners(self.level, source_lines))

    def _show_tab(self, position: int) -> None:
        lines = self.lines
        if lines is None or position < 0 or self._shown == (lines.kernel.name, self.level):
            return
        self._shown = (lines.kernel.name, self.level)
        self.code.set_code(lines.text(self.level), "python" if self.level == SOURCE else self.level)
        self.mark(self._marked)
        self.level_changed.emit()

    def _copy(self) -> None:
        QApplication.clipboard().setText(self.code.text)
