"""A fault in a stage: named with its stage, node and the user's line; or, where so wanted, the region runs in eager."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusescope
from compiler.errors import CompileError, at_node, sentence
from compiler.fusion import _Partitioner
from compiler.lowering import registry
from compiler.pipeline import Compilation, compile_model
from compiler.planning import schedule
from compiler.report import ExternReason
from tests.graphs import TARGET

pytest.importorskip("triton", reason="kernels are Triton's")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def model(x: Tensor) -> Tensor:
    y = x.sin() + 1
    return y.tanh().sum(0)


def compiled(**options: str) -> Compilation:
    return compile_model(model, (torch.randn(4, 5),), source="model", target=TARGET, options=options)


@pytest.fixture
def faulty_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(scope: Any, *args: Any) -> Any:
        raise ZeroDivisionError("no such luck\nsecond line")

    registry.rule_for(torch.ops.aten.tanh.default)  # the families are loaded
    monkeypatch.setitem(registry._RULES, torch.ops.aten.tanh.default, rule)


@pytest.mark.usefixtures("faulty_tanh")
def test_a_fault_in_lowering_names_stage_node_and_line() -> None:
    with pytest.raises(CompileError) as caught:
        compiled()
    error, line = caught.value, inspect.getsourcelines(model)[1] + 2
    assert (error.stage, error.node) == ("lower", "tanh")
    assert error.message == "ZeroDivisionError: no such luck"
    assert error.source == f"{__file__}:{line}, in model: return y.tanh().sum(0)"
    assert str(error) == f"{error.message} (stage lower, node tanh, {error.source})"
    assert "fallback=eager" in error.hint


def test_the_capture_of_a_model_is_not_named_as_a_stage() -> None:
    with pytest.raises(CompileError) as caught:
        compile_model(model, (torch.ones(4, 5),), source="model", target=TARGET, compiler="nvcc")
    assert caught.value.stage == "capture"
    assert str(caught.value) == "There is no compiler 'nvcc'"


def test_a_fault_in_generating_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise KeyError("lost")

    monkeypatch.setattr(schedule, "generate_kernel", broken)
    with pytest.raises(CompileError) as caught:
        compiled()
    assert caught.value.stage == "generate"
    assert caught.value.node
    assert __file__ in caught.value.source


def test_a_fault_in_fusing_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise IndexError("off the end")

    monkeypatch.setattr(_Partitioner, "_merge", broken)
    with pytest.raises(CompileError) as caught:
        compile_model(
            lambda x: (x.sum(0), x.cos()), (torch.randn(4, 5),), source="two readers", target=TARGET
        )
    assert caught.value.stage == "fuse"
    assert caught.value.node


@pytest.mark.usefixtures("faulty_tanh")
def test_fallback_runs_the_region_in_eager_and_says_so() -> None:
    done = compiled(fallback="eager")
    x = torch.randn(4, 5)
    torch.testing.assert_close(done.compiled(x), model(x))
    (region,) = done.report.regions
    assert not region.groups
    assert {call.reason for call in region.extern_calls} == {ExternReason.COMPILE_FAILED}
    assert {call.op for call in region.extern_calls} >= {"aten.tanh.default", "aten.sin.default"}
    (note,) = [note for note in done.report.notes if "fallback=eager" in note]
    assert "no such luck" in note
    assert "stage lower, node tanh" in note


@pytest.mark.usefixtures("faulty_tanh")
def test_fallback_in_torch_compile_leaves_the_other_regions_compiled() -> None:
    def function(x: Tensor) -> Tensor:
        y = x.tanh()
        torch._dynamo.graph_break()
        return y.relu() + 1

    x = torch.randn(4, requires_grad=True)
    result = torch.compile(function, backend=fusescope, options={"fallback": "eager"})(x)
    torch.testing.assert_close(result, function(x))
    (gradient,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(gradient, torch.autograd.grad(function(x).sum(), x)[0])


def test_a_model_without_faults_falls_back_nowhere() -> None:
    report = compiled(fallback="eager").report
    assert report.regions[0].groups
    assert not [note for note in report.notes if "fallback" in note]


def test_an_exception_in_one_line() -> None:
    assert sentence(ValueError("one\ntwo")) == "ValueError: one"
    assert sentence(ValueError()) == "ValueError"
    with pytest.raises(CompileError, match=r"inner \(node a\)"), at_node("b"), at_node("a"):
        raise CompileError("inner", node="a")
