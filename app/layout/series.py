"""Graphs in series: where all that flows on comes out of one item, the parts above and below it are laid out alone.

Deep models are such a series, of a few parts over and over: equal parts are laid out once, a change in one of them
moves nothing sideways in another, and the items that join them stand on one line. They do so, too, where the parts
cannot be told apart: a change in one then moves little in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.layout.items import Arrangement, Items, Link, Spacing
from app.layout.layered import arrange
from app.layout.ranks import Cancelled, poll, polled

_FEWEST_TARGETS = 2  # of a joint: cutting plain chains would win nothing
_OVERHANG = 4  # rows that a branch may pass a joint by before it ends
_HEADROOM = 2  # rows above a joint from which chains of the part below may come
_MOST_TRIES = 8  # rounds of leaving out joints that do not hold

Ints = NDArray[np.int64]
Parts = dict[object, Arrangement]  # laid out before, by what they look like


def arrange_in_series(
    items: Items,
    links: list[Link],
    spacing: Spacing,
    cancelled: Cancelled | None = None,
    known: Parts | None = None,
    on_axis: Sequence[int] = (),
) -> Arrangement:
    """Like ``arrange``, part by part where the graph is a series. A joint is the last item of a part and the first of
    the next, alone in its row but for what serves the next part only. ``known`` keeps parts from call to call, for one
    spacing. Items ``on_axis`` stand at x 0, as joints do.

    Raises:
        LayoutCancelled: ``cancelled`` returned True.
    """
    ends = _ends_by_target(items, links)
    poll(cancelled)
    joints = _joints(items, ends)
    taken = {items.rank[item] for item in on_axis}
    # also joints that do not hold, as where one saved tensor is read above and below them
    on_axis = [*on_axis, *(item for item in joints if items.rank[item] not in taken)]
    parts = _split(items, links, ends, joints, on_axis, cancelled)
    if not parts:
        return arrange(items, links, spacing, cancelled, on_axis)
    known = {} if known is None else known
    x, top = np.zeros(len(items.rank)), np.zeros(len(items.rank))
    pieces: list[NDArray[np.float64]] = []
    link_pieces: list[list[int]] = [[] for _ in links]
    y, first_piece = 0.0, 0
    for part in polled(parts, cancelled, 32):
        done = known.get(part.key)
        if done is None:
            done = known[part.key] = arrange(part.items, part.links, spacing, cancelled, [*part.joints, *part.on_axis])
        x[part.members] = done.x
        top[part.members] = done.top
        top[part.members] += y
        pieces.append(done.pieces + np.array([0.0, y, 0.0, y]))
        for link, used in zip(part.link_numbers, done.link_pieces, strict=True):
            link_pieces[link] = [first_piece + piece for piece in used]
        first_piece += len(done.pieces)
        y += done.top[part.joints[-1]]
    return Arrangement(x.tolist(), top.tolist(), np.concatenate(pieces), link_pieces)


@dataclass(frozen=True)
class _Part:
    """A stretch of the graph. ``key`` is the same for parts that look the same."""

    key: object
    items: Items
    links: list[Link]
    joints: list[int]  # its first and last item, by their numbers in it
    on_axis: list[int]
    members: list[int]  # the items' numbers in the whole graph
    link_numbers: list[int]


def _ends_by_target(items: Items, links: list[Link]) -> Ints:
    """The items (links, 2) that each link joins, from the top row's targets to the bottom's."""
    ends = np.array([[link[0] for link in links], [link[1] for link in links]], np.int64).T
    return ends[np.argsort(np.array(items.rank, np.int64)[ends[:, 1]], kind="stable")]


def _joints(items: Items, ends: Ints) -> list[int]:
    """Items that all of the flow goes through, from top to bottom. ``ends`` are sorted by their targets.

    Short branches that end within a few rows (gradients of parameters on their way out) may pass a joint.
    """
    count = len(items.rank)
    rank, low, aside = np.array(items.rank, np.int64), np.array(items.low, bool), np.array(items.aside, bool)
    lowest = list(items.rank)  # row that can be reached from an item
    for source, target in ends[::-1].tolist():
        if lowest[target] > lowest[source]:
            lowest[source] = lowest[target]
    above, below = ends.T
    reach = np.array(lowest, np.int64) - _OVERHANG
    rows = int(rank.max(initial=-1)) + 2
    first, last = rank[above] + 1, np.minimum(rank[below] - 1, reach[below] - 1)
    passes = first <= last
    change = np.bincount(first[passes], minlength=rows) - np.bincount(last[passes] + 1, minlength=rows + 1)[:rows]
    goes_on = ~low & (reach > rank)
    fits = (np.bincount(rank[goes_on], minlength=rows) == 1) & (change.cumsum() == 0)
    ways = ends[(reach[below] > rank[above]) & ~aside[below]]
    ways = np.unique(ways[:, 0] * count + ways[:, 1]) // count  # each pair of items once
    forks = np.bincount(ways, minlength=count) >= _FEWEST_TARGETS
    chosen = np.flatnonzero(fits[rank] & goes_on & forks & (rank > 0))
    ordered: list[int] = chosen[np.argsort(rank[chosen], kind="stable")].tolist()
    return ordered


def _parts_of(items: Items, ends: Ints, joints: list[int], cancelled: Cancelled | None) -> tuple[list[int], list[int]]:
    """The joints that hold and each item's part: that of what it reads, or of its readers where nothing is above it."""
    rank, low = np.array(items.rank, np.int64), np.array(items.low, bool)
    pairs = ends[np.argsort(rank[ends[:, 0]], kind="stable")].tolist()
    for _ in range(_MOST_TRIES):
        if not joints:
            break
        rows = rank[joints]
        after = [-1] * len(rank)  # part that a joint's readers are in
        for number, item in enumerate(joints):
            after[item] = number + 1
        # What hangs on nothing starts in the part of its row; what only serves others, below them all.
        start = np.where(low, len(joints), np.searchsorted(rows, rank, "left"))
        fed = np.zeros(len(rank), bool)
        fed[ends[~low[ends[:, 0]], 1]] = True
        start[fed & ~low] = 0
        part, is_low = start.tolist(), items.low
        for source, target in polled(pairs, cancelled, 4096):
            if not is_low[source]:
                number = after[source] if after[source] > 0 else part[source]
                if number > part[target]:
                    part[target] = number
        for source, target in polled(reversed(pairs), cancelled, 4096):
            if is_low[source] and part[target] < part[source]:
                part[source] = part[target]
        found = np.array(part, np.int64)
        leaving = np.maximum(found, np.array(after, np.int64))[ends[:, 0]]
        arriving = found[ends[:, 1]]
        broken: set[int] = set()
        for one, other in np.unique(np.stack([leaving, arriving], axis=1)[leaving != arriving], axis=0).tolist():
            broken.update(range(min(one, other), max(one, other)))
        too_high = (found > 0) & (rank < rows[np.maximum(found - 1, 0)] - _HEADROOM)
        too_low = (found < len(joints)) & (rank > rows[np.minimum(found, len(joints) - 1)] + _OVERHANG)
        broken |= set((found[too_high] - 1).tolist()) | set(found[too_low].tolist())
        if not broken:
            return joints, part
        joints = [item for number, item in enumerate(joints) if number not in broken]
    return [], []


def _split(
    items: Items, links: list[Link], ends: Ints, joints: list[int], on_axis: Sequence[int], cancelled: Cancelled | None
) -> list[_Part]:
    """Cuts at the joints that hold; no parts where none does. What is in a joint's row belongs to the part below."""
    joints, part = _parts_of(items, ends, joints, cancelled)
    if not joints:
        return []
    held = set(joints)
    members: list[list[int]] = [[] for _ in range(len(joints) + 1)]
    for number, item in enumerate(joints):
        members[number + 1].append(item)
    local = [0] * len(part)
    for item, number in enumerate(part):
        local[item] = len(members[number])
        members[number].append(item)
    inner: list[list[Link]] = [[] for _ in members]
    which: list[list[int]] = [[] for _ in members]
    for i, (source, target, out_offset, in_offset) in enumerate(polled(links, cancelled, 4096)):
        number = part[target]
        start = 0 if number and source == joints[number - 1] else local[source]
        inner[number].append(Link(start, local[target], out_offset, in_offset))
        which[number].append(i)
    parts: list[_Part] = []
    for number, chosen in enumerate(polled(members, cancelled, 128)):
        row = items.rank[joints[number - 1]] if number else 0
        rank = [items.rank[i] - row for i in chosen]
        ends_of_part = [0] if number else []
        if number and (above := -min(rank)) > 0:
            rank = [0, *(r + above for r in rank[1:])]
        if number < len(joints):
            last = local[joints[number]]
            ends_of_part.append(last)
            rank[last] = max(max(rank[:last] + rank[last + 1 :], default=-1) + 1, rank[last])
        own = Items(
            [items.width[i] for i in chosen],
            [items.height[i] for i in chosen],
            rank,
            [items.low[i] for i in chosen],
            [items.head[i] for i in chosen],
            [items.aside[i] for i in chosen],
        )
        axis = [local[i] for i in on_axis if part[i] == number and i not in held]
        looks: list[list[Any]] = [own.width, own.height, own.rank, own.low, own.head, own.aside]
        key = tuple(tuple(column) for column in (*looks, inner[number], ends_of_part, axis))
        parts.append(_Part(key, own, inner[number], ends_of_part, axis, chosen, which[number]))
    return parts
