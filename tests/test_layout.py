"""The layout of whole regions: nothing overlaps, edges go down, and equal regions look equal."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from app.layout import GraphLayout, LayoutCancelled, NodeStyle, layout_region
from app.layout.labels import TITLE_HEIGHT
from compiler.report import ExternCall, ExternReason, Group, GroupKind, Node, NodeKind, Region, TensorInfo
from tests.fake_reports import backward_region, chain_region, transformer_region


def _node(name: str, *inputs: str, kind: NodeKind = NodeKind.CALL, op: str = "aten.add.Tensor") -> Node:
    return Node(name, kind, op, list(inputs), outputs=[TensorInfo([8, 16], "float32")])


def _region(
    nodes: list[Node], groups: dict[str, list[str]] | None = None, externs: list[ExternCall] | None = None
) -> Region:
    made = [Group(name, GroupKind.POINTWISE, members, f"triton_{name}", "") for name, members in (groups or {}).items()]
    return Region("region_0", "inference", nodes, made, externs or [])


def _overlaps(rects: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of rectangles that share area, by a sweep from top to bottom."""
    order = np.argsort(rects[:, 1])
    found: list[tuple[int, int]] = []
    active: list[int] = []
    for i in order:
        x, y, width, _height = rects[i]
        active = [j for j in active if rects[j, 1] + rects[j, 3] > y + 0.01]
        found += [
            (j, int(i)) for j in active if rects[j, 0] + rects[j, 2] > x + 0.01 and x + width > rects[j, 0] + 0.01
        ]
        active.append(int(i))
    return found


def _check(region: Region) -> GraphLayout:
    """Every invariant of a layout."""
    layout = layout_region(region)
    assert layout.names == tuple(node.name for node in region.nodes)
    assert np.isfinite(layout.node_rect).all()
    assert (layout.node_rect[:, 2:] > 0).all()
    lone = layout.node_rect[layout.node_group < 0]
    outer_stubs = layout.stub_rect[[not _inside_any(rect, layout.group_rect) for rect in layout.stub_rect]]
    upper = np.concatenate([lone, layout.group_rect, outer_stubs])
    assert _overlaps(upper) == []
    assert _overlaps(np.concatenate([layout.node_rect, layout.stub_rect])) == []
    for node, box in enumerate(layout.node_group):
        if box >= 0:
            inner, outer = layout.node_rect[node], layout.group_rect[box]
            assert inner[0] >= outer[0]
            assert inner[1] >= outer[1] + TITLE_HEIGHT
            assert inner[0] + inner[2] <= outer[0] + outer[2] + 0.01
            assert inner[1] + inner[3] <= outer[1] + outer[3] + 0.01
    if len(layout.pieces):
        assert (layout.pieces[:, 3] >= layout.pieces[:, 1]).all(), "a piece goes up"
    _check_edges(region, layout)
    return layout


def _inside_any(rect: np.ndarray, boxes: np.ndarray) -> bool:
    x, y = rect[0] + rect[2] / 2, rect[1] + rect[3] / 2
    return bool(
        (
            (boxes[:, 0] < x) & (x < boxes[:, 0] + boxes[:, 2]) & (boxes[:, 1] < y) & (y < boxes[:, 1] + boxes[:, 3])
        ).any()
    )


def _check_edges(region: Region, layout: GraphLayout) -> None:
    """Every FX edge is there once; drawn ones lead from the producer's bottom to the consumer's top without gaps."""
    index = {name: i for i, name in enumerate(layout.names)}
    wanted = sorted((index[a], i) for i, node in enumerate(region.nodes) for a in dict.fromkeys(node.inputs))
    assert sorted(map(tuple, layout.edges.tolist())) == wanted
    for edge, (producer, consumer) in enumerate(layout.edges):
        if layout.edge_cut[edge]:
            continue
        used = layout.pieces[layout.edge_pieces[layout.edge_start[edge] : layout.edge_start[edge + 1]]]
        source, target = layout.node_rect[producer], layout.node_rect[consumer]
        assert source[1] + source[3] <= target[1] + 0.01
        assert used[0, 1] == pytest.approx(source[1] + source[3], abs=0.1)
        assert source[0] - 0.1 <= used[0, 0] <= source[0] + source[2] + 0.1
        assert used[-1, 3] == pytest.approx(target[1], abs=0.1)
        assert target[0] - 0.1 <= used[-1, 2] <= target[0] + target[2] + 0.1
        np.testing.assert_allclose(used[1:, :2], used[:-1, 2:], atol=0.25)


@pytest.mark.parametrize("nodes", [60, 700])
def test_inference_graph(nodes: int) -> None:
    _check(transformer_region(nodes))


def test_training_graphs() -> None:
    _check(transformer_region(500, name="forward", kind="forward"))
    _check(backward_region(500))


def test_five_thousand_nodes_stay_narrow_and_linear() -> None:
    small, large = layout_region(transformer_region(600)), _check(transformer_region(5000))
    assert large.bounds[2] < 4 * small.bounds[2], "a deep graph must not drift sideways"
    pieces_per_node = [len(layout.pieces) / len(layout.names) for layout in (small, large)]
    assert pieces_per_node[1] < 1.5 * pieces_per_node[0], "inputs shared by all layers must not cross every row"


def test_shared_inputs_are_cut_to_named_stubs() -> None:
    layout = layout_region(transformer_region(700))
    assert "rotary_cos" in layout.stub_labels
    for label, owner, peer in zip(layout.stub_labels, layout.stub_owner, layout.stub_peer, strict=True):
        if label == "rotary_cos":
            assert layout.names[peer] == "rotary_cos"
            assert "rotary_cos" in transformer_region(700).nodes[owner].inputs


def test_empty_region() -> None:
    layout = layout_region(_region([]))
    assert layout.bounds == (0.0, 0.0, 0.0, 0.0)
    assert len(layout.edges) == len(layout.pieces) == 0


def test_one_node() -> None:
    layout = _check(_region([_node("x", kind=NodeKind.PLACEHOLDER, op="input")]))
    assert layout.node_style.tolist() == [NodeStyle.PILL]


def test_disconnected_parts_and_unused_inputs() -> None:
    unused = [_node(f"unused_{i}", kind=NodeKind.PLACEHOLDER, op="parameter") for i in range(60)]
    parts = [_node(f"{name}_{part}", *inputs) for part in "abc" for name, inputs in (("p", ()), ("q", (f"p_{part}",)))]
    layout = _check(_region([*unused, *parts]))
    assert layout.bounds[2] < 60 * 90, "unused inputs are wrapped into rows"


def test_groups_that_wait_for_each_other() -> None:
    nodes = [_node("a"), _node("b", "a"), _node("c", "b"), _node("d", "c")]
    layout = layout_region(_region(nodes, {"odd": ["a", "c"], "even": ["b", "d"]}))
    assert set(layout.group_names) == {"odd", "even"}
    assert layout.edge_cut.any(), "one of the edges between the groups closes the cycle"
    assert _overlaps(layout.group_rect) == []
    assert len(layout.edges) == 3


def test_three_groups_in_a_cycle_with_lone_nodes_between() -> None:
    nodes = [_node(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(12)]
    groups = {f"g{k}": [f"n{i}" for i in range(12) if i % 4 == k] for k in range(3)}
    layout = layout_region(_region(nodes, groups))
    assert len(layout.edges) == 11
    assert _overlaps(np.concatenate([layout.group_rect, layout.node_rect[layout.node_group < 0]])) == []


def test_recomputed_node_is_drawn_in_its_first_group() -> None:
    nodes = [_node("x"), _node("shared", "x"), _node("p", "shared"), _node("q", "shared")]
    layout = _check(_region(nodes, {"first": ["shared", "p"], "second": ["shared", "q"]}))
    drawn_in = layout.group_names[layout.node_group[layout.names.index("shared")]]
    assert drawn_in == "first"


def test_group_of_only_recomputed_nodes_has_no_box() -> None:
    layout = _check(_region([_node("x"), _node("y", "x")], {"first": ["x", "y"], "second": ["y"]}))
    assert layout.group_names == ("first",)


def test_extern_calls() -> None:
    nodes = [_node("x"), _node("mm", "x", op="aten.mm.default"), _node("sdpa", "mm"), _node("item", "sdpa")]
    calls = [
        ExternCall("call_0", ["mm"], "aten.mm.default", ExternReason.LIBRARY_IS_FASTER),
        ExternCall("call_1", ["sdpa", "item"], "aten.sdpa", ExternReason.LIBRARY_IS_FASTER),
    ]
    layout = _check(_region(nodes, externs=calls))
    styles = dict(zip(layout.names, layout.node_style, strict=True))
    assert styles["mm"] == styles["sdpa"] == NodeStyle.EXTERN
    assert styles["x"] == NodeStyle.OP
    assert layout.group_names == ("call_1",), "an extern call of several nodes is a box, of one node that node"


def test_one_huge_group() -> None:
    layout = _check(chain_region(["aten.relu.default", "aten.sin.default"] * 400))
    assert len(layout.group_names) == 1


def test_huge_group_that_reads_inputs_all_along() -> None:
    inputs = [_node(f"x{i}", kind=NodeKind.PLACEHOLDER, op="input") for i in range(300)]
    chain = [_node(f"n{i}", f"x{i}", *([f"n{i - 1}"] if i else [])) for i in range(300)]
    _check(_region([*inputs, *chain], {"g": [node.name for node in chain]}))


def test_long_edges_inside_a_group_are_cut_too() -> None:
    nodes = [_node("x", kind=NodeKind.PLACEHOLDER, op="input"), _node("n0", "x")]
    nodes += [_node(f"n{i}", f"n{i - 1}", *(["n0", "x"] if i == 30 else [])) for i in range(1, 40)]
    layout = _check(_region(nodes, {"g": [f"n{i}" for i in range(40)]}))
    cut = {tuple(layout.names[i] for i in layout.edges[edge]) for edge in np.flatnonzero(layout.edge_cut)}
    assert cut == {("n0", "n30"), ("x", "n30")}
    assert sorted(layout.stub_labels) == ["n0", "x"]


def test_wide_graph() -> None:
    towers = [_node(f"t{i}_{k}", *([f"t{i}_{k - 1}"] if k else ["x"])) for i in range(80) for k in range(4)]
    total = _node("total", *(f"t{i}_3" for i in range(80)))
    _check(_region([_node("x"), *towers, total]))


def test_output_node_of_many_values_gets_one_counting_stub() -> None:
    layout = layout_region(transformer_region(2000, name="forward", kind="forward"))
    output = layout.names.index("output")
    stubs = [label for label, owner in zip(layout.stub_labels, layout.stub_owner, strict=True) if owner == output]
    assert len(stubs) == 1
    assert stubs[0].endswith("values")


def test_deterministic() -> None:
    region = transformer_region(700)
    assert layout_region(region).to_bytes() == layout_region(copy.deepcopy(region)).to_bytes()


def test_a_longer_label_moves_only_what_is_beside_it() -> None:
    """Rows are ordered by the graph alone: a wider box turns none around, with all that hangs on it."""
    region = backward_region(300)
    before = layout_region(region).node_rect[:, 0]
    calls = [place for place, node in enumerate(region.nodes) if node.kind is NodeKind.CALL]
    for place in calls[::12]:
        changed = copy.deepcopy(region)
        changed.nodes[place].outputs[0].shape[:] = [8, 1024, 1024, 1024, 1024, 768]
        moved = np.abs(layout_region(changed).node_rect[:, 0] - before)
        assert moved.max() < 260.0, region.nodes[place].name
        assert (moved > 60.0).mean() < 0.04, region.nodes[place].name


def test_stable_under_a_small_change() -> None:
    region = transformer_region(700)
    before = layout_region(region)
    changed = copy.deepcopy(region)
    group = changed.groups[len(changed.groups) // 2]
    last = group.nodes[-1]
    extra = _node("extra_relu", last, op="aten.relu.default")
    position = next(i for i, node in enumerate(changed.nodes) if node.name == last)
    for node in changed.nodes:
        node.inputs = ["extra_relu" if name == last else name for name in node.inputs]
    changed.nodes.insert(position + 1, extra)
    group.nodes.append("extra_relu")
    after = layout_region(changed)
    place = {name: i for i, name in enumerate(after.names)}
    moved = np.array([after.node_rect[place[name]] - before.node_rect[i] for i, name in enumerate(before.names)])
    assert np.median(np.abs(moved[:, 0])) < 40.0, "columns stay where they were"
    assert (np.abs(moved[: position // 2, 1]) < 1.0).all(), "nothing far above the change moves down"
    below = moved[position + 30 :, 1]
    assert np.ptp(below) < 60.0, "everything below moves down by about the same"


def test_cancel_at_once() -> None:
    with pytest.raises(LayoutCancelled):
        layout_region(transformer_region(60), cancelled=lambda: True)


def test_cancel_in_the_middle() -> None:
    polls = 0

    def cancelled() -> bool:
        nonlocal polls
        polls += 1
        return polls > 12

    with pytest.raises(LayoutCancelled):
        layout_region(transformer_region(3000), cancelled=cancelled)
    assert polls == 13, "nothing goes on after the callback said so"


def test_bytes_round_trip() -> None:
    layout = layout_region(transformer_region(200))
    again = GraphLayout.from_bytes(layout.to_bytes())
    assert again.names == layout.names
    assert again.stub_labels == layout.stub_labels
    np.testing.assert_array_equal(again.node_rect, layout.node_rect)
    np.testing.assert_array_equal(again.edge_pieces, layout.edge_pieces)
    assert again.to_bytes() == layout.to_bytes()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 broken", b"\x80\x04."])
def test_broken_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match="no stored layout"):
        GraphLayout.from_bytes(data)


def test_unknown_inputs_are_ignored() -> None:
    layout = layout_region(_region([_node("x", "nowhere"), _node("y", "x", "x")]))
    assert layout.edges.tolist() == [[0, 1]]


def test_order_against_the_edges_is_survived() -> None:
    layout = layout_region(_region([_node("b", "a"), _node("a")], {"g": ["a", "b"]}))
    assert layout.edge_cut.tolist() == [1]
