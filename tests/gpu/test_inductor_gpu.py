"""Inductor as it really runs here: its report has the structure of one made with no GPU, by another torch."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import torch

from compiler.pipeline import compile_model
from compiler.targets import resolve
from tests.inductor_checks import ONLY_ON_GPU, ONLY_WITHOUT_GPU, shape_of
from tests.test_inductor import Small


@pytest.mark.gpu
@pytest.mark.parametrize("training", [False, True])
def test_the_structure_is_that_of_a_report_without_a_gpu(training: bool) -> None:
    fixture = json.loads((Path(__file__).parents[1] / "fixtures" / "inductor_shape.json").read_text())
    torch.manual_seed(0)
    report = compile_model(
        Small().train(training),
        (torch.randn(2, 16, 64),),
        source="small",
        target=resolve("local"),
        compiler="inductor",
        training=training,
    ).report
    here, there = shape_of(msgspec.to_builtins(report)), set(fixture["training" if training else "inference"])
    assert here - there <= ONLY_ON_GPU
    assert there - here <= ONLY_WITHOUT_GPU
