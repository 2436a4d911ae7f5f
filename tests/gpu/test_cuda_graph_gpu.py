"""CUDA Graph capture and replay on a GPU: right numbers as inputs change, and a healthy context after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.backend import fusescope  # noqa: E402
from compiler.runtime.cuda_graph import GraphedRegion  # noqa: E402

pytestmark = pytest.mark.gpu


def block(inputs: Sequence[Any]) -> list[Any]:
    x, weight = inputs
    hidden = torch.relu(x @ weight)
    return [hidden, hidden.sum(dim=0)]


def check(graphed: GraphedRegion, run: Callable[[Sequence[Any]], list[Any]], inputs: list[Any]) -> None:
    for got, expected in zip(graphed(inputs), run(inputs), strict=True):
        torch.testing.assert_close(got, expected)


def cuda(*sizes: int) -> Any:
    return torch.randn(*sizes, device="cuda")


def context_is_healthy() -> None:
    """Everything a failed capture is known to break in torch."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.rand(8, device="cuda")
    torch.nn.functional.dropout(cuda(8), 0.5)
    torch.empty(1 << 20).pin_memory()
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    graphed = GraphedRegion(block, frozenset({1}))
    weight = cuda(16, 16)
    for _ in range(2):
        check(graphed, block, [cuda(4, 16), weight])
    assert graphed.facts().captured


def test_lifecycle_is_recorded() -> None:
    graphed = GraphedRegion(block, frozenset({1}))
    inputs = [cuda(4, 16), cuda(16, 16)]
    graphed(inputs)
    facts = graphed.facts()
    assert (facts.captured, facts.partitions, facts.captures, facts.skip_reasons) == (True, 1, 1, [])
    assert min(facts.warmup_ms, facts.capture_ms, facts.instantiate_ms, facts.upload_ms, facts.first_replay_ms) > 0
    assert facts.nodes >= 3
    assert facts.pool_bytes > 0
    assert facts.copied_bytes == 0
    assert len(facts.topology) == facts.nodes


def test_the_workspace_of_cublas_belongs_to_the_graph() -> None:
    """Else a replay writes where somebody else's tensor lies by now, once cuBLAS's workspaces have been given back."""

    def long_sums(inputs: Sequence[Any]) -> list[Any]:
        x, weight = inputs
        return [x @ weight, x.bfloat16() @ weight.bfloat16()]  # few results, long sums: cuBLAS splits them

    graphed = GraphedRegion(long_sums, frozenset({1}))
    inputs = [cuda(64, 1 << 16), cuda(1 << 16, 64)]
    check(graphed, long_sums, inputs)
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    others = [torch.full((1 << 20,), 7, dtype=torch.int32, device="cuda") for _ in range(64)]
    expected = long_sums(inputs)
    for _ in range(3):
        for got, right in zip(graphed(inputs), expected, strict=True):
            torch.testing.assert_close(got, right)
    assert all(bool((other == 7).all()) for other in others)


def test_changed_inputs_and_moved_weights() -> None:
    graphed = GraphedRegion(block, frozenset({1}))
    weights = [cuda(16, 16), cuda(16, 16)]
    for step in range(6):
        check(graphed, block, [cuda(4, 16), weights[step // 3]])
    weights[1].mul_(3)
    check(graphed, block, [cuda(4, 16), weights[1]])
    assert graphed.facts().captures <= 4


def test_layouts_and_dtypes_of_inputs() -> None:
    def mixed(inputs: Sequence[Any]) -> list[Any]:
        return [inputs[0].float() + inputs[1].t() + inputs[2], inputs[0].t()]

    graphed = GraphedRegion(mixed, frozenset())
    for _ in range(3):
        check(graphed, mixed, [cuda(4, 4).half(), cuda(4, 4), cuda(4, 1).expand(4, 4)])
    assert graphed.facts().captures <= 3  # where it lay, then with what moved copied, input by input


def test_outputs_outlive_replays_and_memory_does_not_grow() -> None:
    graphed = GraphedRegion(block, frozenset({1}))
    weight = cuda(64, 64)
    kept = [(x, graphed([x, weight])[0]) for x in (cuda(8, 64) for _ in range(4))]
    for x, output in kept:
        torch.testing.assert_close(output, block([x, weight])[0])
    for _ in range(3):
        graphed([cuda(8, 64), weight])
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(2000):
        graphed([cuda(8, 64), weight])
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before


def test_random_numbers_are_those_of_plain_calls() -> None:
    def draw(inputs: Sequence[Any]) -> list[Any]:
        return [torch.rand_like(inputs[0]), torch.nn.functional.dropout(inputs[0], 0.5)]

    x = torch.ones(1000, device="cuda")
    torch.manual_seed(5)
    plain = [draw([x]) for _ in range(4)]
    graphed = GraphedRegion(draw, frozenset())
    torch.manual_seed(5)
    replayed = [graphed([x]) for _ in range(4)]
    for expected, got in zip(plain, replayed, strict=True):
        assert torch.equal(expected[0], got[0])
        assert torch.equal(expected[1], got[1])
    assert not torch.equal(replayed[2][0], replayed[3][0])
    assert graphed.facts().captured


def test_mutated_inputs_are_written_once_a_call() -> None:
    def accumulate(inputs: Sequence[Any]) -> list[Any]:
        inputs[0].add_(inputs[1])
        return [inputs[0] * 2]

    for static in (frozenset[int](), frozenset({0})):
        graphed = GraphedRegion(accumulate, static, mutated_inputs=frozenset({0}))
        total, expected = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
        for _ in range(4):
            x = cuda(8)
            expected += x
            graphed([total, x])
            torch.testing.assert_close(total, expected)
        assert graphed.facts().captured


def waits(inputs: Sequence[Any]) -> list[Any]:
    return [inputs[0] * inputs[0].max().item()]


def waits_only_in_capture(inputs: Sequence[Any]) -> list[Any]:
    if torch.cuda.is_current_stream_capturing():
        inputs[0].max().item()
    return [inputs[0] * 2]


def raises_only_in_capture(inputs: Sequence[Any]) -> list[Any]:
    doubled = inputs[0] * 2
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("not here")
    return [doubled]


def forks_and_never_joins(inputs: Sequence[Any]) -> list[Any]:
    doubled = inputs[0] * 2
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        tripled = inputs[0] * 3
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream().wait_stream(side)
    return [doubled, tripled]


def shape_depends_on_data(inputs: Sequence[Any]) -> list[Any]:
    return [inputs[0][inputs[0] > 0]]


def returns_a_cpu_tensor(inputs: Sequence[Any]) -> list[Any]:
    return [inputs[0].to("cpu", non_blocking=False) * 2]


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        (waits, "host_sync"),
        (shape_depends_on_data, "host_sync"),
        (returns_a_cpu_tensor, "host_sync"),
        (waits_only_in_capture, "unsupported_operation"),
        (raises_only_in_capture, "unsupported_operation"),
        (forks_and_never_joins, ""),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_failed_capture_is_clean(run: Callable[[Sequence[Any]], list[Any]], rule: str) -> None:
    graphed = GraphedRegion(run, frozenset())
    for _ in range(3):
        check(graphed, run, [cuda(16)])
    facts = graphed.facts()
    assert not facts.captured
    assert len(facts.skip_reasons) == 1
    assert rule in ("", facts.skip_reasons[0].rule), facts.skip_reasons
    assert facts.skip_reasons[0].source is None or facts.skip_reasons[0].source.file == __file__
    context_is_healthy()


def test_a_cpu_scalar_input_is_not_baked_in() -> None:
    def scaled(inputs: Sequence[Any]) -> list[Any]:
        return [inputs[0] * inputs[1]]

    graphed = GraphedRegion(scaled, frozenset())
    for factor in (2.0, 3.0):
        check(graphed, scaled, [cuda(8), torch.tensor(factor)])
    assert [reason.rule for reason in graphed.facts().skip_reasons] == ["cpu_tensor"]


def test_other_streams_and_threads_see_right_results() -> None:
    graphed = GraphedRegion(block, frozenset({1}))
    weight = cuda(256, 256)
    graphed([cuda(64, 256), weight])
    inputs = [cuda(64, 256) for _ in range(8)]
    torch.cuda.synchronize()
    outputs: list[Any] = [None] * len(inputs)

    def call(index: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            outputs[index] = graphed([inputs[index], weight])

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    for x, output in zip(inputs, outputs, strict=True):
        torch.testing.assert_close(output[0], block([x, weight])[0])


def test_nested_in_an_outer_capture() -> None:
    graphed = GraphedRegion(block, frozenset({1}))
    x, weight = cuda(4, 16), cuda(16, 16)
    graphed([x, weight])
    outer = torch.cuda.CUDAGraph()
    with torch.cuda.graph(outer):
        (hidden, _) = graphed([x, weight])
    x.copy_(cuda(4, 16))
    outer.replay()
    torch.testing.assert_close(hidden, block([x, weight])[0])


@pytest.mark.parametrize("capacity", [1, 2])
def test_sizes_that_change_keep_the_graphs_used_last(capacity: int) -> None:
    regions: list[Any] = []
    options = {"cuda_graph": True, "graph_capacity": capacity, "on_graphed_region": regions.append}

    def function(x: Any) -> Any:
        return torch.softmax(x * 2, -1).sum(0)

    compiled = torch.compile(function, backend=fusescope, options=options, dynamic=True)
    for _ in range(2):
        for size in (8, 16, 24):
            for _ in range(3):
                x = torch.randn(size, 64, device="cuda")
                torch.testing.assert_close(compiled(x), function(x))
    (found,) = (region.facts() for region in regions)  # one program serves every size
    assert found.captured
    assert found.captures >= 6, "of three sizes in turn, the one that comes is never among those used last"
    assert not found.skip_reasons


def test_branches_on_several_streams_are_right_and_both_ways_are_timed() -> None:
    def function(x: Any, a: Any, b: Any) -> Any:
        left, right = x @ a, x @ b
        return (torch.relu(left) @ b).softmax(-1) + (torch.tanh(right) @ a).softmax(-1)

    regions: list[Any] = []
    options = {"cuda_graph": True, "graph_streams": 4, "on_graphed_region": regions.append}
    compiled = torch.compile(function, backend=fusescope, options=options)
    a, b = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    kept = [torch.randn(64, 256, device="cuda") for _ in range(5)]
    for x in kept * 3:
        torch.testing.assert_close(compiled(x, a, b), function(x, a, b), rtol=1e-2, atol=1e-3)
    facts = regions[0].facts()
    assert facts.one_stream_us
    assert facts.forked_us
    assert facts.streams == (2 if facts.forked_us < facts.one_stream_us else 1)
    starts = [node for node in facts.topology if not node.dependencies]
    assert len(starts) == (2 if facts.streams == 2 else 1)
    assert "not_forked" not in {reason.rule for reason in facts.skip_reasons}


def test_a_batch_is_rounded_up_to_a_bucket() -> None:
    regions: list[Any] = []
    options = {"cuda_graph": True, "graph_buckets": [16, 32], "on_graphed_region": regions.append}
    model = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Linear(64, 64), torch.nn.GELU()).cuda().eval()
    compiled = torch.compile(model, backend=fusescope, options=options)
    with torch.no_grad():
        for samples in (9, 13, 16, 20, 32, 11, 31, 9):
            x = torch.randn(samples, 64, device="cuda")
            torch._dynamo.mark_dynamic(x, 0)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-2, atol=1e-3)
    (region,) = regions
    facts = region.facts()
    assert facts.captures == 2
    assert facts.skip_reasons == []
    assert [route.route for route in facts.routes].count("copied") == 1
