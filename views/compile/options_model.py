"""A compiler's options as a table that can be edited: name, value, default, type."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QFont

from compiler.options import OptionInfo
from views.look.theme import Theme

Index = QModelIndex | QPersistentModelIndex
COLUMNS = ("Option", "Value", "Default", "Type")
VALUE = 1


class OptionsModel(QAbstractTableModel):
    """``changed`` holds the values that were set, by name; all others are as the compiler has them."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._infos: list[OptionInfo] = []
        self.changed: dict[str, str] = {}

    def set_options(self, infos: list[OptionInfo], chosen: dict[str, str]) -> None:
        """Show these options; ``chosen`` are values set before, of which only known ones count."""
        self.beginResetModel()
        self._infos = infos
        known = {info.name for info in infos}
        self.changed = {name: value for name, value in chosen.items() if name in known}
        self.endResetModel()

    def info(self, row: int) -> OptionInfo:
        """The option of a row."""
        return self._infos[row]

    def set_value(self, row: int, text: str) -> None:
        """Set an option; its own value takes the change back."""
        info = self._infos[row]
        text = text.strip()
        if text == info.value:
            self.changed.pop(info.name, None)
        else:
            self.changed[info.name] = text
        self.dataChanged.emit(self.index(row, 0), self.index(row, VALUE))

    def reset(self) -> None:
        """Take every change back."""
        self.changed = {}
        if self._infos:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._infos) - 1, VALUE))

    def matches(self, row: int, words: list[str]) -> bool:
        """Whether the option's name or text has every word."""
        info = self._infos[row]
        text = f"{info.name} {info.doc}".lower()
        return all(word in text for word in words)

    # Qt's questions

    def rowCount(self, parent: Index | None = None) -> int:
        """One row an option."""
        return 0 if parent is not None and parent.isValid() else len(self._infos)

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Values can be edited."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() == VALUE else flags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts; what was changed is bold."""
        if not index.isValid():
            return None
        info = self._infos[index.row()]
        value = self.changed.get(info.name, info.value)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return (info.name, value, info.default, info.type)[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return info.doc or info.name
        is_changed = info.name in self.changed
        if role == Qt.ItemDataRole.FontRole and is_changed and index.column() <= VALUE:
            font = QFont(self._theme.ui_font())
            font.setBold(True)
            return font
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._theme.accent if is_changed and index.column() <= VALUE else None
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Set an option's value."""
        if role != Qt.ItemDataRole.EditRole or index.column() != VALUE:
            return False
        self.set_value(index.row(), str(value))
        return True


class OptionsFilter(QSortFilterProxyModel):
    """Options whose name or text has every word of the search."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words: list[str] = []

    def set_text(self, text: str) -> None:
        """Search for ``text``."""
        self._words = text.lower().split()
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        model = self.sourceModel()
        return not self._words or (isinstance(model, OptionsModel) and model.matches(source_row, self._words))
