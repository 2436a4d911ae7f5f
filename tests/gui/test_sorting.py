"""How tables of records sort: by a click on a header, whatever a column's values are, and the mark stays on its row."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from views.tables.data_table import Column, DataTable, Record
from views.tables.sorting import places_by, sort_keys

RISING, FALLING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


@pytest.mark.parametrize(
    ("values", "rising"),
    [
        ([3, 1.5, 2], [1.5, 2, 3]),
        (["b", "c", "a"], ["a", "b", "c"]),
        ([2, None, -7.5, None, 0], [None, None, -7.5, 0, 2]),
        (["x", 4, None, "10", 2], [None, 2, 4, "10", "x"]),
        ([None, "b", "a"], [None, "a", "b"]),
        ([], []),
    ],
)
def test_values_sort_numbers_before_texts_and_what_is_missing_first(values: list[object], rising: list[object]) -> None:
    keys = sort_keys(values)
    assert [values[place] for place in places_by(keys, RISING)] == rising
    assert [values[place] for place in places_by(keys, FALLING)] == rising[::-1]


def test_equal_values_stay_in_the_order_they_came_in() -> None:
    for order in (RISING, FALLING):
        assert places_by(sort_keys([1, 1, 1]), order) == [0, 1, 2]


def test_a_header_sorts_and_the_mark_stays_on_its_row(qtbot: QtBot) -> None:
    table = DataTable("Records", [Column("Name", 120), Column("Time", 80, is_figure=True)])
    qtbot.addWidget(table)
    times = [4.0, None, 2.5, 9.0]
    table.set_records([Record((name, f"{us}"), (name, us), name) for name, us in zip("abcd", times, strict=True)])
    table.resize(400, 300)
    table.show()
    qtbot.waitExposed(table)
    table.show_target("c")
    header = table.horizontalHeader()

    def click_time() -> list[str]:
        at = QPoint(header.sectionViewportPosition(1) + 20, header.height() // 2)
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert table.records.shown[table.currentIndex().row()].target == "c"
        return [record.target for record in table.records.shown]

    assert sorted((click_time(), click_time())) == [["b", "c", "a", "d"], ["d", "a", "c", "b"]]
