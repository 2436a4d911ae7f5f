"""Which node of one graph is which node of another.

Two compilers number nodes differently, rewrite the graph and decompose ops, and an edited model shifts line numbers. So
a node is known by what it is (op, sizes) and where it comes from (module path, the text of its source line), and among
equals by its position. That is exact where both graphs have as many equals. What is left is inferred, in steps that ask
for less and less: ops of one family (a view and a reshape, a matrix product with and without its bias) from one place;
an op and the last of the ops that it was decomposed into; at last ops of one family and size anywhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType

from app.diff.records import NodeMatch
from compiler.report import Node, NodeKind, Region

_SAME_OPS: Mapping[str, str] = MappingProxyType(
    {
        "aten.reshape": "aten.view",
        "aten._unsafe_view": "aten.view",
        "aten.split_with_sizes": "aten.split",
        "prims.iota": "aten.arange",
        "aten.addmm": "aten.mm",
        "aten.baddbmm": "aten.bmm",
    }
)
# Ops that only name data another way: each compiler counts them to whichever unit reads them, or to none.
FREE_OPS = frozenset({"aten.view", "aten.permute", "aten.expand", "aten.unsqueeze", "aten.squeeze", "getitem"})
_ATTENTION = re.compile(r"_scaled_dot_product_\w*?attention(?:_for_cpu)?(_backward)?\b")
_Key = Callable[[Node], Hashable]


def match_nodes(a: Region, b: Region) -> list[NodeMatch]:
    """The nodes of ``a`` that ``b`` has too, in the order of ``a``."""
    if [_text(node) for node in a.nodes] == [_text(node) for node in b.nodes]:
        return [NodeMatch(node.name, node.name, exact=True) for node in a.nodes]
    left = {node.name: node for node in a.nodes}
    right = {node.name: node for node in b.nodes}
    found: dict[str, NodeMatch] = {}
    steps: tuple[tuple[_Key, bool, bool], ...] = (
        (_whole, True, False),
        (_whole, False, False),
        (_family_here, False, False),
        (_result_here, False, True),
        (_family_anywhere, False, False),
    )
    for key, exact, from_the_end in steps:
        for match in _by_key(list(left.values()), list(right.values()), key, exact, from_the_end):
            found[match.a] = match
            del left[match.a], right[match.b]
    return [found[node.name] for node in a.nodes if node.name in found]


def _by_key(a: Sequence[Node], b: Sequence[Node], key: _Key, exact: bool, from_the_end: bool) -> list[NodeMatch]:
    """Pairs of equal key, the first of one with the first of the other, or the last with the last; where ``exact``,
    only keys that both have as often. The key None never pairs."""
    theirs: dict[Hashable, list[Node]] = defaultdict(list)
    for node in b:
        if (value := key(node)) is not None:
            theirs[value].append(node)
    ours: dict[Hashable, list[Node]] = defaultdict(list)
    for node in a:
        if (value := key(node)) is not None:
            ours[value].append(node)
    matches = []
    for value, nodes in ours.items():
        others = theirs.get(value, [])
        if exact and len(others) != len(nodes):
            continue
        if from_the_end:
            nodes, others = nodes[::-1], others[::-1]
        matches += [NodeMatch(x.name, y.name, exact) for x, y in zip(nodes, others, strict=False)]
    return matches


def _text(node: Node) -> Hashable:
    return node.name, node.op, node.args, tuple(node.inputs)


def _shapes(node: Node) -> Hashable:
    return tuple((tuple(info.shape), info.dtype) for info in node.outputs)


def _where(node: Node) -> Hashable:
    frames = tuple((frame.function, frame.code or frame.line) for frame in node.provenance.frames)
    return node.provenance.module_path, frames


def _whole(node: Node) -> Hashable:
    if node.kind is NodeKind.PLACEHOLDER:
        return node.op, node.args, _shapes(node)
    return node.op, _where(node), _shapes(node)


def family(node: Node) -> str:
    """The op without its overload, by the name of those that do the same."""
    return family_of(node.op)


def family_of(op: str) -> str:
    """``family`` of an op by its name."""
    packet = _ATTENTION.sub(r"attention\1", ".".join(op.split(".")[:2]))
    return _SAME_OPS.get(packet, packet)


def _first_size(node: Node) -> Hashable:
    return tuple(node.outputs[0].shape) if node.outputs else ()


def _family_here(node: Node) -> Hashable:
    return node.kind, family(node), _where(node), _first_size(node)


def _result_here(node: Node) -> Hashable:
    """An op's place and result. Inputs and what has no known place are not told apart by it."""
    if node.kind is not NodeKind.CALL or not node.provenance.frames or family(node) in FREE_OPS:
        return None
    return _where(node), _first_size(node)


def _family_anywhere(node: Node) -> Hashable:
    return node.kind, family(node), _first_size(node)
