"""When a region is captured, replayed or run plainly, and why: the graph runtime's logic on the CPU."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.report import SkipReason  # noqa: E402
from compiler.runtime.capture import refusal  # noqa: E402
from compiler.runtime.cuda_graph import MAX_CAPTURES, GraphedRegion  # noqa: E402
from compiler.runtime.observe import NodeLog  # noqa: E402
from compiler.runtime.pool import GraphPool  # noqa: E402
from compiler.runtime.signature import signature  # noqa: E402
from tests.fake_graphs import USES, FakeRecorder, affine, check, region  # noqa: E402


def test_graphs_that_were_let_go_are_captured_again() -> None:
    graphed, recorder = region(affine, {1}, uses=USES)
    x, weight = torch.randn(3, 4), torch.randn(4)
    kept = check(graphed, affine, [x, weight])
    before = [value.clone() for value in kept]
    graphed.release()
    assert graphed.facts().captures == 1
    check(graphed, affine, [x + 1, weight])
    check(graphed, affine, [x + 2, weight])
    torch.testing.assert_close(list(kept), before)
    assert len(recorder.recordings) == 2
    assert graphed.facts().captures == 2


@pytest.mark.parametrize(
    "other",
    [torch.randn(5, 4), torch.randn(4, 3).t(), torch.randn(3, 4, dtype=torch.float64)],
    ids=["shape", "stride", "dtype"],
)
def test_another_layout_gets_its_own_graph(other: torch.Tensor) -> None:
    graphed, recorder = region(affine, {1})
    x, weight = torch.randn(3, 4), torch.randn(4)
    for value in (x, other, x, other):
        check(graphed, affine, [value, weight])
    assert [recording.replays for recording in recorder.recordings] == [2, 2]


def test_numbers_are_part_of_the_signature() -> None:
    def scaled(inputs: Sequence[Any]) -> list[Any]:
        return [inputs[0] * inputs[1], inputs[1]]

    graphed, recorder = region(scaled)
    x = torch.randn(3)
    for factor in (2, 3, 2, 2.0, True):
        outputs = check(graphed, scaled, [x, factor])
        assert type(outputs[1]) is type(factor)
    assert len(recorder.recordings) == 4


def test_the_least_recently_used_graph_is_dropped() -> None:
    graphed, recorder = region(affine, {1}, capacity=2)
    weight = torch.randn(1)
    a, b, c = torch.randn(2), torch.randn(3), torch.randn(4)
    for x in (a, b, a, c, a, b):
        check(graphed, affine, [x, weight])
    # b was the oldest when c came, so only b was captured twice.
    assert [tuple(recording.written[0].shape) for recording in recorder.recordings] == [(2,), (3,), (4,), (3,)]


@pytest.mark.parametrize("held", [False, True])
def test_the_outputs_of_a_graph_that_was_dropped_are_let_go(held: bool) -> None:
    graphed, recorder = region(affine, {1}, capacity=1)
    weight = torch.randn(1)
    outputs, alive = [], []
    for size in (2, 3, 4, 5):
        outputs = [*outputs, graphed([torch.randn(size), weight])] if held else []
        graphed([torch.randn(size), weight])
        alive.append(weakref.ref(recorder.recordings[-1].written[0]))
        recorder.recordings.clear()
    outputs.clear()
    check(graphed, affine, [torch.randn(6), weight])
    assert [one() for one in alive] == [None] * 4


def test_a_region_may_call_another_one_of_its_pool() -> None:
    """As a custom op does that calls what was compiled."""
    pool = GraphPool(FakeRecorder())
    inner = GraphedRegion(affine, frozenset({1}), pool=pool)
    outer = GraphedRegion(lambda inputs: [inner(inputs)[0] * 2], frozenset({1}), pool=pool)
    weight = torch.randn(4)
    answers: list[Any] = []

    def work() -> None:
        for _ in range(4):
            x = torch.randn(3, 4)
            answers.append(torch.equal(outer([x, weight])[0], affine([x, weight])[0] * 2))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert answers == [True] * 4


def test_inputs_that_never_settle_stop_being_captured() -> None:
    graphed, recorder = region(affine, {1})
    weight = torch.randn(1)
    for size in range(1, MAX_CAPTURES + 4):
        check(graphed, affine, [torch.randn(size), weight])
    assert len(recorder.recordings) == MAX_CAPTURES
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["changing_inputs"]


def test_a_refused_capture_runs_plainly_and_says_why() -> None:
    graphed, recorder = region(affine, {1})
    recorder.refuses = SkipReason("host_sync", "An operation waits for the GPU.")
    for _ in range(3):
        check(graphed, affine, [torch.randn(3, 4), torch.randn(4)])
    facts = graphed.facts()
    assert not facts.captured
    assert not facts.capturable
    assert [reason.rule for reason in facts.skip_reasons] == ["host_sync"]


def test_an_error_of_the_function_reaches_the_caller() -> None:
    def fails(inputs: Sequence[Any]) -> list[Any]:
        raise ZeroDivisionError("mine")

    graphed, _ = region(fails)
    with pytest.raises(ZeroDivisionError, match="mine"):
        graphed([torch.randn(3)])


def test_a_tensor_elsewhere_runs_plainly() -> None:
    graphed, recorder = region(lambda inputs: [inputs[0] + 1])
    recorder.device_type = "cuda"
    x = torch.randn(3)
    assert torch.equal(graphed([x])[0], x + 1)
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["cpu_tensor"]


def test_an_unhashable_input_runs_plainly() -> None:
    graphed, recorder = region(lambda inputs: [inputs[0] + inputs[1][0]])
    x = torch.randn(3)
    assert torch.equal(graphed([x, [2]])[0], x + 2)
    assert not recorder.recordings


def test_inside_an_outer_capture_the_plain_function_is_captured() -> None:
    graphed, recorder = region(affine, {1})
    recorder.capturing = True
    check(graphed, affine, [torch.randn(3, 4), torch.randn(4)])
    assert not recorder.recordings
    assert graphed.facts().capturable


def test_inputs_may_need_gradients_and_come_from_inference_mode() -> None:
    graphed, recorder = region(affine, {1})
    weight = torch.randn(4, requires_grad=True)
    before = torch.randn(3, 4, requires_grad=True)
    graphed([before, weight])
    with torch.inference_mode():
        x = torch.randn(3, 4)
        graphed([x, weight])
    after = torch.randn(3, 4)
    outputs = graphed([after, weight])
    assert not outputs[0].requires_grad
    assert len(recorder.recordings) == 2


def test_nodes_belong_to_the_step_that_was_running_when_they_appeared() -> None:
    nodes: list[int] = []
    log = NodeLog(torch.device("cpu"), lambda: list(nodes))
    nodes += [10]
    log("forward", "group0")
    nodes += [11]
    log("forward", "ext_mm")
    log("forward", "group2")
    nodes[:0] = [12, 13]  # whatever order they come in
    log("", "")
    nodes += [14]
    log("", "")
    units = [log.units[node] for node in (10, 11, 12, 13, 14)]
    assert units == [("", ""), ("forward", "group0"), ("forward", "group2"), ("forward", "group2"), ("", "")]


def test_signature_tells_equal_numbers_of_different_types_apart() -> None:
    assert len({signature([value]) for value in (1, 1.0, True)}) == 3
    x = torch.randn(2)
    assert signature([x]) == signature([x.clone()])


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("called a synchronizing CUDA operation", "host_sync"),
        ("CUDA out of memory. Tried to allocate", "out_of_memory"),
        ("CUDA error: operation not permitted when stream is capturing", "unsupported_operation"),
        ("", "unsupported_operation"),
    ],
)
def test_refusals_name_rule_and_line(message: str, rule: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError(message + "\nsecond line")
    reason = refusal(caught.value)
    assert reason.rule == rule
    assert "\n" not in reason.detail
    assert reason.source is not None
    assert reason.source.function == "test_refusals_name_rule_and_line"
    assert reason.source.code.startswith("raise RuntimeError")
