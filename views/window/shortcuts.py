"""The list of shortcuts: those of the menus, then the keys of the graph, of code and of plots, in three columns."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFrame, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from views.look.sizes import px
from views.widgets.basic import as_panel, label
from views.window.dialogs import close_button

Rows = Sequence[tuple[str, str]]  # keys, what they do

_FIRST = ("File", "Compile", "Compare")  # the menus of the first column
_WIDTH, _HEIGHT = 1120, 740
_KEYS_WIDTH = 118
# What differs between platforms comes from Qt's standard keys (views/code/keys.py); here it is told in words.
CODE_KEYS = [
    ("Arrows", "Move the caret; with Shift select, with Ctrl go by words or scroll"),
    ("Home, End", "The line's ends; with Ctrl the text's"),
    ("Enter", "Select what the line belongs to"),
    ("Ctrl+A, Ctrl+C", "Select all, copy"),
    ("Ctrl+F", "Find; F3 goes on, with Shift back"),
    ("Ctrl+G", "Go to a line"),
    ("Ctrl+=, Ctrl+-, Ctrl+0", "Larger, smaller, as at first"),
]
_PLOT_KEYS = [
    ("Left, Right", "Along the time, or from node to node"),
    ("+, -", "Zoom"),
    ("Home, F", "All of it"),
]


def shortcuts_dialog(parent: QWidget, menus: dict[str, Rows]) -> QDialog:
    """Every shortcut and what it does; ``menus`` has those of each menu by its title."""
    dialog = QDialog(parent)
    dialog.setWindowTitle("Shortcuts")
    column = QVBoxLayout(dialog)
    column.setContentsMargins(0, 0, 0, 12)
    column.setSpacing(12)
    page = QWidget()
    as_panel(page)
    row = QHBoxLayout(page)
    row.setContentsMargins(24, 18, 24, 18)
    row.setSpacing(28)
    for part in _in_columns(menus):
        row.addLayout(_column(part), 1)
    scroll = QScrollArea()
    scroll.setAccessibleName("Shortcuts")
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidgetResizable(True)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(page)
    column.addWidget(scroll, 1)
    feet = QHBoxLayout()
    feet.setContentsMargins(24, 0, 24, 0)
    feet.addWidget(close_button(dialog))
    column.addLayout(feet)
    room = parent.size()
    dialog.resize(min(px(_WIDTH), room.width() - 40), min(px(_HEIGHT), room.height() - 60))
    return dialog


def _in_columns(menus: dict[str, Rows]) -> list[dict[str, Rows]]:
    """Sections by title, in columns about as tall as each other."""
    from views.canvas.canvas import KEYS  # at the first question: the window opens without the graph

    rest = {title: rows for title, rows in menus.items() if title not in _FIRST and title != "Panels"}
    first = {title: menus[title] for title in _FIRST if title in menus}
    if panels := menus.get("Panels"):
        names = ", ".join(text.removeprefix("Show ") for _, text in panels)
        first["Panels"] = [(f"{panels[0][0]} … {panels[-1][0]}", names)]
    second = {**rest, "In timelines and the topology": _PLOT_KEYS}
    return [first, second, {"In the graph": KEYS, "In code": CODE_KEYS}]


def _column(sections: dict[str, Rows]) -> QVBoxLayout:
    made = QVBoxLayout()
    made.setSpacing(6)
    for title, rows in sections.items():
        if made.count():
            made.addSpacing(10)
        made.addWidget(label(title, "strong"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        grid.setColumnMinimumWidth(0, px(_KEYS_WIDTH))
        grid.setColumnStretch(1, 1)
        for place, (keys, text) in enumerate(rows):
            grid.addLayout(_keys(keys), place, 0, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
            grid.addWidget(label(text, wrap=True, selectable=True), place, 1, Qt.AlignmentFlag.AlignTop)
        made.addLayout(grid)
    made.addStretch()
    return made


def _keys(keys: str) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(4)
    for one in keys.split(", "):
        row.addWidget(label(one, "key"))
    return row
