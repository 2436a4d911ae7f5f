"""Nodes that only one graph has: what op they were decomposed from, and so which node of the other they are part of.

One compiler keeps ``gelu`` as one node where the other decomposes it into six. The last of the six is matched with the
whole; the other five carry the op they come from, and lead along the graph to a node of that op that is matched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from app.diff.nodes import FREE_OPS, family, family_of
from app.diff.records import NodeMatch
from compiler.report import Node, NodeKind, Region


def parts(region: Region, other: Region, partner: Mapping[str, str]) -> dict[str, str]:
    """Nodes of ``region`` without a partner -> the node of ``other`` whose op they are a part of.

    Args:
        partner: nodes of ``region`` -> the nodes of ``other`` that they are matched with.
    """
    nodes = {node.name: node for node in region.nodes}
    theirs = {node.name: node for node in other.nodes}
    users: dict[str, list[str]] = defaultdict(list)
    for node in region.nodes:
        for name in node.inputs:
            users[name].append(node.name)
    found: dict[str, str] = {}
    for node in region.nodes:
        if node.kind is NodeKind.CALL and node.origin and node.name not in partner:
            whole = _whole(node, nodes, users, partner, theirs)
            if whole is not None:
                found[node.name] = whole
    return found


def _whole(
    node: Node,
    nodes: Mapping[str, Node],
    users: Mapping[str, Sequence[str]],
    partner: Mapping[str, str],
    theirs: Mapping[str, Node],
) -> str | None:
    """The other's node of the op that ``node`` comes from, found through nodes of the same origin: users first."""
    wanted = family_of(node.origin)
    inputs: Callable[[str], Sequence[str]] = lambda name: nodes[name].inputs  # noqa: E731
    ways: tuple[Callable[[str], Sequence[str]], ...] = (lambda name: users.get(name, ()), inputs)
    for way in ways:
        pending, seen = [node.name], {node.name}
        while pending:
            for name in way(pending.pop(0)):
                if name in seen or (nodes[name].origin or nodes[name].op) != node.origin:
                    continue
                seen.add(name)
                match = partner.get(name)
                if match is not None and family(theirs[match]) == wanted:
                    return match
                pending.append(name)
    return None


def reasons(region: Region, other: Region, names: Sequence[str]) -> dict[str, str]:
    """Why each of these nodes of ``region`` is nothing of ``other``, as far as the graphs tell."""
    nodes = {node.name: node for node in region.nodes}
    ops = {family(node) for node in other.nodes}
    told = {}
    for name in names:
        node = nodes[name]
        if family(node) in FREE_OPS:
            told[name] = "names data another way, which the other does elsewhere or not at all"
        elif node.origin and family_of(node.origin) in ops:
            told[name] = f"decomposed from {node.origin}, of which no node of the other is left at its place"
        elif node.origin:
            told[name] = f"decomposed from {node.origin}, of which the other has no node"
        elif family(node) in ops:
            told[name] = f"the other has fewer {node.op} at this place and size"
        else:
            told[name] = f"the other has no {node.op}"
    return told


def both_ways(a: Region, b: Region, matches: Sequence[NodeMatch]) -> tuple[dict[str, str], dict[str, str]]:
    """The parts of ``a`` (to nodes of ``b``) and of ``b`` (to nodes of ``a``)."""
    forward = {match.a: match.b for match in matches}
    return parts(a, b, forward), parts(b, a, {b_name: a_name for a_name, b_name in forward.items()})
