"""Graphs on several streams: used where they are faster and give the same numbers; calls follow one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.runtime.cuda_graph import Forked  # noqa: E402
from tests.fake_graphs import FakeStream, affine, check, region  # noqa: E402


def test_another_stream_waits_for_the_last_one() -> None:
    graphed, recorder = region(affine, {1})
    inputs = [torch.randn(3, 4), torch.randn(4)]
    graphed(inputs)
    first, recorder.current = recorder.current, FakeStream()
    graphed(inputs)
    assert recorder.current.waited_for is first


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
