"""Generated sources: two of them in full, and what must hold of every one."""

from __future__ import annotations

import ast
import itertools
import re

import pytest
import sympy
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from torch import Tensor

from compiler.codegen.config import configs, grid_of
from compiler.codegen.domain import Access, Axis, axis_variables, choose_domain, fold_axes
from compiler.codegen.text import index_text, literal
from compiler.index import Expr, LoopVar, floor_div, mod
from compiler.kernel_library import error_text
from tests.graphs import TARGET, compiled, launches
from tests.test_index import expressions, points, value_at

pytest.importorskip("triton", reason="kernels are Triton's")

RELU_ADD_MUL = """\
import triton
import triton.language as tl


@triton.jit
def pointwise_add_mul_relu_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, XBLOCK: tl.constexpr):
    xnumel = 1024
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + x0, xmask, other=0.0)
    tmp1 = tl.load(in_ptr1 + x0, xmask, other=0.0)
    tmp2 = tl.load(in_ptr2 + x0, xmask, other=0.0)
    tmp3 = tmp2 + tmp1
    tmp4 = tmp3 * tmp0
    tmp5 = tl.maximum(tmp4, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr0 + x0, tmp5, xmask)
"""


def test_relu_add_mul_is_one_kernel() -> None:
    region, library = compiled(lambda a, b, c: torch.relu((a + b) * c), *torch.randn(3, 16, 64))
    (kernel,) = library.by_source.values()
    assert kernel.text == RELU_ADD_MUL
    assert [b.name for b in kernel.source.arguments] == ["arg2_1", "arg1_1", "arg0_1", "buf0"]
    (launch,) = launches(region)
    assert region.kernels == {launch.name: kernel.name}
    assert _lines_of(kernel.text, kernel.source.lines) == {
        "tmp0 = tl.load(in_ptr0 + x0, xmask, other=0.0)": ["mul"],
        "tmp1 = tl.load(in_ptr1 + x0, xmask, other=0.0)": ["add"],
        "tmp2 = tl.load(in_ptr2 + x0, xmask, other=0.0)": ["add"],
        "tmp3 = tmp2 + tmp1": ["add"],
        "tmp4 = tmp3 * tmp0": ["mul"],
        "tmp5 = tl.maximum(tmp4, 0.0, propagate_nan=tl.PropagateNan.ALL)": ["relu"],
        "tl.store(out_ptr0 + x0, tmp5, xmask)": ["relu"],
    }


SOFTMAX = """\
import triton
import triton.language as tl


@triton.jit
def max_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def reduction_amax_sub_exp_sum_div_0(in_ptr0, out_ptr0, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xnumel = 16
    rnumel = 100
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    x0 = xindex
    rbase = tl.arange(0, RBLOCK)[None, :]
    rindex = rbase
    rmask = rindex < rnumel
    r0 = rindex
    tmp0 = tl.load(in_ptr0 + (100 * x0 + r0), xmask & rmask, other=0.0)
    tmp1 = tl.where(rmask, tl.broadcast_to(tmp0, [XBLOCK, RBLOCK]), float("-inf"))
    tmp2 = tl.reduce(tmp1, 1, max_nan)[:, None]
    tmp3 = tmp0 - tmp2
    tmp4 = tl.exp(tmp3)
    tmp5 = tl.where(rmask, tl.broadcast_to(tmp4, [XBLOCK, RBLOCK]), 0.0)
    tmp6 = tl.sum(tmp5, 1)[:, None]
    tmp7 = tl.div_rn(tmp4, tmp6)
    tl.store(out_ptr0 + (100 * x0 + r0), tmp7, xmask & rmask)
"""


def test_softmax_reads_its_row_once() -> None:
    _, library = compiled(lambda x: x.softmax(-1), torch.randn(16, 100))
    (kernel,) = library.by_source.values()
    assert kernel.text == SOFTMAX
    lines = _lines_of(kernel.text, kernel.source.lines)
    assert lines["tmp4 = tl.exp(tmp3)"] == ["exp"]
    assert lines["tmp6 = tl.sum(tmp5, 1)[:, None]"] == ["sum_1"]


def _lines_of(text: str, lines: dict[int, list[str]]) -> dict[str, list[str]]:
    """The line map by the lines' own text."""
    source = text.splitlines()
    return {source[number - 1].strip(): nodes for number, nodes in lines.items()}


def transformer(x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
    h = F.layer_norm(x, (64,), b, b)
    scores = (h @ w).unflatten(-1, (4, 16)).transpose(0, 1)
    return [
        F.gelu(x @ w + b),
        scores.softmax(-1).sum(1),
        torch.cat([h, x], -1).flip(-1),
        h.t().contiguous(),
        x.argmax(),
    ]


LONG = [
    lambda x: x.softmax(-1),
    lambda x: x.log_softmax(-1) + x.var(-1, keepdim=True),
    lambda x: x.argmax(-1),
    torch.sum,
]


def test_every_source_is_python_with_a_full_line_map() -> None:
    regions = [compiled(transformer, torch.randn(32, 64), torch.randn(64, 64), torch.randn(64))]
    regions += [compiled(function, torch.randn(3, 150_000)) for function in LONG]
    for region, library in regions:
        nodes = {node.name for node in region.graph.graph.nodes}
        ast.parse(region.wrapper)
        for kernel in library.by_source.values():
            tree = ast.parse(kernel.text)
            assert kernel.name in {f.name for f in tree.body if isinstance(f, ast.FunctionDef)}
            source = kernel.text.splitlines()
            for number, origins in kernel.source.lines.items():
                assert re.search(r" = |tl\.store", source[number - 1]), source[number - 1]
                assert origins
                assert set(origins) <= nodes
            computing = {i for i, line in enumerate(source, 1) if re.match(r"\s+(tmp\d+ =|tl\.store)", line)}
            assert computing <= set(kernel.source.lines)


def test_names_are_assigned_before_they_are_used_and_once() -> None:
    _region, library = compiled(transformer, torch.randn(32, 64), torch.randn(64, 64), torch.randn(64))
    for kernel in library.by_source.values():
        known: set[str] = set()
        for line in kernel.text.splitlines():
            left, _, right = line.partition(" = ")
            used = set(re.findall(r"\btmp\d+\b", right if re.match(r"\s+tmp\d+(, tmp\d+)* = ", line) else line))
            assert used <= known, line
            if re.match(r"\s+tmp\d+(, tmp\d+)* = ", line):
                fresh = set(re.findall(r"tmp\d+", left))
                assert not fresh & known, line
                known |= fresh


def test_equal_layers_share_a_kernel() -> None:
    def layers(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(3):
            x = F.gelu(x @ w) + 1
        return x

    region, library = compiled(layers, torch.randn(8, 16), torch.randn(16, 16))
    assert len(launches(region)) == 3
    assert len(library.by_source) == 1


def test_a_group_whose_reduction_nobody_reads_is_still_printed() -> None:
    def dead(x: Tensor, y: Tensor) -> Tensor:
        (y / (x + 1)).sum(1)
        return x.exp()

    region, library = compiled(dead, torch.randn(1), torch.randn(1, 9000))
    (kernel,) = library.by_source.values()
    assert launches(region)[0].group.rvars
    assert "tl.sum" not in kernel.text
    assert "tl.exp" in kernel.text


def test_a_compile_error_tells_its_cause() -> None:
    error = ValueError("at 13:11")
    error.__cause__ = KeyError("the cause")
    assert error_text(error) == "at 13:11\n'the cause'"
    assert error_text(RuntimeError()) == "RuntimeError"


def test_the_wrapper_runs_the_steps_in_order() -> None:
    region, _ = compiled(lambda x, w: (x.relu() @ w).exp(), torch.randn(8, 8), torch.randn(8, 8))
    body = [line.strip() for line in region.wrapper.splitlines()]
    order = [
        next(i for i, line in enumerate(body) if word in line) for word in ("pointwise_relu", "mm(", "pointwise_exp")
    ]
    assert order == sorted(order)
    assert body[-1].startswith("return (")


# --- index texts and literals --------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(expressions())
def test_an_index_text_is_python_of_the_same_value(made: tuple[Expr, list[LoopVar]]) -> None:
    expr, variables = made
    text = index_text(expr - 3 * variables[0], lambda var: "never")
    for point in itertools.islice(points(variables), 60):
        names = {v.name: value for v, value in point.items()}
        assert eval(text, {}, names) == value_at(expr, point) - 3 * point[variables[0]], text


def test_index_texts_read_well() -> None:
    i, j = LoopVar("i", 9), LoopVar("j", 8)
    texts = [index_text(e, lambda var: "") for e in (7 - i, floor_div(i, 2) * 4 + mod(j, 3), sympy.Integer(5), -i)]
    assert texts == ["-i + 7", "4 * (i // 2) + (j % 3)", "5", "-i"]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, torch.float32, "0.1"), (-2, torch.float32, "(-2.0)"), (-0.0, torch.float32, "(-0.0)"),
        (float("inf"), torch.float64, 'float("inf")'), (float("-inf"), torch.float16, 'float("-inf")'),
        (float("nan"), torch.float32, 'float("nan")'), (3, torch.int64, "3"), (-3, torch.int8, "(-3)"),
        (1, torch.bool, "True"), (1e300, torch.float64, "1e+300"),
    ],
)  # fmt: skip
def test_literals(value: float, dtype: torch.dtype, text: str) -> None:
    assert literal(value, dtype) == text


# --- the order and the size of loops -------------------------------------------------------------------------------


def test_loops_that_every_access_walks_as_one_are_one() -> None:
    i, j = LoopVar("i", 4), LoopVar("j", 6)
    domain = choose_domain([i, j], [], [Access(6 * i + j, 4), Access(6 * i + j + 24, 4)])
    assert [v.extent for v in domain.x.variables] == [24]
    apart = choose_domain([i, j], [], [Access(6 * i + j, 4), Access(j, 4)])
    assert [v.extent for v in apart.x.variables] == [4, 6]


def test_a_transpose_is_tiled() -> None:
    i, j = LoopVar("i", 64), LoopVar("j", 96)
    domain = choose_domain([i, j], [], [Access(96 * i + j, 4), Access(64 * j + i, 4)])
    assert domain.y is not None
    assert {domain.x.numel, domain.y.numel} == {64, 96}


def test_a_reduction_knows_whether_it_runs_along_memory() -> None:
    i, j = LoopVar("i", 64), LoopVar("j", 96)
    assert choose_domain([i], [j], [Access(96 * i + j, 4)]).inner
    assert not choose_domain([j], [i], [Access(96 * i + j, 4)]).inner


@given(expressions())
def test_axis_texts_give_each_loop_its_value(made: tuple[Expr, list[LoopVar]]) -> None:
    _, variables = made
    axis = Axis("x", tuple(variables))
    for flat, point in enumerate(points(variables)):
        for var, text in axis_variables(axis, str):
            assert eval(text, {}, {"xindex": flat}) == point[var]


def test_an_index_over_a_whole_axis_is_the_axis_itself() -> None:
    i, j = LoopVar("x1", 4), LoopVar("x0", 6)
    axis = Axis("x", (i, j))
    assert str(fold_axes(6 * i + j + 5, [axis])) == "xindex + 5"
    assert fold_axes(7 * i + j, [axis]) == 7 * i + j


def test_every_configuration_covers_the_kernel_within_the_hardwares_limits() -> None:
    shapes = [(1,), (3, 5), (1000, 1000), (7, 9000), (40_000, 3), (2, 300_000)]
    for shape in shapes:
        for function in (torch.relu, lambda x: x.sum(-1), lambda x: x.sum(0), lambda x: x.t().contiguous(), torch.sum):
            region, _ = compiled(function, torch.empty(shape))
            for launch in launches(region):
                found = configs(launch.kernel, TARGET)
                assert found
                for config in found:
                    sizes = list(config.blocks.values())
                    assert all(s & (s - 1) == 0 and s > 0 for s in sizes), config
                    assert 1 <= config.num_warps <= 32
                    assert torch.Size(sizes).numel() <= 1 << 20
                    if launch.kernel.persistent:
                        assert config.blocks["RBLOCK"] >= launch.kernel.domain.r.numel


def test_a_sum_over_few_columns_has_a_program_for_every_multiprocessor() -> None:
    region, _ = compiled(lambda x: x.sum(0), torch.empty(400, 8192))
    (launch,) = launches(region)
    assert launch.kernel.domain.r is not None
    assert not launch.kernel.domain.inner
    programs, _, _ = grid_of(launch.kernel, configs(launch.kernel, TARGET)[0])
    assert programs >= TARGET.multiprocessors
    region, _ = compiled(lambda x: x.sum(0), torch.empty(400, 1 << 16))
    (launch,) = launches(region)
    assert configs(launch.kernel, TARGET)[0].blocks == {"XBLOCK": 64, "RBLOCK": 32}, "enough of them in wide blocks"
