"""Another stylesheet for the application, a few widgets in each turn: what is in sight first, and painted then.

Qt alone restyles every widget as often as there are widgets around it, all in one go: a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from shiboken6 import isValid

from views.background.turns import in_a_turn

_STYLED = Qt.WidgetAttribute.WA_WState_Polished  # once it has been shown, or was prepared for that
_IN_A_TURN = 60  # widgets that are restyled in a few milliseconds
_IN_SIGHT = 24  # of those that are in sight, which are arranged anew then
_NESTED = 12  # widgets around each other


def restyle(app: QApplication, sheet: str) -> None:
    """Use ``sheet`` from now on."""
    if sheet == app.styleSheet():
        return
    styled = [widget for widget in app.allWidgets() if widget.testAttribute(_STYLED)]
    for widget in styled:
        # as if it had never been shown, and as if its style were its own: Qt passes over both
        widget.setAttribute(_STYLED, False)
        # as if no sheet knew it: else the new one would not learn of its end, and take what comes to its place for it
        widget.setAttribute(Qt.WidgetAttribute.WA_StyleSheet, False)
        widget.setAttribute(Qt.WidgetAttribute.WA_SetStyle, True)
    app.setStyleSheet("")  # a first one goes from widget to widget; one in place of another goes down from each
    app.setStyleSheet(sheet)
    for widget in styled:
        widget.setAttribute(Qt.WidgetAttribute.WA_SetStyle, False)
    windows = [window for window in app.topLevelWidgets() if window.isVisible()]
    _hold_layouts(windows)
    for window in windows:
        _polish(window)  # it would arrange its docks then, by what the widgets in them ask for on the way
    for part, inside in _parts(styled).items():
        part.setUpdatesEnabled(False)
        for start in range(0, len(inside), _IN_SIGHT):
            in_a_turn(app, partial(_each, inside[start : start + _IN_SIGHT], _polish))
        in_a_turn(part, partial(part.setUpdatesEnabled, True))
    hidden = [widget for widget in styled if not widget.isVisible()]
    for start in range(0, len(hidden), _IN_A_TURN):
        in_a_turn(app, partial(_each, hidden[start : start + _IN_A_TURN], _polish))
    if windows:
        in_a_turn(app, partial(_release_layouts, app, windows))


def arrange_again(app: QApplication) -> None:
    """Let every widget arrange what is in it as for another size, in turns: its texts have become larger or smaller."""
    widgets = app.allWidgets()
    for start in range(0, len(widgets), _IN_A_TURN):
        in_a_turn(app, partial(_each, widgets[start : start + _IN_A_TURN], _arrange))


def _parts(styled: Iterable[QWidget]) -> dict[QWidget, list[QWidget]]:
    """What stands side by side in windows, each with the widgets in sight inside it, itself among them."""
    found: dict[QWidget, list[QWidget]] = {}
    for widget in styled:
        if widget.isVisible() and not widget.isWindow():
            part = widget
            while not (above := part.parentWidget()).isWindow():
                part = above
            found.setdefault(part, []).append(widget)
    return found


def _hold_layouts(windows: Iterable[QWidget]) -> None:
    """Docks stay as large as they are while what is in them asks for room that it will not need."""
    for window in windows:
        if isinstance(window, QMainWindow):
            window.layout().setEnabled(False)


def _release_layouts(app: QApplication, windows: Sequence[QWidget], turns: int = _NESTED) -> None:
    """Let docks be arranged again, once what was asked for last has reached the window: a widget more in each turn."""
    if turns:
        in_a_turn(app, partial(_release_layouts, app, windows, turns - 1))
        return
    for window in windows:
        if isValid(window) and isinstance(window, QMainWindow):
            window.layout().setEnabled(True)
            window.layout().activate()


def _each(widgets: Sequence[QWidget], call: Callable[[QWidget], None]) -> None:
    for widget in widgets:
        if isValid(widget):
            call(widget)


def _arrange(widget: QWidget) -> None:
    QCoreApplication.sendEvent(widget, QResizeEvent(widget.size(), widget.size()))


def _polish(widget: QWidget) -> None:
    for kind in (QEvent.Type.Polish, QEvent.Type.StyleChange):
        QCoreApplication.sendEvent(widget, QEvent(kind))
