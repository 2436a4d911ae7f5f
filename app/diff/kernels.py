"""Kernels of two reports side by side: which does the work of which, and whether their code is the same."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from app.diff.kernel_code import code, plain, settings_of
from app.diff.records import Change, GroupDiff, KernelDiff, Status
from compiler.report import Kernel, Region

_FIGURES = ("registers", "spills", "shared_bytes", "warps", "stages", "launches", "estimated_bytes")


def compare_kernels(
    a: Sequence[Kernel], b: Sequence[Kernel], regions: Iterable[tuple[Region, Region, Sequence[GroupDiff]]]
) -> list[KernelDiff]:
    """Every kernel of both once, in the order of ``a``, what only ``b`` has at the end."""
    by_name = {kernel.name: kernel for kernel in b}
    pairs = _pairs(a, b, regions)
    result = []
    for kernel in a:
        other = by_name.get(pairs.get(kernel.name, ""))
        result.append(_compare(kernel, other) if other else KernelDiff(Status.REMOVED, kernel.name, "", []))
    taken = set(pairs.values())
    return result + [KernelDiff(Status.ADDED, "", kernel.name, []) for kernel in b if kernel.name not in taken]


def _pairs(
    a: Sequence[Kernel], b: Sequence[Kernel], regions: Iterable[tuple[Region, Region, Sequence[GroupDiff]]]
) -> dict[str, str]:
    """Kernel of a -> kernel of b: those that compute most of the same groups, then those whose code is the same."""
    votes: Counter[tuple[str, str]] = Counter()
    for region_a, region_b, groups in regions:
        kernel_a = {group.name: group.kernel for group in region_a.groups}
        kernel_b = {group.name: group.kernel for group in region_b.groups}
        for group in groups:
            ours = [kernel_a[name] for name in group.a if name in kernel_a]
            theirs = [kernel_b[name] for name in group.b if name in kernel_b]
            votes.update(zip(ours, theirs, strict=False))  # of a split the first part, which does most of the work
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for (one, other), _ in votes.most_common():
        if one not in pairs and other not in taken:
            pairs[one] = other
            taken.add(other)
    alike: dict[str, list[str]] = defaultdict(list)
    for kernel in b:
        if kernel.name not in taken:
            alike[_key(kernel)].append(kernel.name)
    for kernel in a:
        if kernel.name not in pairs and (names := alike.get(_key(kernel))):
            pairs[kernel.name] = names.pop(0)
    return pairs


def _compare(a: Kernel, b: Kernel) -> KernelDiff:
    changes = [
        Change(name, getattr(a, name), getattr(b, name)) for name in _FIGURES if getattr(a, name) != getattr(b, name)
    ]
    if list(a.grid) != list(b.grid):
        changes.append(Change("grid", _product_text(a.grid), _product_text(b.grid)))
    for name in dict.fromkeys((*a.config, *b.config)):
        if a.config.get(name) != b.config.get(name) and name not in ("num_warps", "num_stages"):
            changes.append(Change(name, a.config.get(name), b.config.get(name)))
    changes += _settings(a, b)
    if a.source != b.source and _key(a) != _key(b):
        return KernelDiff(Status.CHANGED, a.name, b.name, changes, unified(a, b))
    return KernelDiff(Status.FIGURES if changes else Status.SAME, a.name, b.name, changes)


def _settings(a: Kernel, b: Kernel) -> list[Change]:
    """What Inductor was told beside the code, where both kernels say it: another torch has other settings."""
    if a.source == b.source:
        return []
    ours, theirs = settings_of(a.source), settings_of(b.source)
    shown = {*_FIGURES, *a.config, *b.config, "num_warps", "num_stages"}
    return [
        Change(name, value, theirs[name])
        for name, value in ours.items()
        if name not in shown and name in theirs and theirs[name] != value
    ]


def _product_text(grid: Sequence[int]) -> str:
    return " × ".join(map(str, grid))


def unified(a: Kernel, b: Kernel) -> str:
    """Unified diff of the two sources, each with its own name replaced and without comments."""
    lines = difflib.unified_diff(
        plain(a.source, a.name).splitlines(), plain(b.source, b.name).splitlines(), a.name, b.name, lineterm="", n=3
    )
    return "\n".join(lines)


def _key(kernel: Kernel) -> str:
    return code(kernel.source, kernel.name)
