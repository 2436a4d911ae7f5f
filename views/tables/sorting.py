"""Sorting a model's own rows: fast, for the keys are Python's, and what is selected stays selected."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, TypeVar

from PySide6.QtCore import QAbstractTableModel, Qt

RowT = TypeVar("RowT")
_NUMBERS = {int, float}


def sort_keys(values: Sequence[Any]) -> Sequence[Any]:
    """What sorts ``values``: numbers before texts, what is missing before both.

    Values of one kind are their own keys: a pair for each would take several times as long.
    """
    kinds = set(map(type, values))
    if kinds <= _NUMBERS or kinds == {str}:
        return values
    if kinds <= {*_NUMBERS, type(None)}:
        return [-inf if value is None else value for value in values]
    return [_key(value) for value in values]


def places_by(keys: Sequence[Any], order: Qt.SortOrder) -> list[int]:
    """Where the rows with these keys are now, in the order that they are to have."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=order == Qt.SortOrder.DescendingOrder)


def sort_rows(model: QAbstractTableModel, rows: list[RowT], keys: Sequence[Any], order: Qt.SortOrder) -> None:
    """Sort ``rows``, which are the rows of ``model``, in place by their keys, and tell its views."""
    model.layoutAboutToBeChanged.emit()
    places = places_by(keys, order)
    rows[:] = [rows[place] for place in places]
    before = model.persistentIndexList()
    if before:
        new_row = {old: new for new, old in enumerate(places)}
        after = [model.index(new_row[index.row()], index.column()) for index in before]
        model.changePersistentIndexList(before, after)
    model.layoutChanged.emit()


def _key(value: Any) -> tuple[int, Any]:
    return (0, 0) if value is None else (1, value) if isinstance(value, int | float) else (2, str(value))
