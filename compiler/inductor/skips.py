"""Why Inductor's CUDA Graphs would leave out a graph, or be split in it, by Inductor's own rules.

They are told whether CUDA Graphs are on in the compilation or not: the rules look at the graph alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from compiler import report as r
from compiler.dynamo.frames import parse_stack
from compiler.inductor.hooks import GraphFacts, UnitFacts

_PREFIX = re.compile(r"^(skipping cudagraphs due to|disabling cudagraphs due to)\s+", re.I)
_IN_BRACKETS = re.compile(r"\((\w+)\)")
_STACK = re.compile(r"\s*Found from\s*:?\s*", re.I)

# the first match counts
_RULES: tuple[tuple[str, str], ...] = (
    ("cpu device", "cpu_op"),
    ("cpu ops", "cpu_op"),
    ("devicecopy", "device_copy"),
    ("cross-device", "device_copy"),  # from torch 2.15 on
    ("multiple device", "several_devices"),
    ("mutated inputs", "mutated_input"),
    ("input mutation", "mutated_input"),
    ("non-tensor", "unsupported_input"),
    ("incompatible op", "incompatible_op"),
    ("unsafe custom op", "incompatible_op"),
    ("custom partition op", "incompatible_op"),
    ("conditional", "control_flow"),
    ("switch ops", "control_flow"),  # from torch 2.14 on
    ("unbacked", "data_dependent_shape"),
    ("dynamic shape", "dynamic_shape"),
    ("symbolic shape", "dynamic_shape"),
    ("caching allocator", "allocator"),
    ("cpp wrapper", "option"),
    ("cpp-wrapper", "option"),
    ("partition", "partitions"),
)


def skip_rule(message: str) -> str:
    """The rule behind one of Inductor's messages; "other" for one without a name here."""
    words = message.lower()
    return next((rule for text, rule in _RULES if text in words), "other")


def skip_reason(message: str, nodes: Mapping[str, r.Node]) -> r.SkipReason:
    """One of Inductor's messages, which may carry its prefix twice and a stack trace, as a record.

    The node is the one that it names in brackets, if that is one of ``nodes``.
    """
    text = message.strip()
    while (shorter := _PREFIX.sub("", text)) != text:
        text = shorter
    words, *stack = _STACK.split(text, maxsplit=1)
    frames = parse_stack(stack[0]) if stack else []
    named = next((nodes[name] for name in _IN_BRACKETS.findall(words) if name in nodes), None)
    source = (_source(named) if named is not None else None) or (frames[0] if frames else None)
    detail = " ".join(words.split()).removesuffix(".")
    return r.SkipReason(skip_rule(words), detail, named.name if named is not None else "", source)


def describe_capture(
    facts: GraphFacts, nodes: Mapping[str, r.Node], unit_nodes: Mapping[str, Sequence[str]], static_inputs: set[str]
) -> r.CudaGraph:
    """The static answer for one graph.

    Args:
        unit_nodes: name of a scheduled unit or a member of it -> its FX nodes.
        static_inputs: parameters and buffers, which a captured graph may write to.
    """
    reasons = []
    for name in facts.mutated_inputs:
        if name not in static_inputs and name in nodes:
            detail = f"{name}, an input of the caller's, is written to"
            reasons.append(r.SkipReason("mutated_input", detail, name, _written_at(name, nodes)))
    if facts.incompatible in nodes:
        node = nodes[facts.incompatible]
        detail = f"{node.op} cannot be part of a CUDA Graph"
        reasons.append(r.SkipReason("incompatible_op", detail, node.name, _source(node)))
    for unit in facts.after:
        if unit.partition_reason and unit.kind != "nop":
            reasons.append(_split(unit, nodes, unit_nodes.get(unit.name, ())))
    for message in facts.skips:
        reasons.append(skip_reason(message, nodes))
    found: dict[tuple[str, str, str], r.SkipReason] = {}
    for reason in reasons:
        found.setdefault((reason.rule, reason.node, reason.detail), reason)
    return r.CudaGraph(capturable=not found, partitions=_partitions(facts.after), skip_reasons=list(found.values()))


def _split(unit: UnitFacts, nodes: Mapping[str, r.Node], names: Sequence[str]) -> r.SkipReason:
    computed = [nodes[name] for name in names if name in nodes]
    node = next((node for node in reversed(computed) if node.op != "getitem"), None)
    what = f"{node.op}: " if node is not None else "A check of a size: " if unit.kind == "assert" else ""
    detail = f"{what}{unit.partition_reason}; Inductor splits the CUDA Graph here"
    return r.SkipReason(
        skip_rule(unit.partition_reason),
        detail,
        node.name if node is not None else "",
        _source(node) if node is not None else None,
    )


def _written_at(name: str, nodes: Mapping[str, r.Node]) -> r.SourceLine | None:
    """The user's line that writes to an input: of the op that does, often a copy of what was computed instead."""
    writers = (n for n in nodes.values() if n.inputs[:1] == [name] and n.op.rpartition(".")[0].endswith("_"))
    return next((source for writer in writers if (source := _source(writer)) is not None), None)


def _source(node: r.Node) -> r.SourceLine | None:
    return node.provenance.frames[0] if node.provenance.frames else None


def _partitions(units: Sequence[UnitFacts]) -> int:
    """Runs of units that could be captured together."""
    kept = [not unit.partition_reason for unit in units if unit.kind != "nop"]
    return sum(now and not before for before, now in zip([False, *kept], kept, strict=False))
