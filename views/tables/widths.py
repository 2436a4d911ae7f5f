"""How columns share the width of a table: as many whole ones as fit are in sight, and none of them is cut."""

from __future__ import annotations

from collections.abc import Sequence

from views.tables.record_model import Column

LEAST, _LEAST_TEXT = 30, 96  # pixels of any column, and of a text


def shared_widths(columns: Sequence[Column], room: int, needs: Sequence[int] = ()) -> list[int]:
    """A width for each column, in the order they stand in, for a view ``room`` pixels wide.

    ``needs`` has the pixels that each column's texts take, 0 where that is not known. With room for all of them a
    text has what it needs, up to twice its own width, and a figure its own width at least. Else figures stand close
    and texts give way, and of the columns that fit then the last one ends at the edge of the view. What is left over is
    the last column's, or of all but the first where a figure is last: it would stand far from its neighbours.
    """
    needs = needs or [0] * len(columns)
    widths = [_wanted(column, need) for column, need in zip(columns, needs, strict=True)]
    if sum(widths) <= room or not columns:
        spare = (room - sum(widths)) // (len(columns) - 1) if len(columns) > 1 and columns[-1].is_figure else 0
        return [*widths[:1], *(width + spare for width in widths[1:])]
    least = [_least(*each) for each in zip(columns, widths, needs, strict=True)]
    fitting, taken = 0, 0
    while fitting < len(columns) and taken + least[fitting] <= room:
        taken += least[fitting]
        fitting += 1
    free = room - taken
    flexible = [i for i in range(fitting) if not columns[i].is_figure]
    made = [*least[:fitting], *widths[fitting:]]
    by_missing = sorted(flexible, key=lambda i: widths[i] - least[i])
    for place, i in enumerate(by_missing):  # what needs little is whole before what needs much gives way less
        given = min(widths[i] - least[i], free // (len(by_missing) - place))
        made[i] += given
        free -= given
    if flexible and fitting < len(columns):
        widest = max(flexible, key=lambda i: made[i])
        made[widest] += room - sum(made[:fitting])
    return made


def _wanted(column: Column, need: int) -> int:
    if column.is_figure or not need:
        return max(column.width, need)
    return max(min(need, 2 * column.width), column.least)


def _least(column: Column, width: int, need: int) -> int:
    if column.is_figure:
        return max(need, LEAST) if need else column.least or width
    least = column.least or min(width, _LEAST_TEXT)
    return min(least, max(need, LEAST)) if need else least
