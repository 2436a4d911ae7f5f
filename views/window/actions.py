"""Every action with its shortcut, and the menus made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

KEYS = tuple("1234567890-=")  # with Alt, the number row from left to right
_REPORT_ACTIONS = (
    "what_if", "check_numerics", "compare_file", "compare_before", "compare_compilers",
    "save", "save_as", "export", "run", "replay", "find", "find_next", "fit", "zoom_in", "zoom_out",
    "focus_units", "focus_graph", "focus_inspector", "focus_panels", "next_panel", "panel_before",
    "pin", "add_filter", "clear_filters",
)
THEMES = {"system": "Like the system", "light": "Light", "dark": "Dark"}


@dataclass(frozen=True)
class Commands:
    """What the menus call."""

    open: Callable[[], object]
    import_trace: Callable[[], object]
    save: Callable[[], object]
    save_as: Callable[[], object]
    export: Callable[[], object]
    next_report: Callable[[], object]
    close_report: Callable[[], object]
    start_page: Callable[[], object]
    compile: Callable[[], object]
    cancel: Callable[[], object]
    what_if: Callable[[], object]
    check_numerics: Callable[[], object]
    compare_file: Callable[[], object]
    compare_before: Callable[[], object]
    compare_compilers: Callable[[], object]
    run: Callable[[], object]
    replay: Callable[[], object]
    find: Callable[[], object]
    find_next: Callable[[], object]
    find_anything: Callable[[], object]
    source: Callable[[], object]
    fit: Callable[[], object]
    zoom_in: Callable[[], object]
    zoom_out: Callable[[], object]
    undo_view: Callable[[], object]
    redo_view: Callable[[], object]
    back: Callable[[], object]
    forward: Callable[[], object]
    focus_units: Callable[[], object]
    focus_graph: Callable[[], object]
    focus_inspector: Callable[[], object]
    focus_panels: Callable[[], object]
    step_panel: Callable[[int], object]
    pin: Callable[[], object]
    add_filter: Callable[[], object]
    clear_filters: Callable[[], object]
    set_theme: Callable[[str], object]
    about: Callable[[], object]
    tour: Callable[[], object]
    shortcuts: Callable[[], object]


@dataclass
class Actions:
    """The actions that the window enables and disables, and the menus that it fills."""

    recent: QMenu
    docks: QMenu
    panels: QMenu
    layouts: QMenu
    themes: dict[str, QAction]
    by_name: dict[str, QAction] = field(default_factory=dict)

    def enable(self, names: tuple[str, ...], on: bool) -> None:
        """Enable or disable these actions."""
        for name in names:
            self.by_name[name].setEnabled(on)

    def enable_report(self, on: bool) -> None:
        """Enable or disable what needs a report on screen."""
        self.enable((*_REPORT_ACTIONS, *(name for name in self.by_name if name.startswith("panel_"))), on)

    def add_panels(self, titles: list[str], show: Callable[[int], object]) -> list[QAction]:
        """An action for each panel, with Alt and a key of the number row; ``show`` is given the panel's place."""
        made = []
        for place, title in enumerate(titles):
            action = self.panels.addAction(f"Show {title}")
            if place < len(KEYS):
                action.setShortcut(QKeySequence(f"Alt+{KEYS[place]}"))
            action.triggered.connect(lambda _=False, place=place: show(place))
            self.by_name[panel_action(place)] = action
            made.append(action)
        return made

    def shortcuts(self) -> dict[str, list[tuple[str, str]]]:
        """(keys, what they do) of every action that has a shortcut, by the title of its menu."""
        native = QKeySequence.SequenceFormat.NativeText
        found: dict[str, list[tuple[str, str]]] = {}
        for name, action in self.by_name.items():
            if not action.shortcut().isEmpty():
                menu = next(one for one in action.associatedObjects() if isinstance(one, QMenu))
                keys = action.shortcut().toString(native)
                found.setdefault(menu.title().replace("&", ""), []).append((keys, self.title(name)))
        return found

    def title(self, name: str) -> str:
        """What an action is called where its menu is not beside it: "With a session" alone would say nothing."""
        text = self.by_name[name].text().replace("&", "").rstrip("…")
        return f"Compare {text[0].lower()}{text[1:]}" if name.startswith("compare_") else text


def panel_action(place: int) -> str:
    """The name of the action that shows the panel at ``place``."""
    return f"panel_{place}"


def build_menus(window: QMainWindow, commands: Commands) -> Actions:
    """Make the menu bar of ``window``."""
    bar = window.menuBar()
    made: dict[str, QAction] = {}

    def add(menu: QMenu, name: str, text: str, keys: str, call: Callable[[], object]) -> None:
        action = menu.addAction(text)
        if keys:
            action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda: call())
        made[name] = action

    file = bar.addMenu("&File")
    add(file, "open", "&Open…", "Ctrl+O", commands.open)
    add(file, "import_trace", "&Import trace…", "", commands.import_trace)
    recent = file.addMenu("Open &recent")
    file.addSeparator()
    add(file, "save", "&Save", "Ctrl+S", commands.save)
    add(file, "save_as", "Save &as…", "Ctrl+Shift+S", commands.save_as)
    add(file, "export", "&Export the graph…", "Ctrl+E", commands.export)
    add(file, "close_report", "&Close the report", "Ctrl+W", commands.close_report)
    file.addSeparator()
    add(file, "start_page", "Start &page, and back", "Ctrl+H", commands.start_page)
    add(file, "quit", "&Quit", "Ctrl+Q", window.close)

    build = bar.addMenu("&Compile")
    add(build, "compile", "&Compile", "F5", commands.compile)
    add(build, "cancel", "Cancel", "Esc", commands.cancel)
    add(build, "source", "Edit the so&urce", "Ctrl+L", commands.source)
    build.addSeparator()
    add(build, "run", "&Run, or stop", "F6", commands.run)
    add(build, "replay", "CUDA &Graph replay on or off", "F7", commands.replay)

    build.addSeparator()
    add(build, "what_if", "&What if…", "Ctrl+Shift+O", commands.what_if)
    add(build, "check_numerics", "Check &numbers against float64", "F8", commands.check_numerics)

    against = bar.addMenu("C&ompare")
    add(against, "compare_file", "With a &session…", "Ctrl+D", commands.compare_file)
    add(against, "compare_before", "With the report &before", "Ctrl+Shift+D", commands.compare_before)
    add(against, "compare_compilers", "With the other &compiler", "Ctrl+Alt+D", commands.compare_compilers)

    view = bar.addMenu("&View")
    add(view, "next_report", "Next open report", "Ctrl+PgDown", commands.next_report)
    add(view, "find_anything", "Find &anything", "Ctrl+K", commands.find_anything)
    add(view, "find", "&Find in the graph", "Ctrl+F", commands.find)
    add(view, "find_next", "Next match", "F3", commands.find_next)
    view.addSeparator()
    add(view, "fit", "Fi&t the graph", "Ctrl+0", commands.fit)
    add(view, "zoom_in", "Zoom &in", "Ctrl+=", commands.zoom_in)
    add(view, "zoom_out", "Zoom &out", "Ctrl+-", commands.zoom_out)
    add(view, "undo_view", "&Undo view", "Ctrl+Z", commands.undo_view)
    add(view, "redo_view", "&Redo view", "Ctrl+Shift+Z", commands.redo_view)
    view.addSeparator()
    add(view, "add_filter", "Fi&lter every panel…", "Ctrl+Shift+F", commands.add_filter)
    add(view, "clear_filters", "Show everything again", "Ctrl+Shift+X", commands.clear_filters)
    view.addSeparator()
    add(view, "pin", "&Pin the selection, or let it go", "P", commands.pin)
    add(view, "back", "Selection &back", "Alt+Left", commands.back)
    add(view, "forward", "Selection for&ward", "Alt+Right", commands.forward)
    view.addSeparator()
    add(view, "focus_units", "Go to groups and extern calls", "Ctrl+1", commands.focus_units)
    add(view, "focus_graph", "Go to the graph", "Ctrl+2", commands.focus_graph)
    add(view, "focus_inspector", "Go to the inspector", "Ctrl+3", commands.focus_inspector)
    add(view, "focus_panels", "Go to the panels", "Ctrl+4", commands.focus_panels)
    add(view, "next_panel", "Next panel", "Alt+PgDown", lambda: commands.step_panel(1))
    add(view, "panel_before", "Panel before", "Alt+PgUp", lambda: commands.step_panel(-1))
    view.addSeparator()
    panels = view.addMenu("&Panels")
    docks = view.addMenu("&Docks")
    layouts = view.addMenu("&Layouts")
    themes = _theme_menu(view.addMenu("T&heme"), commands.set_theme)

    help_menu = bar.addMenu("&Help")
    add(help_menu, "tour", "&Tour of the window", "", commands.tour)
    add(help_menu, "shortcuts", "&Shortcuts", "F1", commands.shortcuts)
    add(help_menu, "about", "&About Fusescope", "", commands.about)
    return Actions(recent, docks, panels, layouts, themes, made)


def _theme_menu(menu: QMenu, set_theme: Callable[[str], object]) -> dict[str, QAction]:
    group = QActionGroup(menu)
    made = {}
    for name, text in THEMES.items():
        action = menu.addAction(text)
        action.setCheckable(True)
        action.triggered.connect(lambda _=False, name=name: set_theme(name))
        group.addAction(action)
        made[name] = action
    return made
