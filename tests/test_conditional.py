"""Bodies of conditional nodes out of the driver's description of a graph, one that a driver of CUDA 13 printed."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from compiler.runtime.conditional import Body, conditionals

PRINTED = """digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="solid" shape="invtrapezium"label="0
MEMSET
node handle: 0x0000000029A61BA0
(0,1024)
"];

"graph_1_node_1"[style="bold" shape="record" label="{
CONDITIONAL
| {ID | 1}
| {node handle| 0x0000000029A62308}
| {Conditional Type| IF}
| {True|graph_2}
}
"];

"graph_1_node_2"[style="bold" shape="record" label="{
CONDITIONAL
| {ID | 2}
| {node handle| 0x0000000029A62A70}
| {Conditional Type| WHILE}
| {True|graph_3}
}
"];

"graph_1_node_0" -> "graph_1_node_1";
"graph_1_node_1" -> "graph_1_node_2";
}
subgraph cluster_2 {
label="graph_2" graph[style="dashed"];
"graph_2_node_0"[style="solid" shape="invtrapezium"label="0
MEMSET
node handle: 0x0000000029A631D8
(0,1024)
"];

"graph_2_node_1"[style="solid" shape="invtrapezium"label="1
MEMSET
node handle: 0x0000000029A63940
(0,1024)
"];

"graph_2_node_0" -> "graph_2_node_1";
}
subgraph cluster_3 {
label="graph_3" graph[style="dashed"];
}
}
"""


def test_each_conditional_has_its_bodies() -> None:
    found = conditionals(PRINTED)
    assert set(found) == {0x29A62308, 0x29A62A70}
    branch, loop = found[0x29A62308], found[0x29A62A70]
    assert (branch.kind, loop.kind) == ("IF", "WHILE")
    assert branch.bodies == {"True": Body([0x29A631D8, 0x29A63940], [(0x29A631D8, 0x29A63940)])}
    assert loop.bodies == {"True": Body()}


def test_a_graph_without_conditionals_has_none() -> None:
    assert conditionals("") == {}
    assert conditionals('digraph dot {\nsubgraph cluster_1 {\nlabel="graph_1" graph[style="dashed"];\n}\n}') == {}
