"""Plain rows as a Qt model: sorted and filtered in Python lists, without a proxy that asks row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from views.tables.sorting import places_by, sort_keys, sort_rows

Index = QModelIndex | QPersistentModelIndex
_LOOKED_AT = 10_000  # records from which the room is known that texts need


@dataclass(frozen=True)
class Column:
    """A column: its title, its width in pixels, whether it holds figures, what it means, whether it steps back."""

    title: str
    width: int
    is_figure: bool = False
    tip: str = ""
    is_muted: bool = False
    least: int = 0  # pixels that it may give way to where there is little room; 0: texts to some, figures not at all
    is_name: bool = False  # loses its middle where it is cut: the ends of names tell them apart


STAND_OFF = "\u2003"  # before a text that follows a figure, which stands right at its edge


@dataclass(frozen=True)
class Swatch:
    """A small square before a text."""

    color: QColor
    is_hollow: bool = False


class Record(Struct, frozen=True, gc=False):
    """A row: the texts shown, the values that sort and are written to CSV, and what is told when it is chosen.

    Tables have thousands: a dataclass takes several times as long to make, and more from the garbage collector.
    """

    texts: tuple[str, ...]
    values: tuple[Any, ...]
    target: str = ""
    tip: str = ""
    color: QColor | None = None  # of the first column's text
    swatch: Swatch | None = None  # in the table's column for swatches


class RecordModel(QAbstractTableModel):
    """Records under columns."""

    def __init__(self, columns: list[Column], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.columns = columns
        self.stands_off = [
            number > 1 and columns[number - 1].is_figure and not column.is_figure
            for number, column in enumerate(columns)
        ]
        self.shown: list[Record] = []  # as sorted and filtered
        self._all: list[Record] = []
        self._longest: list[list[str]] = []  # of each column, once they were asked for
        self._order = (-1, Qt.SortOrder.AscendingOrder)
        self._words: list[str] = []
        self._text_of: Callable[[Record], str] = _texts
        self._texts: list[str] | None = None  # what the filter looks in, made when it is first used

    def set_records(self, records: list[Record], text_of: Callable[[Record], str] | None = None) -> None:
        """Show other records, sorted and filtered as before. ``text_of`` is what the filter looks in."""
        self.beginResetModel()
        self._all, self._texts, self._longest = records, None, []
        self._text_of = text_of or _texts
        self._arrange()
        self.endResetModel()

    def set_filter(self, text: str) -> None:
        """Only records whose text has every word of ``text``."""
        self.beginResetModel()
        self._words = text.lower().split()
        self._arrange()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; what has no value comes last in a falling order. -1 is the order they came in."""
        self._order = (column, order)
        if column >= 0:
            sort_rows(self, self.shown, _keys(self.shown, column), order)

    def longest(self, column: int) -> list[str]:
        """The longest texts of a column, shown or not; of very many records, of the first. None without records.

        One of each unit, for of as many letters "MFLOP" is wider than "kFLOP".
        """
        if not self._longest:  # of all columns at once, for it is asked at once
            texts = zip(*[record.texts for record in self._all[:_LOOKED_AT]], strict=True)
            self._longest = [_longest(of_column) for of_column in texts]
        return self._longest[column] if self._longest else []

    def row_of(self, target: str) -> int:
        """The row of the record with this target, or -1 where none is shown."""
        return next((row for row, record in enumerate(self.shown) if record.target == target), -1)

    def rowCount(self, parent: Index | None = None) -> int:
        """One row a record."""
        return 0 if parent is not None and parent.isValid() else len(self.shown)

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles and what they mean."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{STAND_OFF if self.stands_off[section] else ''}{column.title}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip or None
        return side(column) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts and tips; ``views/tables/cells.py`` paints from the records themselves."""
        if not index.isValid():
            return None
        record, column = self.shown[index.row()], index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return record.texts[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return record.tip or record.texts[column]
        return side(self.columns[column]) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _arrange(self) -> None:
        shown = self._all
        if self._words:
            if self._texts is None:
                self._texts = [self._text_of(record).lower() for record in self._all]
            pairs = zip(self._all, self._texts, strict=True)
            shown = [record for record, text in pairs if all(word in text for word in self._words)]
        column, order = self._order
        if column >= 0:
            shown = [shown[place] for place in places_by(_keys(shown, column), order)]
        self.shown = list(shown)


def side(column: Column) -> Qt.AlignmentFlag:
    """Figures stand right, texts left."""
    where = Qt.AlignmentFlag.AlignRight if column.is_figure else Qt.AlignmentFlag.AlignLeft
    return where | Qt.AlignmentFlag.AlignVCenter


def _longest(texts: tuple[str, ...]) -> list[str]:
    most = max(map(len, texts))
    return list({text.rpartition(" ")[2]: text for text in texts if len(text) == most}.values())


def _texts(record: Record) -> str:
    return " ".join(record.texts)


def _keys(records: list[Record], column: int) -> Sequence[Any]:
    return sort_keys([record.values[column] for record in records])
