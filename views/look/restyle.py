"""Another stylesheet for the application, a few widgets in each turn: what is in sight first, and painted then.

Qt alone restyles every widget as often as there are widgets around it, all in one go: a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from shiboken6 import isValid

from views.background.turns import in_a_turn

_STYLED = Qt.WidgetAttribute.WA_WState_Polished  # once it has been shown, or was prepared for that
_IN_A_TURN = 60  # widgets that are restyled in a few milliseconds
_IN_SIGHT = 24  # of those that are in sight, which are arranged anew then


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
    _hold_layouts(windows, on=True)
    for part, inside in _parts(windows, styled):
        # a window that is held itself would be painted at the end only, for Qt takes it for due all along
        part.setUpdatesEnabled(part.isWindow())
        for start in range(0, len(inside), _IN_SIGHT):
            in_a_turn(app, partial(_each, inside[start : start + _IN_SIGHT], _polish))
        in_a_turn(part, partial(part.setUpdatesEnabled, True))
    hidden = [widget for widget in styled if not widget.isVisible()]
    for start in range(0, len(hidden), _IN_A_TURN):
        in_a_turn(app, partial(_each, hidden[start : start + _IN_A_TURN], _polish))
    if windows:
        in_a_turn(app, partial(_hold_layouts, windows, on=False))


def arrange_again(app: QApplication) -> None:
    """Let every widget arrange what is in it as for another size, in turns: its texts have become larger or smaller."""
    widgets = app.allWidgets()
    for start in range(0, len(widgets), _IN_A_TURN):
        in_a_turn(app, partial(_each, widgets[start : start + _IN_A_TURN], _arrange))


def _parts(windows: Sequence[QWidget], styled: Sequence[QWidget]) -> Iterator[tuple[QWidget, list[QWidget]]]:
    """What stands side by side in windows, each with the widgets in sight inside it, itself among them."""
    inside: dict[QWidget, list[QWidget]] = {}
    for widget in styled:
        if widget.isVisible():
            part = widget
            while not part.isWindow() and not (above := part.parentWidget()).isWindow():
                part = above
            inside.setdefault(part, []).append(widget)
    for window in windows:  # first, for the parts are on it
        if window in inside:
            yield window, inside.pop(window)
    yield from inside.items()


def _hold_layouts(windows: Sequence[QWidget], *, on: bool) -> None:
    """Docks stay as large as they are while what is in them asks for room that it will not need."""
    for window in windows:
        if isValid(window) and isinstance(window, QMainWindow):
            layout = window.layout()
            layout.setEnabled(not on)
            layout.activate()


def _each(widgets: Sequence[QWidget], call: Callable[[QWidget], None]) -> None:
    for widget in widgets:
        if isValid(widget):
            call(widget)


def _arrange(widget: QWidget) -> None:
    QCoreApplication.sendEvent(widget, QResizeEvent(widget.size(), widget.size()))


def _polish(widget: QWidget) -> None:
    for kind in (QEvent.Type.Polish, QEvent.Type.StyleChange):
        QCoreApplication.sendEvent(widget, QEvent(kind))
