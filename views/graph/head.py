"""The bar over the graph: region tabs, how it is grouped and coloured, zoom."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.overlays import OVERLAYS
from compiler.report import Report
from views.graph.region_choice import RegionChoice
from views.graph.regions import break_before, region_tip, region_title
from views.look.icons import icon
from views.look.theme import Theme
from views.widgets.basic import Choice, icon_button

_ROOM_FOR_ZOOM = 760  # pixels
_LEAST_CHOICE = 104  # pixels of a box to choose from, where there is little room
_APART = 4  # pixels between what belongs together and what does not, beside the row's own
GROUPINGS = {"fusion": "Fusion groups", "kernels": "Groups, closed", "modules": "Modules"}


class GraphHead(QFrame):
    """Tells what is asked for; shows what it is told."""

    region_chosen = Signal(int)  # the tab in front
    grouping_chosen = Signal(str)  # one of GROUPINGS
    overlay_chosen = Signal(str)  # one of OVERLAYS
    open_wanted = Signal()
    close_wanted = Signal()
    zoom_wanted = Signal(int)  # in: 1, out: -1, all of it: 0

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 0)
        row.setSpacing(2)
        self.regions = RegionChoice()
        self.tabs = self.regions.tabs
        self.tabs.currentChanged.connect(self.region_chosen)
        row.addWidget(self.regions, 1)
        self.groupings = _choice("Group by", "Group by (M)", GROUPINGS)
        self.groupings.activated.connect(lambda _: self.grouping_chosen.emit(self.grouping))
        row.addWidget(self.groupings)
        self._boxes = [
            icon_button("unfold", "Open all boxes, one of each stack ([)", self.open_wanted.emit, theme),
            icon_button("fold", "Close all boxes (])", self.close_wanted.emit, theme),
        ]
        self.overlays = _choice("Colour the graph by", "Colour the graph by", OVERLAYS)
        self.overlays.activated.connect(lambda _: self.overlay_chosen.emit(self.overlay))
        self._zooms = [
            icon_button("zoom-out", "Zoom out (-)", lambda: self.zoom_wanted.emit(-1), theme),
            icon_button("zoom-in", "Zoom in (+)", lambda: self.zoom_wanted.emit(1), theme),
        ]
        fit = icon_button("fit", "Fit the graph (F)", lambda: self.zoom_wanted.emit(0), theme)
        row.addSpacing(_APART)
        for widget in (*self._boxes, self.overlays):
            row.addWidget(widget)
        row.addSpacing(_APART)
        for widget in (*self._zooms, fit):
            row.addWidget(widget)
        self.show_grouping("fusion", has_boxes=False)

    @property
    def grouping(self) -> str:
        """One of GROUPINGS."""
        return str(self.groupings.currentData())

    @property
    def overlay(self) -> str:
        """One of OVERLAYS."""
        return str(self.overlays.currentData())

    def show_grouping(self, kind: str, *, has_boxes: bool) -> None:
        """Have a grouping in front; with boxes there are buttons for all of them."""
        self.groupings.setCurrentIndex(self.groupings.findData(kind))
        for button in self._boxes:
            button.setVisible(has_boxes)

    def show_overlay(self, kind: str) -> None:
        """Have an overlay in front."""
        self.overlays.setCurrentIndex(self.overlays.findData(kind))

    def set_report(self, report: Report) -> None:
        """A tab for each region, the first in front; tells nothing."""
        tips = [region_tip(report, number) for number in range(len(report.regions))]
        self.regions.set_titles([region_title(region) for region in report.regions], tips)

    def set_icons(self, report: Report | None, theme: Theme) -> None:
        """Mark the regions that begin after a graph break; a sign on every tab would mark none."""
        for number in range(self.tabs.count()):
            split = report is not None and break_before(report, number) is not None
            self.tabs.setTabIcon(number, icon("split", theme.warning) if split else QIcon())

    def minimumSizeHint(self) -> QSize:
        """Without the buttons that go where there is little room: the docks must not give way to them."""
        least, spacing = super().minimumSizeHint(), self.layout().spacing()
        spare = sum(button.sizeHint().width() + spacing for button in self._zooms if not button.isHidden())
        return QSize(least.width() - spare, least.height())

    def share(self, width: int) -> None:
        """Where there is little room, region names go before what has keys and a wheel anyway."""
        for button in self._zooms:
            button.setVisible(width >= _ROOM_FOR_ZOOM)


def _choice(name: str, tip: str, titles: dict[str, str]) -> Choice:
    made = Choice(name, tip, least=_LEAST_CHOICE)
    for key, title in titles.items():
        made.addItem(title, key)
    return made
