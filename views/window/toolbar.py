"""The toolbar: what to compile, with which compiler, for which target; search; theme."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QCheckBox, QComboBox, QCompleter, QLineEdit, QSizePolicy, QToolBar, QWidget

from app.titles import COMPILERS
from compiler.report import Report, Target
from views.look.icons import icon
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.widgets.basic import Choice, icon_button, push_button, recolor
from views.widgets.text_line import TextLine

_TARGET_TIP = "The GPU that code is generated for"
_SUGGESTIONS_WIDTH = 260  # pixels: the longest example is wider than the line in a small window
DEFAULT_TARGET = "h100"  # where there is no GPU and none was chosen before


class Toolbar(QToolBar):
    """Says what the user wants; the window does it."""

    compile_requested = Signal()
    cancel_requested = Signal()
    open_requested = Signal()
    home_requested = Signal()
    theme_requested = Signal()
    filter_requested = Signal()
    search_changed = Signal(str)
    search_next = Signal()

    def __init__(self, theme: Theme, examples: list[str], parent: QWidget | None = None) -> None:
        super().__init__("Main toolbar", parent)
        self.setObjectName("toolbar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self._wanted_target = ""
        self.addWidget(icon_button("home", "Start page, and back (Ctrl+H)", self.home_requested.emit, theme))
        self.addWidget(icon_button("open", "Open (Ctrl+O)", self.open_requested.emit, theme))
        self.source = TextLine()
        self.source.setPlaceholderText("example:gpt2, model.py:function, model.pt2")
        self.source.setAccessibleName("Source to compile")
        self.source.setToolTip("example:NAME, FILE.py[:function], FILE.pt2 or package.module:function (Ctrl+L)")
        self.source.setMinimumWidth(150)
        self.source.setMaximumWidth(460)
        self.source.returnPressed.connect(self.compile_requested)
        completer = QCompleter([f"example:{name}" for name in examples], self.source)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.popup().setProperty("role", "popup")
        fitted(self, lambda: completer.popup().setMinimumWidth(px(_SUGGESTIONS_WIDTH)))
        self.source.setCompleter(completer)
        self.addWidget(self.source)
        self.compiler = Choice("Compiler")
        for key, title in COMPILERS.items():
            self.compiler.addItem(title, key)
        self.addWidget(self.compiler)
        self.target = Choice("Target GPU", _TARGET_TIP)
        self.target.setMinimumContentsLength(17)
        self.target.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.target.addItem("Starting worker…", "")
        self.target.setEnabled(False)
        self.addWidget(self.target)
        self.train = QCheckBox("Train")
        self.train.setAccessibleName("Compile for training, forward and backward")
        self.train.setToolTip("Compile for training: forward and backward")
        self.addWidget(self.train)
        self.compile_button = push_button("Compile", self.compile_requested.emit, "primary", "Compile (F5)")
        self._compile_action = self.addWidget(self.compile_button)
        self.cancel_button = push_button("Cancel", self.cancel_requested.emit, "", "Cancel the compilation (Esc)")
        self._cancel_action = self.addWidget(self.cancel_button)
        for button in (self.compile_button, self.cancel_button):  # one takes the other's place, and nothing moves
            button.setMinimumWidth(max(self.compile_button.sizeHint().width(), self.cancel_button.sizeHint().width()))
        spacer = QWidget()
        spacer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(spacer)
        self.search = TextLine()
        self.search.setPlaceholderText("Search the graph")
        self.search.setAccessibleName("Search the graph")
        self.search.setToolTip("Find nodes by name, op or module; Enter goes to the next match (Ctrl+F)")
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(130)
        self.search.setMaximumWidth(240)
        self._search_icon = QAction(self.search)
        self.search.addAction(self._search_icon, QLineEdit.ActionPosition.LeadingPosition)
        self.search.textChanged.connect(self.search_changed)
        self.search.returnPressed.connect(self.search_next)
        self.addWidget(self.search)
        self._filter = icon_button(
            "filter", "Filter every panel by op, dtype, module, group or time (Ctrl+Shift+F)",
            self.filter_requested.emit, theme,
        )  # fmt: skip
        self.addWidget(self._filter)
        self.addWidget(icon_button("theme", "Light or dark", self.theme_requested.emit, theme))
        self.setIconSize(QSize(18, 18))
        self.set_compiling(False)
        self.set_searchable(False)
        self._search_icon.setIcon(icon("search", theme.muted))

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        recolor(self, theme)
        self._search_icon.setIcon(icon("search", theme.muted))

    def set_targets(self, local: Target | None, named: list[Target]) -> None:
        """What can be compiled for: the GPU of this machine first."""
        wanted = str(self.target.currentData() or self._wanted_target)
        self.target.clear()
        if local is not None:
            self.target.addItem(f"{local.title} (this machine)", "local")
        for target in named:
            self.target.addItem(target.title, target.name)
            self.target.setItemData(self.target.count() - 1, target.source, Qt.ItemDataRole.ToolTipRole)
        self.target.setEnabled(True)
        self.choose_target(wanted or ("local" if local is not None else DEFAULT_TARGET))

    def set_no_targets(self, text: str) -> None:
        """Nothing can be compiled here; say why in the box."""
        self.target.clear()
        self.target.addItem(text, "")
        self.target.setEnabled(False)

    def show_report(self, report: Report) -> None:
        """What a report was made of, so that Compile makes it again."""
        self.show_source(report.source)
        self.train.setChecked(report.training)
        self.compiler.setCurrentIndex(max(self.compiler.findData(report.compiler), 0))
        self.show_target(report.target)

    def show_source(self, source: str) -> None:
        """Another source, from its beginning where it is longer than the line."""
        self.source.setText(source)
        self.source.setCursorPosition(0)

    def show_target(self, target: Target) -> None:
        """A report's target, while no worker has said what can be compiled for."""
        if not self.target.isEnabled():
            self.target.setItemText(0, target.title)
        self.choose_target("local" if target.local else target.name)

    def choose_target(self, name: str) -> None:
        """Choose a target by name, now or when the targets are known."""
        self._wanted_target = name
        position = self.target.findData(name)
        if position >= 0:
            self.target.setCurrentIndex(position)

    def set_compiling(self, on: bool) -> None:
        """Offer Cancel instead of Compile while compiling."""
        self._compile_action.setVisible(not on)
        self._cancel_action.setVisible(on)
        self.layout().activate()  # so that the one that is offered can have the keyboard

    def set_searchable(self, on: bool) -> None:
        """There is a graph to search."""
        self.search.setEnabled(on)
        self._filter.setEnabled(on)
