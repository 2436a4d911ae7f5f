"""The docks around the graph: made once, hidden on the start page, put back as the user left them."""

from __future__ import annotations

from functools import partial

import msgspec
from PySide6.QtCore import QByteArray, QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QWidget

from views.background.turns import Turns
from views.look.sizes import px
from views.look.theme import Theme
from views.widgets.basic import DockTitle, icon_button, recolor
from views.widgets.rail import RailStack

STATE_VERSION = 1
_GRAPH = 470  # pixels in which nothing of the bar over the graph is cut
_BETWEEN = 6  # pixels between docks, as in the stylesheet
_AREAS = Qt.DockWidgetArea


class Arrangement(msgspec.Struct):
    """Where the docks are, in Qt's own bytes, and sizes in pixels (width, height) of the window and of each dock.

    Qt would put the sizes back as they are, whatever the window has become meanwhile.
    """

    state: bytes
    window: tuple[int, int]
    docks: dict[str, tuple[int, int]]


class _Apart(QObject):
    """Keeps the panels from reaching over the inspector: what a window lacks Qt takes from the graph alone."""

    def __init__(self, window: QMainWindow, inspector: QDockWidget, panels: QDockWidget) -> None:
        super().__init__(window)
        self._window, self._inspector, self._panels = window, inspector, panels
        self._is_due = False
        for dock in (inspector, panels):
            dock.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Either has another size: look once, when both have."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and not self._is_due:
            self._is_due = True
            QTimer.singleShot(0, self, self._look)
        return super().eventFilter(watched, event)

    def _look(self) -> None:
        self._is_due = False
        inspector, panels = self._inspector, self._panels
        if inspector.isFloating() or panels.isFloating() or not (inspector.isVisible() and panels.isVisible()):
            return
        both = inspector.geometry().intersected(panels.geometry())
        least = inspector.minimumSizeHint().width()
        if not both.isEmpty() and inspector.width() > least:
            wanted = max(inspector.width() - both.width() - _BETWEEN, least)
            self._window.resizeDocks([inspector], [wanted], Qt.Orientation.Horizontal)


class Docks:
    """Left: groups and extern calls. Right: inspector, the full height. Bottom: panels."""

    def __init__(
        self, window: QMainWindow, units: QWidget, inspector: QWidget, panels: RailStack, theme: Theme
    ) -> None:
        self._window = window
        self._state = b""
        self._areas: dict[QDockWidget, Qt.DockWidgetArea] = {}
        self._shown = True
        self.units = self._dock("dock-units", "Groups and extern calls", units, _AREAS.LeftDockWidgetArea, theme)
        self.inspector = self._dock("dock-inspector", "Inspector", inspector, _AREAS.RightDockWidgetArea, theme)
        self.panels = self._dock("dock-panels", "Panels", panels, _AREAS.BottomDockWidgetArea, theme)
        self.panels.setTitleBarWidget(QWidget())  # its rail is title enough
        corner = QWidget()
        row = QHBoxLayout(corner)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self.enlarge = icon_button("expand", "Enlarge the panels, or make them as they were", self.toggle_large, theme)
        self.enlarge.setIconSize(QSize(14, 14))
        row.addWidget(self.enlarge)
        hide = icon_button("close", "Hide the panels", self.panels.close, theme)
        hide.setIconSize(QSize(14, 14))
        row.addWidget(hide)
        panels.rail.set_corner(corner)
        self._small_height = 0
        _Apart(window, self.inspector, self.panels)
        window.setCorner(Qt.Corner.BottomRightCorner, _AREAS.RightDockWidgetArea)
        window.setCorner(Qt.Corner.BottomLeftCorner, _AREAS.BottomDockWidgetArea)
        window.setDockOptions(
            QMainWindow.DockOption.AnimatedDocks
            | QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AllowTabbedDocks
        )

    @property
    def all(self) -> tuple[QDockWidget, ...]:
        """Every dock."""
        return self.units, self.inspector, self.panels

    def set_theme(self, theme: Theme) -> None:
        """Other colours in the titles."""
        for dock in self.all:
            recolor(dock, theme)

    def restore(self, state: bytes) -> None:
        """Take the arrangement of an earlier start; what cannot be read is ignored."""
        self._state = state

    def show(self, on: bool) -> None:
        """Show the docks as they were last, or hide all of them."""
        if on == self._shown:
            return
        self._shown = on
        if not on:
            self._state = self._now()
            for dock in self.all:
                dock.hide()
            return
        parts = (self._window.centralWidget(), *self.all)
        for part in parts:
            part.setUpdatesEnabled(False)
        self._put_back()
        # each is painted in a turn of its own: the graph and all docks at once would take over a frame
        Turns((partial(part.setUpdatesEnabled, True) for part in parts), self._window).start()

    def state(self) -> bytes:
        """The arrangement to remember."""
        return self._now() if self._shown else self._state

    def apply(self, state: bytes) -> None:
        """Arrange everything as ``state`` says, now or when a report is shown."""
        self._state = state
        if self._shown:
            self._put_back()

    def reset(self) -> None:
        """Every dock at its first place and size, now or when a report is shown."""
        if not self._shown:
            self._state = b""
            return
        layout = self._window.layout()
        layout.setEnabled(False)  # else the window arranges everything after each of them
        for dock, area in self._areas.items():
            dock.setFloating(False)
            self._window.addDockWidget(area, dock)
            dock.show()
        layout.setEnabled(True)
        self.default_sizes()

    def toggle_large(self) -> None:
        """Give the panels most of the window's height, or what they had before."""
        large = self._window.height() * 68 // 100
        if self.panels.height() < large * 9 // 10:
            self._small_height = self.panels.height()
            wanted = large
        else:
            wanted = self._small_height or self._window.height() * 35 // 100
        self._window.resizeDocks([self.panels], [wanted], Qt.Orientation.Vertical)

    def default_sizes(self) -> None:
        """Shares of the window that suit most screens."""
        width, height = self._window.width(), self._window.height()
        sides = [self.units, self.inspector]
        beside = width - self.panels.minimumSizeHint().width() - _BETWEEN  # the panels must not reach under it
        inspector = min(max(380, min(640, width * 33 // 100)), max(beside, self.inspector.minimumSizeHint().width()))
        units = max(300, min(520, width * 30 // 100 - 64))
        graph = max(self._window.centralWidget().minimumSizeHint().width(), px(_GRAPH)) + 2 * _BETWEEN
        beyond = max(units + graph + inspector - width, 0)  # what Qt would push out of the window
        units = max(units - (beyond + 1) // 2, self.units.minimumSizeHint().width())
        inspector = min(inspector, max(width - graph - units, self.inspector.minimumSizeHint().width()))
        self._window.resizeDocks(sides, [units, inspector], Qt.Orientation.Horizontal)
        self._window.resizeDocks([self.panels], [max(250, height * 36 // 100 + 6)], Qt.Orientation.Vertical)

    def _now(self) -> bytes:
        sizes = {dock.objectName(): (dock.width(), dock.height()) for dock in self._areas}
        state = bytes(self._window.saveState(STATE_VERSION).data())
        return msgspec.msgpack.encode(Arrangement(state, (self._window.width(), self._window.height()), sizes))

    def _put_back(self) -> None:
        """Everything where it was, with the share of the window that it had."""
        now = (self._window.width(), self._window.height())
        try:
            known = msgspec.msgpack.decode(self._state, type=Arrangement)
        except msgspec.MsgspecError:  # none yet, or Qt's bytes as an earlier version kept them
            known = Arrangement(self._state, now, {})
        if not self._window.restoreState(QByteArray(known.state), STATE_VERSION):
            self.reset()
            return
        if now == known.window:
            return
        docked = [
            dock for dock in self._areas
            if not (dock.isHidden() or dock.isFloating()) and dock.objectName() in known.docks
        ]  # fmt: skip
        for axis, way in enumerate((Qt.Orientation.Horizontal, Qt.Orientation.Vertical)):
            share = now[axis] / max(known.window[axis], 1)
            self._window.resizeDocks(docked, [round(known.docks[d.objectName()][axis] * share) for d in docked], way)

    def _dock(self, name: str, title: str, widget: QWidget, area: Qt.DockWidgetArea, theme: Theme) -> QDockWidget:
        dock = QDockWidget(title, self._window)
        dock.setObjectName(name)
        dock.setWidget(widget)
        dock.setTitleBarWidget(DockTitle(dock, theme))
        self._window.addDockWidget(area, dock)
        self._areas[dock] = area
        return dock
