"""A report as text for people: what was fused, what was not, and which kernels cost most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from app.cli.text import bytes_text, count_text, shorten, table, us_text
from app.meter import Meter, meter, share_text
from compiler.report import CudaGraph, GraphBreak, Kernel, Measurement, Refusal, Report, SourceLine

COSTLIEST = 8


def summary(report: Report) -> str:
    """The whole summary, several short tables."""
    return "\n\n".join(_parts(report))


def _parts(report: Report) -> Iterator[str]:
    yield _headline(report)
    if report.notes:
        yield "\n".join(f"Note: {note}" for note in report.notes)
    if report.regions:
        yield _regions(report)
    if calls := _extern_calls(report):
        yield calls
    if refusals := _refusals(report):
        yield refusals
    if reasons := _skip_reasons(report):
        yield reasons
    if report.kernels:
        yield _kernels(report)
    if report.regions:
        yield provenance(meter(report))
    if faults := [kernel for kernel in report.kernels if kernel.error]:
        lines = [f"  {kernel.name}: {shorten(kernel.error.splitlines()[0], 100)}" for kernel in faults]
        yield "\n".join([f"{count_text(len(faults), 'kernel')} failed to compile for {report.target.name}:", *lines])
    if report.graph_breaks:
        yield "\n".join(["Graph breaks:", *(_graph_break(fault) for fault in report.graph_breaks)])
    if report.recompiles:
        lines = [
            f"  {again.function or 'a function'}: {shorten(again.reason, 90)}{_place(again.source)}"
            for again in report.recompiles
        ]
        yield "\n".join(["Recompiles (the guard that failed):", *lines])
    if report.measurements:
        yield measurements(report.measurements)


def _headline(report: Report) -> str:
    groups = sum(len(region.groups) for region in report.regions)
    calls = sum(len(region.extern_calls) for region in report.regions)
    counts = [
        count_text(len(report.regions), "region"),
        f"{count_text(groups, 'fusion group')} in {count_text(len(report.kernels), 'kernel')}",
        count_text(calls, "extern call"),
        count_text(len(report.graph_breaks), "graph break"),
        *([count_text(len(report.guards), "guard")] if report.guards else []),
    ]
    seconds = sum(stage.ms for stage in report.stages) / 1e3
    what = f"{report.source} compiled by {report.compiler} for {report.target.title} ({report.target.name})"
    return f"{what} in {seconds:.1f} s\n{', '.join(counts)}"


def _graph_break(fault: GraphBreak) -> str:
    left = "; the whole function runs in eager" if fault.skipped_frame else ""
    return f"  {shorten(fault.reason, 90)}{_place(fault.source)}{left}"


def _place(source: SourceLine | None) -> str:
    return f" ({source.file}:{source.line})" if source else ""


def _regions(report: Report) -> str:
    rows = [
        (
            region.name,
            region.kind,
            len(region.nodes),
            len(region.groups),
            len(region.extern_calls),
            len(region.refusals),
            bytes_text(region.memory.peak_bytes),
            _graph_text(region.cuda_graph),
        )
        for region in report.regions
    ]
    headers = ("region", "kind", "nodes", "groups", "extern", "refusals", "peak memory", "CUDA Graph")
    return table(headers, rows, right=headers[2:7])


def _graph_text(graph: CudaGraph) -> str:
    if graph.captured:
        parts = f" in {graph.partitions} partitions" if graph.partitions > 1 else ""
        if graph.one_stream_us is None or graph.forked_us is None:
            return f"captured{parts}"
        both = f"{graph.one_stream_us:,.1f} µs on one, {graph.forked_us:,.1f} on several"
        return f"captured{parts} on {graph.streams} stream{'s' if graph.streams > 1 else ''} ({both})"
    if not graph.answered:
        return "not said"
    parts = f" whole, {graph.partitions} partitions" if graph.partitions > 1 else ""
    return "can be captured" if graph.capturable else f"cannot be captured{parts}"


def _extern_calls(report: Report) -> str:
    calls = [call for region in report.regions for call in region.extern_calls]
    counts = Counter((call.runs_as or call.op, call.reason.value) for call in calls)
    rows = [(op, count, reason) for (op, reason), count in counts.most_common()]
    return table(("extern call", "count", "reason"), rows, right=("count",)) if rows else ""


def _refusals(report: Report) -> str:
    """Pairs of neighbours kept apart, by rule: first the rule that costs most."""
    by_rule: dict[str, list[Refusal]] = {}
    for refusal in (refusal for region in report.regions for refusal in region.refusals):
        by_rule.setdefault(refusal.rule.value, []).append(refusal)
    lost = {rule: sum(refusal.bytes_lost for refusal in found) for rule, found in by_rule.items()}
    rows = []
    for rule in sorted(by_rule, key=lambda rule: lost[rule], reverse=True):
        most = max(by_rule[rule], key=lambda refusal: refusal.bytes_lost)
        rows.append((rule, len(by_rule[rule]), bytes_text(lost[rule]), shorten(f"{most.a}, {most.b}", 60)))
    headers = ("kept apart", "pairs", "bytes lost (est.)", "the costliest pair")
    return table(headers, rows, right=headers[1:3]) if rows else ""


def _skip_reasons(report: Report) -> str:
    """Why CUDA Graphs leave out a region, or are split in it, with the op and the model's line."""
    lines = []
    for region in report.regions:
        for reason in region.cuda_graph.skip_reasons:
            node = f" [{reason.node}]" if reason.node and reason.node not in reason.detail else ""
            lines.append(f"  {region.name}: {shorten(reason.detail, 100)}{node}{_place(reason.source)}")
    return "\n".join(["Kept out of CUDA Graphs:", *dict.fromkeys(lines)]) if lines else ""


def _kernels(report: Report) -> str:
    """The kernels that cost most over all their launches, by measured time where there is one."""
    measured = any(kernel.measured_us is not None for kernel in report.kernels)
    kind = "measured" if measured else f"estimated for {report.target.name}"
    costliest = sorted(report.kernels, key=total_us, reverse=True)[:COSTLIEST]
    rows = [
        (
            kernel.name,
            kernel.launches or "-",
            bytes_text(kernel.estimated_bytes) if kernel.estimated_bytes else "-",  # known of groups alone
            us_text(each := kernel.measured_us if measured else kernel.estimated_us),
            us_text(None if each is None else total_us(kernel)),
            "-" if kernel.registers is None else kernel.registers,
            "-" if kernel.spills is None else kernel.spills,
            "-" if kernel.shared_bytes is None else bytes_text(kernel.shared_bytes),
        )
        for kernel in costliest
    ]
    headers = ("kernel", "launches", "bytes (est.)", "µs each", "µs all", "registers", "spills", "shared")
    title = f"Costliest kernels of {len(report.kernels)} (times {kind}):"
    return f"{title}\n{table(headers, rows, right=headers[1:])}"


def total_us(kernel: Kernel) -> float:
    """A kernel's time over all its launches in one iteration: measured if it was, else estimated."""
    each = kernel.measured_us if kernel.measured_us is not None else kernel.estimated_us
    return (each or 0.0) * kernel.launches


def provenance(found: Meter) -> str:
    """The provenance meter as one line."""
    kind = "measured" if found.time_measured else "estimated"
    parts = [
        (found.nodes, "op nodes to the model's lines"),
        (found.kernels, "kernels to nodes"),
        (found.source_lines, "kernel lines to nodes"),
        (found.ir_lines, "lower levels' lines to kernel lines"),
        (found.time, f"{kind} time to nodes"),
    ]
    return "Traced back: " + ", ".join(f"{share_text(share)} of {text}" for share, text in parts if share.total)


def measurements(measured: list[Measurement]) -> str:
    """Percentiles of CPU and GPU time, mode by mode, with the speedup over eager of the longer of both."""
    eager = next((max(m.cpu_us.p50, m.gpu_us.p50) for m in measured if m.mode == "eager"), None)

    def speedup(m: Measurement) -> str:
        longer = max(m.cpu_us.p50, m.gpu_us.p50)
        return f"{eager / longer:.2f}x" if eager and longer else "-"

    rows = [
        (
            m.mode,
            m.iterations,
            *(us_text(value) for value in (m.cpu_us.p50, m.cpu_us.p90, m.cpu_us.p99)),
            *(us_text(value) for value in (m.gpu_us.p50, m.gpu_us.p90, m.gpu_us.p99)),
            speedup(m),
            {True: "yes", False: "NO", None: "-"}[m.equal_to_eager],
        )
        for m in measured
    ]
    headers = ("mode", "iterations", "CPU p50", "p90", "p99", "GPU p50", "p90 ", "p99 ", "speedup", "equal to eager")
    gpu = ", ".join(sorted({m.gpu for m in measured}))
    return f"Measured on {gpu} (µs per iteration):\n{table(headers, rows, right=headers[1:])}"
