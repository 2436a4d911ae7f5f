"""The provenance meter: how much of a report is traced back to where it came from, exactly or by inference."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.lazy import peek_lines, peek_text
from compiler.codegen.linemap import is_code, kernel_lines
from compiler.joining import own_trace
from compiler.report import Kernel, NodeKind, Report


class Share(msgspec.Struct, frozen=True):
    """Parts of a whole. What is in neither ``exact`` nor ``inferred`` leads nowhere."""

    exact: float = 0
    inferred: float = 0
    total: float = 0

    @property
    def mapped(self) -> float:
        """0..1; 1 of nothing."""
        return (self.exact + self.inferred) / self.total if self.total else 1.0


class Meter(msgspec.Struct, frozen=True):
    """Each link of the chain by itself. Only instructions and statements count as lines, not comments or labels."""

    nodes: Share  # op nodes that lead to a line of the user's source
    kernels: Share  # kernels that lead to FX nodes
    source_lines: Share  # lines of generated kernels that lead to FX nodes
    ir_lines: Share  # lines of every lower level that lead to a line of the kernel
    time: Share  # microseconds of one iteration that lead to FX nodes
    time_measured: bool = False  # whether ``time`` was traced on a GPU; else it is the kernels' estimated time


def meter(report: Report) -> Meter:
    """Measure ``report``. Reads every text of its kernels, which for a large session takes a second."""
    kernels = _exactness(report)
    return with_time(
        Meter(
            nodes=_nodes(report),
            kernels=_share((1, kernels[kernel.name]) for kernel in report.kernels),
            source_lines=_sum(_source_lines(kernel) for kernel in report.kernels),
            ir_lines=_sum(_ir_lines(kernel) for kernel in report.kernels),
            time=Share(),
        ),
        report,
    )


def with_time(found: Meter, report: Report) -> Meter:
    """``found`` with the share of the time, which is told without reading any text."""
    kernels = _exactness(report)
    trace = own_trace(report)
    traced = [event for event in trace.events if event.lane != "cpu"] if trace is not None else []
    if traced:
        units = _units(report, kernels)
        time = _share((event.us, _both(units.get(event.unit), event.exact)) for event in traced)
    else:
        times = ((kernel, (kernel.estimated_us or 0.0) * kernel.launches) for kernel in report.kernels)
        time = _share((us, kernels[kernel.name]) for kernel, us in times)
    return msgspec.structs.replace(found, time=time, time_measured=bool(traced))


def _both(unit: bool | None, join: bool) -> bool | None:
    """The exactness of a chain of two links."""
    return None if unit is None else unit and join


def _share(parts: Iterable[tuple[float, bool | None]]) -> Share:
    """Sizes with their exactness: True, False (inferred), or None (leads nowhere)."""
    exact = inferred = total = 0.0
    for size, exactness in parts:
        total += size
        exact += size if exactness is True else 0
        inferred += size if exactness is False else 0
    return Share(round(exact, 3), round(inferred, 3), round(total, 3))


def _sum(shares: Iterable[Share]) -> Share:
    exact = inferred = total = 0.0
    for share in shares:
        exact, inferred, total = exact + share.exact, inferred + share.inferred, total + share.total
    return Share(exact, inferred, total)


def _nodes(report: Report) -> Share:
    calls = [node for region in report.regions for node in region.nodes if node.kind is NodeKind.CALL]
    return _share((1, node.provenance.exact if node.provenance.frames else None) for node in calls)


def _exactness(report: Report) -> dict[str, bool | None]:
    """Kernel -> whether its nodes are known exactly; None where no existing node is known at all."""
    known = {f"{region.name}/{node.name}" for region in report.regions for node in region.nodes}
    launched = {group.kernel for region in report.regions for group in region.groups if group.nodes}
    found: dict[str, bool | None] = {}
    for kernel in report.kernels:
        nodes = {node for names in kernel.line_nodes.values() for node in names}
        if nodes & known:
            found[kernel.name] = kernel.lines_exact
        else:
            found[kernel.name] = False if kernel.name in launched else None
    return found


def _units(report: Report, kernels: dict[str, bool | None]) -> dict[str, bool | None]:
    """ "region/unit" -> exactness: a group's is its kernel's, an extern call is known by its nodes."""
    found: dict[str, bool | None] = {}
    for region in report.regions:
        found.update({f"{region.name}/{group.name}": kernels.get(group.kernel) for group in region.groups})
        found.update({f"{region.name}/{call.name}": True if call.nodes else None for call in region.extern_calls})
    return found


def _source_lines(kernel: Kernel) -> Share:
    lines = kernel.source.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(f"def {kernel.name}(")), -1)
    if start < 0:
        start = max((number for number, line in enumerate(lines) if line.startswith("def ")), default=0)
    body = [
        number
        for number, line in enumerate(lines[start + 1 :], start + 2)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    mapped = [number for number in body if kernel.line_nodes.get(number)]
    count = len(mapped)
    return Share(count if kernel.lines_exact else 0, 0 if kernel.lines_exact else count, len(body))


def _ir_lines(kernel: Kernel) -> Share:
    """Debug information is exact where it is there."""
    total = mapped = 0
    known = peek_lines(kernel.ir_lines)
    for level in kernel.irs:
        text = peek_text(kernel.irs, level)  # all of them together may not fit into memory
        numbers = known[level] if level in known else kernel_lines(kernel, level)
        for position, line in enumerate(text.splitlines()):
            if is_code(level, line):
                total += 1
                mapped += position < len(numbers) and numbers[position] > 0
    return Share(mapped, 0, total)


def share_text(share: Share) -> str:
    """ "98%", with the inferred part where there is one. Never rounds up to all of it."""
    percent = min(round(share.mapped * 100), 99 if share.mapped < 1 else 100)
    inferred = f" ({share.inferred / share.total:.0%} inferred)" if share.inferred else ""
    return f"{percent}%{inferred}"
