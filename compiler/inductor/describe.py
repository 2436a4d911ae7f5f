"""What Inductor did, as report records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import torch
from torch import fx

from compiler import report as r
from compiler.describe import describe_node
from compiler.inductor.hooks import GraphFacts, LaunchFacts, UnitFacts
from compiler.inductor.kernels import InductorKernel
from compiler.inductor.origins import OriginFinder
from compiler.inductor.refusals import refusals_of
from compiler.inductor.run import InductorRegion
from compiler.inductor.skips import describe_capture
from compiler.inductor.units import Unit, arithmetic_of, units_of
from compiler.lowering.extern import library_reason, static_reason
from compiler.sizes import UNKNOWN_HINT
from compiler.texts import size_text


def describe_inductor_region(region: InductorRegion, kernels: Mapping[str, InductorKernel], backend: str) -> r.Region:
    """One graph for a target of this ``backend``: nodes, groups, calls, refusals, memory, CUDA Graph answer, texts."""
    facts = region.facts
    assert facts.graph is not None
    nodes = [_inferred(node, describe_node(node, region.kind)) for node in facts.graph.graph.nodes]
    by_name = {node.name: node for node in nodes}
    fx_nodes = {node.name: node for node in facts.graph.graph.nodes}
    units = units_of(facts)
    counted: dict[str, int] = {}
    for unit in units:
        if unit.launch is not None:
            for name in unit.nodes:
                counted[name] = counted.get(name, 0) + 1
    buffer_nodes = {n.name: n.name for n in nodes} | facts.buffer_origins
    flops = {
        name: sum(by_name[n].estimated_flops for n in computed) for name, computed in arithmetic_of(units).items()
    }
    calls_of = {name: unit for unit in units if unit.launch is None for name in unit.nodes}
    groups = [
        _group(u, facts, flops[u.name], _beside_a_call(u, calls_of), buffer_nodes, counted, kernels)
        for u in units
        if u.launch is not None
    ]
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
        refusals=refusals_of(facts, units, by_name),
        memory=_memory(facts, units, by_name),
        cuda_graph=describe_capture(facts, by_name, scheduled, _static(nodes)),
        wrapper=facts.wrapper,
        fx_text=text,
        scheduler_nodes=_scheduler_nodes(facts, units),
        graphs={**region.texts, "post_grad": text},
        sizes=_example_sizes(facts.graph),
    )


def _example_sizes(graph: fx.GraphModule) -> dict[str, int]:
    """Each symbolic size among the inputs, as it is with the example's; a jagged tensor's ragged one is no number."""
    values = (node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder")
    known = (value.node for value in values if isinstance(value, torch.SymInt) and value.node.hint is not None)
    # a backward also gets products of sizes, and sizes that the forward found to be fixed
    hints = {str(node.expr): node.hint for node in known if node.expr.is_Symbol}
    return {name: hint if isinstance(hint, int) else UNKNOWN_HINT for name, hint in hints.items()}


def describe_inductor_kernels(
    regions: Sequence[r.Region],
    launches: Mapping[str, list[tuple[str, LaunchFacts]]],
    called: Mapping[str, int],
    kernels: Sequence[InductorKernel],
    target: r.Target,
) -> list[r.Kernel]:
    """All kernels.

    Args:
        launches: kernel -> its launches by the schedule in one iteration, each with its region's name.
        called: kernel -> how often the programs call it: those of the model's own, which no schedule has, too.
    """
    groups: dict[str, list[tuple[str, r.Group]]] = {}
    for region in regions:
        for group in region.groups:
            groups.setdefault(group.kernel, []).append((region.name, group))
    return [
        _kernel(k, groups.get(k.name, []), launches.get(k.name, []), called.get(k.name, 0), target) for k in kernels
    ]


def _kernel(
    kernel: InductorKernel,
    groups: list[tuple[str, r.Group]],
    launches: list[tuple[str, LaunchFacts]],
    called: int,
    target: r.Target,
) -> r.Kernel:
    first = groups[0][1] if groups else None
    moved, flops = (first.estimated_bytes, first.estimated_flops) if first is not None else (0, 0)
    told = {f.name: getattr(kernel.binary, f.name) for f in msgspec.structs.fields(r.Kernel)
            if hasattr(kernel.binary, f.name)}  # fmt: skip
    known = first is not None and kernel.language != "cpp"
    return r.Kernel(
        name=kernel.name,
        language=kernel.language,
        source=kernel.source,
        grid=list(first.grid) if first is not None else [],
        config=kernel.config,
        estimated_bytes=moved,
        estimated_flops=flops,
        estimated_us=target.shortest_us(moved, flops) if known else None,
        launches=max(len(launches), called),
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


def _group(
    unit: Unit,
    facts: GraphFacts,
    flops: int,
    beside_a_call: str,
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
    rule = "beside_a_call" if beside_a_call else _rule(unit, alone)
    outputs = [b for b in unit.facts.writes if b not in facts.removed]
    kernel = kernels[unit.launch.kernel]
    grid = kernel.grid_of(unit.launch.example) if kernel.grid_of is not None else unit.launch.grid
    return r.Group(
        name=unit.name,
        kind=kind,
        nodes=unit.nodes,
        kernel=unit.launch.kernel,
        reason=beside_a_call or _reason(unit, rule, len(alone), saved),
        rule=rule,
        score_bytes=saved,
        inputs=list(dict.fromkeys(n for b in unit.facts.reads if (n := buffer_nodes.get(b)) and n not in unit.nodes)),
        outputs=list(dict.fromkeys(n for b in outputs if (n := buffer_nodes.get(b)))),
        recomputed=[n for n in unit.nodes if counted[n] > 1],
        grid=grid,
        estimated_bytes=unit.facts.bytes,
        estimated_flops=flops,
        order=unit.order,
    )


def _beside_a_call(unit: Unit, calls: Mapping[str, Unit]) -> str:
    """Why there is a kernel with the node of a library call alone, in a sentence; "" for any other."""
    call = calls.get(unit.nodes[0]) if unit.nodes else None
    if call is None or not set(unit.nodes) <= set(call.nodes):
        return ""
    name = call.nodes[-1]
    if not set(call.facts.writes) & set(unit.facts.reads):
        return f"An operand of {name}, copied into the layout that the library is given{_space(unit)}."
    if len(unit.facts.reads) == 1:
        return f"The result of {name}, copied into another layout{_space(unit)}."
    return f"What the library's call leaves of {name}, such as a bias,{_space(unit)}."


def _space(unit: Unit) -> str:
    """The unit's loops; "" for C++, which has no one space."""
    assert unit.launch is not None
    sizes = [v for k, v in unit.launch.numels.items() if v != 1 or not k.startswith("r")]
    space = " × ".join(f"{v:,}" if isinstance(v, int) else v for v in sizes)
    return f" over {space} points" if space else ""


def _rule(unit: Unit, alone: Sequence[UnitFacts]) -> str:
    if len(alone) <= 1:
        return "inlined" if len(unit.nodes) > 1 else "single"
    written = {b for u in alone for b in u.writes}
    return "vertical" if any(written & (set(u.reads) - set(u.writes)) for u in alone) else "horizontal"


def _reason(unit: Unit, rule: str, loops: int, saved: int) -> str:
    over = _space(unit)
    if rule == "single":
        return f"One op{over}."
    if rule == "inlined":
        return f"A chain of ops{over}, lowered into one loop nest: each value stays in a register."
    how = "one reads what another computes" if rule == "vertical" else "they read the same data"
    return f"{loops} loop nests{over}, fused because {how}: {size_text(saved)} less traffic (estimated)."


def _call(unit: Unit, by_name: Mapping[str, r.Node], fx_nodes: Mapping[str, fx.Node], backend: str) -> r.ExternCall:
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
        estimated_bytes=_call_bytes(unit, node),
        estimated_flops=node.estimated_flops if node is not None else 0,
        order=unit.order,
    )


def _call_bytes(unit: Unit, node: r.Node | None) -> int:
    """The less of what the op moves and what the call does: an index reads some elements, and a bias may be a
    kernel's."""
    known = (unit.facts.bytes, node.estimated_bytes if node is not None else 0)
    return min((count for count in known if count), default=0)


def _scheduler_nodes(facts: GraphFacts, units: Sequence[Unit]) -> list[r.SchedulerNode]:
    assert facts.graph is not None
    finder = OriginFinder(facts.graph, facts.buffer_origins, {b.name: b.within for b in facts.buffers})
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


# --- memory --------------------------------------------------------------------------------------------------------


def _memory(facts: GraphFacts, units: Sequence[Unit], by_name: Mapping[str, r.Node]) -> r.Memory:
    """Lifetimes along the schedule, and what takes over whose storage as the wrapper has it; in a backward also what
    the forward saved for it, which the wrapper lets go of after its last use."""
    born: dict[str, int] = {}
    last: dict[str, int] = {}
    within = {b.name: b.within for b in facts.buffers}
    for unit in units:
        for name in unit.facts.writes:
            born.setdefault(name, unit.order)
        for name in _with_its_memory([*unit.facts.writes, *unit.facts.reads], within):
            last[name] = unit.order
    end = max(len(units) - 1, 0)
    last.update(dict.fromkeys(_with_its_memory(facts.outputs, within), end))
    plans = []
    change = [0] * (end + 2)
    saved = {n.name: sum(o.bytes for o in n.outputs) for n in by_name.values() if n.op == "saved" and n.name in last}
    for name, size in saved.items():
        plans.append(r.BufferPlan(name, name, size, 0, last[name], saved=True))
        change[0] += size
        change[last[name] + 1] -= size
    kept = [b for b in facts.buffers if b.owned and b.name in born and b.name not in facts.removed]
    names = {*saved, *(b.name for b in kept)}
    for buffer in kept:
        node = facts.buffer_origins.get(buffer.name, "")
        reuses = buffer.reuses if buffer.reuses in names else ""
        first, final = born[buffer.name], last[buffer.name]
        plans.append(r.BufferPlan(buffer.name, node if node in by_name else "", buffer.bytes, first, final, reuses))
        counted = max(first, last[reuses] + 1) if reuses else first  # what a kernel writes over counts until then
        change[counted] += buffer.bytes
        change[final + 1] -= buffer.bytes
    live = peak = 0
    for step in change:
        live += step
        peak = max(peak, live)
    return r.Memory(plans, peak, sum(b.bytes for b in kept))


def _with_its_memory(names: Iterable[str], within: Mapping[str, Sequence[str]]) -> set[str]:
    """Buffers and those whose memory they are in: whoever uses a view, or what was written into, needs them as well."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(within.get(name, ()))
    return found


# --- nodes ---------------------------------------------------------------------------------------------------------


def _static(nodes: Sequence[r.Node]) -> set[str]:
    return {node.name for node in nodes if node.op in ("parameter", "buffer")}


def _inferred(node: fx.Node, record: r.Node) -> r.Node:
    """A node that a pass of Inductor's made has no place in the user's code: take that of the nearest node that has
    one, of what it computes with before what uses it."""
    if record.provenance.exact or node.op != "call_function":
        return record
    from compiler.provenance import provenance_of

    near = deque([node])
    seen = {node}
    while near:
        for other in (current := near.popleft()).all_input_nodes + list(current.users):
            if other in seen:
                continue
            known = provenance_of(other)
            if known.frames:
                record.provenance = msgspec.structs.replace(known, exact=False)
                return record
            seen.add(other)
            near.append(other)
    return record
