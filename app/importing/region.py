"""One compiled region from its texts: graph, generated program, provenance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.importing.attribution import Attributed, attribute
from app.importing.graph_text import read_graph
from app.importing.wrapper import Program, read_program
from compiler import report as r

_REDUCING = re.compile(
    r"^(?:aten|prims)\.(?:sum|mean|amax|amin|max|min|argmax|argmin|prod|any|all|var|var_mean|std|logsumexp|cumsum|cumprod"
    r"|_softmax|_log_softmax|native_layer_norm|norm|linalg_vector_norm)\b"
)
_KINDS = (
    ("triton_tem", r.GroupKind.TEMPLATE),
    ("triton_poi", r.GroupKind.POINTWISE),
    ("triton_red", r.GroupKind.REDUCTION),
    ("triton_per", r.GroupKind.REDUCTION),
    ("triton_split_scan", r.GroupKind.REDUCTION),
)
_REASON = "The log says which ops are in this kernel; it has no reason for it"
_INFERRED = "Which ops are in this kernel is inferred from an equal kernel launched before; the log does not say it"
_UNKNOWN = "The log does not say which ops are in this kernel"


@dataclass
class RegionTexts:
    """What a log has of one region. ``graphs``: stage -> the graph as text."""

    compile_id: str = ""
    kind: str = ""
    post_grad: str = ""
    program: str = ""
    mapping: dict[str, list[str]] = field(default_factory=dict)  # a call's handle -> FX nodes
    graphs: dict[str, str] = field(default_factory=dict)
    scheduler_nodes: list[r.SchedulerNode] = field(default_factory=list)
    skip_reason: str = ""


@dataclass
class ReadRegion:
    """A region with its kernels' sources by name, and what could not be told of it."""

    region: r.Region
    sources: dict[str, tuple[str, str]]  # kernel -> language, source
    unknown: int = 0  # steps of which no FX node is known


def read_region(texts: RegionTexts, number: int) -> ReadRegion:
    """The records of one region. ``number``: how many graphs of the log come before its own."""
    program = read_program(texts.program) if texts.program else Program()
    kind = texts.kind or program.kind or "inference"
    name = kind if number == 0 else f"{kind}_{number}"
    nodes = read_graph(texts.post_grad, kind)
    steps = attribute(program, nodes, texts.mapping)
    by_name = {node.name: node for node in nodes}
    counted: dict[str, int] = {}
    for one in steps:
        for node in one.nodes if one.step.kernel else ():
            counted[node] = counted.get(node, 0) + 1
    groups = [_group(one, i, by_name, counted, program) for i, one in enumerate(steps) if one.step.kernel]
    calls = [_call(one, i, by_name) for i, one in enumerate(steps) if not one.step.kernel]
    graph = r.CudaGraph(partitions=program.partitions, answered=False)
    if texts.skip_reason:
        graph = r.CudaGraph(capturable=False, skip_reasons=[r.SkipReason("other", texts.skip_reason)])
    elif {t.device.partition(":")[0] for node in nodes for t in node.outputs if t.device} == {"cpu"}:
        graph = r.CudaGraph(capturable=False, skip_reasons=[r.SkipReason("cpu_op", "The region runs on the CPU.")])
    region = r.Region(
        name=name,
        kind=kind,
        nodes=nodes,
        groups=groups,
        extern_calls=calls,
        memory=_memory(program, len(steps)),
        cuda_graph=graph,
        wrapper=texts.program,
        fx_text=texts.post_grad,
        graphs={**texts.graphs, "post_grad": texts.post_grad} if texts.post_grad else dict(texts.graphs),
        scheduler_nodes=_with_units(texts.scheduler_nodes, [*groups, *calls]),
    )
    sources = {k.name: (k.language, k.source) for k in program.kernels.values()}
    return ReadRegion(region, sources, sum(not one.nodes for one in steps))


def _group(
    one: Attributed, order: int, nodes: Mapping[str, r.Node], counted: Mapping[str, int], program: Program
) -> r.Group:
    members = set(one.nodes)
    inputs = list(dict.fromkeys(i for name in one.nodes for i in nodes[name].inputs if i not in members))
    users = {i for node in nodes.values() if node.name not in members for i in node.inputs}
    outputs = [name for name in one.nodes if name in users]
    reason = _REASON if one.exact else (_INFERRED if one.nodes else _UNKNOWN)
    return r.Group(
        name=f"group{order}",
        kind=_kind(one, nodes),
        nodes=one.nodes,
        kernel=one.step.kernel,
        reason=f"{reason}.",
        rule="" if len(one.nodes) != 1 else "single",
        inputs=inputs,
        outputs=outputs,
        recomputed=[name for name in one.nodes if counted[name] > 1],
        estimated_bytes=sum(t.bytes for name in (*inputs, *outputs) for t in nodes[name].outputs),
        estimated_flops=sum(nodes[name].estimated_flops for name in one.nodes),
        order=order,
    )


def _kind(one: Attributed, nodes: Mapping[str, r.Node]) -> r.GroupKind:
    for prefix, kind in _KINDS:
        if one.step.kernel.startswith(prefix):
            return kind
    if any(_REDUCING.match(nodes[name].op) for name in one.nodes):
        return r.GroupKind.REDUCTION
    return r.GroupKind.POINTWISE


def _call(one: Attributed, order: int, nodes: Mapping[str, r.Node]) -> r.ExternCall:
    name = next((n for n in reversed(one.nodes) if nodes[n].op != "getitem"), "")
    node = nodes.get(name)
    told = "" if one.exact or not one.nodes else " Its node is inferred from the order of the graph."
    return r.ExternCall(
        name=f"call{order}",
        nodes=one.nodes,
        op=node.op if node is not None else one.step.operation,
        reason=_extern_reason(one.step.operation),
        detail=f"Inductor calls {one.step.operation}; the log has no reason for it.{told}",
        runs_as=one.step.operation,
        estimated_bytes=node.estimated_bytes if node is not None else 0,
        estimated_flops=node.estimated_flops if node is not None else 0,
        order=order,
    )


_TUNED = re.compile(r"\b(?:mm|addmm|bmm|baddbmm|bias_addmm|convolution\w*|_scaled_dot_product\w*|_scaled_mm)\b")


def _extern_reason(operation: str) -> r.ExternReason:
    return r.ExternReason.LIBRARY_IS_FASTER if _TUNED.search(operation) else r.ExternReason.NO_LOWERING


def _memory(program: Program, steps: int) -> r.Memory:
    """Lifetimes as the program has them: from the allocation to the last statement that names the buffer."""
    change = [0] * (steps + 2)
    plans = []
    for buffer in program.buffers:
        first, last = min(buffer.first, max(steps - 1, 0)), min(buffer.last, max(steps - 1, 0))
        plans.append(r.BufferPlan(buffer.name, "", buffer.bytes, first, max(first, last), buffer.reuses))
        change[first] += buffer.bytes
        change[max(first, last) + 1] -= buffer.bytes
    live = peak = 0
    for step in change:
        live += step
        peak = max(peak, live)
    return r.Memory(plans, peak, sum(b.bytes for b in program.buffers))


def _with_units(scheduled: Sequence[r.SchedulerNode], units: Sequence[r.Group | r.ExternCall]) -> list[r.SchedulerNode]:
    """Each scheduler node with the unit that has its FX nodes."""
    owner = {node: unit.name for unit in units for node in unit.nodes}
    for one in scheduled:
        one.unit = next((owner[n] for n in reversed(one.nodes) if n in owner), "")
    return list(scheduled)
