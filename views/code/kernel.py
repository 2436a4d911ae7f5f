"""A kernel: its generated source and every level below it, two of them side by side on demand, with what the assembler
said. A line of any level is tied to its partners at the others through the line of the source that it came from."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from compiler.report import Kernel
from views.background.turns import in_a_turn
from views.code.kernel_lines import SOURCE, KernelLines
from views.code.level_pane import LevelPane
from views.look import format as fmt
from views.look.theme import Theme
from views.widgets.basic import label, recolor

_SIDE_BY_SIDE = 900  # pixels from which two levels fit beside each other; below, one stands over the other
_PREFERRED_SECOND = ("sass", "amdgcn", "ptx", "llir", "ttgir", "ttir")


class KernelPanel(QWidget):
    """Follows the selection. Lines in its signals are lines of the kernel's source, whichever level was clicked."""

    line_clicked = Signal(str, int)  # kernel, 1-based line
    line_hovered = Signal(str, int)  # kernel, 1-based line, 0 for none
    more_room_wanted = Signal()  # a second level was opened

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: KernelLines | None = None
        self._marked: list[int] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._facts = label("", "muted", wrap=True, selectable=True)
        self._facts.setContentsMargins(14, 6, 14, 2)
        column.addWidget(self._facts)
        self._error = label("", "danger", wrap=True, selectable=True)
        self._error.setContentsMargins(14, 2, 14, 4)
        self._error.setVisible(False)
        column.addWidget(self._error)
        self._notice = label("", "muted", wrap=True)
        self._notice.setContentsMargins(14, 0, 14, 4)
        self._notice.setVisible(False)
        column.addWidget(self._notice)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setChildrenCollapsible(False)
        tip = "Show two levels at once"
        self.first = LevelPane(theme, "Generated source", ("columns", tip, self._toggle_second))
        self.second = LevelPane(theme, "Second level", ("close", "Show one level only", self._toggle_second))
        self.second.setVisible(False)
        for pane in (self.first, self.second):
            self.splitter.addWidget(pane)
            pane.line_clicked.connect(self._clicked)
            pane.line_hovered.connect(self._hovered)
        column.addWidget(self.splitter, 1)
        self.code, self.tabs, self.copy_button = self.first.code, self.first.tabs, self.first.copy_button
        self.show_nothing()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for pane in (self.first, self.second):
            pane.set_theme(theme)
        recolor(self, theme)

    @property
    def kernel(self) -> Kernel | None:
        """What is shown."""
        return self._lines.kernel if self._lines is not None else None

    @property
    def shows_two(self) -> bool:
        """Whether a second level is open, also while there is no kernel and neither is in sight."""
        return not self.second.isHidden()

    @property
    def _panes(self) -> tuple[LevelPane, ...]:
        """Those that show a kernel where there is one."""
        return (self.first, self.second) if self.shows_two else (self.first,)

    def show_nothing(self) -> None:
        """There is no kernel to show."""
        self._lines = None
        for pane in (self.first, self.second):
            pane.show_kernel(None)
        for told in (self._facts, self._error, self._notice):
            told.setVisible(False)

    def show_kernel(self, kernel: Kernel, marked: list[int]) -> None:
        """Show ``kernel`` with what belongs to these lines of its source marked at every level."""
        if kernel is not self.kernel:
            self._lines = KernelLines(kernel)
            self.first.show_kernel(self._lines)
            in_a_turn(self, self._show_in_second)  # two long texts at once would take over a frame
            facts = kernel_facts(kernel)
            self._facts.setText(facts)
            self._facts.setVisible(bool(facts))
            self._error.setText(kernel.error)
            self._error.setVisible(bool(kernel.error))
        self._notice.setVisible(False)
        self._marked = marked
        for pane in self._panes:
            if pane.lines is self._lines:
                pane.mark(marked, reveal=not pane.code.underMouse())

    def _show_in_second(self) -> None:
        if self._lines is not None and self.second.isVisibleTo(self) and self.second.lines is not self._lines:
            self.second.show_kernel(self._lines)
            self.second.mark(self._marked)

    def show_hint(self, kernel: str, lines: frozenset[int]) -> None:
        """Mark lightly what belongs to these lines of the source of ``kernel``."""
        ours = self.kernel is not None and self.kernel.name == kernel
        for pane in (self.first, self.second):
            pane.hint(lines if ours else ())

    def show_two(self, on: bool) -> None:
        """Show a second level, or one only."""
        if on == self.shows_two:
            return
        self.second.setVisible(on)
        if on and self._lines is not None:
            self.second.show_kernel(self._lines)
            others = [level for level in _PREFERRED_SECOND if level in self._lines.levels]
            self.second.show_level(next((level for level in others if level != self.first.level), SOURCE))
            half = max(self.splitter.width(), self.splitter.height()) // 2
            self.splitter.setSizes([half, half])
            self.second.mark(self._marked)
            self.more_room_wanted.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Beside each other where there is room."""
        super().resizeEvent(event)
        wide = self.width() >= _SIDE_BY_SIDE
        self.splitter.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)

    def _toggle_second(self) -> None:
        self.show_two(not self.shows_two)

    def _clicked(self, level: str, line: int) -> None:
        if self._lines is None:
            return
        source = self._lines.source_line(level, line)
        self._notice.setVisible(not source)
        if source:
            self.line_clicked.emit(self._lines.kernel.name, source)
        elif self._lines.kernel.ir_lines.get(level):
            self._notice.setText(f"Line {line} of {level.upper()} comes from no line of the kernel.")
        else:
            self._notice.setText(f"The report does not say where the lines of {level.upper()} come from.")

    def _hovered(self, level: str, line: int) -> None:
        if self._lines is not None:
            self.line_hovered.emit(self._lines.kernel.name, self._lines.source_line(level, line) if line else 0)


def kernel_facts(kernel: Kernel) -> str:
    """What is known of a kernel's launch and resources; where that takes two lines, none ends within a fact."""
    config = dict(kernel.config)
    warps = config.pop("num_warps", None) if kernel.warps is None else kernel.warps
    stages = config.pop("num_stages", None) if kernel.stages is None else kernel.stages
    config = {name: value for name, value in config.items() if name not in ("num_warps", "num_stages")}
    facts = [
        f"grid {' × '.join(map(str, kernel.grid))}" if kernel.grid else "",
        *(f"{name}={value}" for name, value in config.items()),
        fmt.plural(warps, "warp") if warps is not None else "",
        fmt.plural(stages, "stage") if stages is not None else "",
        f"{kernel.registers} registers" if kernel.registers is not None else "",
        f"{kernel.spills:,} B spilled" if kernel.spills is not None else "",
        f"{kernel.shared_bytes:,} B shared" if kernel.shared_bytes is not None else "",
        f"occupancy {kernel.occupancy:.0%}" if kernel.occupancy is not None else "",
        _launches(kernel.launches),
    ]
    return "\u00a0\u00a0·  ".join(fact.replace(" ", "\u00a0") for fact in facts if fact)


def _launches(count: int) -> str:
    if not count:
        return "launches not counted"
    return fmt.plural(count, "launch", "launches") if count > 1 else ""
