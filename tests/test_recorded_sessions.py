"""Sessions recorded on a GPU with another torch, and Inductor's reports made here: both hold what must hold of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch

from app.session import open_session, save_session
from compiler.pipeline import compile_model
from compiler.report import Kernel, Refusal, RefusalRule, Report
from compiler.targets import resolve
from resources.examples import dropout
from tests.inductor_checks import MEASURED, ONLY_ON_GPU, ONLY_WITHOUT_GPU, faults, shape_of

TOLD_SINCE = {".regions[].memory.buffers[].saved"}  # the session was recorded before that
RECORDED = sorted((Path(__file__).parent / "fixtures" / "recorded").glob("*.fscope"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_session_is_sound(path: Path) -> None:
    report = open_session(path).report
    assert report.compiler == "inductor"
    assert faults(report) == []


@pytest.fixture(scope="module")
def report() -> Report:
    def model(x: torch.Tensor, w: torch.Tensor, long: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return ((x @ w).softmax(-1) + x.sin().sum(0)) @ w, long.sum()

    inputs = (torch.randn(64, 64), torch.randn(64, 64), torch.empty(1 << 24))
    return compile_model(model, inputs, source="m", target=resolve("h200"), compiler="inductor").report


def test_a_report_made_here_is_sound(report: Report) -> None:
    assert faults(report) == []


def test_nothing_is_refused_within_one_node(report: Report) -> None:
    """A sum over so much is two kernels, each of which only computes a part of that one node."""
    (region,) = report.regions
    computed = [tuple(group.nodes) for group in region.groups]
    (twice,) = {nodes for nodes in computed if computed.count(nodes) == 2}
    assert len(twice) == 1
    assert not any(refusal.a == refusal.b for refusal in region.refusals)


def test_torch_2_11_on_a_gpu_and_torch_here_without_one_tell_the_same(tmp_path: Path) -> None:
    """The same fields, of a session recorded on an H200; what only a run on the GPU can tell is no part of it."""
    recorded = open_session(Path(__file__).parent / "fixtures" / "recorded" / "inductor_dropout.fscope").report
    assert recorded.versions["torch"].startswith("2.11")
    assert recorded.target.title == "NVIDIA H200"
    model, inputs = dropout.dropout()
    here = compile_model(
        model, inputs, source="x", target=resolve("h200"), compiler="inductor", training=dropout.TRAINING
    ).report
    save_session(tmp_path / "here.fscope", here)
    opened = open_session(tmp_path / "here.fscope").report
    fields, ours = shape_of(msgspec.to_builtins(recorded)), shape_of(msgspec.to_builtins(opened))
    assert ours - fields <= ONLY_WITHOUT_GPU | TOLD_SINCE
    assert {field for field in fields - ours if not field.startswith((*MEASURED, ".sources"))} <= ONLY_ON_GPU


def _rename_kernel(report: Report) -> None:
    report.kernels[0].name = "other"


def _add_kernel(report: Report) -> None:
    report.kernels.append(Kernel("invented", source="@triton.jit"))


def _edit_source(report: Report) -> None:
    report.kernels[0].source += "# more"


def _drop_group(report: Report) -> None:
    report.regions[0].groups.pop()


def _add_refusal(report: Report) -> None:
    report.regions[0].refusals.append(Refusal("nowhere", report.regions[0].nodes[0].name, RefusalRule.CYCLE, "why"))


def _lose_nodes(report: Report) -> None:
    report.regions[0].groups[0].nodes.clear()


SPOILING = (_rename_kernel, _add_kernel, _edit_source, _drop_group, _add_refusal, _lose_nodes)


@pytest.mark.parametrize("spoil", SPOILING, ids=lambda function: function.__name__)
def test_each_fault_is_found(report: Report, spoil: Callable[[Report], None]) -> None:
    spoiled = msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report)
    spoil(spoiled)
    assert faults(spoiled)
