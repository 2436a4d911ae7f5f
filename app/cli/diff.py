"""The command that compares two sessions: of two compilers, or before and after a change."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from app.cli.text import bytes_text, count_text, shorten, table, us_text
from app.diff import Change, Diff, GroupDiff, KernelDiff, RegionDiff, Status, compare
from app.diff.records import share_text
from app.session import open_session
from compiler.report import Report

MOST_ROWS = 40
MOST_LINES = 60


def diff_command(options: argparse.Namespace) -> int:
    """Print what differs. Differences are no fault: the exit status is 0 with or without them."""
    a, b = open_session(options.a).report, open_session(options.b).report
    found = compare(a, b)
    if options.json:
        sys.stdout.write(diff_json(a, b, found).decode() + "\n")
    else:
        print(diff_text(found))
    return 0


# --- JSON ----------------------------------------------------------------------------------------------------------


def diff_json(a: Report, b: Report, found: Diff) -> bytes:
    """What differs as indented UTF-8 JSON; what is the same is only counted. Keys are only ever added."""
    groups = [group for region in found.regions for group in region.groups]
    data = {
        "a": _side(a),
        "b": _side(b),
        "empty": found.is_empty,
        "header": [_change(change) for change in found.header],
        "totals": [_change(change) for change in found.totals if change.a != change.b],
        "regions": [_region(region) for region in found.regions if not region.is_same],
        "kernels": [_kernel(kernel) for kernel in found.kernels if kernel.status is not Status.SAME],
        "same": {
            "regions": sum(region.is_same for region in found.regions),
            "groups": sum(group.status is Status.SAME for group in groups),
            "kernels": sum(kernel.status is Status.SAME for kernel in found.kernels),
        },
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2)


def _side(report: Report) -> dict[str, Any]:
    return {
        "compiler": report.compiler,
        "source": report.source,
        "target": report.target.name,
        "versions": report.versions,
        "options": report.options,
        "created": report.created,
    }


def _change(change: Change) -> dict[str, Any]:
    return {"name": change.name, "a": change.a, "b": change.b}


def _region(region: RegionDiff) -> dict[str, Any]:
    exact = sum(match.exact for match in region.matches)
    return {
        "a": region.a,
        "b": region.b,
        "matched_exactly": exact,
        "matched_inferred": len(region.matches) - exact,
        "only_a": region.only_a,
        "only_b": region.only_b,
        "parts_a": region.parts_a,
        "parts_b": region.parts_b,
        "reasons_a": region.reasons_a,
        "reasons_b": region.reasons_b,
        "changes": [_change(change) for change in region.changes],
        "groups": [_group(group) for group in region.groups if group.status is not Status.SAME],
        "same_groups": sum(group.status is Status.SAME for group in region.groups),
    }


def _group(group: GroupDiff) -> dict[str, Any]:
    return {
        "status": group.status.value,
        "a": group.a,
        "b": group.b,
        "nodes_a": group.nodes_a,
        "nodes_b": group.nodes_b,
        "exact": group.exact,
        "detail": group.detail,
        "cost_a": msgspec.structs.asdict(group.cost_a),
        "cost_b": msgspec.structs.asdict(group.cost_b),
    }


def _kernel(kernel: KernelDiff) -> dict[str, Any]:
    return {
        "status": kernel.status.value,
        "a": kernel.a,
        "b": kernel.b,
        "changes": [_change(change) for change in kernel.changes],
        "diff": kernel.text,
    }


# --- text ----------------------------------------------------------------------------------------------------------


def diff_text(found: Diff) -> str:
    """What differs, several short tables."""
    if found.is_empty:
        count = sum(len(region.groups) for region in found.regions)
        return f"No difference: the same {count_text(count, 'launch', 'launches')}, kernels and figures."
    return "\n\n".join(_parts(found))


def _parts(found: Diff) -> Iterator[str]:
    yield f"a: {found.title_a}\nb: {found.title_b}"
    if found.header:
        yield table(("", "a", "b"), [(c.name, _plain(c.a), _plain(c.b)) for c in found.header])
    rows = [(c.name, figure(c.name, c.a), figure(c.name, c.b), _ratio(c)) for c in found.totals]
    yield table(("figure", "a", "b", "b to a"), rows, right=("a", "b", "b to a"))
    for region in found.regions:
        if not region.is_same:
            yield _region_text(region)
    if kernels := [kernel for kernel in found.kernels if kernel.status is not Status.SAME]:
        yield _kernels_text(kernels, len(found.kernels) - len(kernels))
    for kernel in found.kernels:
        if kernel.text:
            yield _excerpt(kernel.text)


def figure(name: str, value: str | float | int | None) -> str:
    """A figure with its unit, which its name tells."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if "(us)" in name:
        return us_text(value)
    if name.startswith(("bytes", "peak memory")) or name.endswith("bytes"):
        return bytes_text(value)
    return f"{value:,}"


def _plain(value: str | float | int | None) -> str:
    return "-" if value is None else str(value)


def _ratio(change: Change) -> str:
    a, b = change.a, change.b
    if change.share is not None:
        return share_text(change.share)
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None or a == b:
        return "" if a != b else "="
    return f"{b - a:+,.3g}"


_SHOWN_NAMES = 6


def _by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    return found


def _region_text(region: RegionDiff) -> str:
    if not region.b or not region.a:
        return f"Region {region.a or region.b}: only in {'a' if region.a else 'b'}."
    counts = Counter(group.status for group in region.groups)
    inferred = sum(not match.exact for match in region.matches)
    told = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    name = region.a if region.a == region.b else f"{region.a} / {region.b}"
    lines = [f"Region {name}: {told}"]
    lines.append(
        f"{count_text(len(region.matches), 'node')} matched"
        + (f", {inferred} of them by op and order only (inferred)" if inferred else " exactly")
        + f"; {len(region.only_a)} only in a, {len(region.only_b)} only in b"
    )
    for side, other, parts in (("a", "b", region.parts_a), ("b", "a", region.parts_b)):
        if parts:
            more, whole = count_text(len(parts), "node"), count_text(len(set(parts.values())), "node")
            lines.append(f"{more} of {side} more, which {whole} of {other} were decomposed into")
    for side, reasons in (("a", region.reasons_a), ("b", region.reasons_b)):
        for reason, names in _by_reason(reasons).items():
            shown = ", ".join(names[:_SHOWN_NAMES]) + (", …" if len(names) > _SHOWN_NAMES else "")
            lines.append(f"only in {side}: {shown}: {reason}")
    changed = [group for group in region.groups if group.status is not Status.SAME]
    changed.sort(key=lambda group: -max(group.cost_a.bytes, group.cost_b.bytes))
    rows = [
        (
            group.status.value + ("" if group.exact else " (inferred)"),
            shorten(" ".join(group.a) or "-", 36),
            shorten(" ".join(group.b) or "-", 36),
            f"{group.cost_a.launches} -> {group.cost_b.launches}",
            f"{bytes_text(group.cost_a.bytes)} -> {bytes_text(group.cost_b.bytes)}",
            f"{us_text(group.cost_a.us)} -> {us_text(group.cost_b.us)}",
            f"{_plain(group.cost_a.registers)} -> {_plain(group.cost_b.registers)}",
        )
        for group in changed[:MOST_ROWS]
    ]
    if rows:
        headers = ("", "units of a", "units of b", "launches", "bytes (est.)", "us", "registers")
        lines.append(table(headers, rows))
    if len(changed) > MOST_ROWS:
        lines.append(f"… and {len(changed) - MOST_ROWS} more; --json has them all.")
    return "\n".join(lines)


def _kernels_text(kernels: Sequence[KernelDiff], same: int) -> str:
    rows = [
        (
            kernel.status.value,
            shorten(kernel.a or "-", 44),
            shorten(kernel.b or "-", 44),
            ", ".join(f"{c.name} {figure(c.name, c.a)} -> {figure(c.name, c.b)}" for c in kernel.changes),
        )
        for kernel in kernels[:MOST_ROWS]
    ]
    more = f"\n… and {len(kernels) - MOST_ROWS} more; --json has them all." if len(kernels) > MOST_ROWS else ""
    title = f"Kernels: {same} the same, {len(kernels)} not (names and settings aside):"
    return f"{title}\n{table(('', 'kernel of a', 'kernel of b', 'figures'), rows)}{more}"


def _excerpt(text: str) -> str:
    lines = text.splitlines()
    if len(lines) <= MOST_LINES:
        return text
    return "\n".join([*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES} more lines; --json has them all."])
