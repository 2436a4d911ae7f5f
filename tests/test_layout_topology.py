"""The layout of a captured graph: from left to right, nothing overlaps, every dependency is drawn from end to end."""

from __future__ import annotations

import numpy as np
import pytest

from app.layout.topology import TopologyLayout, layout_topology
from compiler.report import GraphNode, GraphNodeKind
from tests.fake_runs import lab_report


def node(number: int, *dependencies: int) -> GraphNode:
    return GraphNode(number, GraphNodeKind.KERNEL, f"kernel_{number}", list(dependencies))


def overlaps(layout: TopologyLayout) -> int:
    left, top, width, height = layout.node_rect.T
    apart = (
        (left[:, None] + width[:, None] <= left[None]) | (left[None] + width[None] <= left[:, None])
        | (top[:, None] + height[:, None] <= top[None]) | (top[None] + height[None] <= top[:, None])
    )  # fmt: skip
    np.fill_diagonal(apart, True)
    return int((~apart).sum())


@pytest.fixture(scope="module")
def nodes() -> list[GraphNode]:
    return lab_report(300).regions[0].cuda_graph.topology


def test_dependencies_run_from_left_to_right(nodes: list[GraphNode]) -> None:
    layout = layout_topology(nodes)
    assert overlaps(layout) == 0
    assert len(layout.edges) == sum(len(one.dependencies) for one in nodes)
    right = layout.node_rect[:, 0] + layout.node_rect[:, 2]
    assert (right[layout.edges[:, 0]] < layout.node_rect[layout.edges[:, 1], 0]).all()


def test_every_dependency_is_drawn_from_end_to_end(nodes: list[GraphNode]) -> None:
    layout = layout_topology(nodes)
    rect = layout.node_rect
    for number, (source, target) in enumerate(layout.edges):
        pieces = layout.pieces[layout.edge_of == number]
        assert pieces[0, 0] == pytest.approx(rect[source, 0] + rect[source, 2])
        assert rect[source, 1] <= pieces[0, 1] <= rect[source, 1] + rect[source, 3]
        assert pieces[-1, 2] == pytest.approx(rect[target, 0])
        assert (pieces[1:, :2] == pieces[:-1, 2:]).all()


def test_branches_lie_above_one_another() -> None:
    layout = layout_topology([node(0), node(1, 0), node(2, 0), node(3, 1, 2)])
    left, top = layout.node_rect[:, 0], layout.node_rect[:, 1]
    assert left[1] == left[2]
    assert abs(top[1] - top[2]) >= layout.node_rect[1, 3]


def test_what_is_not_there_is_left_out() -> None:
    layout = layout_topology([node(0, 7), node(1, 0)])
    assert layout.edges.tolist() == [[0, 1]]
    assert layout_topology([]).bounds == (0.0, 0.0, 0.0, 0.0)
