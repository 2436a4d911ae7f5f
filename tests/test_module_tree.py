"""Modules as boxes: who is in what, what is alike, and that every edge is drawn in any folding."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from app.layout.folding import Folding
from app.layout.group_tree import build_group_tree
from app.layout.module_layouts import ModuleLayouts
from app.layout.module_tree import build_module_tree
from app.layout.nested import NestedLayout
from app.layout.recent import Recent
from compiler.report import Group, GroupKind, Node, NodeKind, Provenance, Region, TensorInfo
from tests.fake_reports import backward_region, transformer_region


def _node(name: str, *inputs: str, path: str = "", kind: NodeKind = NodeKind.CALL, op: str = "aten.add.Tensor") -> Node:
    module = Provenance([], path, path.split(".")[-1].title().rstrip("0123456789")) if path else Provenance()
    return Node(name, kind, op, list(inputs), outputs=[TensorInfo([8, 16], "float32")], provenance=module)


def _region(*nodes: Node) -> Region:
    return Region("region_0", "inference", list(nodes))


def _titles(region: Region) -> set[str]:
    return {box.title for box in build_module_tree(region).containers[1:]}


@pytest.fixture(scope="module")
def decoder() -> ModuleLayouts:
    return ModuleLayouts(transformer_region(900))


def test_layers_fold_into_one_stack(decoder: ModuleLayouts) -> None:
    stacks = [box for box in decoder.tree.containers if box.is_stack]
    assert len(stacks) == 1
    modules = [decoder.tree.containers[~child] for child in stacks[0].children]
    assert stacks[0].title == f"{len(modules)} × Block"
    ops = [[decoder.region.nodes[i].op for i in module.members] for module in modules]
    assert all(one == ops[0] for one in ops), "their nodes correspond"


def test_a_layer_that_differs_is_no_part_of_the_stack() -> None:
    region = transformer_region(900)
    odd = next(node for node in region.nodes if node.provenance.module_path == "h.3.mlp.act")
    odd.op = "aten.relu.default"
    stacks = [box for box in build_module_tree(region).containers if box.is_stack]
    assert [box.key.split(" … ")[0] for box in stacks] == ["h.0", "h.4"]


def test_a_module_that_runs_twice_is_two_boxes() -> None:
    region = _region(
        _node("x", kind=NodeKind.PLACEHOLDER, op="input"),
        _node("a", "x", path="relu"), _node("b", "a", path="relu"),
        _node("c", "b", path="conv"), _node("d", "c", path="conv"),
        _node("e", "d", path="relu"), _node("f", "e", path="relu"),
    )  # fmt: skip
    boxes = build_module_tree(region).containers[1:]
    assert [box.key for box in boxes] == ["relu", "conv", "relu (2)"]
    assert [box.members for box in boxes] == [[0, 1, 2], [3, 4], [5, 6]]


def test_inputs_belong_to_what_reads_them() -> None:
    region = _region(
        _node("w", kind=NodeKind.PLACEHOLDER, op="parameter"), _node("shared", kind=NodeKind.PLACEHOLDER, op="input"),
        _node("a", "w", "shared", path="net.one"), _node("b", "a", path="net.one"),
        _node("c", "b", "shared", path="net.two"), _node("d", "c", path="net.two"),
        _node("out", "d", kind=NodeKind.OUTPUT, op="output"),
    )  # fmt: skip
    tree = build_module_tree(region)
    key = [tree.containers[tree.parent_of[i]].key for i in range(len(region.nodes))]
    assert key[0] == "net.one"
    assert key[1] == key[-1] or key[1] == "net"
    assert _titles(region) >= {"one", "two"}


def test_an_op_of_no_module_stays_beside_its_producer() -> None:
    region = _region(
        _node("x", kind=NodeKind.PLACEHOLDER, op="input"),
        _node("a", "x", path="h.1.ln"), _node("b", "a", path="h.1.ln"), _node("grad", "b", "x"),
        _node("c", "grad", path="h.1.mlp"), _node("d", "c", path="h.1.mlp"),
        _node("e", "d", path="h.0.ln"), _node("f", "e", path="h.0.ln"),
    )  # fmt: skip
    tree = build_module_tree(region)
    assert tree.containers[tree.parent_of[3]].key == "h.1"


def test_equal_modules_between_others_are_no_stack() -> None:
    """norm1 and norm2 are alike, but what is between them reads the one and feeds the other."""
    region = _region(
        _node("x", kind=NodeKind.PLACEHOLDER, op="input"),
        _node("a", "x", path="norm1"), _node("b", "a", path="norm1"),
        _node("m", "b", path="mid", op="aten.mm.default"), _node("n", "m", path="mid"),
        _node("c", "n", path="norm2"), _node("d", "c", path="norm2"),
    )  # fmt: skip
    assert not any(box.is_stack for box in build_module_tree(region).containers)


@pytest.mark.parametrize("make", [transformer_region, backward_region])
@pytest.mark.parametrize("folding", ["first", "single", "all", "closed"])
def test_every_edge_is_whole(make: Callable[[int], Region], folding: str) -> None:
    region = make(700)
    layouts = ModuleLayouts(region)
    chosen = {
        "first": layouts.first_folding(),
        "single": layouts.all_open(single=True),
        "all": layouts.all_open(single=False),
        "closed": Folding(),
    }[folding]
    layout = layouts.lay_out(chosen)
    _check(layout)
    assert layout.names == tuple(node.name for node in region.nodes)
    if folding == "all":
        assert layout.shown.all()


def _check(layout: NestedLayout) -> None:
    boxes = layout.group_rect
    drawn = layout.node_rect[layout.shown]
    for node in np.flatnonzero(layout.shown):
        if layout.node_group[node] >= 0:
            _inside(layout.node_rect[node], boxes[layout.node_group[node]])
    for i in range(len(drawn)):
        x, y, width, height = drawn[i]
        others = np.delete(drawn, i, axis=0)
        apart = (
            (others[:, 0] >= x + width - 0.1) | (others[:, 0] + others[:, 2] <= x + 0.1)
            | (others[:, 1] >= y + height - 0.1) | (others[:, 1] + others[:, 3] <= y + 0.1)
        )  # fmt: skip
        assert apart.all()
    assert (layout.pieces[:, 3] >= layout.pieces[:, 1] - 0.01).all(), "a piece goes up"
    for edge, (producer, consumer) in enumerate(layout.edges):
        if layout.edge_cut[edge]:
            continue
        used = layout.pieces[layout.edge_pieces[layout.edge_start[edge] : layout.edge_start[edge + 1]]]
        source, target = layout.node_rect[producer], layout.node_rect[consumer]
        assert used[0, 1] == pytest.approx(source[1] + source[3], abs=0.3)
        assert used[-1, 3] == pytest.approx(target[1], abs=0.3)
        assert target[0] - 0.3 <= used[-1, 2] <= target[0] + target[2] + 0.3
        np.testing.assert_allclose(used[1:, :2], used[:-1, 2:], atol=0.5)


def _inside(inner: np.ndarray, outer: np.ndarray) -> None:
    assert inner[0] >= outer[0] - 0.1
    assert inner[1] >= outer[1] - 0.1
    assert inner[0] + inner[2] <= outer[0] + outer[2] + 0.1
    assert inner[1] + inner[3] <= outer[1] + outer[3] + 0.1


def test_bundles_count_the_edges_that_they_stand_for(decoder: ModuleLayouts) -> None:
    layout = decoder.lay_out(Folding())
    pairs = {}
    for consumer, producers in enumerate(decoder.tree.inputs):
        for producer in producers:
            key = (int(layout.stand_in[producer]), int(layout.stand_in[consumer]))
            pairs[key] = pairs.get(key, 0) + 1
    for (producer, consumer), count in zip(layout.edges.tolist(), layout.edge_values.tolist(), strict=True):
        assert pairs[producer, consumer] == count


def test_hidden_nodes_are_where_their_box_is(decoder: ModuleLayouts) -> None:
    layout = decoder.lay_out(Folding())
    hidden = np.flatnonzero(~layout.shown)
    assert len(hidden)
    np.testing.assert_array_equal(layout.node_rect[hidden], layout.group_rect[layout.node_group[hidden]])


def test_one_module_stands_for_a_stack(decoder: ModuleLayouts) -> None:
    stack = next(box for box in decoder.tree.containers if box.is_stack)
    modules = [decoder.tree.containers[~child] for child in stack.children]
    layout = decoder.lay_out(decoder.all_open(single=True))
    first, other = np.array(modules[0].members), np.array(modules[3].members)
    np.testing.assert_array_equal(layout.node_rect[first], layout.node_rect[other])
    assert layout.shown[first].all()
    assert not layout.shown[other].any()


def test_opening_and_closing_again_changes_nothing(decoder: ModuleLayouts) -> None:
    outer = Folding(frozenset({"h"}))
    before = decoder.lay_out(outer)
    stack = next(box for box in decoder.tree.containers if box.is_stack)
    opened = outer.toggled(stack.key)
    assert len(decoder.lay_out(opened).boxes) > len(before.boxes)
    after = decoder.lay_out(opened.toggled(stack.key))
    assert after.to_bytes() == before.to_bytes()
    assert after.boxes == before.boxes


def test_revealing_opens_everything_around_a_node(decoder: ModuleLayouts) -> None:
    node = next(i for i, node in enumerate(decoder.region.nodes) if node.provenance.module_path == "h.4.mlp.c_fc")
    layout = decoder.lay_out(decoder.revealing(Folding(), node))
    assert layout.shown[node]


def test_empty_and_flat_regions() -> None:
    assert len(ModuleLayouts(_region()).lay_out(Folding()).names) == 0
    flat = _region(_node("x", kind=NodeKind.PLACEHOLDER, op="input"), _node("y", "x"), _node("z", "y"))
    layout = ModuleLayouts(flat).lay_out(Folding())
    assert layout.shown.all()
    assert not layout.boxes


@pytest.mark.parametrize("make", [transformer_region, backward_region])
def test_fusion_groups_open_and_close_alike(make: Callable[[int], Region]) -> None:
    region = make(500)
    layouts = ModuleLayouts(region, None, build_group_tree)
    closed = layouts.lay_out(Folding())
    _check(closed)
    assert {box.key for box in closed.boxes} == {g.name for g in region.groups if len(g.nodes) > 1}
    one = closed.boxes[3]
    opened = layouts.lay_out(Folding().toggled(one.key))
    _check(opened)
    assert opened.shown.sum() == closed.shown.sum() + len(one.members)
    _check(layouts.lay_out(layouts.all_open(single=True)))


def test_groups_that_wait_for_each_other_are_survived() -> None:
    nodes = [_node("a"), _node("b", "a"), _node("c", "b"), _node("d", "c")]
    groups = [
        Group(name, GroupKind.POINTWISE, inside, name, "") for name, inside in (("x", ["a", "c"]), ("y", ["b", "d"]))
    ]
    region = Region("region_0", "inference", nodes, groups)
    layouts = ModuleLayouts(region, None, build_group_tree)
    for folding in (Folding(), layouts.all_open(single=False)):
        assert len(layouts.lay_out(folding).boxes) == 2


@pytest.mark.parametrize("make", [transformer_region, backward_region])
def test_open_layers_in_a_row_make_no_slope(make: Callable[[int], Region]) -> None:
    layouts = ModuleLayouts(make(900))
    one, all_open = (layouts.lay_out(layouts.all_open(single=single)).bounds[2] for single in (True, False))
    assert all_open < 1.5 * one


@pytest.mark.parametrize("make", [transformer_region, backward_region])
def test_a_layout_depends_on_what_is_open_not_on_the_way_there(make: Callable[[int], Region]) -> None:
    """Blocks of the last layout are taken over; one that a change does touch would show what is open no more."""
    region = make(500)
    walked = ModuleLayouts(region)
    keys = [box.key for box in walked.tree.containers[1:]]
    stacks = {box.key for box in walked.tree.containers if box.is_stack}
    folding, choose = walked.first_folding(), Random(7)
    for _ in range(25):
        key = choose.choice([*keys, *stacks])
        folding = folding.toggled(key, single=key in stacks and choose.random() < 0.5)
        layout = walked.lay_out(folding)
    fresh = ModuleLayouts(region).lay_out(folding)
    assert layout.to_bytes() == fresh.to_bytes()
    assert layout.boxes == fresh.boxes
    np.testing.assert_array_equal(layout.edge_values, fresh.edge_values)


def test_stacks_that_show_one_module_each_are_joined() -> None:
    """The last layer of one feeds the first of the other, which stand for all of their stacks."""
    nodes, last = [_node("x", kind=NodeKind.PLACEHOLDER, op="input")], "x"
    for stack, op in (("a", "aten.mm.default"), ("b", "aten.exp.default")):
        for layer in range(3):
            for part in range(2):
                name = f"{stack}{layer}{part}"
                nodes.append(_node(name, last, path=f"{stack}.{layer}", op=op))
                last = name
    layouts = ModuleLayouts(_region(*nodes))
    layout = layouts.lay_out(layouts.all_open(single=True))
    drawn = {(layout.names[a], layout.names[b]) for a, b in layout.edges}
    # the first layer holds the input, so it is no part of the stack after it
    assert drawn == {("x", "a00"), ("a00", "a01"), ("a01", "a10"), ("a10", "a11"), ("a11", "b00"), ("b00", "b01")}
    _check(layout)


def test_what_was_not_used_for_long_is_forgotten() -> None:
    kept: Recent[str, int] = Recent(10)
    for number, key in enumerate("abc"):
        kept.put(key, number, 4)
        kept.get("a")
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (0, None, 2)
    kept.put("large", 3, 40)
    assert (kept.get("large"), kept.get("a")) == (3, None)
