"""Where the inspector's pages are shown, one at a time."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from views.inspector.sections import Page
from views.look.sizes import px
from views.widgets.basic import as_panel


class PageArea(QScrollArea):
    """Scrolls its page, whose width follows its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(name)
        # A page that left the area would be without the window's style, and Qt would dress all that is in it anew.
        holder = QWidget()
        as_panel(holder)
        self._column = QVBoxLayout(holder)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.setWidget(holder)
        self.page: Page | None = None

    def sizeHint(self) -> QSize:
        """Room for some facts, also before there are any."""
        return QSize(px(300), px(280))

    def show_page(self, page: Page) -> None:
        """Show another page. The old one may be in the middle of a click: it goes when that is over."""
        old, self.page = self.page, page
        if old is not None:
            old.hide()
            self._column.removeWidget(old)
            old.deleteLater()
        self._column.addWidget(page)
        page.show()
        page.fit()
        self.verticalScrollBar().setValue(0)
