"""TorchInductor's options by name, with their texts; values are read and checked as ours are."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch")

from app.cli import run
from compiler.errors import CompileError
from compiler.inductor.options import describe_config, option_docs, parse_config

SOURCE = '''
# Above it,
# in two lines.
first: bool = True

second = 3  # behind it

# not of the next one

third: str = "x"
"""Below it."""


class triton:
    # Inside.
    cudagraphs = False
'''


def test_texts_are_found_above_behind_and_below() -> None:
    assert option_docs(SOURCE) == {
        "first": "Above it, in two lines.",
        "second": "behind it",
        "third": "Below it.",
        "triton.cudagraphs": "Inside.",
    }


def test_the_installed_torchs_options() -> None:
    infos = {info.name: info for info in describe_config()}
    assert len(infos) > 200
    assert infos["triton.cudagraphs"].type == "bool"
    assert infos["max_fusion_size"].default == "64"
    assert sum(bool(info.doc) for info in infos.values()) > len(infos) / 2
    assert not any("Callable" in info.type or "Custom" in info.type for info in infos.values())


def test_values_are_read() -> None:
    texts = {"triton.cudagraphs": "true", "max_fusion_size": "8", "triton.descriptive_names": "torch"}
    assert parse_config(texts) == {
        "triton.cudagraphs": True,
        "max_fusion_size": 8,
        "triton.descriptive_names": "torch",
    }
    import torch._inductor.config as config

    with config.patch(parse_config({"max_fusion_size": "7", "max_fusion_unique_io_buffers": "3"})):
        assert config.max_fusion_size == 7
        assert config.max_fusion_unique_io_buffers == 3


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("max_fusion_sise", "8", "torch._inductor.config has no option 'max_fusion_sise'."),
        ("max_fusion_size", "many", "The option max_fusion_size takes a whole number, not 'many'."),
        ("max_fusion_size", True, "The option max_fusion_size takes a whole number, not 'True'."),
        ("triton.cudagraphs", "8", "The option triton.cudagraphs takes True or False, not '8'."),
    ],
)
def test_what_is_not_taken_is_said(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_config({name: value})
    assert str(caught.value) == sentence
    assert caught.value.hint


def test_the_command_lists_and_searches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["options"]) == 0
    assert "num_warps=0  [0|1|2|4|8|16]" in capsys.readouterr().out
    assert run(["options", "fusion_size", "--compiler", "inductor", "--json"]) == 0
    names = [info["name"] for info in json.loads(capsys.readouterr().out)]
    assert "max_fusion_size" in names
    assert "triton.cudagraphs" not in names
    assert run(["options", "no such thing"]) == 1
