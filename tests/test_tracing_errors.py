"""Models that Dynamo does not take: why, the user's line where there is one, and what to do, in either compiler."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from app.sources import SourceError
from app.sources.load import LoadedSource
from app.worker.own_faults import work_on
from compiler.dynamo.messages import advice, parse_error
from compiler.errors import CompileError, TracingError
from compiler.pipeline import compile_model
from compiler.report import Report
from tests.graphs import TARGET

pytest.importorskip("triton", reason="kernels are Triton's")
pytestmark = pytest.mark.usefixtures("fresh_dynamo")
both = pytest.mark.parametrize("compiler", ["fusescope", "inductor"])


@torch.library.custom_op("fusescope_tests::unknown_shape", mutates_args=())
def unknown_shape(x: Tensor) -> Tensor:
    """An op that does not tell Dynamo what it returns."""
    return x * 3


def with_unknown_shape(x: Tensor) -> Tensor:
    return unknown_shape(x.sin()) + 1


class Marked(Tensor):
    """A subclass that changes nothing, as those of torchvision change only how they are shown and copied."""


def compiled(model: Any, *inputs: Any, compiler: str) -> Report:
    return compile_model(model, inputs, source="model", target=TARGET, compiler=compiler).report


@both
def test_an_op_that_fails_on_shapes_says_so_itself(compiler: str) -> None:
    with pytest.raises(TracingError) as caught:
        compiled(with_unknown_shape, torch.ones(4), compiler=compiler)
    assert "register_fake" in caught.value.message
    assert caught.value.message.startswith("Dynamo cannot trace this model: RuntimeError: There was no fake impl")
    assert f"{__file__}:" in caught.value.source
    assert not caught.value.hint, "nothing said twice"


@both
def test_a_model_that_fails_by_itself_is_told_as_such(compiler: str) -> None:
    loaded = LoadedSource(nn.Linear(4, 4), (torch.ones(3, 5),), "wide", False, {}, {})
    with pytest.raises(SourceError, match="cannot be multiplied"):
        work_on(loaded, False, lambda: compiled(loaded.model, *loaded.inputs, compiler=compiler))


@both
def test_no_line_of_ours_is_shown_as_the_users(compiler: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(nn.LSTM(8, 8), torch.ones(3, 2, 8), compiler=compiler)
    assert "LSTM" in caught.value.message
    assert ".py:" not in caught.value.message, "the model has no line, and what called us is no part of it"
    assert "allow_rnn=True" in caught.value.hint


@both
def test_a_subclass_that_changes_nothing_of_ops(compiler: str) -> None:
    report = compiled(lambda x: x.sin() + 1, torch.ones(8).as_subclass(Marked), compiler=compiler)
    assert sorted(node for group in report.regions[0].groups for node in group.nodes) == ["add", "sin"]


def test_the_texts() -> None:
    text = (
        "Unsupported thing\n  Explanation: It is new.\n  Hint: It may be possible to write Dynamo tracing rules.\n"
        "  Hint: Do without\n\n  Developer debug context: x\n\nfrom user code:\n"
        '   File "/home/user/m.py", line 3, in forward\n    return new(x)\n'
    )
    found = parse_error(text)
    assert found.reason == "Unsupported thing"
    assert found.source is not None
    assert (found.source.file, found.source.line) == ("/home/user/m.py", 3)
    assert advice(found.detail) == "It is new. Do without."
    assert parse_error("").reason
    assert advice("") == ""
