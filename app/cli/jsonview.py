"""A report as JSON with stable keys: everything but the long texts."""

from __future__ import annotations

from typing import Any

import msgspec

from app.meter import meter
from app.roofline import UnitTime, unit_times
from compiler.report import GraphBreak, Kernel, Measurement, Region, Report, SourceLine


def report_json(report: Report) -> bytes:
    """The report as indented UTF-8 JSON. Keys are only ever added, not renamed or taken away."""
    return msgspec.json.format(msgspec.json.encode(_report(report)), indent=2)


def _report(report: Report) -> dict[str, Any]:
    broke = _breaks_by_region(report)
    return {
        "compiler": report.compiler,
        "source": report.source,
        "target": report.target.name,
        "target_title": report.target.title,
        "training": report.training,
        "options": report.options,
        "created": report.created,
        "versions": report.versions,
        "regions": [_region(report, region, broke[index]) for index, region in enumerate(report.regions)],
        "kernels": [_kernel(kernel) for kernel in report.kernels],
        "graph_breaks": [_graph_break(fault) for fault in report.graph_breaks],
        "recompiles": [
            {"reason": again.reason, "function": again.function, **_place(again.source)} for again in report.recompiles
        ],
        "guards": [
            {"code": guard.code, "kind": guard.kind, "subject": guard.subject, **_place(guard.source)}
            for guard in report.guards
        ],
        "measurements": [_measurement(measurement) for measurement in report.measurements],
        "provenance": _whole(meter(report)),
        "checks": [_whole(check) for check in report.checks],
        "stages": [{"name": stage.name, "region": stage.region, "ms": stage.ms} for stage in report.stages],
        "notes": report.notes,
    }


def _region(report: Report, region: Region, broke: list[GraphBreak]) -> dict[str, Any]:
    graph, times = region.cuda_graph, unit_times(report, region)
    return {
        "name": region.name,
        "kind": region.kind,
        "nodes": len(region.nodes),
        "groups": [
            {
                "name": group.name,
                "kind": group.kind.value,
                "nodes": group.nodes,
                "kernel": group.kernel,
                "reason": group.reason,
                "rule": group.rule,
                "recomputed": group.recomputed,
                "estimated_bytes": group.estimated_bytes,
                "estimated_flops": group.estimated_flops,
                "saved_bytes": group.score_bytes,
                "time": _time(times.get(group.name)),
                "order": group.order,
            }
            for group in region.groups
        ],
        "extern_calls": [
            {
                "name": call.name,
                "nodes": call.nodes,
                "op": call.op,
                "reason": call.reason.value,
                "detail": call.detail,
                "runs_as": call.runs_as,
                "estimated_bytes": call.estimated_bytes,
                "estimated_flops": call.estimated_flops,
                "time": _time(times.get(call.name)),
                "order": call.order,
            }
            for call in region.extern_calls
        ],
        "sizes": region.sizes,
        "refusals": [
            {
                "a": refusal.a,
                "b": refusal.b,
                "rule": refusal.rule.value,
                "detail": refusal.detail,
                "bytes_lost": refusal.bytes_lost,
            }
            for refusal in region.refusals
        ],
        "graph_breaks": [_graph_break(fault) for fault in broke],
        "memory": {
            "buffers": len(region.memory.buffers),
            "peak_bytes": region.memory.peak_bytes,
            "total_bytes": region.memory.total_bytes,
            "order": region.memory.order.value if region.memory.order is not None else "",
            "captured_peak_bytes": region.memory.captured_peak_bytes,
            "moved_steps": region.memory.moved_steps,
            "plan": [_whole(buffer) for buffer in region.memory.buffers],
        },
        "scheduler_nodes": [_whole(node) for node in region.scheduler_nodes],
        "cuda_graph": {
            "captured": graph.captured,
            "capturable": graph.capturable,
            "partitions": graph.partitions,
            "skip_reasons": [_whole(reason) for reason in graph.skip_reasons],
            "nodes": graph.nodes,
            "fills_as_kernels": graph.fills_as_kernels,
            "captures": graph.captures,
            "recaptures": graph.recaptures,
            "streams": graph.streams,
            "one_stream_us": graph.one_stream_us,
            "forked_us": graph.forked_us,
            "copied_bytes": graph.copied_bytes,
            "inputs": [_whole(route) for route in graph.routes],
            "covered_kernels": graph.covered_kernels,
            "covered_time": graph.covered_time,
            "pool_bytes": graph.pool_bytes,
            "warmup_ms": graph.warmup_ms,
            "capture_ms": graph.capture_ms,
            "instantiate_ms": graph.instantiate_ms,
            "upload_ms": graph.upload_ms,
            "first_replay_ms": graph.first_replay_ms,
        },
    }


def _time(time: UnitTime | None) -> dict[str, Any] | None:
    """A unit's time in an iteration; None for one that was not measured and moves and computes nothing."""
    return {"us": time.us, "measured": time.measured, "exact": time.exact} if time is not None else None


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "language": kernel.language,
        "grid": kernel.grid,
        "config": kernel.config,
        "sizes": kernel.sizes,
        "registers": kernel.registers,
        "spills": kernel.spills,
        "shared_bytes": kernel.shared_bytes,
        "estimated_bytes": kernel.estimated_bytes,
        "estimated_flops": kernel.estimated_flops,
        "estimated_us": kernel.estimated_us,
        "measured_us": kernel.measured_us,
        "launches": kernel.launches or None,
        "warps": kernel.warps,
        "stages": kernel.stages,
        "occupancy": kernel.occupancy,
        "irs": sorted(kernel.irs),
        "error": kernel.error,
    }


def _measurement(measurement: Measurement) -> dict[str, Any]:
    return {
        "mode": measurement.mode,
        "gpu": measurement.gpu,
        "iterations": measurement.iterations,
        "warmup": measurement.warmup,
        "cpu_us": _whole(measurement.cpu_us),
        "gpu_us": _whole(measurement.gpu_us),
        "wall_us": _whole(measurement.wall_us) if measurement.wall_us else None,
        "equal_to_eager": measurement.equal_to_eager,
        "max_error": measurement.max_error,
    }


def _graph_break(fault: GraphBreak) -> dict[str, Any]:
    return {
        "reason": fault.reason,
        "detail": fault.detail,
        "skipped_frame": fault.skipped_frame,
        **_place(fault.source),
    }


def _place(source: SourceLine | None) -> dict[str, Any]:
    return {"file": source.file if source else "", "line": source.line if source else None}


def _whole(record: msgspec.Struct) -> dict[str, Any]:
    """Every field of a record, also those at their default, which msgspec leaves out."""
    return {
        name: msgspec.to_builtins(value) if not isinstance(value, msgspec.Struct) else _whole(value)
        for name, value in msgspec.structs.asdict(record).items()
    }


def _breaks_by_region(report: Report) -> list[list[GraphBreak]]:
    """Each region's own breaks: the nth break ended the nth region that Dynamo captured, where the counts say so."""
    by_region: list[list[GraphBreak]] = [[] for _ in report.regions]
    captured = [index for index, region in enumerate(report.regions) if region.kind != "backward"]
    if len(captured) == len(report.graph_breaks) + 1:
        for index, fault in zip(captured, report.graph_breaks, strict=False):
            by_region[index].append(fault)
    return by_region
