"""Which node of one graph is which node of another.

Two compilers number nodes differently and rewrite the graph, and an edited model shifts line numbers. So a node is
known by what it is (op, sizes) and where it comes from (module path, the text of its source line), and among equals by
its position. That is exact where both graphs have as many equals; else, and for what is left, by op and position alone,
it is inferred.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from app.diff.records import NodeMatch
from compiler.report import Node, NodeKind, Region

_ATTENTION = re.compile(r"_scaled_dot_product_\w*?attention(?:_for_cpu)?(_backward)?\b")
_Key = Callable[[Node], Hashable]


def match_nodes(a: Region, b: Region) -> list[NodeMatch]:
    """The nodes of ``a`` that ``b`` has too, in the order of ``a``."""
    if [_text(node) for node in a.nodes] == [_text(node) for node in b.nodes]:
        return [NodeMatch(node.name, node.name, exact=True) for node in a.nodes]
    left = {node.name: node for node in a.nodes}
    right = {node.name: node for node in b.nodes}
    found: dict[str, NodeMatch] = {}
    for key, exact in ((_whole, True), (_whole, False), (_place, False), (_kind_of_op, False)):
        for match in _by_key(list(left.values()), list(right.values()), key, exact):
            found[match.a] = match
            del left[match.a], right[match.b]
    return [found[node.name] for node in a.nodes if node.name in found]


def _by_key(a: Sequence[Node], b: Sequence[Node], key: _Key, exact: bool) -> list[NodeMatch]:
    """Pairs of equal key, the first of one with the first of the other; where ``exact``, only keys that both have as
    often."""
    theirs: dict[Hashable, list[Node]] = defaultdict(list)
    for node in b:
        theirs[key(node)].append(node)
    ours: dict[Hashable, list[Node]] = defaultdict(list)
    for node in a:
        ours[key(node)].append(node)
    matches = []
    for value, nodes in ours.items():
        others = theirs.get(value, [])
        if exact and len(others) != len(nodes):
            continue
        matches += [NodeMatch(x.name, y.name, exact) for x, y in zip(nodes, others, strict=False)]
    return matches


def _text(node: Node) -> Hashable:
    return node.name, node.op, node.args, tuple(node.inputs)


def _shapes(node: Node) -> Hashable:
    return tuple((tuple(info.shape), info.dtype) for info in node.outputs)


def _whole(node: Node) -> Hashable:
    if node.kind is NodeKind.PLACEHOLDER:
        return node.op, node.args, _shapes(node)
    frames = tuple((frame.function, frame.code or frame.line) for frame in node.provenance.frames)
    return node.op, node.provenance.module_path, frames, _shapes(node)


def _place(node: Node) -> Hashable:
    return node.kind, node.op, node.provenance.module_path, _shapes(node)


def _kind_of_op(node: Node) -> Hashable:
    """Overloads aside: one compiler has "aten.add.Tensor" where the other's passes left "aten.add.Scalar", and
    attention runs through whichever kernel the target has."""
    op = _ATTENTION.sub(r"attention\1", ".".join(node.op.split(".")[:2]))
    return node.kind, op, tuple(tuple(info.shape) for info in node.outputs[:1]) if "attention" in op else _shapes(node)
