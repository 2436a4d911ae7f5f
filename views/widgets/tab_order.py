"""The order in which Tab goes from widget to widget: as they are read, whenever they were made."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def tab_stops(widget: QWidget) -> list[QWidget]:
    """Where Tab stops in a widget, itself first, in the order in which they were put into it."""
    within = [one for one in (widget, *widget.findChildren(QWidget)) if one.window() is widget.window()]  # no pop-ups
    return [one for one in within if one.focusPolicy() & Qt.FocusPolicy.TabFocus]


def follow(first: QWidget, others: Iterable[QWidget]) -> None:
    """Let Tab go from ``first`` through ``others`` in their order, and from there on as before."""
    for other in others:
        QWidget.setTabOrder(first, other)
        first = other
