"""Regions in parts: cut around steps that no graph can hold, replayed part by part, equal to eager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler import backend
from compiler.backend import Session, executable_of, fusescope, launchers_of
from compiler.kernel_library import KernelLibrary
from compiler.planning.partitions import refused_steps, split
from compiler.report import SkipReason
from compiler.runtime.capture import CaptureRefused
from compiler.runtime.observe import Observer
from compiler.runtime.partitioned import GraphSettings, PartitionedRegion
from compiler.runtime.pool import GraphPool
from tests.fake_graphs import AddressRecording, FakeRecorder
from tests.graphs import TARGET, compiled
from tests.test_lanes import Log


@torch.library.custom_op("fusescope_tests::unsafe_double", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def unsafe_double(x: Tensor) -> Tensor:
    return x * 2


@unsafe_double.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def model(x: Tensor, weight: Tensor) -> list[Tensor]:
    hidden = torch.relu(x @ weight).sum(-1, keepdim=True)
    doubled = unsafe_double(hidden + 1)
    out = torch.tanh(doubled @ weight[:1] + hidden)
    return [out, x, (out @ weight).softmax(-1)]


def partitioned(
    function: Any, *inputs: Any, recorder: FakeRecorder | None = None, streams: int = 1
) -> tuple[PartitionedRegion, Any]:
    region, library = compiled(function, *inputs)
    launchers = launchers_of(region, library)
    assert launchers is not None
    recorder = recorder or FakeRecorder()
    observer = Observer()
    graphed = PartitionedRegion(
        region,
        executable_of(region, library, frozenset({1}), observer),
        launchers,
        GraphSettings(GraphPool(recorder), observer, streams=streams),
        static=frozenset({1}),
        mutated=frozenset(),
        streams_of=lambda device: Log(),
    )
    return graphed, recorder


def check(graphed: PartitionedRegion, function: Any, inputs: list[Any]) -> None:
    for got, expected in zip(graphed(inputs), function(*inputs), strict=True):
        torch.testing.assert_close(got, expected)


def test_a_region_is_cut_around_what_no_graph_can_hold() -> None:
    region, _ = compiled(model, torch.randn(4, 8), torch.randn(8, 8))
    refused = refused_steps(region.steps, region.graph)
    (position,) = refused
    assert (refused[position].rule, refused[position].node) == ("unsafe_op", "unsafe_double")
    pieces = split(region.program, region.steps, refused)
    assert [piece.captured for piece in pieces] == [True, False, True]
    assert [piece.first for piece in pieces[1:]] == [piece.last for piece in pieces[:-1]]
    made: set[str] = {b.name for b in region.program.inputs if b is not None}
    for piece in pieces:
        assert set(piece.reads) <= made
        made |= set(piece.makes)


def branches(x: Tensor, weight: Tensor) -> list[Tensor]:
    left, right = x @ weight, weight @ weight
    return [(torch.relu(left) @ weight).softmax(-1) @ torch.tanh(right)]


def test_a_region_with_branches_is_the_same_on_several_streams() -> None:
    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    graphed, recorder = partitioned(branches, x, weight, streams=3)
    for value in (x, x + 1, x + 2):
        check(graphed, branches, [value, weight])
    facts = graphed.facts()
    assert (facts.streams, facts.one_stream_us, facts.forked_us) == (2, 20.0, 10.0)
    assert len(recorder.recordings) >= 2


def test_a_single_launch_between_two_refused_steps_gets_no_graph() -> None:
    def function(x: Tensor) -> Tensor:
        return unsafe_double(unsafe_double(x) + 1).sum()

    region, _ = compiled(function, torch.randn(64, 64))
    pieces = split(region.program, region.steps, refused_steps(region.steps, region.graph))
    assert [piece.captured for piece in pieces] == [False]


def test_parts_replay_and_equal_eager() -> None:
    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    graphed, recorder = partitioned(model, x, weight)
    for _ in range(4):
        check(graphed, model, [x, weight])
        x.add_(0.5)
    moved = [torch.randn(4, 8) for _ in range(3)]
    for value in moved:
        check(graphed, model, [value, weight])
    facts = graphed.facts()
    assert (facts.captured, facts.capturable) == (True, False)
    assert facts.skip_reasons[0].rule == "unsafe_op"
    assert len(graphed.graphs) == 2
    assert graphed.replays >= 8
    assert len(recorder.recordings) <= 6


def test_kept_outputs_of_parts_are_never_overwritten() -> None:
    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    graphed, _ = partitioned(model, x, weight)
    kept: list[tuple[list[Any], list[Tensor]]] = []
    for _ in range(5):
        outputs = graphed([x, weight])
        kept.append((outputs, [value.clone() for value in outputs]))
        x = x + 1
    for outputs, copies in kept:
        for got, expected in zip(outputs, copies, strict=True):
            assert torch.equal(got, expected)


class RefusesStep(FakeRecorder):
    """Refuses to capture whatever runs a step whose name contains ``word``."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def record(self, run: Any, arguments: list[Any], *rest: Any) -> Any:
        observer: Observer = rest[-1]
        seen: list[str] = []
        observer.mark = lambda region, unit: seen.append(unit)
        run(list(arguments))
        observer.mark = None
        found: Sequence[str] = [unit for unit in seen if self.word in unit]
        if found:
            raise CaptureRefused(SkipReason("host_sync", "It waits."), found[0])
        return super().record(run, arguments, *rest)


def test_a_step_that_a_capture_fails_at_is_taken_out() -> None:
    def function(x: Tensor, weight: Tensor) -> list[Tensor]:
        hidden = torch.relu(x @ weight).softmax(-1)
        ordered = torch.sort(hidden).values
        return [(ordered @ weight).softmax(-1)]

    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    graphed, _ = partitioned(function, x, weight, recorder=RefusesStep("sort"))
    assert len(graphed.graphs) == 1
    entry = graphed.entry()
    for _ in range(3):
        check(graphed, function, [x, weight])
        torch.testing.assert_close(entry([x, weight]), function(x, weight))
    assert len(graphed.graphs) == 2
    reason = graphed.facts().skip_reasons[0]
    assert (reason.rule, reason.node) == ("host_sync", "sort")
    assert graphed.replays > 0


def test_a_graph_that_a_refusal_takes_the_place_of_is_waited_for() -> None:
    def function(x: Tensor, weight: Tensor) -> list[Tensor]:
        return [torch.sort(torch.relu(x @ weight).softmax(-1)).values @ weight]

    class Waits(RefusesStep):
        waited = 0

        def wait(self, device: torch.device) -> None:
            self.waited += 1

    recorder = Waits("none")
    inputs = [[torch.randn(4, 8), torch.randn(8, 8)] for _ in range(2)]
    graphed, _ = partitioned(function, *inputs[0], recorder=recorder)
    check(graphed, function, inputs[0])
    assert len(recorder.recordings) == 1
    recorder.word = "sort"
    for _ in range(3):
        check(graphed, function, inputs[1])
    assert recorder.waited == 1
    assert len(graphed.graphs) == 1


@pytest.mark.parametrize("word", ["mm", "group"])
def test_steps_that_never_let_themselves_be_captured_run_plainly(word: str) -> None:
    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    graphed, _ = partitioned(model, x, weight, recorder=RefusesStep(word))
    for _ in range(10):
        check(graphed, model, [x, weight])


def decoded(x: Tensor, keys: Tensor, values: Tensor, place: Tensor) -> list[Tensor]:
    """A step of attention over a cache, with a part of its own before and after each of two refused steps."""
    key = torch.tanh(x * 2).softmax(-1)
    keys.index_copy_(1, place, key[:, None])
    value = unsafe_double(key + keys.sum(1))
    values.index_copy_(1, place, (value * 3)[:, None])
    weights = unsafe_double((keys * key[:, None]).sum(-1).softmax(-1))
    keys.mul_(0.5)
    return [(weights[..., None] * values).sum(1).softmax(-1), keys[:, 1:]]


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "in one memory"])
@pytest.mark.usefixtures("fresh_dynamo")
def test_a_cache_that_moves_is_written_where_it_is(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_on_gpu", lambda region: True)
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    session.graph_pool = GraphPool(FakeRecorder(AddressRecording))
    regions: list[PartitionedRegion] = []
    options = {"session": session, "cuda_graph": True, "on_graphed_region": regions.append}
    call = torch.compile(decoded, backend=lambda graph, inputs: fusescope(graph, inputs, options=options))
    memory = torch.randn(4, 2, 2, 5, 8)
    caches = [tuple(one if shared else one.clone() for one in pair) for pair in memory]
    expected = [tuple(one.clone() for one in pair) for pair in caches]
    with torch.no_grad():
        for number in (0, 0, 1, 2, 1, 0, 3):
            x, place = torch.randn(2, 8), torch.tensor([number])
            outputs = call(x, *caches[number], place)
            torch.testing.assert_close(outputs, decoded(x, *expected[number], place))
            torch.testing.assert_close(caches, expected)
            assert outputs[1].data_ptr() == caches[number][0][:, 1:].data_ptr()
            del outputs
    (region,) = regions
    assert [part.piece.captured for part in region._parts].count(False) == 2
    assert region.replays >= (3 if shared else 9)
    assert ("aliased_inputs" in [reason.rule for reason in region.facts().skip_reasons]) is shared
