"""What Inductor did, as report records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from torch import fx

from compiler import report as r
from compiler.describe import describe_node
from compiler.inductor.hooks import GraphFacts, LaunchFacts, UnitFacts
from compiler.inductor.kernels import InductorKernel
from compiler.inductor.origins import OriginFinder
from compiler.inductor.refusals import rule_of
from compiler.inductor.run import InductorRegion
from compiler.inductor.skips import describe_capture
from compiler.lowering.extern import library_reason, static_reason


@dataclass(frozen=True)
class _Unit:
    """A scheduled unit under the name it has in the report."""

    name: str
    facts: UnitFacts
    nodes: list[str]
    launch: LaunchFacts | None
    order: int


def describe_inductor_region(region: InductorRegion, kernels: Mapping[str, InductorKernel], backend: str) -> r.Region:
    """One graph for a target of this ``backend``: nodes, groups, calls, refusals, memory, CUDA Graph answer, texts."""
    facts = region.facts
    assert facts.graph is not None
    nodes = [_inferred(node, describe_node(node, region.kind), facts.graph) for node in facts.graph.graph.nodes]
    by_name = {node.name: node for node in nodes}
    fx_nodes = {node.name: node for node in facts.graph.graph.nodes}
    units = _units(facts)
    counted: dict[str, int] = {}
    for unit in units:
        if unit.launch is not None:
            for name in unit.nodes:
                counted[name] = counted.get(name, 0) + 1
    buffer_nodes = {n.name: n.name for n in nodes} | facts.buffer_origins
    groups = [_group(u, facts, by_name, buffer_nodes, counted, kernels) for u in units if u.launch is not None]
    calls = [_call(u, by_name, fx_nodes, backend) for u in units if u.facts.kind == "extern" and u.launch is None]
    # of a call with several results, each is scheduled apart and may be where the CUDA Graph is split
    scheduled = {name: unit.nodes for unit in units for name in (unit.facts.name, *unit.facts.members)}
    text = facts.graph.print_readable(print_output=False)
    return r.Region(
        name=region.name,
        kind=region.kind,
        nodes=nodes,
        groups=groups,
        extern_calls=calls,
        refusals=_refusals(facts, units, by_name),
        memory=_memory(facts, units, by_name),
        cuda_graph=describe_capture(facts, by_name, scheduled, _static(nodes)),
        wrapper=facts.wrapper,
        fx_text=text,
        scheduler_nodes=_scheduler_nodes(facts, units),
        graphs={**region.texts, "post_grad": text},
    )


def describe_inductor_kernels(
    regions: Sequence[r.Region],
    launches: Mapping[str, list[tuple[str, LaunchFacts]]],
    kernels: Sequence[InductorKernel],
    target: r.Target,
) -> list[r.Kernel]:
    """All kernels. ``launches``: kernel -> its launches in one iteration, each with its region's name."""
    groups: dict[str, list[tuple[str, r.Group]]] = {}
    for region in regions:
        for group in region.groups:
            groups.setdefault(group.kernel, []).append((region.name, group))
    return [_kernel(k, groups.get(k.name, []), launches.get(k.name, []), target) for k in kernels]


def _kernel(
    kernel: InductorKernel,
    groups: list[tuple[str, r.Group]],
    launches: list[tuple[str, LaunchFacts]],
    target: r.Target,
) -> r.Kernel:
    first = groups[0][1] if groups else None
    moved, flops = (first.estimated_bytes, first.estimated_flops) if first is not None else (0, 0)
    told = {f.name: getattr(kernel.binary, f.name) for f in msgspec.structs.fields(r.Kernel)
            if hasattr(kernel.binary, f.name)}  # fmt: skip
    estimate = None
    runs_there = kernel.language != "cpp" and target.bandwidth_gbs and target.tflops_fp32
    if first is not None and runs_there:
        estimate = max(moved / (target.bandwidth_gbs * 1e3), flops / (target.tflops_fp32 * 1e6))
    return r.Kernel(
        name=kernel.name,
        language=kernel.language,
        source=kernel.source,
        grid=list(first.grid) if first is not None else [],
        config=kernel.config,
        estimated_bytes=moved,
        estimated_flops=flops,
        estimated_us=estimate,
        launches=len(launches),
        line_nodes=_line_nodes(kernel.source, launches),
        error=kernel.error,
        **told,
    )


def _line_nodes(source: str, launches: list[tuple[str, LaunchFacts]]) -> dict[int, list[str]]:
    """Line of the source -> "region/node" of every launch that shares it."""
    before = source[: source.index("@triton.jit")].count("\n") if "@triton.jit" in source else 0
    found: dict[int, list[str]] = {}
    for region, launch in launches:
        for line, nodes in launch.lines.items():
            known = found.setdefault(before + line, [])
            known.extend(name for node in nodes if (name := f"{region}/{node}") not in known)
    return found


# --- units ---------------------------------------------------------------------------------------------------------


def _units(facts: GraphFacts) -> list[_Unit]:
    """The schedule: kernels and calls in order. What computes nothing is left out."""
    assert facts.graph is not None
    finder = OriginFinder(facts.graph, facts.buffer_origins)
    launch_of = {member: launch for launch in facts.launches for member in launch.members}
    units: list[_Unit] = []
    for unit, launch in _launched(_with_results(facts.after), launch_of):
        if launch is None and unit.kind != "extern":
            continue
        order = len(units)
        name = f"group{order}" if launch is not None else f"call{order}"
        units.append(_Unit(name, unit, finder.nodes_of(unit), launch, order))
    return units


def _launched(
    scheduled: Sequence[UnitFacts], launch_of: Mapping[str, LaunchFacts]
) -> list[tuple[UnitFacts, LaunchFacts | None]]:
    """Each unit with its launch. On the CPU, units that follow one another may be one function: one unit then."""
    found: list[tuple[UnitFacts, LaunchFacts | None]] = []
    at: dict[int, int] = {}  # launch -> its place in ``found``
    for unit in scheduled:
        launch = next((launch_of[m] for m in unit.members if m in launch_of), None)
        place = at.get(id(launch)) if launch is not None else None
        if place is not None:
            found[place] = (_together(found[place][0], unit), launch)
            continue
        if launch is not None:
            at[id(launch)] = len(found)
        found.append((unit, launch))
    return found


def _together(a: UnitFacts, b: UnitFacts) -> UnitFacts:
    return replace(
        a,
        members=[*a.members, *b.members],
        origins=list(dict.fromkeys((*a.origins, *b.origins))),
        reads=[*a.reads, *(name for name in b.reads if name not in a.reads)],
        writes=[*a.writes, *b.writes],
        bytes=a.bytes + b.bytes,
        reduction=a.reduction or b.reduction,
    )


def _with_results(scheduled: Sequence[UnitFacts]) -> list[UnitFacts]:
    """The units, each call with the buffers of its results: Inductor schedules those of a call with several apart."""
    found: list[UnitFacts] = []
    maker: dict[str, UnitFacts] = {}
    for unit in scheduled:
        call = next((maker[b] for b in unit.reads if b in maker), None) if unit.kind == "result" else None
        if call is None:
            unit = replace(unit, members=list(unit.members), writes=list(unit.writes))
            found.append(unit)
        else:
            call.members.extend(unit.members)
            call.writes.extend(unit.writes)
        for name in unit.writes:
            maker[name] = call or unit
    return found


def _group(
    unit: _Unit,
    facts: GraphFacts,
    by_name: Mapping[str, r.Node],
    buffer_nodes: Mapping[str, str],
    counted: Mapping[str, int],
    kernels: Mapping[str, InductorKernel],
) -> r.Group:
    assert unit.launch is not None
    alone = [u for u in facts.before if u.name in unit.facts.members]
    saved = max(sum(u.bytes for u in alone) - unit.facts.bytes, 0) if len(alone) > 1 else 0
    kind = r.GroupKind.REDUCTION if unit.facts.reduction else r.GroupKind.POINTWISE
    if unit.launch.template or unit.facts.kind == "template":
        kind = r.GroupKind.TEMPLATE
    rule = _rule(unit, alone)
    outputs = [b for b in unit.facts.writes if b not in facts.removed]
    kernel = kernels[unit.launch.kernel]
    sizes = {k: v for k, v in unit.launch.numels.items() if isinstance(v, int)}
    grid = kernel.grid_of(sizes) if kernel.grid_of is not None and len(sizes) == len(unit.launch.numels) else []
    return r.Group(
        name=unit.name,
        kind=kind,
        nodes=unit.nodes,
        kernel=unit.launch.kernel,
        reason=_reason(unit, rule, len(alone), saved),
        rule=rule,
        score_bytes=saved,
        inputs=list(dict.fromkeys(n for b in unit.facts.reads if (n := buffer_nodes.get(b)) and n not in unit.nodes)),
        outputs=list(dict.fromkeys(n for b in outputs if (n := buffer_nodes.get(b)))),
        recomputed=[n for n in unit.nodes if counted[n] > 1],
        grid=grid,
        estimated_bytes=unit.facts.bytes,
        estimated_flops=sum(by_name[n].estimated_flops for n in unit.nodes),
        order=unit.order,
    )


def _rule(unit: _Unit, alone: Sequence[UnitFacts]) -> str:
    if len(alone) <= 1:
        return "inlined" if len(unit.nodes) > 1 else "single"
    written = {b for u in alone for b in u.writes}
    return "vertical" if any(written & (set(u.reads) - set(u.writes)) for u in alone) else "horizontal"


def _reason(unit: _Unit, rule: str, loops: int, saved: int) -> str:
    assert unit.launch is not None
    sizes = [v for k, v in unit.launch.numels.items() if v != 1 or not k.startswith("r")]
    space = " x ".join(f"{v:,}" if isinstance(v, int) else v for v in sizes)
    over = f" over {space} points" if space else ""  # C++ for the CPU has no one space
    if rule == "single":
        return f"One op{over}."
    if rule == "inlined":
        return f"A chain of ops{over}, lowered into one loop nest: each value stays in a register."
    traffic = f"{saved / 1e6:.2f} MB" if saved >= 1e4 else f"{saved:,} B"
    how = "one reads what another computes" if rule == "vertical" else "they read the same data"
    return f"{loops} loop nests{over}, fused because {how}: {traffic} less traffic (estimated)."


def _call(unit: _Unit, by_name: Mapping[str, r.Node], fx_nodes: Mapping[str, fx.Node], backend: str) -> r.ExternCall:
    name = next((n for n in reversed(unit.nodes) if by_name[n].op != "getitem"), "")
    node = by_name.get(name)
    reason, detail = r.ExternReason.NO_LOWERING, ""
    if name in fx_nodes and node is not None:
        known = static_reason(fx_nodes[name], backend != "cpu", backend)
        reason, detail = known or (library_reason(fx_nodes[name]), "")
    runs_as = unit.facts.operation
    if reason is r.ExternReason.NO_LOWERING and not detail:
        detail = "Inductor generates no code for this op and calls ATen"
    return r.ExternCall(
        name=unit.name,
        nodes=unit.nodes,
        op=node.op if node is not None else runs_as,
        reason=reason,
        detail=detail,
        runs_as=runs_as,
        estimated_bytes=node.estimated_bytes if node is not None else unit.facts.bytes,
        estimated_flops=node.estimated_flops if node is not None else 0,
        order=unit.order,
    )


def _scheduler_nodes(facts: GraphFacts, units: Sequence[_Unit]) -> list[r.SchedulerNode]:
    assert facts.graph is not None
    finder = OriginFinder(facts.graph, facts.buffer_origins)
    went = {member: unit.name for unit in units for member in unit.facts.members}
    return [
        r.SchedulerNode(
            u.name,
            u.kind,
            finder.nodes_of(u),
            u.reads,
            u.writes,
            u.bytes,
            next((went[m] for m in u.members if m in went), ""),
        )
        for u in facts.before
    ]


# --- refusals ------------------------------------------------------------------------------------------------------


def _refusals(facts: GraphFacts, units: Sequence[_Unit], by_name: Mapping[str, r.Node]) -> list[r.Refusal]:
    """Each reason once for each pair of units; neighbours for which Inductor said nothing are told as such.

    Units that compute parts of one node and nothing else (a split reduction's two steps) have no refusal: there are no
    two nodes to show it between.
    """
    owner = {member: unit for unit in units for member in unit.facts.members}
    position = {name: i for i, name in enumerate(by_name)}
    own = _own_nodes(units)
    sizes = {n.name: n.outputs[0].bytes for n in by_name.values() if n.outputs} | {
        b.name: b.bytes for b in facts.buffers
    }
    found: dict[tuple[str, str, str], r.Refusal] = {}
    said: set[frozenset[str]] = set()
    for fact in facts.refusals:
        first, second = (next((owner[m] for m in side if m in owner), None) for side in (fact.first, fact.second))
        if first is None or second is None or first is second or not first.nodes or not second.nodes:
            continue
        said.add(frozenset((first.name, second.name)))
        a, b = _closest(own[first.name], own[second.name], by_name, position)
        if a == b:
            continue
        rule, detail, lost = rule_of(fact.words), fact.words, fact.bytes
        if rule is r.RefusalRule.NO_SHARED_DATA and fact.common:
            # Inductor says so of whatever two nodes do not read at the same index in the same loops
            rule = r.RefusalRule.ACCESS_MISMATCH
            detail = f"{fact.words} at the same index; both use {', '.join(fact.common)}"
            lost = min(sum(sizes.get(n, 0) for n in fact.common), first.facts.bytes, second.facts.bytes)
        key = (a, b, fact.words)  # whichever of the two Inductor tried first
        if key not in found or lost > found[key].bytes_lost:
            found[key] = r.Refusal(a, b, rule, detail, lost)
    for first, second, moved in _neighbours(units, facts):
        if frozenset((first.name, second.name)) in said or not first.nodes or not second.nodes:
            continue
        a, b = _closest(own[first.name], own[second.name], by_name, position)
        if a == b:
            continue
        if first.launch is None or second.launch is None:
            one = first if first.launch is None else second
            rule, detail = r.RefusalRule.EXTERN, f"{one.name} is a library call ({one.facts.operation})"
        else:
            rule = r.RefusalRule.NO_REASON_RECORDED
            detail = "Inductor recorded no reason for this pair"
        found[a, b, detail] = r.Refusal(a, b, rule, detail, moved)
    return list(found.values())


def _own_nodes(units: Sequence[_Unit]) -> dict[str, list[str]]:
    """Unit -> the nodes that it computes first, or all of its nodes where it only computes some anew.

    A node that several units compute is the first one's, as it is in the window: it cannot tell which other was meant.
    """
    taken: set[str] = set()
    own: dict[str, list[str]] = {}
    for unit in units:
        own[unit.name] = [n for n in unit.nodes if n not in taken] or unit.nodes
        taken.update(unit.nodes)
    return own


def _closest(
    first: Sequence[str], second: Sequence[str], by_name: Mapping[str, r.Node], position: Mapping[str, int]
) -> tuple[str, str]:
    """A node of each, in the graph's order: those joined by an edge where some are; the same twice if there is just
    one."""
    for one, other in ((first, second), (second, first)):
        members = set(one) - set(other)
        for name in other:
            producer = next((i for i in by_name[name].inputs if i in members), None)
            if producer is not None and name not in one:
                return producer, name
    a = next((n for n in reversed(first) if n not in second), first[-1])
    b = next((n for n in second if n != a), second[0])
    return (a, b) if position[a] <= position[b] else (b, a)


def _neighbours(units: Sequence[_Unit], facts: GraphFacts) -> list[tuple[_Unit, _Unit, int]]:
    """Units of which the second reads what the first writes, and the bytes that go through memory for it alone: the
    write stays where somebody else reads it too."""
    size = {b.name: b.bytes for b in facts.buffers}
    readers = Counter(buffer for unit in units for buffer in set(unit.facts.reads))
    returned = set(facts.outputs)
    writer = {b: unit for unit in units for b in unit.facts.writes}
    through: dict[tuple[str, str], tuple[_Unit, _Unit, int]] = {}
    for unit in units:
        for buffer in unit.facts.reads:
            maker = writer.get(buffer)
            if maker is None or maker is unit:
                continue
            ways = 2 if readers[buffer] == 1 and buffer not in returned else 1
            known = through.get((maker.name, unit.name), (maker, unit, 0))
            through[maker.name, unit.name] = (maker, unit, known[2] + ways * size.get(buffer, 0))
    return list(through.values())


# --- memory --------------------------------------------------------------------------------------------------------


def _memory(facts: GraphFacts, units: Sequence[_Unit], by_name: Mapping[str, r.Node]) -> r.Memory:
    """Lifetimes along the schedule, and what takes over whose storage as the wrapper has it."""
    born: dict[str, int] = {}
    last: dict[str, int] = {}
    for unit in units:
        for name in unit.facts.writes:
            born.setdefault(name, unit.order)
            last[name] = max(last.get(name, 0), unit.order)
        for name in unit.facts.reads:
            last[name] = max(last.get(name, 0), unit.order)
    end = max(len(units) - 1, 0)
    for name in facts.outputs:
        last[name] = end
    plans = []
    change = [0] * (end + 2)
    kept = [b for b in facts.buffers if b.owned and b.name in born and b.name not in facts.removed]
    names = {b.name for b in kept}
    for buffer in kept:
        node = facts.buffer_origins.get(buffer.name, "")
        reuses = buffer.reuses if buffer.reuses in names else ""
        first, final = born[buffer.name], last[buffer.name]
        plans.append(r.BufferPlan(buffer.name, node if node in by_name else "", buffer.bytes, first, final, reuses))
        change[first] += buffer.bytes
        change[final + 1] -= buffer.bytes
    live = peak = 0
    for step in change:
        live += step
        peak = max(peak, live)
    return r.Memory(plans, peak, sum(b.bytes for b in kept))


# --- nodes ---------------------------------------------------------------------------------------------------------


def _static(nodes: Sequence[r.Node]) -> set[str]:
    return {node.name for node in nodes if node.op in ("parameter", "buffer")}


def _inferred(node: fx.Node, record: r.Node, graph: fx.GraphModule) -> r.Node:
    """A node that a pass of Inductor's made has no place in the user's code: take that of what it computes with."""
    if record.provenance.exact or node.op != "call_function":
        return record
    from compiler.provenance import provenance_of

    for other in (*node.all_input_nodes, *node.users):
        known = provenance_of(other)
        if known.frames:
            record.provenance = msgspec.structs.replace(known, exact=False)
            break
    return record
