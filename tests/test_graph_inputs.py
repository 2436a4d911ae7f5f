"""How inputs reach a graph: read where they are, followed, copied, written in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.runtime.buffering import InputUse  # noqa: E402
from compiler.runtime.cuda_graph import MAX_MOVES  # noqa: E402
from compiler.runtime.signature import CopyPlan, copyable, describe, empty_with_layout, span  # noqa: E402
from tests.fake_graphs import UNKNOWN_CALL, USES, affine, check, region, routes  # noqa: E402


def test_an_input_where_it_was_is_not_copied() -> None:
    graphed, recorder = region(affine, {1})
    x, weight = torch.randn(3, 4), torch.randn(4)
    for _ in range(3):
        check(graphed, affine, [x, weight])
        x.add_(1)
        weight.mul_(2)
    assert [recording.replays for recording in recorder.recordings] == [3]
    facts = graphed.facts()
    assert (facts.captured, facts.captures, facts.nodes, facts.pool_bytes) == (True, 1, 3, 4096)
    assert (facts.copied_bytes, facts.skip_reasons, facts.recaptures) == (0, [], {})
    assert routes(graphed) == ["same_address", "static"]
    assert facts.topology


def test_an_input_that_moves_is_copied_where_nothing_is_known_of_its_readers() -> None:
    graphed, recorder = region(affine, {1})
    weight = torch.randn(4)
    kept = [torch.randn(3, 4) for _ in range(6)]  # alive, so that each is somewhere else
    for x in kept:
        check(graphed, affine, [x, weight])
    # The first was captured in place and never ran again, the second reads a buffer.
    assert [recording.replays for recording in recorder.recordings] == [1, 5]
    facts = graphed.facts()
    assert (facts.captures, facts.recaptures, facts.copied_bytes) == (2, {"an input moved": 1}, 3 * 4 * 4)
    assert routes(graphed) == ["copied", "static"]


def test_an_input_that_moves_is_followed_where_only_our_kernels_read_it() -> None:
    graphed, recorder = region(affine, {1}, uses=USES)
    weight = torch.randn(4)
    kept = [torch.randn(3, 4) for _ in range(6)]
    for x in kept:
        check(graphed, affine, [x, weight])
    assert [recording.replays for recording in recorder.recordings] == [6]
    facts = graphed.facts()
    assert (facts.captures, facts.copied_bytes) == (1, 0)
    assert [(route.name, route.route, route.nodes) for route in facts.routes] == [
        ("x", "patched", 1),
        ("weight", "static", 0),
    ]
    assert facts.routes[0].cost_us is not None


def test_a_moved_input_that_is_not_aligned_is_copied() -> None:
    graphed, recorder = region(affine, {1}, uses=USES)
    weight = torch.randn(4)
    kept = [torch.randn(3 * 4 + 1) for _ in range(4)]
    check(graphed, affine, [kept[0][:12].view(3, 4), weight])
    for flat in kept:
        check(graphed, affine, [flat[1:].view(3, 4), weight])
    assert routes(graphed) == ["copied", "static"]
    assert len(recorder.recordings) <= 3


def test_an_input_is_copied_where_the_driver_refuses_to_patch() -> None:
    graphed, recorder = region(affine, {1}, uses=USES)
    recorder.patchable = False
    weight = torch.randn(4)
    kept = [torch.randn(3, 4) for _ in range(6)]
    for x in kept:
        check(graphed, affine, [x, weight])
    assert routes(graphed) == ["copied", "static"]
    assert len(recorder.recordings) == 2


def test_a_graph_that_was_partly_patched_never_runs_again() -> None:
    """Some of its nodes may read the new address while others read the old."""
    graphed, recorder = region(affine, {1}, uses=USES)
    weight = torch.randn(4)
    first, second = torch.randn(3, 4), torch.randn(3, 4)
    check(graphed, affine, [first, weight])
    recorder.recordings[0].patchable = False
    check(graphed, affine, [second, weight])
    check(graphed, affine, [first, weight])
    assert recorder.recordings[0].replays == 1


@pytest.mark.parametrize(("call", "route", "captures"), [("clone", "patched", 1), (UNKNOWN_CALL, "copied", 2)])
def test_an_input_of_a_library_call_is_followed_where_that_only_copies(call: str, route: str, captures: int) -> None:
    uses = (InputUse("x", (("group0", 0),), (call,), traced=True), InputUse("weight", (("group0", 1),)))
    graphed, recorder = region(affine, {1}, uses=uses)
    weight = torch.randn(4)
    kept = [torch.randn(3, 4) for _ in range(6)]
    for x in kept:
        check(graphed, affine, [x, weight])
    assert routes(graphed) == [route, "static"]
    assert len(recorder.recordings) == captures


def test_of_the_inputs_of_a_library_call_only_those_that_move_are_copied() -> None:
    graphed, recorder = region(affine, uses=(InputUse("x"), InputUse("weight")))
    weight = torch.randn(4)
    kept = [torch.randn(3, 4) for _ in range(4)]
    for x in kept:
        check(graphed, affine, [x, weight])
    assert routes(graphed) == ["copied", "same_address"]
    assert graphed.facts().copied_bytes == 3 * 4 * 4
    assert len(recorder.recordings) == 2
    other = weight + 1
    for x in kept:
        check(graphed, affine, [x, other])
    assert routes(graphed) == ["copied", "copied"]
    assert len(recorder.recordings) == 3


def test_parameters_that_never_settle_run_plainly_but_where_they_were_before() -> None:
    graphed, recorder = region(affine, {1}, capacity=MAX_MOVES + 2)
    x = torch.randn(3, 4)
    weights = [torch.randn(4) for _ in range(MAX_MOVES + 4)]
    for weight in weights:
        check(graphed, affine, [x, weight])
    assert [recording.replays for recording in recorder.recordings] == [1]
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["moved_once", "moving_inputs"]
    check(graphed, affine, [x, weights[0]])
    assert [recording.replays for recording in recorder.recordings] == [2]


def test_no_more_graphs_are_captured_for_parameters_that_settle_again_and_again() -> None:
    graphed, recorder = region(affine, {1}, capacity=MAX_MOVES + 2)
    x = torch.randn(3, 4)
    for weight in [torch.randn(4) for _ in range(MAX_MOVES + 4)]:
        for _ in range(3):
            check(graphed, affine, [x, weight])
    assert [recording.replays for recording in recorder.recordings] == [3] + [2] * MAX_MOVES
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["moved_once", "moving_inputs"]


def test_a_moved_static_input_is_captured_again() -> None:
    graphed, recorder = region(affine, {1})
    x = torch.randn(3, 4)
    weights = [torch.randn(4), torch.randn(4)]
    for weight in (*weights, *weights):
        check(graphed, affine, [x, weight])
    assert graphed.facts().captures == len(recorder.recordings) == 2


def test_a_parameter_whose_memory_was_swapped_is_captured_again() -> None:
    graphed, recorder = region(affine, {1})
    weight = torch.nn.Parameter(torch.randn(4), requires_grad=False)
    x = torch.randn(3, 4)
    check(graphed, affine, [x, weight])
    weight.data = torch.randn(4)
    check(graphed, affine, [x, weight])  # it may not stay there
    assert len(recorder.recordings) == 1
    check(graphed, affine, [x, weight])
    assert len(recorder.recordings) == 2


@pytest.mark.parametrize("static", [set(), {0}], ids=["input", "static"])
@pytest.mark.parametrize("moving", [False, True])
def test_a_mutated_input_is_written_once_per_call(static: set[int], moving: bool) -> None:
    def accumulate(inputs: Sequence[Any]) -> list[Any]:
        inputs[0].add_(inputs[1])
        return [inputs[0] * 2]

    graphed, recorder = region(accumulate, static, mutated_inputs=frozenset({0}))
    total, expected, x = torch.zeros(3), torch.zeros(3), torch.zeros(3)
    kept: list[Any] = []
    for _ in range(4):
        x.copy_(torch.randn(3))
        expected += x
        (doubled,) = graphed([total, x])
        torch.testing.assert_close(total, expected)
        torch.testing.assert_close(doubled, 2 * expected)
        del doubled
        if moving:
            kept.append(total)
            total = total.clone()
    if not moving:
        assert len(recorder.recordings) == 1


def test_a_mutated_input_that_shares_memory_runs_without_the_graph() -> None:
    def write(inputs: Sequence[Any]) -> list[Any]:
        inputs[0].zero_()
        return [inputs[1] + 1]

    graphed, recorder = region(write, mutated_inputs=frozenset({0}))
    kept = [torch.randn(4) for _ in range(4)]
    for memory in kept:
        (result,) = graphed([memory[:2], memory])
        assert torch.equal(result[:2], torch.ones(2))
        assert torch.equal(result[2:], memory[2:] + 1)
        del result
    # In place the first time; a copy of the second would part them.
    assert len(recorder.recordings) == 1
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["aliased_inputs"]


LAYOUTS = {
    "dense": torch.randn(3, 4),
    "transposed": torch.randn(3, 4).t(),
    "expanded": torch.randn(3, 1).expand(3, 5),
    "scalar expanded": torch.randn(()).expand(2, 3),
    "holes": torch.randn(4, 6)[:, ::2],
    "expanded with holes": torch.randn(4, 6)[:, ::2, None].expand(4, 3, 5),
    "windows": torch.arange(10.0).as_strided((4, 3), (2, 1), 1),
    "empty": torch.randn(0, 3),
    "conjugates": torch.randn(3, 4, dtype=torch.complex64).conj(),
    "conjugates expanded": torch.randn(3, 1, dtype=torch.complex64).conj().expand(3, 5),
    "negatives": torch.randn(3, 4, dtype=torch.complex64).conj().imag,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_keep_any_layout(name: str) -> None:
    source = LAYOUTS[name]
    targets = [empty_with_layout(source), empty_with_layout(source)]  # of several torch copies all at once
    CopyPlan(dict(enumerate(targets))).copy_from([source, source])
    for target in targets:
        assert describe(target) == describe(source)
        assert torch.equal(target, source)
    assert copyable(source).numel() <= max(source.numel(), span(source))
    assert torch._debug_has_internal_overlap(copyable(source)) != 1
