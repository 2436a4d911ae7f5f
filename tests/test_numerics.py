"""Values against float64: a value that is off is told with its node and unit, partial results and integers are not."""

from __future__ import annotations

import pytest
import torch

from app.overlays import LEVELS, overlay
from app.unit_errors import error_text, summary, unit_errors
from compiler.errors import CompileError
from compiler.numerics import Held, check_numerics, compare
from compiler.report import NodeCheck, Numerics
from compiler.targets import resolve
from tests.fake_reports import transformer_report
from tests.graphs import capture


def chain(x: torch.Tensor) -> torch.Tensor:
    """Two values that a region could write."""
    return ((x * 3.0).exp() + 1.0).sum(0)


def test_errors_are_ours_and_eagers_at_each_node() -> None:
    x = torch.randn(64, 8)
    graph = capture(chain, x)
    right = torch.exp(x * 3.0)
    wrong = right + 1e-2 * right.norm() / right.numel() ** 0.5
    exact = torch.exp(x.double() * 3.0)
    held = [Held("group0", "exp", -1, wrong), Held("group1", "sum_1", -1, (right + 1.0).sum(0))]
    first, second = compare("inference", graph, [x], held)
    assert (first.unit, first.node, first.dtype) == ("group0", "exp", "float32")
    assert first.error == pytest.approx(1e-2, rel=0.1)
    assert first.eager_error == pytest.approx(float((right.double() - exact).norm() / exact.norm()), rel=1e-6)
    assert second.error < 1e-6


def test_partial_results_and_integers_are_left_out() -> None:
    x = torch.randn(64, 8)
    graph = capture(lambda x: (chain(x), x.argmax(0)), x)
    held = [Held("group0", "sum_1", -1, torch.zeros(4, 8)), Held("group0", "argmax", -1, torch.zeros(8).long())]
    assert compare("inference", graph, [x], held) == []


def test_random_numbers_are_those_that_the_region_drew() -> None:
    x = torch.zeros(32)
    graph = capture(lambda x: torch.rand_like(x) * 2.0 + x, x)
    seeds = next(node for node in graph.graph.nodes if "randint" in str(node.target))
    drawn = torch.randint(-(1 << 40), 1 << 40, (1,))
    uniform = torch.ops.fusescope.uniform.default(drawn, 0, [32], None, 24, torch.float32)
    held = [Held("ext_randint", seeds.name, -1, drawn), Held("group0", "add", -1, uniform * 2.0)]
    (check,) = compare("inference", graph, [x], held)
    assert (check.node, check.error) == ("add", 0.0)
    assert compare("inference", graph, [x], held[1:]) == [], "what depends on unknown numbers has no error"


def test_inputs_that_a_graph_writes_into_stay_the_callers() -> None:
    x = torch.ones(8)
    graph = capture(lambda x: x.add_(1.0) * 2.0, x)
    before = x.clone()
    (check,) = compare("inference", graph, [x.clone()], [Held("group0", "mul", -1, torch.full((8,), 4.0))])
    assert check.error == 0.0
    assert torch.equal(x, before)


def test_kernels_need_something_to_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(CompileError, match="no GPU"):
        check_numerics(torch.relu, (torch.randn(3),), target=resolve("h100"))


def test_a_model_of_which_nothing_is_captured_was_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(CompileError, match="captured no part of this model, so there is nothing to check"):
        check_numerics(torch.nn.Identity(), (torch.randn(3),), target=resolve("h100"))


def test_the_overlay_goes_by_powers_of_ten() -> None:
    report = transformer_report(60)
    region = report.regions[0]
    assert overlay(report, region, "error").units == {}
    names = [group.name for group in region.groups[:4]]
    errors = dict(zip(names, (1e-8, 1e-6, 1e-4, float("nan")), strict=True))
    checks = [NodeCheck(region.name, unit, f"n{i}", error, 1e-8, "float32") for i, (unit, error) in
              enumerate(errors.items())]  # fmt: skip
    report.numerics = Numerics("Test GPU", [*checks, NodeCheck(region.name, names[0], "less", 1e-9, 1e-9, "float32")])
    made = overlay(report, region, "error")
    assert made is not None
    assert [made.units[name] for name in names] == [0, LEVELS // 2, LEVELS - 1, LEVELS - 1]
    assert (made.smallest, made.largest) == (1e-8, 1e-4)
    assert unit_errors(report, region.name)[names[0]].node == "n0", "the value that is least exact stands for its unit"
    report.numerics.nodes.pop(3)
    assert "largest error is 1.0e-4 at n2 (eager's there is 1.0e-8)" in summary(report)
    assert summary(report).startswith("4 values were checked against float64 on Test GPU")
    report.numerics.nodes = report.numerics.nodes[:1]
    assert summary(report).startswith("1 value was checked")
    assert [error_text(value) for value in (3.44e-7, 0.0, 1.0)] == ["3.4e-7", "0", "1.0e0"]


def test_attention_without_dropout_draws_nothing() -> None:
    q = torch.randn(1, 2, 8, 4)
    graph = capture(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q) * 2.0, q)
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q) * 2.0
    (check,) = compare("inference", graph, [q], [Held("group0", "mul", -1, out)])
    assert check.error < 1e-6


def test_normal_numbers_are_drawn_once() -> None:
    x = torch.zeros(64)
    graph = capture(lambda x: torch.randn_like(x) * 2.0 + x, x)
    seeds = next(node for node in graph.graph.nodes if "randint" in str(node.target))
    drawn = torch.randint(-(1 << 40), 1 << 40, (1,))
    normal = torch.ops.fusescope.normal.default(drawn, 0, [64], None, torch.float32)
    held = [Held("ext_randint", seeds.name, -1, drawn), Held("group0", "add", -1, normal * 2.0)]
    (check,) = compare("inference", graph, [x], held)
    assert check.error == 0.0
