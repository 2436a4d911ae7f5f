"""A TORCH_TRACE log as a report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.importing.assemble import log_name, make_report, options_in, read_regions
from app.importing.errors import ImportingError
from app.importing.region import ReadRegion, RegionTexts
from app.importing.trace_log import Message, TraceLog
from compiler.dynamo.messages import DynamoFacts
from compiler.report import Report, Stage

_LOST = (
    "Read from a TORCH_TRACE log, which has no reasons for not fusing, no memory plan but the program's own, no text "
    "below a kernel's source and no registers."
)
# metadata's key or artifact's name -> the stage whose graph it is
_GRAPHS = {
    "dynamo_output_graph": "dynamo",
    "after_pre_grad_graph": "pre_grad",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
}


def trace_report(log: TraceLog, notes: Sequence[str] = ()) -> Report:
    """What the log of one process says.

    Raises:
        ImportingError: it has no compilation.
    """
    found = list(region_texts(log.messages))
    if not found:
        raise ImportingError(
            f"{log.path.name} has no compiled graph.",
            "It may be the log of a process that compiled nothing; name another file of the folder.",
        )
    regions = read_regions(found)
    dynamo = DynamoFacts()
    damaged = log.damaged
    for message in log.messages:
        try:
            dynamo.take(message.metadata, message.payload)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            damaged += 1  # of another version's form
    told = [_LOST, *notes]
    if damaged:
        told.append(f"{damaged} messages of the log could not be read and were left out.")
    other = sum(not read.region.wrapper for read in regions)
    if other:
        told.append(f"Of {other} regions the log has no generated program: not Inductor compiled them, or it failed.")
    options: dict[str, str] = {}
    for message in log.messages:
        if message.artifact == "fx_graph_runnable":
            options |= options_in(message.payload)
    report = make_report(
        regions,
        source=log_name(log.path),
        written=log.path.stat().st_mtime,
        versions=_versions(log.messages),
        options=options,
        stages=list(_stages(log.messages, found, regions)),
        notes=told,
    )
    report.graph_breaks, report.guards, report.recompiles = dynamo.graph_breaks, dynamo.guards, dynamo.recompiles
    return report


def region_texts(messages: Sequence[Message]) -> Iterator[RegionTexts]:
    """The regions in the order of their programs. Messages of different compilations may be mixed."""
    stages: dict[str, dict[str, str]] = {}  # compilation -> graphs so far
    opened: dict[str, RegionTexts] = {}
    done: list[RegionTexts] = []
    skips = _skip_reasons(messages)
    for message in messages:
        compile_id = message.compile_id
        graphs = stages.setdefault(compile_id, {})
        key = next((k for k in message.metadata if k in _GRAPHS), message.artifact)
        if key in _GRAPHS:
            graphs[_GRAPHS[key]] = message.payload
        elif key == "inductor_post_grad_graph":
            opened[compile_id] = RegionTexts(compile_id, post_grad=message.payload)
            done.append(opened[compile_id])
        elif "inductor_output_code" in message.metadata:
            region = opened.get(compile_id)
            if region is None or region.program:  # from a cache: the program comes without its graph
                region = opened[compile_id] = RegionTexts(compile_id)
                done.append(region)
            region.program = message.payload
            region.kind = _kind(message.payload, graphs)
            region.skip_reason = skips.get(compile_id, "")
            region.graphs = {k: v for k, v in graphs.items() if k not in _OTHER_HALF[region.kind]}
            region.post_grad = region.post_grad or graphs.get(region.kind, "")
        elif key == "inductor_provenance_tracking_node_mappings" and compile_id in opened:
            opened[compile_id].mapping = _mapping(message.payload)
    compiled = {region.compile_id for region in done}
    for compile_id, graphs in stages.items():
        if compile_id not in compiled:
            done += _without_program(compile_id, graphs)
    yield from (region for region in done if region.post_grad)


_OTHER_HALF: Mapping[str, tuple[str, ...]] = {
    "inference": ("forward", "backward", "joint"),
    "forward": ("backward", "inference"),
    "backward": ("forward", "inference"),
}


def _without_program(compile_id: str, graphs: Mapping[str, str]) -> list[RegionTexts]:
    """The regions of a compilation that another backend took over: their graphs as AOTAutograd gave them."""
    kinds = [kind for kind in ("inference", "forward", "backward") if kind in graphs]
    return [
        RegionTexts(
            compile_id,
            kind,
            post_grad=graphs[kind],
            graphs={k: v for k, v in graphs.items() if k not in _OTHER_HALF[kind]},
        )
        for kind in kinds
    ]


def _kind(program: str, graphs: Mapping[str, str]) -> str:
    head = program[:200]
    for kind in ("inference", "forward", "backward"):
        if f"_{kind}'" in head:
            return kind
    return "inference" if "inference" in graphs or "forward" not in graphs else "forward"


def _mapping(payload: str) -> dict[str, list[str]]:
    """A call's handle -> FX nodes of the post-grad graph."""
    try:
        found = json.loads(payload).get("cppCodeToPost") or {}
    except (ValueError, AttributeError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(k): [str(name) for name in v] for k, v in found.items() if isinstance(v, list)}


def _metrics(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for key in ("compilation_metrics", "bwd_compilation_metrics"):
            found = message.metadata.get(key)
            if isinstance(found, dict):
                yield found


def _skip_reasons(messages: Sequence[Message]) -> dict[str, str]:
    """Compilation -> why CUDA Graphs left it out, where torch says so."""
    return {
        str(found.get("compile_id")): str(found["cudagraph_skip_reason"])
        for found in _metrics(messages)
        if found.get("cudagraph_skip_reason")
    }


def _versions(messages: Sequence[Message]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for message in messages:
        if message.artifact == "torch_version":
            try:
                versions["torch"] = str(json.loads(message.payload)["pytorch_version"])
            except (ValueError, KeyError, TypeError):
                continue
    for found in _metrics(messages):
        for name, key in (("torch", "pytorch_version"), ("triton", "triton_version"), ("python", "python_version")):
            words = str(found.get(key) or "").split()
            if words and name not in versions:
                versions[name] = words[0]
    return versions


def _stages(
    messages: Sequence[Message], texts: Sequence[RegionTexts], regions: Sequence[ReadRegion]
) -> Iterator[Stage]:
    """Wall times by compilation. Torch's clocks lie in one another; what is left of each is its own."""
    names: dict[str, str] = {}
    for one, read in zip(texts, regions, strict=True):
        names.setdefault(one.compile_id, read.region.name)
    for message in messages:
        found = message.metadata.get("compilation_metrics")
        if not isinstance(found, dict):
            continue
        region = names.get(str(found.get("compile_id")), "")
        clocks = [
            ("capture", found.get("dynamo_cumulative_compile_time_us")),
            ("AOTAutograd", found.get("aot_autograd_cumulative_compile_time_us")),
            ("Inductor", found.get("inductor_cumulative_compile_time_us")),
            ("generate", found.get("inductor_code_gen_cumulative_compile_time_us")),
        ]
        known = [(name, float(us)) for name, us in clocks if isinstance(us, (int, float)) and math.isfinite(us)]
        for i, (name, us) in enumerate(known):
            within = known[i + 1][1] if i + 1 < len(known) else 0.0
            yield Stage(name, max(us - within, 0.0) / 1e3, region)


