"""The modes: which of them run, their percentiles and speedups, a row each. It is the plots' legend, too."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from views.look import format as fmt
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.run.facets import mode_color
from views.run.modes import MODE_TITLES, mode_title
from views.run.record import Row
from views.tables.table_menu import add_table_menu, csv_text
from views.tables.units_table import swatch

Index = QModelIndex | QPersistentModelIndex
COLUMNS = ("Mode, times in µs", "CPU p50", "p90", "p99", "GPU p50", "p90", "p99", "Speedup")
_WIDTHS = (140, 58, 48, 48, 60, 48, 48, 60)
# columns that are left out below so many pixels of the panel, so that the plot keeps room
_LEFT_OUT = ((780, (2, 3, 5, 6)), (1000, (2, 5)))
_SPEEDUP_TIP = "Against eager: the longer of CPU and GPU median of eager, over the same of this mode"


class RunTableModel(QAbstractTableModel):
    """Every mode, with the figures of those that ran, in microseconds."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._modes = list(MODE_TITLES)
        self._rows: dict[str, Row] = {}
        self._on: set[str] = set()
        self._available: set[str] | None = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._changed()

    def set_rows(self, rows: list[Row]) -> None:
        """Show other figures."""
        self._rows = {row.mode: row for row in rows}
        self._changed()

    def set_state(self, on: set[str], available: set[str] | None) -> None:
        """Which modes are switched on, and which can be; None is all."""
        self._on, self._available = set(on), available
        self._changed()

    @property
    def modes(self) -> list[str]:
        """The modes in the order of their rows."""
        return list(self._modes)

    @property
    def rows(self) -> list[Row]:
        """The figures of the modes that ran."""
        return [self._rows[mode] for mode in self._modes if mode in self._rows]

    def is_available(self, mode: str) -> bool:
        """Whether a mode can be switched on."""
        return self._available is None or mode in self._available

    def rowCount(self, parent: Index | None = None) -> int:
        """All modes."""
        return 0 if parent is not None and parent.isValid() else len(self._modes)

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles; figures are right-aligned."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if role == Qt.ItemDataRole.ToolTipRole:
            return _SPEEDUP_TIP if COLUMNS[section] == "Speedup" else "Microseconds"
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Modes that cannot be had are grey."""
        on = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return on if index.isValid() and self.is_available(self._modes[index.row()]) else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, the switch and the swatch."""
        if not index.isValid():
            return None
        mode, column = self._modes[index.row()], index.column()
        row = self._rows.get(mode)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.CheckStateRole and column == 0:
            return (Qt.CheckState.Checked if mode in self._on else Qt.CheckState.Unchecked).value
        if role == Qt.ItemDataRole.DecorationRole and column == 0 and self.is_available(mode):
            return swatch(self._theme, mode_color(mode, self._theme), False)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.iterations:,} iterations" if row else "" if self.is_available(mode) else "Was not recorded"
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if column == 0:
            return mode_title(mode)
        if row is None:
            return "–" if column in (1, 4, 7) else ""
        if column == len(COLUMNS) - 1:
            return "–" if row.speedup is None else fmt.ratio(row.speedup)
        return figure((*row.cpu, *row.gpu)[column - 1])

    def _changed(self) -> None:
        self.dataChanged.emit(self.index(0, 0), self.index(len(self._modes) - 1, len(COLUMNS) - 1))


class RunTable(QTableView):
    """Widths fit the figures, so that the plot beside it gets the rest. A click or Space on a row is its switch."""

    toggled = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures = RunTableModel(theme, self)
        self.setModel(self.figures)
        self.setAccessibleName("Modes: switches, percentiles in microseconds, speedups")
        self.setShowGrid(False)
        self.setProperty("role", "figures")
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.verticalHeader().setVisible(False)
        add_table_menu(self, self.csv_text)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setMinimumSectionSize(40)
        header.setHighlightSections(False)
        fitted(self, self._take_sizes)

    def _take_sizes(self) -> None:
        self.verticalHeader().setDefaultSectionSize(px(23))
        for section, width in enumerate(_WIDTHS):
            self.setColumnWidth(section, px(width))
        self.share(0)

    def csv_text(self) -> str:
        """Percentiles of the modes that ran, in microseconds."""
        figures = [f"{figure}_{rank}_us" for figure in ("cpu", "gpu") for rank in ("p50", "p90", "p99")]
        header = ["mode", "iterations", *figures, "speedup"]
        rows = self.figures.rows
        return csv_text(header, ((row.mode, row.iterations, *row.cpu, *row.gpu, row.speedup) for row in rows))

    def share(self, width: int) -> None:
        """Take as many columns as leave the plot its room in a panel ``width`` pixels wide."""
        left_out = next((columns for below, columns in _LEFT_OUT if width < px(below)), ())
        for column in range(len(_WIDTHS)):
            self.setColumnHidden(column, column in left_out)
        self.setFixedWidth(sum(px(w) for column, w in enumerate(_WIDTHS) if column not in left_out) + 12)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on a row is a click on its switch."""
        super().mouseReleaseEvent(event)
        self._toggle(self.indexAt(event.position().toPoint()))
        self.clearSelection()  # the switch says it all; a current row is for the keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space and Enter switch the current row."""
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._toggle(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _toggle(self, index: QModelIndex) -> None:
        if index.isValid() and self.figures.is_available(mode := self.figures.modes[index.row()]):
            self.toggled.emit(mode)


def figure(value: float) -> str:
    """Microseconds in a column: "5.6", "18,200", "854k"."""
    if value >= 1e7:
        return f"{value / 1e6:,.0f}M"
    if value >= 1e5:
        return f"{value / 1e3:,.0f}k"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter
