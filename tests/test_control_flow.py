"""Branches and loops that the CPU decides on, in both compilers: one call, with the graphs that it runs inside it."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop
from torch._inductor.cpp_builder import CppBuilder

from app.cli.summary import summary
from compiler import report as r
from compiler.pipeline import compile_model
from compiler.targets import resolve

pytest.importorskip("triton", reason="kernels are Triton's")
TARGET = resolve("h100")


def test_a_branch_is_one_call_of_the_graph_around_it() -> None:
    """Inductor compiles a conditional's branches inside: units, nodes and buffers stay those of the outer graph."""

    def step(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: (x @ x.t()).cos() @ x, (x,)) + 1

    report = compile_model(step, (torch.ones(24, 8),), source="s", target=TARGET, compiler="inductor").report
    (region,) = report.regions
    (call,) = region.extern_calls
    assert call.nodes[0] == "cond"
    assert sorted(node for group in region.groups for node in group.nodes) == ["add", "gt", "sum_1"]
    assert {b.name for b in region.memory.buffers}.isdisjoint({"true_graph_0_buf0", "false_graph_0_buf0"})
    (reason,) = region.cuda_graph.skip_reasons
    assert (reason.rule, reason.node) == ("control_flow", "cond")
    assert reason.source is not None
    inner = [kernel for kernel in report.kernels if not kernel.launches]
    assert len(inner) == 2
    assert all(kernel.source and not kernel.error for kernel in inner)
    assert any("branches" in note and "not counted" in note for note in report.notes)
    printed = summary(report)
    assert all(re.search(rf"^{kernel.name} +- +- +- ", printed, re.M) for kernel in inner), "none is not zero"


def summed(x: Tensor) -> Tensor:
    return (x.sin() * 2).sum(-1, keepdim=True) + x


block = torch.compiler.nested_compile_region(summed)


def test_a_graph_that_is_called_again_is_on_the_target_and_its_launches_are_counted() -> None:
    """The first call's results, and the operands as the model gave them, stayed on the CPU, and so did all after it."""

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        return block(block(x)) + 1, summed(x)

    report = compile_model(step, (torch.ones(8, 8),), source="s", target=TARGET, compiler="inductor").report
    assert [kernel.language for kernel in report.kernels] == ["triton", "triton"]
    assert not any(kernel.error for kernel in report.kernels)
    assert sorted(kernel.launches for kernel in report.kernels) == [1, 3]
    assert {call.detail for call in report.regions[0].extern_calls} == {
        "a graph of its own (nested_compile_region), which this one calls"
    }


def counted(x: Tensor) -> tuple[Tensor, Tensor]:
    """A loop whose counter lies on the CPU, as ``torch.tensor(0)`` does whatever the model's device is."""
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin() * 2), (torch.tensor(0), x))


def test_a_loops_counter_stays_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[CppBuilder] = []
    monkeypatch.setattr(CppBuilder, "build", lambda builder: built.append(builder))
    report = compile_model(counted, (torch.ones(8, 8),), source="s", target=TARGET, compiler="inductor").report
    (region,) = report.regions
    (call,) = region.extern_calls
    assert call.nodes[0] == "while_loop"
    kernels = {kernel.name: kernel for kernel in report.kernels}
    in_cpp = {name for name, kernel in kernels.items() if kernel.language == "cpp"}
    assert not built, "nothing runs here: no C++ compiler is asked for anything"
    assert not any(kernel.error for kernel in report.kernels)
    # the condition and the step of the counter, and where it is set; the sine is the GPU's
    assert [name for name in kernels if name not in in_cpp and "sin" in name]
    assert any("lt" in name for name in in_cpp)
    assert all(kernels[name].estimated_us is None for name in in_cpp), "the target's rates are not the CPU's"
    assert all(kernels[name].launches == 0 for name in kernels if "lt" in name.split("_") or "sin" in name), "a loop's"
    reasons = region.cuda_graph.skip_reasons
    assert {reason.node for reason in reasons} == {"full_default", "while_loop"}, "none of the graphs inside"
    assert all(reason.source and "while_loop(" in reason.source.code for reason in reasons)


def test_no_graph_holds_a_choice_of_the_cpus() -> None:
    """A capture would go through with a condition on the CPU, and every replay would repeat its choice."""

    def branch(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)) + 1

    for function, node in ((counted, "while_loop"), (branch, "cond")):
        report = compile_model(function, (torch.ones(8, 8),), source="s", target=TARGET).report
        (region,) = report.regions
        (call,) = (call for call in region.extern_calls if call.nodes[0] == node)
        assert call.reason is r.ExternReason.HOST_SYNC
        assert "control flow" in call.detail
        reasons = {reason.node: reason.rule for reason in region.cuda_graph.skip_reasons}
        assert reasons.pop(node) == "control_flow"
        assert set(reasons.values()) <= {"cpu_op"}, "the counter of the loop, which lies on the CPU"
        assert not region.cuda_graph.capturable
