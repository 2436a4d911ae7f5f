"""Why units are apart: Inductor's words as our rules, the pair as FX nodes, and what fusing it would have saved.

The words themselves stay in the refusal's detail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from compiler.inductor.hooks import GraphFacts
from compiler.inductor.traffic import shared_bytes
from compiler.inductor.units import Unit
from compiler.report import Node, Refusal, RefusalRule

_RULES: tuple[tuple[str, RefusalRule], ...] = (
    # the first match counts, so the more specific words come first
    ("split scan", RefusalRule.REDUCTION_SPLIT),
    ("multi-output template", RefusalRule.COMPILER_RULE),
    ("extern", RefusalRule.EXTERN),
    ("is nop", RefusalRule.EXTERN),
    ("triton kernel", RefusalRule.EXTERN),
    ("no shared data due to indexing mismatch", RefusalRule.ACCESS_MISMATCH),
    ("no shared data", RefusalRule.NO_SHARED_DATA),
    ("memory deps did not match", RefusalRule.ACCESS_MISMATCH),
    ("buf layouts", RefusalRule.ACCESS_MISMATCH),
    ("numel", RefusalRule.DOMAIN_MISMATCH),
    ("tiling", RefusalRule.DOMAIN_MISMATCH),
    ("do not have same length", RefusalRule.DOMAIN_MISMATCH),
    ("intermediate nodes between", RefusalRule.CYCLE),
    ("must go before", RefusalRule.CYCLE),
    ("cycle", RefusalRule.CYCLE),
    ("device mismatch", RefusalRule.DEVICE),
    ("exceeds max fusion", RefusalRule.TOO_LARGE),
    ("too_many_reads_and_writes", RefusalRule.TOO_LARGE),
    ("peak memory", RefusalRule.NOT_PROFITABLE),
    ("memory_threshold", RefusalRule.NOT_PROFITABLE),
    ("register spilling", RefusalRule.NOT_PROFITABLE),
    ("will not increase", RefusalRule.NOT_PROFITABLE),
    ("not profitable", RefusalRule.NOT_PROFITABLE),
    ("mutation", RefusalRule.MUTATION),
)


def rule_of(words: str) -> RefusalRule:
    """The rule behind Inductor's words; COMPILER_RULE where it is one of its own that we have no name for."""
    return next((rule for text, rule in _RULES if text in words), RefusalRule.COMPILER_RULE)


def refusals_of(facts: GraphFacts, units: Sequence[Unit], by_name: Mapping[str, Node]) -> list[Refusal]:
    """Each reason once for each pair of units; neighbours for which Inductor said nothing are told as such.

    Units that compute parts of one node and nothing else (a split reduction's two steps) have no refusal: there are no
    two nodes to show it between.
    """
    owner = {member: unit for unit in units for member in unit.facts.members}
    position = {name: i for i, name in enumerate(by_name)}
    own = _own_nodes(units)
    lost = _Losses(units, facts)
    found: dict[tuple[str, str, str], Refusal] = {}

    def add(first: Unit, second: Unit, rule: RefusalRule, detail: str, words: str) -> None:
        a, b = _closest(own[first.name], own[second.name], by_name, position)
        key = (a, b, words)  # whichever of the two Inductor tried first
        bytes_lost = lost.of(first, second)
        if a != b and (key not in found or bytes_lost > found[key].bytes_lost):
            found[key] = Refusal(a, b, rule, detail, bytes_lost)

    said: set[frozenset[str]] = set()
    for fact in facts.refusals:
        first, second = (next((owner[m] for m in side if m in owner), None) for side in (fact.first, fact.second))
        if first is None or second is None or first is second or not first.nodes or not second.nodes:
            continue
        said.add(frozenset((first.name, second.name)))
        rule, detail = rule_of(fact.words), fact.words
        for place, unit in (("node1", first), ("node2", second)):  # which Inductor leaves to whoever knows the call
            detail = detail.replace(place, unit.name)
        if rule is RefusalRule.NO_SHARED_DATA and fact.common:
            # Inductor says so of whatever two nodes do not read at the same index in the same loops
            names = ", ".join(fact.common)
            if lost.overlap(first, second, fact.common):
                rule, detail = RefusalRule.ACCESS_MISMATCH, f"{detail} at the same index; both use {names}"
            else:
                detail = f"{detail}: both use {names}, and none of its elements in common"
        add(first, second, rule, detail, fact.words)
    for first, second in _neighbours(units):
        if frozenset((first.name, second.name)) in said or not first.nodes or not second.nodes:
            continue
        if first.launch is None or second.launch is None:
            one = first if first.launch is None else second
            rule, detail = RefusalRule.EXTERN, f"{one.name} is a library call ({one.facts.operation})"
        else:
            rule, detail = RefusalRule.NO_REASON_RECORDED, "Inductor recorded no reason for this pair"
        add(first, second, rule, detail, detail)
    return list(found.values())


class _Losses:
    """Bytes that one kernel in place of two units would save, as our own compiler counts them: what both use goes
    through memory once, and what one writes for the other alone not at all."""

    def __init__(self, units: Sequence[Unit], facts: GraphFacts) -> None:
        self._readers = Counter(name for unit in units for name in {*unit.facts.reads} - {*unit.facts.writes})
        self._returned = set(facts.outputs)

    def of(self, a: Unit, b: Unit) -> int:
        """Bytes (estimated); what two units use of different parts of a buffer is not shared."""
        total = 0
        for name in a.facts.touched.keys() & b.facts.touched.keys():
            one, other = a.facts.touched[name], b.facts.touched[name]
            shared = shared_bytes(one, other)
            total += shared
            for writer, reader, written in ((a, b, one), (b, a, other)):
                handed_on = name in writer.facts.writes and name in reader.facts.reads
                if handed_on and shared and self._readers[name] == 1 and name not in self._returned:
                    total += written.bytes
        return total

    @staticmethod
    def overlap(a: Unit, b: Unit, names: Iterable[str]) -> bool:
        """Whether the units may use the same elements of one of these buffers."""
        pairs = ((a.facts.touched.get(name), b.facts.touched.get(name)) for name in names)
        return any(one is None or other is None or shared_bytes(one, other) or not one.numel for one, other in pairs)


def _own_nodes(units: Sequence[Unit]) -> dict[str, list[str]]:
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
    first: Sequence[str], second: Sequence[str], by_name: Mapping[str, Node], position: Mapping[str, int]
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


def _neighbours(units: Sequence[Unit]) -> list[tuple[Unit, Unit]]:
    """Units of which the second reads what the first writes."""
    writer = {b: unit for unit in units for b in unit.facts.writes}
    made = ((writer[buffer], unit) for unit in units for buffer in unit.facts.reads if buffer in writer)
    return list({(one.name, other.name): (one, other) for one, other in made if one is not other}.values())
