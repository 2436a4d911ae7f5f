"""Which FX nodes each launch and library call of a program computes, as far as its texts tell.

In this order: what Inductor's own provenance mapping says of the call's handle; the graph fragment above the kernel,
which is that of its first launch; for its further launches the nodes that have the same shape in the graph; for a
library call without a mapping the next node of its op. The last two are inferred, and said to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.importing.wrapper import Program, Step
from compiler.report import Node, NodeKind


@dataclass
class Attributed:
    """A step with its FX nodes in the graph's order. ``exact``: Inductor says so."""

    step: Step
    nodes: list[str] = field(default_factory=list)
    exact: bool = True


def attribute(program: Program, nodes: Sequence[Node], mapping: Mapping[str, Sequence[str]]) -> list[Attributed]:
    """Every step with its nodes. ``mapping``: a call's handle -> FX nodes."""
    calls = [node for node in nodes if node.kind is NodeKind.CALL]
    order = {node.name: i for i, node in enumerate(calls)}
    found: list[Attributed] = []
    launched: set[str] = set()
    taken: set[str] = set()
    for step in program.steps:
        told = [name for name in mapping.get(step.handle, ()) if name in order]
        if not told and step.kernel and step.kernel not in launched:
            told = [name for name in program.kernels[step.kernel].nodes if name in order]
        launched.add(step.kernel)
        taken.update(told)
        found.append(Attributed(step, sorted(set(told), key=order.__getitem__), exact=bool(told)))
    for one in found:
        if not one.nodes:
            fragment = program.kernels[one.step.kernel].nodes if one.step.kernel else []
            pattern = [calls[order[name]] for name in fragment if name in order]
            if one.step.kernel:
                one.nodes = next_alike(pattern, calls, order, taken)
            else:
                one.nodes = next_of_op(one.step.operation, calls, taken)
            taken.update(one.nodes)
    return found


def next_of_op(operation: str, calls: Sequence[Node], taken: set[str]) -> list[str]:
    """The first node not taken yet whose op is the one that a library call names; its extra results with it."""
    name = operation.rpartition(".")[2] if operation.startswith("extern_kernels.") else ""
    packets = {f"aten.{name}"} if name else {".".join(operation.removeprefix("torch.ops.").split(".")[:2])}
    if name in ("mm", "addmm", "bias_addmm"):
        packets = {"aten.mm", "aten.addmm"}
    if name in ("bmm", "baddbmm"):
        packets = {"aten.bmm", "aten.baddbmm"}
    for node in calls:
        if node.name not in taken and ".".join(node.op.split(".")[:2]) in packets:
            results = [other.name for other in calls if other.op == "getitem" and other.inputs == [node.name]]
            return [node.name, *results]
    return []


def next_alike(pattern: Sequence[Node], calls: Sequence[Node], order: Mapping[str, int], taken: set[str]) -> list[str]:
    """Nodes that are not taken yet and are to one another what those of ``pattern`` are: equal ops, sizes and links."""
    if not pattern:
        return []
    for start in calls:
        if start.name in taken or not _alike(pattern[0], start):
            continue
        partner = {pattern[0].name: start.name}
        for node in pattern[1:]:
            other = _partner(node, partner, calls[order[start.name] + 1 :], taken)
            if other is None:
                break
            partner[node.name] = other
        if len(partner) == len(pattern):
            return sorted(partner.values(), key=order.__getitem__)
    return []


def _partner(node: Node, partner: Mapping[str, str], calls: Sequence[Node], taken: set[str]) -> str | None:
    wanted = [partner.get(name) for name in node.inputs]
    for other in calls:
        if other.name in taken or other.name in partner.values() or not _alike(node, other):
            continue
        if len(other.inputs) == len(wanted) and all(
            w is None or w == have for w, have in zip(wanted, other.inputs, strict=True)
        ):
            return other.name
    return None


def _alike(a: Node, b: Node) -> bool:
    return a.op == b.op and [t.shape for t in a.outputs] == [t.shape for t in b.outputs]
