"""A kernel: its generated source and every IR of it, with what the assembler said and a copy button."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QApplication, QHBoxLayout, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from compiler.report import Kernel
from views.code_view import CodeView
from views.theme import Theme
from views.widgets import icon_button, label

_ORDER = ("ttir", "ttgir", "llir", "ptx", "sass")


class KernelPanel(QWidget):
    """Tabs Triton / TTIR / TTGIR / LLIR / PTX / SASS, as far as the kernel has them."""

    line_clicked = Signal(str, int)  # kernel, 1-based line of the Triton source

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kernel: Kernel | None = None
        self._tab_keys: list[str] = []
        self._shown = ("", "")
        self._marked: list[int] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        head = QHBoxLayout()
        head.setContentsMargins(4, 2, 8, 0)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName("Kernel texts")
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.currentChanged.connect(self._show_tab)
        head.addWidget(self.tabs)
        head.addStretch()
        self.copy_button = icon_button("copy", "Copy the shown text", self._copy, theme)
        head.addWidget(self.copy_button)
        column.addLayout(head)
        self._facts = label("", "muted", wrap=True, selectable=True)
        self._facts.setContentsMargins(14, 6, 14, 6)
        column.addWidget(self._facts)
        self._stack = QStackedWidget()
        self.code = CodeView(theme)
        self.code.setAccessibleName("Generated source")
        self.code.line_clicked.connect(self._clicked)
        self._empty = label("", "muted", wrap=True)
        self._empty.setContentsMargins(14, 8, 14, 8)
        self._stack.addWidget(self.code)
        self._stack.addWidget(_top(self._empty))
        column.addWidget(self._stack, 1)
        self.show_nothing("")

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.code.set_theme(theme)

    @property
    def kernel(self) -> Kernel | None:
        """What is shown."""
        return self._kernel

    def show_nothing(self, reason: str) -> None:
        """Say why there is no kernel to show."""
        self._kernel = None
        self._set_tabs([])
        self._facts.setText("")
        self._facts.setVisible(False)
        self._empty.setText(reason)
        self._stack.setCurrentIndex(1)
        self.copy_button.setEnabled(False)

    def show_kernel(self, kernel: Kernel, marked: list[int]) -> None:
        """Show ``kernel`` with lines of its source marked; the tab in use stays where the kernel has it."""
        if kernel is not self._kernel:
            self._kernel = kernel
            known = [key for key in _ORDER if key in kernel.irs]
            self._set_tabs(["source", *known, *(key for key in kernel.irs if key not in _ORDER)])
            facts = kernel_facts(kernel)
            self._facts.setText(facts)
            self._facts.setVisible(bool(facts))
            self._stack.setCurrentIndex(0)
            self.copy_button.setEnabled(True)
            self._show_tab(self.tabs.currentIndex())
        self._marked = marked
        if self._shown[1] == "source":
            self.code.mark_lines(marked)

    def _set_tabs(self, keys: list[str]) -> None:
        kept = self._tab_keys[self.tabs.currentIndex()] if self.tabs.currentIndex() >= 0 else "source"
        self.tabs.blockSignals(True)
        while self.tabs.count():
            self.tabs.removeTab(0)
        for key in keys:
            language = self._kernel.language if self._kernel else ""
            self.tabs.addTab(language.capitalize() if key == "source" else key.upper())
        self._tab_keys = keys
        if kept in keys:
            self.tabs.setCurrentIndex(keys.index(kept))
        self.tabs.blockSignals(False)
        self._shown = ("", "")
        self._marked = []

    def _show_tab(self, position: int) -> None:
        kernel = self._kernel
        if kernel is None or position < 0:
            return
        key = self._tab_keys[position]
        if self._shown == (kernel.name, key):
            return
        self._shown = (kernel.name, key)
        if key == "source":
            self.code.set_code(kernel.source, "python")
            self.code.mark_lines(self._marked)
        else:
            self.code.set_code(kernel.irs[key], key)

    def _clicked(self, line: int) -> None:
        if self._kernel is not None and self._shown[1] == "source":
            self.line_clicked.emit(self._kernel.name, line)

    def _copy(self) -> None:
        QApplication.clipboard().setText(self.code.toPlainText())


def kernel_facts(kernel: Kernel) -> str:
    """One line of what is known of a kernel's launch and resources."""
    config = dict(kernel.config)
    warps = config.pop("num_warps", None)
    facts = [
        f"grid {' × '.join(map(str, kernel.grid))}" if kernel.grid else "",
        f"{warps} {'warp' if warps == 1 else 'warps'}" if warps is not None else "",
        f"{kernel.registers} registers" if kernel.registers is not None else "",
        f"{kernel.spills} spills" if kernel.spills is not None else "",
        f"{kernel.shared_bytes:,} B shared" if kernel.shared_bytes is not None else "",
        f"{kernel.launches} launches" if kernel.launches != 1 else "",
        *(f"{name}={value}" for name, value in config.items()),
    ]
    text = "  ·  ".join(fact for fact in facts if fact)
    return f"{text}\n{kernel.error}".strip() if kernel.error else text


def _top(widget: QWidget) -> QWidget:
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(widget)
    column.addStretch()
    return holder
