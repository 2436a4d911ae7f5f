"""Biases of library calls: added by the kernel that reads the result, left to the library where none does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.ir import Extern
from compiler.lowering.extern import library_detail
from compiler.passes.biases import biases_apart
from compiler.passes.products import PRODUCTS, Operand, Product
from compiler.region import CompiledRegion
from compiler.runtime import product_trials
from compiler.targets import resolve
from tests.graphs import capture, launches
from tests.interpret.checking import check


def biases(region: CompiledRegion) -> list[bool]:
    """Of each convolution, whether the library adds one."""
    return [step.args[2] is not None for step in region.steps if isinstance(step, Extern)]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_reader_of_ours_adds_the_bias(rank: int) -> None:
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    # Sums of size one, whose rounding is then what check allows.
    x, weight = torch.randn(2, 6, *[7] * rank), torch.randn(8, 6, *[3] * rank) / (6 * 3**rank) ** 0.5
    region = check(lambda x, w, b: convolve(x, w, b).relu() * 2, x, weight, torch.randn(8))
    assert biases(region) == [False]


def test_without_a_reader_of_ours_it_stays() -> None:
    x, weight, bias, square = torch.randn(2, 6, 7, 7), torch.randn(8, 6, 3, 3), torch.randn(8), torch.randn(8, 8, 1, 1)
    region = check(lambda x, w, b: F.conv2d(x, w, b), x, weight, bias)
    assert biases(region) == [True]
    assert all("convolution" not in launch.origins for launch in launches(region))

    def chain(x: Tensor, w: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return F.conv_transpose2d(F.conv2d(F.conv2d(x, w, b), s, b).sigmoid(), s, b).tanh()

    assert biases(check(chain, x, weight, bias, square)) == [True, False, False]


def products(region: CompiledRegion) -> list[str]:
    return [str(step.target) for step in region.steps if isinstance(step, Extern)]


def test_a_product_in_float32_leaves_its_bias_to_its_reader() -> None:
    x, weight, bias = torch.randn(6, 4, 16), torch.randn(16, 24), torch.randn(24)
    region = check(lambda x, w, b: torch.addmm(b, x.flatten(0, 1), w).view(6, 4, 24).relu(), x, weight, bias)
    assert products(region) == ["aten.mm.default"]


def test_a_product_keeps_its_bias() -> None:
    """Where nobody of ours reads it, where it is scaled, where the result would be rounded once more."""
    x, weight, bias = torch.randn(8, 16), torch.randn(16, 24), torch.randn(24)
    for run in (
        lambda x, w, b: torch.addmm(b, x, w),
        lambda x, w, b: torch.addmm(b, x, w).view(2, 4, 24) @ w.t(),
        lambda x, w, b: torch.addmm(b, x, w).split(8, 1)[1] @ w[:8],
        lambda x, w, b: torch.addmm(b, x, w, beta=2).relu(),
        lambda x, w, b: torch.addmm(b.expand(8, 24), x, w).relu(),
    ):
        assert products(check(run, x, weight, bias))[0] == "aten.addmm.default"
    halves = [value.bfloat16() for value in (x, weight, bias)]
    assert products(check(lambda x, w, b: torch.addmm(b, x, w).relu(), *halves)) == ["aten.addmm.default"]


@pytest.mark.parametrize("apart", [5.0, 7.0])
def test_a_product_is_timed_both_ways_where_it_can_be(apart: float) -> None:
    asked: list[tuple[int, int, int]] = []

    def times(product: Product) -> tuple[float, float]:
        asked.append(product.mkn)
        return 6.0, apart

    x, weight, bias = torch.randn(8, 16), torch.randn(16, 24), torch.randn(24)
    graph = capture(lambda x, w, b: torch.addmm(b, x, w).relu(), x, weight, bias)
    rewritten = biases_apart(graph, times)
    assert asked == [(8, 16, 24)]
    (product,) = (n for n in rewritten.graph.nodes if n.target in PRODUCTS)
    if apart < 6:
        assert product.target is torch.ops.aten.mm.default
    else:
        assert rewritten is graph
        assert "measured: 6 µs with it, 7 µs without" in library_detail(product, "cuda")


def test_a_trial_runs_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Tensor] = []

    def run_once(run: Callable[[], Tensor], flush: Tensor) -> float:
        results.append(run())
        return float(len(results))

    monkeypatch.setattr(product_trials, "_microseconds", run_once)
    a, b = Operand((8, 16), (16, 1)), Operand((16, 24), (1, 16))
    product = Product(torch.float32, torch.device("cpu"), a, b, frozenset("mkn"), False, False, False)
    assert product_trials._bias_times(product, resolve("h200")) == (1.0, 2.0)
    assert [result.shape for result in results] == [(8, 24), (8, 24)]
    assert product_trials.time_bias(product, resolve("h200")) is None
