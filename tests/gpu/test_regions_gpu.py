"""Regions through CUDA Graphs on a GPU: training in every order of calls, and a cut around what no graph holds."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.backend import fusescope  # noqa: E402
from compiler.runtime.trace import trace, with_trace  # noqa: E402

pytestmark = pytest.mark.gpu


def test_training_through_graphs_is_right_in_every_order() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.LayerNorm(64), torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)
    ).cuda()
    regions: list[Any] = []
    options = {"cuda_graph": True, "on_graphed_region": regions.append}
    compiled = torch.compile(model, backend=fusescope, options=options)

    def gradients(run: Any, order: str) -> list[Any]:
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        batches = [torch.randn(32, 64, device="cuda", requires_grad=True) for _ in range(2)]
        kept = []
        if order == "accumulated":
            for x in batches:
                out = run(x)
                kept.append(out)
                out.square().mean().backward()
        else:  # both forwards, then both backwards
            kept = [run(x) for x in batches]
            for out in kept:
                out.square().mean().backward()
        values = [*kept, *(p.grad for p in model.parameters()), *(x.grad for x in batches)]
        return [value.detach().clone() for value in values]

    for order in ("accumulated", "both", "accumulated", "accumulated", "both"):
        for got, expected in zip(gradients(compiled, order), gradients(model, order), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-3)
    with torch.no_grad():
        model[1].weight = torch.nn.Parameter(model[1].weight * 2)
    for got, expected in zip(gradients(compiled, "accumulated"), gradients(model, "accumulated"), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-3)
    reasons = {reason.rule for region in regions for reason in region.facts().skip_reasons}
    assert reasons <= {"pending_backward", "kept_outputs", "moved_once", "moving_inputs"}, reasons


def test_a_region_is_split_around_what_cannot_be_captured() -> None:
    @torch.library.custom_op("fusescope_gpu_tests::waits", mutates_args=())
    def waits(x: torch.Tensor) -> torch.Tensor:
        return x * x.abs().max().item()

    @waits.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    def function(x: Any, weight: Any) -> Any:
        hidden = torch.relu(x @ weight).softmax(-1)
        scaled = torch.ops.fusescope_gpu_tests.waits(hidden)
        on_cpu = torch.arange(64, dtype=torch.float32).to("cuda")
        return torch.tanh(scaled @ weight + on_cpu).softmax(-1)

    regions: list[Any] = []
    options = {"cuda_graph": True, "on_graphed_region": regions.append}
    compiled = torch.compile(function, backend=fusescope, options=options)
    weight = torch.randn(64, 64, device="cuda")
    kept = [torch.randn(32, 64, device="cuda") for _ in range(6)]
    for x in kept:
        torch.testing.assert_close(compiled(x, weight), function(x, weight), rtol=1e-2, atol=1e-3)
    (region,) = regions
    facts = region.facts()
    assert facts.captured
    assert facts.partitions >= 2, facts.skip_reasons
    found = {reason.rule: reason for reason in facts.skip_reasons}
    assert found["host_sync"].node.startswith("waits")
    assert found["host_sync"].source is not None
    assert found["host_sync"].source.file == __file__
    assert region.replays > 0
    covered = with_trace(facts, trace(lambda: compiled(kept[0], weight), "graph"))
    assert covered.covered_kernels is not None
    assert 0 < covered.covered_kernels < 1
