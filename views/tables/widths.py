"""How columns share the width of a table: as many whole ones as fit are in sight, and none of them is cut."""

from __future__ import annotations

from collections.abc import Sequence

from views.tables.record_model import Column

_LEAST_TEXT = 96


def shared_widths(columns: Sequence[Column], room: int) -> list[int]:
    """A width for each column, in the order they stand in, for a view ``room`` pixels wide.

    With room for all of them each has its own width. Else texts give way, and of the columns that fit then the last
    one ends at the edge of the view.
    """
    widths = [column.width for column in columns]
    if sum(widths) <= room or not columns:
        return widths
    least = [_least(column) for column in columns]
    fitting, taken = 0, 0
    while fitting < len(columns) and taken + least[fitting] <= room:
        taken += least[fitting]
        fitting += 1
    free = room - taken
    flexible = [i for i in range(fitting) if not columns[i].is_figure]
    missing = {i: widths[i] - least[i] for i in flexible}
    wanted = sum(missing.values())
    made = [*least[:fitting], *widths[fitting:]]
    for i in flexible:
        made[i] += min(missing[i], free * missing[i] // wanted) if wanted else 0
    if flexible and fitting < len(columns):
        widest = max(flexible, key=lambda i: made[i])
        made[widest] += room - sum(made[:fitting])
    return made


def _least(column: Column) -> int:
    if column.least or column.is_figure:
        return column.least or column.width
    return min(column.width, _LEAST_TEXT)
