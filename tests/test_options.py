"""The compiler's options: how they are written, and that each one acts on what is generated."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusescope
from compiler.codegen.config import configs
from compiler.errors import CompileError
from compiler.options import DEFAULTS, Options, describe_options, option_hint, parse_options
from compiler.report import RefusalRule
from tests.graphs import TARGET, compiled, launches, partitioned, rules

ROW = torch.empty(64, 300)


def test_values_are_read_as_they_are_written() -> None:
    texts = {"horizontal_fusion": "False", "max_fused_loops": "7", "num_warps": "8", "memory_reuse": "1"}
    assert parse_options(texts) == Options(horizontal_fusion=False, max_fused_loops=7, num_warps=8)
    assert parse_options({"num_warps": 2, "memory_reuse": False}) == Options(num_warps=2, memory_reuse=False)
    assert parse_options({}) == DEFAULTS
    assert parse_options({"graph_buckets": [8, 16]}) == parse_options({"graph_buckets": "8,16"})
    assert parse_options({"graph_buckets": "8, 16"}).bucket_sizes == (8, 16)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("num_warps", "3", "The option num_warps takes one of 0, 1, 2, 4, 8, 16, not '3'."),
        ("num_warps", "many", "The option num_warps takes one of 0, 1, 2, 4, 8, 16, not 'many'."),
        ("num_warps", True, "The option num_warps takes one of 0, 1, 2, 4, 8, 16, not 'True'."),
        ("max_fused_loops", "0", "The option max_fused_loops takes a whole number from 1 to 1024, not '0'."),
        ("graph_buckets", "8,many", "The option graph_buckets takes whole numbers from 1 on with commas between them, "
         "not '8,many'."),
        ("graph_buckets", [0], "The option graph_buckets takes whole numbers from 1 on with commas between them, "
         "not '[0]'."),
        ("memory_reuse", "maybe", "The option memory_reuse takes true or false, not 'maybe'."),
        ("warps", "4", "The compiler fusescope has no option 'warps'."),
    ],
)
def test_what_is_not_taken_is_said(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_options({name: value})
    assert str(caught.value) == sentence
    assert caught.value.hint


def test_where_options_are_too_many_to_name_the_hint_lists_those_of_that_compiler() -> None:
    assert "options --compiler inductor'" in option_hint("zzz", [f"option_{i}" for i in range(50)], "inductor")


def test_an_unknown_name_is_told_what_resembles_it() -> None:
    with pytest.raises(CompileError) as caught:
        parse_options({"persistent_iner": "1"})
    assert caught.value.hint.startswith("Did you mean persistent_inner")


def test_the_list_for_the_window_is_complete() -> None:
    infos = {info.name: info for info in describe_options(Options(num_warps=4))}
    assert list(infos) == [field.name for field in dataclasses.fields(Options)]
    assert all(len(info.doc) > 20 for info in infos.values())
    assert (infos["num_warps"].default, infos["num_warps"].value) == ("0", "4")
    assert infos["memory_reuse"].choices == ["true", "false"]
    assert parse_options({info.name: info.default for info in infos.values()}) == DEFAULTS


def test_options_import_no_torch() -> None:
    code = "import sys, compiler.options; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_torch_compile_takes_them() -> None:
    function = torch.compile(lambda x: x * 2, backend=fusescope, options={"num_warps": 4})
    torch.testing.assert_close(function(torch.ones(4)), torch.full((4,), 2.0))
    with pytest.raises(Exception, match="no option 'num_warp'"):
        torch.compile(lambda x: x * 3, backend=fusescope, options={"num_warp": 4})(torch.ones(4))


# --- each one acts -------------------------------------------------------------------------------------------------


def _both(x: Tensor) -> list[Tensor]:
    return [x.sum(1), x.amax(1)]


def _count(options: Options, function: Callable[..., Any] = _both) -> int:
    return len(launches(compiled(function, ROW, options=options)[0]))


def test_horizontal_fusion() -> None:
    assert (_count(DEFAULTS), _count(Options(horizontal_fusion=False))) == (1, 2)
    parts = partitioned(_both, ROW, options=Options(horizontal_fusion=False))
    assert rules(parts.refusals) == {RefusalRule.OPTION}
    (refusal,) = parts.refusals
    assert refusal.bytes_lost == ROW.numel() * 4
    # a producer and its reader still share one
    assert _count(Options(horizontal_fusion=False), lambda x: x.softmax(1)) == 1


def test_max_fused_loops_and_buffers() -> None:
    for options in (Options(max_fused_loops=1), Options(max_fused_buffers=2)):
        assert _count(options) == 2
        assert rules(partitioned(_both, ROW, options=options).refusals) == {RefusalRule.TOO_LARGE}


@pytest.mark.parametrize(("name", "dim"), [("persistent_inner", 1), ("persistent_outer", 0)])
def test_persistent_limits(name: str, dim: int) -> None:
    def persistent(limit: int) -> bool:
        region, _ = compiled(lambda x: x.sum(dim), torch.empty(40, 40), options=Options(**{name: limit}))
        return launches(region)[0].kernel.persistent

    assert persistent(40)
    assert not persistent(39)


def test_num_warps_and_pointwise_block() -> None:
    for function in (torch.relu, torch.sum, lambda x: x.t().contiguous()):
        _, library = compiled(function, ROW, options=Options(num_warps=2))
        assert {kernel.config.num_warps for kernel in library.by_source.values()} == {2}
    _, library = compiled(torch.relu, ROW, options=Options(pointwise_block=4096))
    (kernel,) = library.by_source.values()
    assert kernel.config.blocks == {"XBLOCK": 4096}
    assert kernel.grid[0] == -(-ROW.numel() // 4096)
    _, library = compiled(torch.relu, torch.empty(3), options=Options(pointwise_block=4096))
    assert next(iter(library.by_source.values())).config.blocks == {"XBLOCK": 4}


def test_a_fixed_option_leaves_no_other_configuration_to_try() -> None:
    options = Options(num_warps=2, pointwise_block=64)
    kernel = launches(compiled(torch.relu, ROW, options=options)[0])[0].kernel
    assert len(configs(kernel, TARGET)) > 2
    assert [(c.blocks, c.num_warps) for c in configs(kernel, TARGET, options)] == [({"XBLOCK": 64}, 2)]


def test_reorder() -> None:
    def wide(*x: Tensor) -> list[Tensor]:
        return [(y @ y).sum() for y in [a.exp() @ a for a in x]]

    inputs = torch.randn(4, 32, 32)
    moved, kept = (compiled(wide, *inputs, options=Options(reorder=value))[0] for value in (True, False))
    assert moved.plan.peak_bytes < kept.plan.peak_bytes


def test_memory_reuse() -> None:
    def chain(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(3):
            x = F.relu(x @ w)
        return x @ w

    inputs = torch.empty(16, 16), torch.empty(16, 16)
    assert compiled(chain, *inputs)[0].plan.reuses
    region, _ = compiled(chain, *inputs, options=Options(memory_reuse=False))
    assert not region.plan.reuses


def test_pad_products() -> None:
    inputs = [torch.empty(4096, 1023, dtype=torch.float16), torch.empty(1023, 4096, dtype=torch.float16)]
    assert len(launches(compiled(torch.mm, *inputs)[0])) == 2  # both operands are copied
    assert not launches(compiled(torch.mm, *inputs, options=Options(pad_products=False))[0])
