"""Another stylesheet for the application: what is in sight has it at once, all else a part in each turn.

Qt alone restyles every widget as often as there are widgets around it, all in one go: a third of a second.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from views.background.turns import in_a_turn

_STYLED = Qt.WidgetAttribute.WA_WState_Polished  # once it has been shown, or was prepared for that
_IN_A_TURN = 100  # widgets that are restyled in a few milliseconds


def restyle(app: QApplication, sheet: str) -> None:
    """Use ``sheet`` from now on."""
    if sheet == app.styleSheet():
        return
    hidden = [widget for widget in app.allWidgets() if widget.testAttribute(_STYLED) and not widget.isVisible()]
    for widget in hidden:
        # as if it had never been shown, and as if its style were its own: Qt passes over both
        widget.setAttribute(_STYLED, False)
        widget.setAttribute(Qt.WidgetAttribute.WA_SetStyle, True)
    app.setStyleSheet("")  # a first one goes from widget to widget; one in place of another goes down from each
    app.setStyleSheet(sheet)
    for widget in hidden:
        widget.setAttribute(Qt.WidgetAttribute.WA_SetStyle, False)
    for start in range(0, len(hidden), _IN_A_TURN):
        in_a_turn(app, partial(_polish, hidden[start : start + _IN_A_TURN]))


def arrange_again(app: QApplication) -> None:
    """Let every widget arrange what is in it as for another size, in turns: its texts have become larger or smaller."""
    widgets = app.allWidgets()
    for start in range(0, len(widgets), _IN_A_TURN):
        in_a_turn(app, partial(_arrange, widgets[start : start + _IN_A_TURN]))


def _arrange(widgets: list[QWidget]) -> None:
    for widget in widgets:
        if isValid(widget):
            QCoreApplication.sendEvent(widget, QResizeEvent(widget.size(), widget.size()))


def _polish(widgets: list[QWidget]) -> None:
    for widget in widgets:
        if isValid(widget):
            for kind in (QEvent.Type.Polish, QEvent.Type.StyleChange):
                QCoreApplication.sendEvent(widget, QEvent(kind))
