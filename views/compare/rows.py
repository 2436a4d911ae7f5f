"""A comparison as rows of tables: groups, kernels, figures."""

from __future__ import annotations

from collections import Counter

from PySide6.QtGui import QColor

from app.diff import Change, Diff, GroupDiff, KernelDiff, Status
from app.diff.records import Cost, share_text
from views.look import format as fmt
from views.look.theme import Theme
from views.tables.data_table import Column, Record

GROUP_COLUMNS = [
    Column(
        "Status", 90, least=84,
        tip="How the units that compute the same nodes correspond; ~ where nodes were matched by inference",
    ),
    Column("Region", 90, least=74),
    Column("A", 210, least=110, is_name=True, tip="Fusion groups and extern calls of A"),
    Column("B", 210, least=140, is_name=True, tip="Fusion groups and extern calls of B"),
    Column("Bytes", 150, True, "Memory traffic (estimated)"),
    Column("Time", 150, True, "Measured where every unit was; else estimated and marked ~"),
    Column("Launches", 82, True),
    Column("Registers", 88, True, "The most that a kernel of them needs"),
    Column("Spills", 88, True, "Bytes per thread, the most of them"),
    Column("Why", 240),
]  # fmt: skip
REGION = 1  # its column
_FIGURES = {  # what the inspector calls otherwise
    "bytes moved, estimated": "memory traffic, estimated",
    "peak memory of intermediates": "peak of intermediates",
}
KERNEL_COLUMNS = [
    Column("Status", 90),
    Column("Kernel of A", 250, is_name=True),
    Column("Kernel of B", 250, is_name=True, tip="= where it has the same name"),
    Column("What differs", 320),
]
FIGURE_COLUMNS = [
    Column("Figure", 260),
    Column("A", 190, True),
    Column("B", 190, True),
    Column("B against A", 110, True),
]
_ORDER = (
    Status.CHANGED,
    Status.MOVED,
    Status.SPLIT,
    Status.MERGED,
    Status.REMOVED,
    Status.ADDED,
    Status.FIGURES,
    Status.SAME,
)
_ARROW = " → "
_BYTES = 4  # the column of groups


def status_color(status: Status, theme: Theme) -> QColor:
    """What a status looks like everywhere."""
    colors = {
        Status.SAME: theme.muted,
        Status.FIGURES: theme.accent,
        Status.SPLIT: theme.warning,
        Status.MERGED: theme.success,
        Status.MOVED: theme.warning,
        Status.CHANGED: theme.danger,
        Status.REMOVED: theme.danger,
        Status.ADDED: theme.accent,
    }
    return colors[status]


def summary(diff: Diff) -> tuple[str, str]:
    """How many groups are the same, split, merged, moved; how nodes were matched."""
    if diff.is_empty:
        return "No difference.", ""
    counts = Counter(group.status for region in diff.regions for group in region.groups)
    told = ", ".join(f"{counts[status]:,} {status.value}" for status in reversed(_ORDER) if counts[status])
    matches = [match for region in diff.regions for match in region.matches]
    inferred = sum(not match.exact for match in matches)
    how = f"{inferred:,} inferred" if inferred else "all exactly"
    return told, f"{fmt.plural(len(matches), 'node')} matched, {how}"


def group_records(diff: Diff, theme: Theme, *, all_of_them: bool) -> list[Record]:
    """Units that correspond; the target is "region:entry"."""
    records = []
    for number, region in enumerate(diff.regions):
        for entry, group in enumerate(region.groups):
            if all_of_them or group.status is not Status.SAME:
                records.append(_group_record(group, f"{number}:{entry}", region.a or region.b, theme))
    return sorted(records, key=lambda record: (record.values[0], -abs(record.values[_BYTES])))


def _group_record(group: GroupDiff, target: str, region: str, theme: Theme) -> Record:
    a, b = group.cost_a, group.cost_b
    texts = (
        f"{'' if group.exact else '~'}{group.status.value}",
        region,
        ", ".join(group.a) or "–",
        ", ".join(group.b) or "–",
        _pair(a.bytes, b.bytes, fmt.size),
        _times(a, b),
        _pair(a.launches, b.launches, str),
        _pair(a.registers, b.registers, _known),
        _pair(a.spills, b.spills, _known),
        group.detail,
    )
    values = (
        _ORDER.index(group.status),
        region,
        group.a[0] if group.a else "",
        group.b[0] if group.b else "",
        b.bytes - a.bytes,
        b.us - a.us if a.us is not None and b.us is not None else None,
        b.launches - a.launches,
        (b.registers or 0) - (a.registers or 0),
        (b.spills or 0) - (a.spills or 0),
        group.detail,
    )
    return Record(texts, values, target, color=status_color(group.status, theme))


def kernel_records(diff: Diff, theme: Theme) -> list[Record]:
    """Kernels beside each other; the target is the entry's number."""
    records = [
        Record(
            (
                kernel.status.value,
                kernel.a or "–",
                "=" if kernel.a == kernel.b else kernel.b or "–",
                ", ".join(changes(kernel)),
            ),
            (_ORDER.index(kernel.status), kernel.a, kernel.b, len(kernel.changes)),
            str(number),
            color=status_color(kernel.status, theme),
        )
        for number, kernel in enumerate(diff.kernels)
    ]
    return sorted(records, key=lambda record: record.values[0])


def changes(kernel: KernelDiff) -> list[str]:
    """Figures of a kernel that differ."""
    return [f"{c.name.replace('_', ' ')} {_figure(c, c.a)}{_ARROW}{_figure(c, c.b)}" for c in kernel.changes]


def figure_records(diff: Diff, theme: Theme) -> list[Record]:
    """What was asked for differently, then every figure of the whole reports."""
    records = []
    for change in (*diff.header, *diff.totals):
        differs = change.a != change.b
        texts = (_title(change.name), _figure(change, change.a), _figure(change, change.b), _ratio(change))
        records.append(
            Record(
                texts, (change.name, change.a, change.b, change.share), color=theme.text if differs else theme.muted
            )
        )
    return records


def _title(name: str) -> str:
    """As the inspector calls it; each figure has its unit."""
    name = _FIGURES.get(name, name.removesuffix(" (us)"))
    return f"{name[:1].upper()}{name[1:]}"


def _known(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def _pair(a: int | None, b: int | None, text: object) -> str:
    told = [str(text(value)) if callable(text) else str(value) for value in (a, b)]
    return told[0] if a == b else f"{told[0]}{_ARROW}{told[1]}"


def _times(a: Cost, b: Cost) -> str:
    def one(cost: Cost) -> str:
        return "–" if cost.us is None else f"{'' if cost.measured else '~'}{fmt.microseconds(cost.us)}"

    return one(a) if (a.us, a.measured) == (b.us, b.measured) else f"{one(a)}{_ARROW}{one(b)}"


def _figure(change: Change, value: str | float | int | None) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    if "(us)" in change.name:
        return fmt.microseconds(value)
    if change.name.startswith(("bytes", "peak memory")) or change.name.endswith("bytes"):
        return fmt.size(value)
    return f"{value:,}"


def _ratio(change: Change) -> str:
    return "" if change.share is None else share_text(change.share)
