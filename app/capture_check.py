"""Before you capture: what of a model would be skipped or split by CUDA Graphs, why, and what to change.

Computed from the report alone, with no GPU: reasons that the compiler found, calls that work on the CPU, sizes that
change, inputs that would be copied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from compiler.report import ExternCall, ExternReason, Node, NodeKind, Region, Report, SourceLine
from compiler.texts import size_text, time_text


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    COSTS = "costs"  # captured, at a price
    SPLITS = "splits"  # several graphs with work between them
    SKIPS = "skips"  # not captured


@dataclass(frozen=True)
class Check:
    """One line of the list. ``advice`` says what to change in the model, "" where nothing need be."""

    state: State
    title: str
    detail: str
    advice: str = ""
    region: str = ""
    node: str = ""
    source: SourceLine | None = None


_ADVICE = {
    "graph_break": "Rewrite the line so that Dynamo can trace it, or move it out of the model.",
    "host_sync": "Keep the value on the GPU (torch.where, masks) instead of .item(), .cpu() or a Python if.",
    "control_flow": "Compute all branches and choose with torch.where, or run a fixed number of steps.",
    "data_dependent_shape": "Give the result a fixed size: pad it, or mask instead of nonzero and boolean indexing.",
    "cpu_op": "Move the tensor to the GPU when the model is made, not in forward.",
    "cpu_tensor": "Move the tensor to the GPU when the model is made, not in forward.",
    "mutation": "Return the new value instead of writing into the input, or accept that it is copied back.",
    "mutated_input": "Return the new value instead of writing into the input, or accept that it is copied back.",
    "aliased_inputs": "Pass tensors that share no memory.",
    "several_devices": "Keep all tensors of the region on one GPU.",
    "unsupported_input": "Pass plain dense tensors and numbers.",
    "changing_inputs": "Reuse the same input tensors, or pad them to a few fixed sizes.",
    "moved_once": "Keep parameters where they are, and see why a forward ran without its graph.",
    "moving_inputs": "Write new data into the same tensors with copy_ instead of making new ones.",
    "kept_outputs": "Clone an output that must outlive the next iteration.",
    "pending_backward": "Run the backward before the next forward.",
    "collective": "With NCCL, where every process makes the same calls on the same sizes, set graph_collectives.",
    "not_padded": "Pad in your own code where you know that added rows change nothing.",
}
_ONLY_COSTS = ("not_padded", "not_forked")  # all runs in graphs, if in more or slower ones than was asked for
_RULE_OF = {
    ExternReason.HOST_SYNC: "host_sync",
    ExternReason.CPU_TENSOR: "cpu_tensor",
    ExternReason.DATA_DEPENDENT_SHAPE: "data_dependent_shape",
}


def capture_checks(report: Report) -> list[Check]:
    """The whole list, the worst first."""
    found = [*_breaks(report)]
    for region in report.regions:
        found += _reasons(region)
        found += _calls(region)
        found += _sizes(region)
        found += _inputs(report, region)
    found += _gain(report)
    if not any(check.state in (State.SPLITS, State.SKIPS) for check in found):
        found.append(Check(State.OK, "Nothing refuses capture", "Every region can be one CUDA Graph."))
    order = [State.SKIPS, State.SPLITS, State.COSTS, State.OK]
    return sorted(_joined(found), key=lambda check: order.index(check.state))


def _joined(found: list[Check]) -> list[Check]:
    """The list, with what holds of several regions as a whole told once, and of which."""
    regions: dict[Check, list[str]] = {}
    for check in found:
        of_all = check if check.node or check.source else replace(check, region="")
        regions.setdefault(of_all, []).append(check.region)
    made = []
    for check, names in regions.items():
        if len(names) == 1:
            made.append(replace(check, region=names[0]))
        elif not any(names):  # a line that breaks the graph whenever it is reached is in no region
            made.append(replace(check, detail=f"{check.detail} It was reached {len(names)} times."))
        else:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            made.append(replace(check, detail=f"{check.detail} In {', '.join(names[:4])}{more}.", region=names[0]))
    return made


def _breaks(report: Report) -> list[Check]:
    detail = "Python runs between the regions, so each is a graph of its own."
    return [
        Check(State.SPLITS, f"Graph break: {found.reason}", detail, _ADVICE["graph_break"], source=found.source)
        for found in report.graph_breaks
    ]


def _reasons(region: Region) -> list[Check]:
    graph = region.cuda_graph
    state = State.SPLITS if graph.captured else State.SKIPS
    return [
        Check(
            State.COSTS if reason.rule in _ONLY_COSTS else state, rule_title(reason.rule), reason.detail,
            _ADVICE.get(reason.rule, ""), region.name, reason.node, reason.source,
        )
        for reason in graph.skip_reasons
        if reason.rule != "graph_break"
    ]  # fmt: skip


def _calls(region: Region) -> list[Check]:
    told = {reason.node for reason in region.cuda_graph.skip_reasons}
    made = []
    for call in region.extern_calls:
        rule = _RULE_OF.get(call.reason)
        node = call.nodes[-1] if call.nodes else ""
        if rule is not None and not told & set(call.nodes):
            title = f"{call.op}: {rule_title(rule).lower()}"
            made.append(
                Check(State.SPLITS, title, call.detail, _ADVICE[rule], region.name, node, _source(region, node))
            )
    exchanged = [call for call in region.extern_calls if call.reason is ExternReason.COLLECTIVE]
    if exchanged and not told & {node for call in exchanged for node in call.nodes}:
        detail = "Every process captures them at the same call, and replays them at the same calls."
        title = _count(exchanged, "call exchanges", "calls exchange") + " data in the graph"
        made.append(Check(State.OK, title, detail))
    random = [call for call in region.extern_calls if call.reason is ExternReason.RANDOM]
    if random:
        detail = "The generator's state advances between replays, so each draws its own numbers."
        made.append(Check(State.OK, _count(random, "call draws", "calls draw") + " random numbers", detail))
    return made


def _count(calls: list[ExternCall], one: str, many: str) -> str:
    return f"{len(calls)} {one if len(calls) == 1 else many}"


def _sizes(region: Region) -> list[Check]:
    symbolic = [
        node.name
        for node in region.nodes
        if node.kind is NodeKind.PLACEHOLDER
        and any(isinstance(size, str) for info in node.outputs for size in info.shape)
    ]
    if not symbolic:
        return []
    return [
        Check(
            State.COSTS, f"{region.name} has sizes that change",
            f"One graph for each size of {', '.join(symbolic[:4])}.",
            "Pad to a few sizes, or name them as graph_buckets.", region.name, symbolic[0],
        )
    ]  # fmt: skip


def _inputs(report: Report, region: Region) -> list[Check]:
    """What it costs when the caller's tensors are elsewhere at the next call. Parameters and buffers stay."""
    if region.kind == "backward":
        return []
    nodes = [n for n in region.nodes if n.kind is NodeKind.PLACEHOLDER and n.op == "input" and n.outputs]
    follows = report.compiler == "fusescope"  # Inductor's graphs copy every input
    written = _written(region) if follows else set()
    read = _read_by_calls(region) | written
    followed = [node for node in nodes if follows and node.name not in read]
    made = []
    if followed:
        detail = "Generated kernels alone read them, so where they move the graph is told the new address: no copy."
        made.append(Check(State.OK, _named(followed, region), detail, region=region.name, node=followed[0].name))
    copied = [node for node in nodes if node not in followed and node.name not in written]
    if copied:
        why = "Library calls read them: where" if follows else "Where"
        detail = f"{why} they move between calls, {{}} are copied before each replay{{}}."
        made.append(_copies(report, region, copied, detail, 1, "Write new data into the same tensors with copy_."))
    changed = [node for node in nodes if node.name in written]
    if changed:
        detail = "The model writes to them: where they move between calls, {} are copied before each replay and back{}."
        made.append(_copies(report, region, changed, detail, 2, _ADVICE["mutated_input"]))
    return made


def _copies(report: Report, region: Region, nodes: list[Node], detail: str, times: int, advice: str) -> Check:
    """What it costs to copy the nodes so many times; ``detail`` has places for the size and the time."""
    size = sum(info.bytes for node in nodes for info in node.outputs)
    bandwidth = report.target.bandwidth_gbs  # 0 where the target's rates are not known
    us = 2 * times * size / (bandwidth * 1e3) if bandwidth else 0.0
    about = f"about {time_text(us)}" if us >= 0.1 else "less than 0.1 µs"
    text = detail.format(size_text(size), f" ({about}, estimated)" if bandwidth else "")
    state = State.COSTS if us >= 1.0 else State.OK
    return Check(state, _named(nodes, region), text, advice if us >= 1.0 else "", region.name, nodes[0].name)


def _written(region: Region) -> set[str]:
    """Nodes whose memory another one writes to: calls that do so end in an underscore, and begin with what they
    write to."""
    calls = [node for node in region.nodes if node.inputs and node.kind is NodeKind.CALL]
    return {node.inputs[0] for node in calls if node.op.rpartition(".")[0].endswith("_")}


def _named(nodes: list[Node], region: Region) -> str:
    more = f" and {len(nodes) - 4} more" if len(nodes) > 4 else ""
    return f"Inputs of {region.name}: {', '.join(node.name for node in nodes[:4])}{more}"


def _read_by_calls(region: Region) -> set[str]:
    """Nodes that library calls read, views of them included."""
    inputs_of = {node.name: node.inputs for node in region.nodes}
    within = {name for call in region.extern_calls for name in call.nodes}
    grouped = {name for group in region.groups for name in group.nodes}
    found: set[str] = set()
    waiting = [name for call in within for name in inputs_of.get(call, [])]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in grouped:  # what a kernel makes is no input any more
            found.add(name)
            waiting += inputs_of.get(name, []) if name not in within else []
    return found


def _gain(report: Report) -> list[Check]:
    """What capture is worth: launches saved, or the measured CPU time over the GPU's.

    The GPU's is between two events, so it waits for the CPU in it, and takes longer wherever the CPU is the limit.
    """
    steps = sum(len(region.groups) + len(region.extern_calls) for region in report.regions)
    measured = {m.mode: m for m in report.measurements}
    plain = measured.get("compiled")
    many = f"{steps:,} kernels and library calls become one launch"  # a call may be several launches
    title = many if steps != 1 else "There is one launch, which a replay replaces"
    if plain is None:
        return [Check(State.OK, title, "A launch costs some microseconds of CPU time; a replay costs one launch.")]
    cpu, gpu = plain.cpu_us.p50, plain.gpu_us.p50
    detail = (
        f"Submitting takes {time_text(cpu)} of CPU time, and the GPU is done after {time_text(gpu)} "
        f"(measured on {plain.gpu}): "
        f"{'the CPU is the limit, and a replay lifts it.' if cpu > 0.8 * gpu else 'the GPU is the limit already.'}"
    )
    return [Check(State.OK, title, detail)]


def rule_title(rule: str) -> str:
    """A skip reason's rule as people read it."""
    titles = {
        "host_sync": "A value moves to the CPU",
        "cpu_op": "An op runs on the CPU",
        "cpu_tensor": "A tensor lives on the CPU",
        "control_flow": "A condition chooses what runs",
        "data_dependent_shape": "A size is known only at run time",
        "mutated_input": "An input is written to",
        "mutation": "An input is written to",
        "collective": "Processes exchange data",
    }
    return titles.get(rule, rule.replace("_", " ").capitalize())


def _source(region: Region, name: str) -> SourceLine | None:
    for node in region.nodes:
        if node.name == name:
            return node.provenance.frames[0] if node.provenance.frames else None
    return None
