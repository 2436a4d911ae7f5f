"""Sessions recorded on a GPU with another torch, and Inductor's reports made here: both hold what must hold of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch

from app.session import open_session
from compiler.pipeline import compile_model
from compiler.report import Kernel, Refusal, RefusalRule, Report
from compiler.targets import resolve
from tests.inductor_checks import faults

RECORDED = sorted((Path(__file__).parent / "fixtures" / "recorded").glob("*.fscope"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_session_is_sound(path: Path) -> None:
    report = open_session(path).report
    assert report.compiler == "inductor"
    assert faults(report) == []


@pytest.fixture(scope="module")
def report() -> Report:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return ((x @ w).softmax(-1) + x.sin().sum(0)) @ w

    inputs = (torch.randn(64, 64), torch.randn(64, 64))
    return compile_model(model, inputs, source="m", target=resolve("h200"), compiler="inductor").report


def test_a_report_made_here_is_sound(report: Report) -> None:
    assert faults(report) == []


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
