"""Which programs compute each sample from itself alone, and what graphs for few sizes do with that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="kernels are Triton's")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from compiler import backend  # noqa: E402
from compiler.backend import Session, as_captured, boxed, fusescope, through_aot  # noqa: E402
from compiler.errors import CompileError  # noqa: E402
from compiler.kernel_library import KernelLibrary  # noqa: E402
from compiler.passes.independent_rows import Batch, Dependent, Rows, batch_of  # noqa: E402
from compiler.runtime import padded  # noqa: E402
from compiler.runtime.pool import GraphPool  # noqa: E402
from tests.fake_graphs import FakeRecorder, FakeStream  # noqa: E402
from tests.graphs import TARGET  # noqa: E402

WEIGHT = torch.randn(6, 6)

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def batch(function: Callable[..., Any], *inputs: Tensor, dim: int = 0) -> Batch:
    """What is found out about the function with the inputs' ``dim`` dynamic."""
    found: list[Any] = []

    def search(graph: Any, _: Any) -> Any:
        try:
            found.append(batch_of(graph))
        except Dependent as error:
            found.append(error)
        return boxed(lambda values: graph(*values))

    for x in inputs:
        torch._dynamo.mark_dynamic(x, dim)
    with torch.no_grad():
        torch.compile(function, backend=lambda gm, given: through_aot(gm, given, lambda kind: search))(*inputs)
    (result,) = found
    if isinstance(result, Dependent):
        raise result
    assert isinstance(result, Batch)
    return result


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.norm = nn.Linear(6, 18), nn.LayerNorm(6)

    def forward(self, x: Tensor) -> Tensor:
        samples, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(samples, length, 3, 2, 3).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + out.transpose(1, 2).reshape(samples, length, 6)


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.adaptive_avg_pool2d(torch.relu(self.norm(self.conv(x[:, None]))), 1).flatten(1))


APART: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "pointwise": (lambda x: torch.relu(x * 2 + WEIGHT[0]), (5, 6)),
    "softmax": (lambda x: x.softmax(-1), (5, 6)),
    "linear": (lambda x: F.gelu(x @ WEIGHT), (5, 6)),
    "flattened": (lambda x: (x.reshape(-1, 6) @ WEIGHT).reshape(-1, 4, 6).sum(1), (5, 4, 6)),
    "concatenated": (lambda x: torch.cat([WEIGHT[0].expand(x.shape[0], 1, 6), x], 1).mean(1), (5, 4, 6)),
    "chosen": (lambda x: x[:, 0] + x[:, 1:3].sum(1), (5, 4, 6)),
    "positions": (lambda x: F.embedding((x.abs() * 3).long().clamp(max=5), WEIGHT), (5, 4)),
    "constant": (lambda x: torch.zeros(x.shape[0], 6) + x, (5, 6)),
    "attention": (Attention().eval(), (5, 4, 6)),
    "convolution": (Convolution().eval(), (5, 8, 8)),
}
TOGETHER: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "sum of all": (lambda x: x.sum(), (5, 6)),
    "mean over samples": (lambda x: x - x.mean(0), (5, 6)),
    "softmax over samples": (lambda x: x.softmax(0), (5, 6)),
    "scan": (lambda x: x.cumsum(0), (5, 6)),
    "number of samples": (lambda x: x * x.shape[0], (5, 6)),
    "one over the number": (lambda x: x / x.shape[0], (5, 6)),
    "gram matrix": (lambda x: x @ x.t(), (5, 6)),
    "product over samples": (lambda x: x.t() @ x, (5, 6)),
    "chosen sample": (lambda x: x + x[0], (5, 6)),
    "last sample": (lambda x: x[-1:], (5, 6)),
    "turned round": (lambda x: x.flip(0), (5, 6)),
    "cut across": (lambda x: x.t().reshape(-1), (5, 6)),
    "joined": (lambda x: torch.cat([x, WEIGHT]), (5, 6)),
    "padded": (lambda x: F.pad(x, (0, 0, 1, 1)), (5, 6)),
    "sample numbers": (lambda x: x + torch.arange(x.shape[0])[:, None], (5, 6)),
    "random": (lambda x: x + torch.rand_like(x), (5, 6)),
    "batch statistics": (nn.BatchNorm1d(6).train(), (5, 6)),
    "looked up": (lambda x: x[torch.tensor([0, 1])], (5, 6)),
    "written into": (lambda x: x.add_(1), (5, 6)),
    "returned": (lambda x: (x[:, 1:], x + 1), (5, 6)),
    "its number returned": (lambda x: (x + 1, x.shape[0]), (5, 6)),
}


@pytest.mark.parametrize("name", APART)
def test_a_sample_that_was_found_to_be_apart_is_computed_from_itself(name: str) -> None:
    function, shape = APART[name]
    x = torch.randn(shape)
    found = batch(function, x)
    assert found.outputs == {0: Rows(0)}
    other = torch.cat([x[:3], torch.randn(7, *shape[1:])])
    with torch.no_grad():
        torch.testing.assert_close(function(other)[:3], function(x)[:3])


@pytest.mark.parametrize("name", TOGETHER)
def test_where_samples_meet_or_their_number_matters_nothing_is_assumed(name: str) -> None:
    function, shape = TOGETHER[name]
    with pytest.raises(Dependent) as refused:
        batch(function, torch.randn(shape))
    assert str(refused.value).endswith(".")


def test_what_the_capture_took_for_granted_of_the_size_limits_what_it_serves() -> None:
    def function(x: Tensor) -> Tensor:
        return x + 1 if x.shape[0] < 9 else x - 1

    serves = batch(function, torch.randn(5, 6)).serves
    assert [serves(size) for size in (2, 8, 9, 16)] == [True, True, False, False]


def graphed(
    monkeypatch: pytest.MonkeyPatch, function: Any, **options: Any
) -> tuple[Callable[..., Any], list[Any], FakeRecorder]:
    """The function compiled with graphs of a fake recorder on the CPU, its regions, and the recorder."""
    monkeypatch.setattr(backend, "executable_of", lambda region, *_: as_captured(region))
    monkeypatch.setattr(backend, "launchers_of", lambda region, library: {})
    monkeypatch.setattr(backend, "_on_gpu", lambda region: True)
    regions: list[Any] = []
    recorder = FakeRecorder()
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False), graph_pool=GraphPool(recorder))
    settings = {"session": session, "cuda_graph": True, "on_graphed_region": regions.append, **options}
    compiled = torch.compile(function, backend=lambda gm, given: fusescope(gm, given, options=settings))

    def call(x: Tensor) -> Any:
        torch._dynamo.mark_dynamic(x, 0)
        return compiled(x)

    return call, regions, recorder


def test_sizes_are_rounded_up_to_buckets_and_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Attention().eval()
    call, regions, recorder = graphed(monkeypatch, model, graph_buckets=[4, 8])
    kept: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for samples in (3, 4, 7, 5, 8, 3, 6):
            x = torch.randn(samples, 4, 6)
            got = call(x)
            torch.testing.assert_close(got, model(x))
            assert got.stride() == model(x).stride()
            kept.append((got, got.clone()))
            assert all(torch.equal(output, copy) for output, copy in kept)
            if samples != 5:
                kept.clear()
        assert {len(r.written[0]) for r in recorder.recordings} == {4, 8}
        facts = regions[0].facts()
        assert [r.rule for r in facts.skip_reasons if r.rule != "kept_outputs"] == []
        (route,) = [route for route in facts.routes if route.route == "copied"]
        assert route.bytes == 6 * 4 * 6 * 4
        assert "8 samples" in route.detail
        before = len(recorder.recordings)
        x = torch.randn(11, 4, 6)
        torch.testing.assert_close(call(x), model(x))  # beyond the largest: a graph of its own
        assert len(recorder.recordings) == before + 1


def test_where_padding_would_change_numbers_each_size_has_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Tensor) -> Tensor:
        return x - x.mean(0)

    call, regions, recorder = graphed(monkeypatch, function, graph_buckets=[8])
    for samples in (3, 5, 3):
        x = torch.randn(samples, 6)
        torch.testing.assert_close(call(x), function(x))
    assert {len(r.written[0]) for r in recorder.recordings} == {3, 5}
    (reason,) = [r for r in regions[0].facts().skip_reasons if r.rule == "not_padded"]
    assert reason.node
    assert reason.source is not None
    assert reason.source.file == __file__


def test_what_is_padded_for_one_call_lasts_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    call, _, recorder = graphed(monkeypatch, lambda x: x * 2 + 1, graph_buckets=[4])
    with torch.no_grad():
        for samples in (2, 3, 2):
            call(torch.randn(samples, 6))
        recording = recorder.recordings[-1]
        run, mine, others = recording.run, torch.randn(3, 6), torch.randn(3, 6)
        came: list[Tensor] = []
        other = threading.Thread(target=torch.no_grad()(lambda: came.append(call(others).clone())))

        def with_another_call(arguments: list[Any]) -> Any:
            recording.run = run
            other.start()
            other.join(0.3)  # it waits for this call, or has overwritten what this one was to read
            return run(arguments)

        recording.run = with_another_call
        result = call(mine).clone()
        other.join()
    torch.testing.assert_close(result, mine * 2 + 1)
    torch.testing.assert_close(came, [others * 2 + 1])


def test_what_is_padded_on_another_stream_waits_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    call, _, recorder = graphed(monkeypatch, lambda x: x * 2 + 1, graph_buckets=[4])
    copyable, ordered = padded.copyable, []

    def noting(tensor: Tensor) -> Tensor:
        ordered.append(hasattr(recorder.current, "waited_for"))
        return copyable(tensor)

    monkeypatch.setattr(padded, "copyable", noting)
    with torch.no_grad():
        for _ in range(3):
            call(torch.randn(3, 6))
        ordered.clear()
        recorder.current = FakeStream()
        call(torch.randn(3, 6))
    assert ordered
    assert all(ordered)


def test_what_the_caller_captures_is_not_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    call, regions, recorder = graphed(monkeypatch, lambda x: x * 2 + 1, graph_buckets=[4])
    with torch.no_grad():
        for samples in (2, 3):
            call(torch.randn(samples, 6))
        before = regions[-1].replays
        recorder.capturing = True
        x = torch.randn(3, 6)
        torch.testing.assert_close(call(x), x * 2 + 1)
    assert regions[-1].replays == before
    assert regions[-1].facts().routes[-1].route != "copied"


def test_buckets_are_sizes() -> None:
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(CompileError, match="graph_buckets"):
        fusescope(graph, [torch.ones(2)], options={"graph_buckets": [0]})
