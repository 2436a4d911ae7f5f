"""The graph runtime's logic on the CPU: a recorder whose replay calls the function again on the captured memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.report import CudaGraph, GraphNode, GraphNodeKind, SkipReason  # noqa: E402
from compiler.runtime.buffering import InputUse  # noqa: E402
from compiler.runtime.capture import CaptureRefused, refusal  # noqa: E402
from compiler.runtime.cuda_graph import MAX_CAPTURES, MAX_MOVES, Forked, GraphedRegion  # noqa: E402
from compiler.runtime.observe import NodeLog, Observer  # noqa: E402
from compiler.runtime.pool import GraphPool  # noqa: E402
from compiler.runtime.signature import (  # noqa: E402
    CopyPlan,
    copyable,
    describe,
    empty_with_layout,
    signature,
    span,
)


class FakeStream:
    def wait_stream(self, other: FakeStream) -> None:
        self.waited_for = other


class FakeRecording:
    """Replays as the hardware does: the same work on the same memory, results into the same tensors."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], arguments: list[Any], patchable: bool) -> None:
        self.run = run
        self.arguments = list(arguments)
        self.patchable = patchable
        self.result = list(run(list(arguments)))
        self.facts = CudaGraph(captured=True, partitions=1, nodes=3)
        self.random = False
        self.replays = 1

    def replay(self, stream: int) -> None:
        self.replays += 1
        # Where an output is an argument's own memory the run has written it already.
        with torch.inference_mode():
            for old, new in zip(self.result, self.run(list(self.arguments)), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)

    def topology(self) -> list[GraphNode]:
        return [GraphNode(id=0, kind=GraphNodeKind.KERNEL, name="kernel")]

    def movable(self, index: int, uses: Sequence[tuple[str, int]], address: int) -> int | None:
        return index if self.arguments[index].data_ptr() == address else None

    def move(self, inputs: Sequence[tuple[int, Any]]) -> bool:
        for index, tensor in inputs:
            self.arguments[index] = tensor
        return self.patchable


class FakeRecorder:
    device_type = "cpu"

    def __init__(self) -> None:
        self.recordings: list[FakeRecording] = []
        self.current = FakeStream()
        self.capturing = False
        self.patchable = True
        self.refuses: SkipReason | None = None
        self.times_us = [20.0, 10.0]  # of a replay on one stream, and on several

    def is_capturing(self) -> bool:
        return self.capturing

    def device(self, inputs: Sequence[Any]) -> torch.device:
        return torch.device("cpu")

    def stream(self, device: torch.device) -> FakeStream:
        return self.current

    def raw_stream(self, device: int) -> int:
        return id(self.current)

    def same_addresses(self, tensors: list[Any], addresses: list[int | None], indices: list[int]) -> bool:
        return all(tensors[index].data_ptr() == addresses[index] for index in indices)

    def record(
        self,
        run: Callable[[list[Any]], Sequence[Any]],
        arguments: list[Any],
        device: torch.device,
        warmup: int,
        restore: Callable[[], None],
        observer: Observer,
    ) -> FakeRecording:
        for _ in range(warmup):
            try:
                run(list(arguments))
            finally:
                restore()
        if self.refuses is not None:
            raise CaptureRefused(self.refuses)
        self.recordings.append(FakeRecording(run, arguments, self.patchable))
        return self.recordings[-1]

    def replay_us(self, recorded: FakeRecording, device: torch.device) -> float:
        recorded.replay(0)
        return self.times_us[self.recordings.index(recorded) % 2]

    def pool_bytes(self) -> int:
        return 4096

    def wait(self, device: torch.device) -> None:
        pass


def region(run: Any, static: set[int] = set(), **options: Any) -> tuple[GraphedRegion, FakeRecorder]:  # noqa: B006
    recorder = FakeRecorder()
    return GraphedRegion(run, frozenset(static), pool=GraphPool(recorder), **options), recorder


def affine(inputs: Sequence[Any]) -> list[Any]:
    x, weight = inputs
    return [x * weight + 1, x.sum()]


def check(graphed: GraphedRegion, run: Any, inputs: list[Any]) -> list[Any]:
    outputs = graphed(inputs)
    for got, expected in zip(outputs, run(inputs), strict=True):
        torch.testing.assert_close(got, expected)
        if isinstance(expected, torch.Tensor):
            assert got.stride() == expected.stride()
    return outputs


def routes(graphed: GraphedRegion) -> list[str]:
    return [route.route for route in graphed.facts().routes]


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


USES = (InputUse("x", (("group0", 0),), only_kernels=True), InputUse("weight", (("group0", 1),)))


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


def test_outputs_are_the_graphs_memory_while_nobody_keeps_them() -> None:
    graphed, recorder = region(affine, {1})
    inputs = [torch.randn(3, 4), torch.randn(4)]
    for _ in range(3):
        outputs = check(graphed, affine, inputs)
        own = recorder.recordings[0].result
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


def test_parameters_that_never_settle_run_plainly_but_where_they_were_before() -> None:
    graphed, recorder = region(affine, {1}, capacity=MAX_MOVES + 2)
    x = torch.randn(3, 4)
    weights = [torch.randn(4) for _ in range(MAX_MOVES + 4)]
    for weight in weights:
        check(graphed, affine, [x, weight])
    assert len(recorder.recordings) == MAX_MOVES + 1
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["moving_inputs"]
    check(graphed, affine, [x, weights[0]])
    assert recorder.recordings[0].replays == 2


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
    check(graphed, affine, [x, weight])
    assert len(recorder.recordings) == 2


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
    assert [tuple(recording.result[0].shape) for recording in recorder.recordings] == [(2,), (3,), (4,), (3,)]


def test_inputs_that_never_settle_stop_being_captured() -> None:
    graphed, recorder = region(affine, {1})
    weight = torch.randn(1)
    for size in range(1, MAX_CAPTURES + 4):
        check(graphed, affine, [torch.randn(size), weight])
    assert len(recorder.recordings) == MAX_CAPTURES
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["changing_inputs"]


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


def test_another_stream_waits_for_the_last_one() -> None:
    graphed, recorder = region(affine, {1})
    inputs = [torch.randn(3, 4), torch.randn(4)]
    graphed(inputs)
    first, recorder.current = recorder.current, FakeStream()
    graphed(inputs)
    assert recorder.current.waited_for is first


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


@pytest.mark.parametrize(("forked_us", "streams"), [(10.0, 3), (30.0, 1)])
def test_several_streams_are_used_where_they_are_faster(forked_us: float, streams: int) -> None:
    graphed, recorder = region(affine, {1}, forked=Forked(affine, 3))
    recorder.times_us = [20.0, forked_us]
    x, weight = torch.randn(3, 4), torch.randn(4)
    for _ in range(3):
        check(graphed, affine, [x, weight])
        x.add_(1)
    facts = graphed.facts()
    assert (facts.streams, facts.one_stream_us, facts.forked_us) == (streams, 20.0, forked_us)
    assert [r.rule for r in facts.skip_reasons] == []
    chosen, other = (1, 0) if streams > 1 else (0, 1)
    assert recorder.recordings[chosen].replays == 5  # recorded, timed, its results made anew, and two calls
    assert recorder.recordings[other].replays == 2


def test_results_that_differ_on_several_streams_are_not_used() -> None:
    def wrong(inputs: Sequence[Any]) -> list[Any]:
        return [value + 1e-6 for value in affine(inputs)]

    graphed, _ = region(affine, {1}, forked=Forked(wrong, 2))
    x, weight = torch.randn(3, 4), torch.randn(4)
    for _ in range(3):
        check(graphed, affine, [x, weight])
    assert graphed.facts().streams == 1
    assert [r.rule for r in graphed.facts().skip_reasons] == ["not_forked"]


def test_several_streams_that_cannot_be_captured_leave_the_graph_on_one() -> None:
    def fails(inputs: Sequence[Any]) -> list[Any]:
        raise RuntimeError("no such stream")

    graphed, recorder = region(affine, {1}, forked=Forked(fails, 2))
    x, weight = torch.randn(3, 4), torch.randn(4)
    for _ in range(3):
        check(graphed, affine, [x, weight])
    assert [recording.replays for recording in recorder.recordings] == [3]
    (reason,) = graphed.facts().skip_reasons
    assert (reason.rule, "no such stream" in reason.detail) == ("not_forked", True)


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


LAYOUTS = {
    "dense": torch.randn(3, 4),
    "transposed": torch.randn(3, 4).t(),
    "expanded": torch.randn(3, 1).expand(3, 5),
    "scalar expanded": torch.randn(()).expand(2, 3),
    "holes": torch.randn(4, 6)[:, ::2],
    "expanded with holes": torch.randn(4, 6)[:, ::2, None].expand(4, 3, 5),
    "windows": torch.arange(10.0).as_strided((4, 3), (2, 1), 1),
    "empty": torch.randn(0, 3),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_keep_any_layout(name: str) -> None:
    source = LAYOUTS[name]
    target = empty_with_layout(source)
    assert describe(target) == describe(source)
    CopyPlan({0: target}).copy_from([source])
    assert torch.equal(target, source)
    assert copyable(source).numel() <= max(source.numel(), span(source))
    assert torch._debug_has_internal_overlap(copyable(source)) != 1


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
