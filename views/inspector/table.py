"""A small list in the inspector: as tall as its rows up to a limit, its columns sharing what room there is."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidget, QTreeWidgetItem

from views.look.sizes import px
from views.tables.table_menu import add_table_menu, csv_text

AROUND = 18  # pixels beside a text of a column
_MAX_ROWS = 9  # rows of a list before it scrolls
_ROW_HEIGHT = 24
_USUAL = (122, 128)  # pixels that the columns before the last want where their texts need as many
_LAST_WIDTH, _MOST_LAST = 110, 136  # pixels that the last column wants at least, and at most
_WIDEST = 260  # pixels that any other column has at most


class Table(QTreeWidget):
    """A small list, as tall as its rows up to a limit."""

    chosen = Signal(str)
    hovered = Signal(str)  # the first column of the row under the mouse, "" for none

    def __init__(
        self, name: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], current: str, most: int = _MAX_ROWS
    ) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setObjectName(name)
        self.setHeaderLabels(list(columns))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setIndentation(0)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        for row in rows:
            item = QTreeWidgetItem(list(row))
            item.setSizeHint(0, QSize(0, px(_ROW_HEIGHT)))
            for column, text in enumerate(row):
                item.setToolTip(column, text)
            self.addTopLevelItem(item)
            if row[0] == current:
                self.setCurrentItem(item)
        header = self.header()
        header.setStretchLastSection(True)
        header.setMinimumSectionSize(40)
        for column in range(len(columns) - 1):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
        measure = self.fontMetrics().horizontalAdvance
        needs = [
            max(measure(title), *(measure(row[column]) for row in rows), 0) + AROUND
            for column, title in enumerate(columns)
        ]
        last = min(max(needs[-1], _LAST_WIDTH), _MOST_LAST)
        usual = [min(most, need) for most, need in zip(_USUAL, needs[:-1], strict=False)]
        self.want(usual, [min(need, _WIDEST) for need in needs[:-1]], last)
        shown = min(len(rows), most)
        self.setFixedHeight(px(34) + shown * px(_ROW_HEIGHT))  # with its header, and a line around it
        self.setMouseTracking(True)
        self.itemEntered.connect(lambda item, column: self.hovered.emit(item.text(0)))
        add_table_menu(self, lambda: csv_text(columns, rows))
        self.itemClicked.connect(lambda item, column: self.chosen.emit(item.text(0)))
        self.itemActivated.connect(lambda item, column: self.chosen.emit(item.text(0)))

    def to_the_right(self, column: int) -> None:
        """It holds figures."""
        side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for item in (self.headerItem(), *(self.topLevelItem(row) for row in range(self.topLevelItemCount()))):
            item.setTextAlignment(column, side)

    def want(self, widths: list[int], at_most: list[int] | None = None, last: int = _LAST_WIDTH) -> None:
        """Widths of all columns but the ``last``, with room for them and it; ``at_most`` where there is more."""
        self._wanted, self._last, self._given = widths, last, []
        self._at_most = at_most or widths
        self._share_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room all columns give way, and not the last one alone."""
        self._share_room()
        super().resizeEvent(event)

    def _share_room(self) -> None:
        if self._given and self._given != [self.columnWidth(column) for column in range(len(self._given))]:
            return  # somebody drew a column wider
        room = self.viewport().width()
        share = min(room / (sum(self._wanted) + self._last), 1.0)
        more = [max(most - width, 0) for width, most in zip(self._wanted, self._at_most, strict=True)]
        beyond = max(room - sum(self._wanted) - self._last, 0) / max(sum(more), 1)
        self._given = [
            int(width * share + extra * min(beyond, 1.0)) for width, extra in zip(self._wanted, more, strict=True)
        ]
        for column, width in enumerate([*self._given, room - sum(self._given)]):
            self.setColumnWidth(column, width)

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is under the mouse."""
        super().leaveEvent(event)
        self.hovered.emit("")

    def sizeHint(self) -> QSize:
        """Any width."""
        return QSize(200, self.height())
