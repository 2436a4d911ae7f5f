"""Finds anything of a report by a few letters: nodes, groups, calls, kernels, ops, modules, source lines, and commands.

Matching is by words: each must be in an entry's text. Those that begin a name come before those inside one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from app.filters import choices
from compiler.report import NodeKind, Report

LIMIT = 80  # results that anybody reads
_KIND_ORDER = ("command", "group", "extern call", "kernel", "region", "op", "module", "node", "source line", "filter")


@dataclass(frozen=True)
class Entry:
    """Something that can be gone to. ``target`` says how, by kind: see ``entries``."""

    kind: str
    title: str
    detail: str
    target: tuple[str, ...]
    text: str = ""  # everything that is searched, in lower case

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "text", f"{self.title}\n{self.detail}".lower())


def entries(report: Report) -> list[Entry]:
    """Everything in a report.

    Targets: (region, unit) for groups, extern calls and kernels; (region, node) for nodes, ops and modules (their
    first node); (region,) for regions; (file, line) for source lines.
    """
    made: list[Entry] = []
    for region in report.regions:
        name = region.name
        made.append(Entry("region", name, f"{region.kind}, {len(region.nodes):,} nodes", (name,)))
        kernels: dict[str, str] = {}
        for group in region.groups:
            made.append(Entry("group", group.name, f"{group.kind.value}, {len(group.nodes)} nodes", (name, group.name)))
            kernels.setdefault(group.kernel, group.name)
        for call in region.extern_calls:
            made.append(Entry("extern call", call.name, call.op, (name, call.name)))
        made += [Entry("kernel", kernel, f"of {group}", (name, group)) for kernel, group in kernels.items() if kernel]
        first_of: dict[tuple[str, str], str] = {}
        counts: dict[tuple[str, str], int] = {}
        for node in region.nodes:
            made.append(Entry("node", node.name, node.op, (name, node.name)))
            op = node.op if node.kind is NodeKind.CALL else ""
            for kind, title in (("op", op), ("module", node.provenance.module_path)):
                if title:
                    first_of.setdefault((kind, title), node.name)
                    counts[kind, title] = counts.get((kind, title), 0) + 1
        for (kind, title), node_name in first_of.items():
            number = counts[kind, title]
            detail = f"{number:,} node{'' if number == 1 else 's'}"
            made.append(Entry(kind, title, detail, (name, node_name)))
    for file, text in report.sources.items():
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                made.append(Entry("source line", line.strip(), f"{file}:{number}", (file, str(number))))
    return made


def filter_entries(report: Report) -> list[Entry]:
    """Every filter that narrows a report; targets: (kind, value)."""
    return [
        Entry("filter", one.title, left, (one.kind.value, one.value), f"{one.title}\n{one.value} {left}".lower())
        for one, left in choices(report)
    ]


def find(text: str, among: Iterable[Entry], limit: int = LIMIT) -> list[Entry]:
    """The entries that hold every word of ``text``, the best first; the first ones where nothing is asked."""
    words = text.lower().split()
    if not words:
        return list(islice(among, limit))
    found = list(among)
    if len(words) == 1 and len(words[0]) == 1:  # a letter is in almost everything
        found = [entry for entry in found if entry.text.startswith(words[0])]
    for word in words:
        found = [entry for entry in found if word in entry.text]
    scored = [
        (_rank(words, entry.text), _KIND_ORDER.index(entry.kind), place, entry) for place, entry in enumerate(found)
    ]
    scored.sort(key=lambda ranked: ranked[:3])
    return [entry for *_, entry in scored[:limit]]


def _rank(words: list[str], text: str) -> int:
    """0 for the whole title, 1 where the title begins so, 2 where a part of the name does, 3 inside, 4 by detail."""
    title = text.split("\n", 1)[0]
    first = words[0]
    if title == " ".join(words):
        return 0
    if title.startswith(first):
        return 1
    at = title.find(first)
    if at > 0:
        return 3 if title[at - 1].isalnum() else 2
    return 4
