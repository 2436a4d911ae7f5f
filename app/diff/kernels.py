"""Kernels of two reports side by side: which does the work of which, and whether their code is the same."""

from __future__ import annotations

import difflib
import io
import keyword
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

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
            alike[_code(kernel)].append(kernel.name)
    for kernel in a:
        if kernel.name not in pairs and (names := alike.get(_code(kernel))):
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
    if a.source != b.source and _code(a) != _code(b):
        return KernelDiff(Status.CHANGED, a.name, b.name, changes, unified(a, b))
    return KernelDiff(Status.FIGURES if changes else Status.SAME, a.name, b.name, changes)


def _product_text(grid: Sequence[int]) -> str:
    return " x ".join(map(str, grid))


def unified(a: Kernel, b: Kernel) -> str:
    """Unified diff of the two sources, each with its own name replaced and without comments."""
    lines = difflib.unified_diff(
        plain(a.source, a.name).splitlines(), plain(b.source, b.name).splitlines(), a.name, b.name, lineterm="", n=3
    )
    return "\n".join(lines)


def _code(kernel: Kernel) -> str:
    """What two kernels have in common where only names and the machine differ."""
    return renamed(plain(kernel.source, kernel.name))


def plain(source: str, name: str) -> str:
    """The source with the kernel's name as "kernel", and without comments, blank lines and trailing space.

    What Inductor writes beside a kernel of the machine that compiled it is left out: the target is told by itself, and
    the hash of its compiler says nothing that the code below does not.
    """
    text = re.sub(rf"\b{re.escape(name)}\b", "kernel", source) if name else source
    text = _MACHINE.sub("", text)
    lines = (re.sub(r"\s*#(?![^'\"]*['\"]).*$", "", line).rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def renamed(source: str) -> str:
    """The source with its own names numbered by first appearance, so that only what it computes counts.

    Names after a dot, of keyword arguments and of the modules ``tl``, ``triton`` and ``libdevice`` stay.
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return source  # another language than Python: compared as it stands
    names: dict[str, str] = {}
    parts: list[str] = []
    depth = 0
    told = [token for token in tokens if token.type not in _SILENT]
    for number, token in enumerate(told):
        text = token.string
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if token.type == tokenize.INDENT:
            text = "<in>"
        elif token.type == tokenize.DEDENT:
            text = "<out>"
        elif token.type == tokenize.NAME and text not in _KEPT and not keyword.iskeyword(text):
            attribute = number > 0 and told[number - 1].string == "."
            argument = depth > 0 and number + 1 < len(told) and told[number + 1].string == "="
            text = text if attribute or argument else names.setdefault(text, f"v{len(names)}")
        parts.append(text)
    return " ".join(parts)


_MACHINE = re.compile(r"'backend_hash': '[^']*',? ?|(?<=DeviceProperties\()[^()]*(?=\))")
_SILENT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER})
_KEPT: frozenset[str] = frozenset({"tl", "triton", "libdevice", "language", "float", "int", "range", "min", "max"})
