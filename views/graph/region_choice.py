"""Which compiled region is in front: tabs, and a box to choose from where there is no room for all of them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QTabBar, QWidget

from views.widgets.basic import Choice

_NAME = "Compiled regions"
_LEAST, _BESIDE_TEXT = 84, 46  # pixels of the box at least, and beside its text


class RegionChoice(QWidget):
    """``tabs`` knows which one it is, also while it is not in sight."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(_NAME)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setElideMode(Qt.TextElideMode.ElideRight)
        self.box = Choice(_NAME)
        self.box.hide()
        self.box.activated.connect(self.tabs.setCurrentIndex)
        self.tabs.currentChanged.connect(self.box.setCurrentIndex)
        row.addWidget(self.tabs)
        row.addWidget(self.box)
        row.addStretch()

    def set_titles(self, titles: list[str], tips: list[str]) -> None:
        """One region a title, the first in front; tells nothing."""
        for part in (self.tabs, self.box):
            part.blockSignals(True)
        self.box.clear()
        while self.tabs.count():
            self.tabs.removeTab(0)
        for number, (title, tip) in enumerate(zip(titles, tips, strict=True)):
            self.tabs.addTab(title)
            self.tabs.setTabToolTip(number, tip)
            self.box.addItem(title)
            self.box.setItemData(number, tip, Qt.ItemDataRole.ToolTipRole)
        for part in (self.tabs, self.box):
            part.blockSignals(False)
        self.tabs.updateGeometry()  # a bar that is not in sight yet does not say that it has tabs now
        self._take_shape()

    def sizeHint(self) -> QSize:
        """All tabs."""
        return self.tabs.sizeHint()

    def minimumSizeHint(self) -> QSize:
        """As wide as the box, whose text may be cut."""
        return QSize(min(_LEAST, self.sizeHint().width()), self.tabs.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        """An icon or another font makes tabs wider."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._take_shape()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take the shape that there is room for."""
        super().resizeEvent(event)
        self._take_shape()

    def _take_shape(self) -> None:
        fits = self.tabs.count() < 2 or self.tabs.sizeHint().width() <= self.width()
        self.tabs.setVisible(fits)
        self.box.setVisible(not fits)
        titles = [self.box.itemText(number) for number in range(self.box.count())]
        widest = max(map(self.fontMetrics().horizontalAdvance, titles), default=0)
        self.box.setFixedWidth(max(min(widest + _BESIDE_TEXT, self.width()), _LEAST))
