"""What a graph hands out is never overwritten while somebody holds it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from compiler.runtime import outputs as output_plans  # noqa: E402
from compiler.runtime.cuda_graph import MAX_ORDERS, GraphedRegion  # noqa: E402
from compiler.runtime.pool import GraphPool  # noqa: E402
from tests.fake_graphs import USES, AddressRecording, FakeRecorder, affine, check, region  # noqa: E402


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Garbage is collected where the test or what it tests asks for it, and nowhere else."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_outputs_are_the_graphs_memory_while_nobody_keeps_them() -> None:
    graphed, recorder = region(affine, {1})
    inputs = [torch.randn(3, 4), torch.randn(4)]
    for _ in range(3):
        outputs = check(graphed, affine, inputs)
        own = recorder.recordings[0].written
        assert [got.data_ptr() for got in outputs] == [tensor.data_ptr() for tensor in own]
        del outputs
    assert recorder.recordings[0].replays == 3
    assert graphed.facts().skip_reasons == []


def test_a_kept_output_is_never_overwritten_and_copied_from_then_on() -> None:
    graphed, recorder = region(affine, {1})
    x, weight = torch.randn(3, 4), torch.randn(4)
    outputs: list[Any] = []
    for _ in range(5):  # as in a loop "out = model(x)": the last result lives until the next is there
        before = [value.clone() for value in outputs]
        fresh = check(graphed, affine, [x, weight])
        for got, expected in zip(outputs, before, strict=True):
            assert torch.equal(got, expected)
            del got
        outputs = fresh
        x.add_(1)
    # The second call found the first one's outputs held and ran plainly; the rest replay and copy.
    assert [recording.replays for recording in recorder.recordings] == [4]
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["kept_outputs"]


def test_an_output_kept_for_good_costs_one_more_capture() -> None:
    graphed, recorder = region(affine, {1})
    x, weight = torch.randn(3, 4), torch.randn(4)
    first = graphed([x, weight])[0][1:]  # a view is enough
    expected = first.clone()
    for _ in range(6):
        x.add_(1)
        check(graphed, affine, [x, weight])
        assert torch.equal(first, expected)
    assert len(recorder.recordings) == 2
    assert recorder.recordings[1].replays == 5
    assert graphed.facts().recaptures == {"an output was kept": 1}


@pytest.mark.parametrize("saved", [frozenset(), frozenset({0, 1})], ids=["returned", "saved"])
@pytest.mark.usefixtures("no_collection")
def test_outputs_that_only_garbage_holds_are_not_kept(saved: frozenset[int]) -> None:
    graphed, recorder = region(affine, {1}, saved=saved)
    x, weight = torch.randn(3, 4), torch.randn(4)
    cycle: list[Any] = [graphed([x, weight])]  # as Dynamo leaves the results of the call that it traced
    cycle.append(cycle)
    del cycle
    for _ in range(3):
        outputs = check(graphed, affine, [x, weight])
        assert [got.data_ptr() for got in outputs] == [own.data_ptr() for own in recorder.recordings[0].written]
        del outputs
    assert [recording.replays for recording in recorder.recordings] == [4]
    assert graphed.facts().skip_reasons == []


@pytest.mark.usefixtures("no_collection")
def test_outputs_that_somebody_holds_make_no_more_than_one_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collections.append(1))
    graphed, _ = region(affine, {1}, saved=frozenset({0, 1}))
    x, weight = torch.randn(3, 4), torch.randn(4)
    for _ in range(3):  # two forwards, then their backwards
        first = graphed([x, weight])
        second = graphed([x, weight])
        del first, second
    assert len(collections) == 1


def test_an_input_that_is_an_output_does_not_stay_alive() -> None:
    pool = GraphPool(FakeRecorder(AddressRecording))
    before = GraphedRegion(lambda inputs: [inputs[0] * 2], frozenset(), pool=pool)
    # As a forward that saves its input for the backward, and returns a part of it.
    after = GraphedRegion(lambda inputs: [inputs[0] + 1, inputs[0], inputs[0][1:]], frozenset(), pool=pool)
    x = torch.randn(3, 4)
    for _ in range(3):
        outputs = after(before([x]))
        del outputs
    for facts in (before.facts(), after.facts()):
        assert (facts.captures, facts.skip_reasons) == (1, [])


def test_a_forward_before_the_last_ones_backward_runs_plainly() -> None:
    graphed, recorder = region(affine, {1}, saved=frozenset({1}))
    weight = torch.randn(4)
    x = torch.randn(3, 4)
    saved = graphed([x, weight])[1]  # what a backward will read
    expected = saved.clone()
    for _ in range(3):
        x.add_(1)
        check(graphed, affine, [x, weight])
        assert torch.equal(saved, expected)
    assert [recording.replays for recording in recorder.recordings] == [1]
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["pending_backward"]
    del saved
    check(graphed, affine, [x, weight])
    assert [recording.replays for recording in recorder.recordings] == [2]


class Saves(torch.autograd.Function):
    """Holds a tensor where Python does not see it."""

    @staticmethod
    def forward(ctx: Any, x: Any, saved: Any) -> Any:
        ctx.save_for_backward(saved)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient, None


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda saved: saved,
    "a list": lambda saved: [saved],
    "a view": lambda saved: saved[1:],
    "a tensor on the same storage": lambda saved: saved.detach(),
    "a tensor of other sizes on it": lambda saved: torch.empty(0).set_(saved.untyped_storage()),
    "autograd": lambda saved: Saves.apply(torch.ones(1, requires_grad=True), saved),
    "autograd, of a view": lambda saved: Saves.apply(torch.ones(1, requires_grad=True), saved.view(-1)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_whoever_holds_what_was_saved_keeps_the_graph_from_running(holder: str) -> None:
    def run(inputs: Sequence[Any]) -> list[Any]:
        x, weight = inputs
        return [x.sum(), x * weight, x + weight]

    graphed, recorder = region(run, {1}, saved=frozenset({1, 2}))
    x, weight = torch.randn(3, 4), torch.randn(4)
    for replays in (1, 3):  # by the capture, then by the last call of the first round and by the first of this one
        held = HOLDERS[holder](graphed([x, weight])[1])
        check(graphed, run, [x.add_(1), weight])
        assert [recording.replays for recording in recorder.recordings] == [replays]
        del held
        check(graphed, run, [x, weight])
        assert [recording.replays for recording in recorder.recordings] == [replays + 1]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, FakeTensorMode])
def test_whether_references_tell_who_holds_a_tensor_is_known_in_every_mode(mode: Any) -> None:
    with mode():
        assert output_plans._references_tell()


def test_what_is_saved_is_the_same_tensors_at_every_call_and_what_is_returned_is_not() -> None:
    graphed, _ = region(affine, {1}, saved=frozenset({0}))
    x, weight = torch.randn(3, 4), torch.randn(4)
    saved = {id(graphed([x, weight])[0]) for _ in range(3)}
    assert len(saved) == 1
    total = graphed([x, weight])[1].requires_grad_()
    del total
    assert not graphed([x, weight])[1].requires_grad


def test_a_graph_waits_for_the_outputs_of_later_graphs_in_its_pool() -> None:
    pool = GraphPool(FakeRecorder())
    weight, x = torch.randn(4), torch.randn(3, 4)
    forward = GraphedRegion(affine, frozenset({1}), pool=pool)
    backward = GraphedRegion(affine, frozenset({1}), pool=pool)
    forward([x, weight])
    gradient = backward([x, weight])[0]
    expected = gradient.clone()
    x.add_(1)
    # Captured first, the forward may write where the backward's outputs are.
    check(forward, affine, [x, weight])
    assert torch.equal(gradient, expected)
    assert [reason.rule for reason in forward.facts().skip_reasons] == ["kept_outputs"]
    del gradient
    check(forward, affine, [x, weight])
    assert [recording.replays for recording in pool.recorder.recordings] == [2, 1]  # type: ignore[attr-defined]


def test_a_region_is_captured_again_after_one_that_comes_before_it_was() -> None:
    pool = GraphPool(FakeRecorder())
    weight, other = torch.randn(4), torch.randn(3, 4)
    before = GraphedRegion(affine, frozenset({1}), pool=pool, saved=frozenset({1}))
    after = GraphedRegion(affine, frozenset({1}), pool=pool, saved=frozenset({1}))
    for size in (3, 5):  # the second time the first region has a graph that came after the other's
        x = torch.randn(size, 4)
        saved = check(before, affine, [x, weight])
        check(after, affine, [other, weight])
        del saved
    for _ in range(2):
        saved = check(before, affine, [x, weight])
        expected = saved[1].clone()
        check(after, affine, [other, weight])
        assert torch.equal(saved[1], expected)
        del saved
    assert (before.replays, after.replays) == (2, 2)
    assert (after.facts().captures, after.facts().skip_reasons) == (2, [])


def test_a_region_is_captured_again_after_one_whose_outputs_it_reads_was() -> None:
    pool = GraphPool(FakeRecorder(AddressRecording))
    weight, x = torch.randn(4), torch.randn(3, 4)
    before = GraphedRegion(affine, frozenset({1}), pool=pool)
    after = GraphedRegion(affine, frozenset({1}), pool=pool, uses=USES)
    for captures in (1, 2):
        before.release()
        for _ in range(3):
            made = before([x, weight])[0]
            check(after, affine, [made, weight])
            torch.testing.assert_close(made, affine([x, weight])[0])
            del made
        assert (before.replays, after.replays) == (2, 2)
        facts = (before.facts(), after.facts())
        assert [(one.captures, one.copied_bytes, one.skip_reasons) for one in facts] == [(captures, 0, [])] * 2


def test_a_loop_through_regions_copies_what_it_goes_on_with() -> None:
    pool = GraphPool(FakeRecorder(AddressRecording))
    regions = [GraphedRegion(lambda inputs: [torch.tanh(inputs[0] + 1)], frozenset(), pool=pool) for _ in range(2)]
    x = expected = torch.randn(3, 4)
    for _ in range(4):
        for graphed in regions:
            (x,), expected = graphed([x]), torch.tanh(expected + 1)
            torch.testing.assert_close(x, expected)
    assert [graphed.facts().recaptures for graphed in regions] == [{"an input moved": 1}] * 2
    assert regions[0].facts().skip_reasons[0].rule == "kept_outputs"
    assert [graphed.replays for graphed in regions] == [1, 2]


def test_regions_that_take_turns_in_waiting_for_each_other_stop_being_captured() -> None:
    pool = GraphPool(FakeRecorder())
    weight, x = torch.randn(4), torch.randn(3, 4)
    regions = [GraphedRegion(affine, frozenset({1}), pool=pool, saved=frozenset({1})) for _ in range(2)]
    for number in range(4 * MAX_ORDERS):
        first, second = regions[number % 2], regions[1 - number % 2]
        saved = check(first, affine, [x, weight])
        expected = saved[1].clone()
        check(second, affine, [x, weight])
        assert torch.equal(saved[1], expected)
        del saved
    assert all(graphed.facts().captures <= MAX_ORDERS + 1 for graphed in regions)
    rules = {reason.rule for graphed in regions for reason in graphed.facts().skip_reasons}
    assert rules == {"pending_backward"}


def test_an_output_that_is_also_saved_is_copied_for_who_keeps_it_and_not_for_the_backward() -> None:
    def squashed(inputs: Sequence[Any]) -> list[Any]:
        out = torch.sigmoid(inputs[0] * inputs[1])
        return [out, out, out.t()]

    graphed, recorder = region(squashed, {1}, saved=frozenset({1}))
    x, weight = torch.randn(3, 4), torch.randn(4)
    kept = graphed([x, weight])[0]
    for _ in range(4):  # as in a loop "out = model(x)", whose backward is over when the next begins
        expected = kept.clone()
        x.add_(1)
        fresh, saved, _ = check(graphed, squashed, [x, weight])
        assert torch.equal(kept, expected)
        kept, address = fresh, saved.data_ptr()
        del fresh, saved, _
    assert address == recorder.recordings[0].written[1].data_ptr()
    assert [recording.replays for recording in recorder.recordings] == [4]


def test_a_later_graph_runs_while_an_earlier_ones_outputs_are_held() -> None:
    pool = GraphPool(FakeRecorder())
    weight, x = torch.randn(4), torch.randn(3, 4)
    forward = GraphedRegion(affine, frozenset({1}), pool=pool)
    backward = GraphedRegion(affine, frozenset({1}), pool=pool)
    for _ in range(2):
        held = check(forward, affine, [x, weight])
        check(backward, affine, [x, weight])
        del held
    assert [recording.replays for recording in pool.recorder.recordings] == [2, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("saved", [frozenset(), frozenset({0, 1})], ids=["returned", "saved"])
def test_views_of_an_input_in_another_dtype_follow_it(saved: frozenset[int]) -> None:
    def run(inputs: Sequence[Any]) -> list[Any]:
        x, weight = inputs
        return [torch.view_as_complex(x.view(3, 2, 2)), x[3:], x * weight]

    pool = GraphPool(FakeRecorder(AddressRecording))
    graphed = GraphedRegion(run, frozenset({1}), uses=USES, saved=saved, pool=pool)
    weight = torch.randn(4)
    kept = [torch.randn(3, 4) for _ in range(3)]
    for x in kept * 2:
        outputs = check(graphed, run, [x, weight])
        assert outputs[0].data_ptr() == x.data_ptr()
        del outputs
    first = weakref.ref(kept.pop(0))
    assert first() is None
    assert (graphed.replays, graphed.facts().skip_reasons) == (5, [])


def test_outputs_that_are_inputs_keep_the_callers_memory() -> None:
    def passes_through(inputs: Sequence[Any]) -> list[Any]:
        x, weight = inputs
        product = x @ weight
        return [x, weight, x.t(), x[1:], product, product, None, product.t()]

    graphed, _ = region(passes_through, {1})
    weight = torch.randn(3, 3)
    for _ in range(2):
        x = torch.randn(3, 3)
        outputs = check(graphed, passes_through, [x, weight])
        assert outputs[0] is x
        assert outputs[1] is weight
        assert outputs[2].data_ptr() == x.data_ptr()
        assert outputs[3].data_ptr() == x[1:].data_ptr()
        assert outputs[4] is outputs[5]
        assert outputs[6] is None
