"""The layout's parts: ranks, and placement against a brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.layout.graph_layout import NodeStyle
from app.layout.items import Items, Link, Spacing
from app.layout.labels import OP_PX, SHAPE_PX, dtype_text, node_size, op_label, shape_text
from app.layout.layered import arrange
from app.layout.placement import place_in_order
from app.layout.ranks import rank_items, topological_order
from compiler.report import Node, NodeKind, TensorInfo


def test_topological_order_prefers_low_indices() -> None:
    order, back = topological_order([[2], [2], [3], []])
    assert order == [0, 1, 2, 3]
    assert back == set()


def test_cycle_is_cut_at_its_lowest_item() -> None:
    order, back = topological_order([[1], [2], [0]])
    assert order == [0, 1, 2]
    assert back == {(2, 0)}


def test_order_without_back_edges_is_topological() -> None:
    successors = [[1, 3], [2], [1, 4], [0], [3]]
    order, back = topological_order(successors)
    position = {item: i for i, item in enumerate(order)}
    for a, targets in enumerate(successors):
        for b in targets:
            assert (a, b) in back or position[a] < position[b]


def test_parameters_are_pulled_to_their_consumer() -> None:
    # 0 -> 1 -> 2 -> 3 is the data; 4 -> 5 -> 3 a weight and its transpose.
    rank, late = rank_items([[1], [2], [3], [], [5], [3]])
    assert rank == [0, 1, 2, 3, 1, 2]
    assert late[4]
    assert late[5]
    assert not late[3]


def test_side_results_stay_at_their_producer() -> None:
    # 4 is the output node: it takes 1's side result and the end of the chain.
    rank, _ = rank_items([[1, 2], [4], [3], [4], []], sink=4)
    assert rank[1] == 1
    assert rank[4] == 3


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_placement_is_optimal(wished: list[float], seed: int) -> None:
    random = np.random.default_rng(seed)
    weight = random.uniform(0.5, 4.0, len(wished)).tolist()
    offset = np.concatenate([[0.0], np.cumsum(random.uniform(1, 30, len(wished) - 1))]).tolist()
    placed = np.array(place_in_order(wished, weight, offset))
    gaps = np.diff(offset)
    assert (np.diff(placed) >= gaps - 1e-6).all()

    def cost(x: np.ndarray) -> float:
        return float((np.array(weight) * (x - wished) ** 2).sum())

    best = cost(placed)
    for _ in range(200):
        # Any other allowed placement costs at least as much.
        other = placed + random.normal(0, 5, len(wished))
        other = np.maximum.accumulate(other - offset) + offset
        assert cost(other) >= best - 1e-6


def test_wishes_with_enough_room_are_kept() -> None:
    assert place_in_order([0.0, 50.0, 120.0], [1, 1, 1], [0.0, 40.0, 80.0]) == [0.0, 50.0, 120.0]


def test_chain_stands_straight_beside_a_parameter() -> None:
    items = Items()
    chain = [items.add(60, 30, rank) for rank in range(4)]
    parameter = items.add(40, 20, 1, low=True)
    links = [Link(a, b) for a, b in itertools.pairwise(chain)] + [Link(parameter, chain[2])]
    done = arrange(items, links, Spacing(20, 20))
    assert len({round(done.x[item], 3) for item in chain}) == 1


def test_long_link_is_one_straight_line_if_there_is_room() -> None:
    items = Items()
    chain = [items.add(60, 30, rank) for rank in range(6)]
    links = [Link(a, b) for a, b in itertools.pairwise(chain)] + [Link(chain[0], chain[5])]
    done = arrange(items, links, Spacing(20, 20))
    columns = {round(x1, 3) for x0, _, x1, _ in (done.pieces[i] for i in done.link_pieces[-1][1:-1])}
    assert len(columns) == 1


def test_links_of_one_value_share_their_pieces() -> None:
    items = Items()
    top = items.add(60, 30, 0)
    middle = [items.add(60, 30, rank) for rank in (1, 2)]
    ends = [items.add(60, 30, 3), items.add(60, 30, 3)]
    links = [Link(top, middle[0]), Link(middle[0], middle[1]), *(Link(top, end) for end in ends)]
    done = arrange(items, links, Spacing(20, 20))
    first, second = done.link_pieces[2], done.link_pieces[3]
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


def test_crossings_are_removed() -> None:
    items = Items()
    upper = [items.add(50, 20, 0) for _ in range(4)]
    lower = [items.add(50, 20, 1) for _ in range(4)]
    done = arrange(items, [Link(upper[i], lower[3 - i]) for i in range(4)], Spacing(20, 20))
    order = sorted(range(4), key=lambda i: done.x[upper[i]])
    assert [3 - i for i in order] == sorted(range(4), key=lambda i: done.x[lower[i]])


@pytest.mark.parametrize(
    ("op", "label"),
    [
        ("aten.add.Tensor", "add"),
        ("getitem", "getitem"),
        ("prims.convert_element_type.default", "convert_element_type"),
    ],
)
def test_op_labels(op: str, label: str) -> None:
    assert op_label(op) == label


def test_texts() -> None:
    assert shape_text(TensorInfo([8, "s0", 3], "float32")) == "8×s0×3"
    assert shape_text(TensorInfo([], "float32")) == "scalar"
    assert dtype_text("bfloat16") == "bf16"
    assert dtype_text("quint4x2") == "quint4x2"


def test_longer_text_makes_a_wider_box() -> None:
    short = Node("a", NodeKind.CALL, "aten.add.Tensor", outputs=[TensorInfo([1], "float32")])
    long = Node("a", NodeKind.CALL, "aten.native_layer_norm_backward.default", outputs=[TensorInfo([1], "float32")])
    assert node_size(long, NodeStyle.OP).width > node_size(short, NodeStyle.OP).width


@pytest.mark.parametrize("style", [NodeStyle.OP, NodeStyle.EXTERN, NodeStyle.OUTPUT])
def test_a_box_is_as_high_as_its_lines(style: NodeStyle) -> None:
    named = Node("output", NodeKind.OUTPUT, "output", [])
    shaped = Node("output", NodeKind.OUTPUT, "output", [], outputs=[TensorInfo([4096, 1024], "float32")])
    assert node_size(named, style).height >= 1.5 * OP_PX
    assert node_size(shaped, style).height >= 1.5 * (OP_PX + SHAPE_PX)
