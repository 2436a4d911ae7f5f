"""Graphs in series: equal parts look equal, what joins them stands on one line, and a change stays in its part."""

from __future__ import annotations

import copy
import random
from itertools import pairwise

import numpy as np
import pytest

from app.layout import GraphLayout, LayoutCancelled, layout_region
from app.layout.items import Items, Link, Spacing
from app.layout.layered import arrange
from app.layout.series import arrange_in_series
from compiler.report import Region
from tests.fake_reports import backward_region, transformer_region

_SPACING = Spacing(across=20.0, down=30.0)


def _layer(region: Region, layout: GraphLayout, path: str) -> np.ndarray:
    """Where the calls of a layer are, relative to its first one's top, in the graph's order."""
    members = [
        i for i, node in enumerate(region.nodes) if node.inputs and node.provenance.module_path.startswith(f"{path}.")
    ]
    rects = layout.node_rect[members].copy()
    rects[:, 1] -= rects[0, 1]
    return rects


@pytest.mark.parametrize("kind", ["inference", "forward"])
def test_equal_layers_look_equal(kind: str) -> None:
    region = transformer_region(900, kind=kind)
    layout = layout_region(region)
    for number in range(3, 8):
        np.testing.assert_allclose(
            _layer(region, layout, f"h.{number}"), _layer(region, layout, "h.2"), atol=0.51, err_msg=str(number)
        )


def test_branches_that_end_soon_may_pass_a_joint() -> None:
    region = backward_region(900)
    layout = layout_region(region)
    left = dict(zip(layout.names, layout.node_rect[:, 0].tolist(), strict=True))
    for number in range(12, 24):  # a layer has six
        assert left[f"sub_{number}"] == pytest.approx(left[f"sub_{number + 6}"]), "equal layers stand in equal columns"


def test_a_change_moves_nothing_sideways_in_other_parts() -> None:
    region = transformer_region(900)
    changed = copy.deepcopy(region)
    middle = next(node for node in changed.nodes if node.name == "addmm_20")
    middle.outputs[0].shape[:] = [8, 1024, 1024, 1024, 1024, 768]  # a wider box
    before, after = layout_region(region), layout_region(changed)
    moved = np.abs(after.node_rect[:, 0] - before.node_rect[:, 0]) > 0.5
    assert 0 < moved.sum() < 60, "only nodes of the same layer"


def test_graphs_without_joints_are_laid_out_whole() -> None:
    chance = random.Random(5)
    items, links = Items(), []
    for i in range(300):
        items.add(60.0 + chance.randrange(40), 30.0, i // 10)
    for target in range(10, 300):
        links += [
            Link(source, target)
            for source in sorted(chance.sample(range(max(0, target // 10 * 10 - 30), target // 10 * 10), 2))
        ]
    whole, series = arrange(items, links, _SPACING), arrange_in_series(items, links, _SPACING)
    assert series.x == whole.x
    assert series.link_pieces == whole.link_pieces


def test_joints_stand_on_one_line_and_links_are_whole() -> None:
    """Diamonds one below another: top, two or three ways, bottom."""
    items, links = Items(), []
    joint = items.add(50.0, 20.0, 0)
    joints = [joint]
    for number in range(1, 12):
        ways = [items.add(70.0, 20.0, 2 * number - 1) for _ in range(2 + number % 2)]
        below = items.add(50.0, 20.0, 2 * number)
        for way in ways:
            links += [Link(joint, way), Link(way, below)]
        joint = below
        joints.append(joint)
    made = arrange_in_series(items, links, _SPACING)
    assert {made.x[item] for item in joints[1:-1]} == {0.0}
    for link, used in zip(links, made.link_pieces, strict=True):
        pieces = made.pieces[used]
        assert pieces[0, 1] == made.top[link.source] + items.height[link.source]
        assert pieces[-1, 3] == made.top[link.target]
        np.testing.assert_array_equal(pieces[1:, :2], pieces[:-1, 2:])


def _with_shared_saved_tensors(widened: int) -> tuple[Items, list[Link], list[int]]:
    """A series in which a joint and a gradient below it read one saved tensor, so that no joint divides the graph."""
    items, links = Items(), []
    joints = [items.add(100.0, 30.0, 1)]
    for number in range(8):
        joint, row = joints[-1], items.rank[joints[-1]]
        saved = items.add(80.0, 20.0, row - 1, low=True)
        gradient = items.add(70.0, 30.0, row + 1)
        wide = items.add(500.0 if number == widened else 200.0, 30.0, row + 1)
        narrow = [items.add(60.0, 30.0, row + 1 + step) for step in range(4)]
        below = items.add(100.0, 30.0, row + 5)
        ways = [(joint, gradient), (joint, wide), (wide, below), *pairwise([joint, *narrow, below])]
        links += [Link(saved, joint), Link(saved, gradient), *(Link(*way) for way in ways)]
        joints.append(below)
    return items, links, joints


def test_where_no_joint_divides_the_graph_they_still_keep_a_change_to_its_stretch() -> None:
    items, links, joints = _with_shared_saved_tensors(-1)
    wider, its_links, _ = _with_shared_saved_tensors(3)
    before, after = arrange_in_series(items, links, _SPACING), arrange_in_series(wider, its_links, _SPACING)
    assert [before.x[item] for item in joints[1:-2]] == pytest.approx([0.0] * 6, abs=0.01)
    moved = {item for item in range(len(before.x)) if abs(after.x[item] - before.x[item]) > 1.0}
    assert moved
    assert moved <= set(range(joints[3] + 1, joints[4] + 2)), "with the tensor that the next joint reads beside them"


def test_cancelled_between_parts() -> None:
    polls = 0

    def cancelled() -> bool:
        nonlocal polls
        polls += 1
        return polls > 40

    with pytest.raises(LayoutCancelled):
        layout_region(transformer_region(5000), cancelled=cancelled)
    assert polls == 41
