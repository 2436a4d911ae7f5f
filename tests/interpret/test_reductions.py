"""Reductions of every kind over any dimensions, in each of the three ways a kernel may do them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.codegen.config import KernelConfig
from compiler.codegen.kernel import KernelSource
from compiler.options import DEFAULTS, Options
from tests.graphs import launches
from tests.interpret.checking import check, generated


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """One sum in some hundreds of rows of random numbers nearly cancels, and then no order of it is near enough."""
    torch.manual_seed(0)


FLOAT_KINDS: dict[str, Callable[..., object]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "var": torch.var,
    "std": torch.std,
    "var_mean": torch.var_mean,
    "softmax": lambda x, d, keepdim: x.softmax(d[0]),
    "log_softmax": lambda x, d, keepdim: x.log_softmax(d[0]),
    "logsumexp": torch.logsumexp,
    "norm": lambda x, d, keepdim: torch.linalg.vector_norm(x, dim=d, keepdim=keepdim),
    "any": lambda x, d, keepdim: (x > 2).any(d[0], keepdim),
    "all": lambda x, d, keepdim: (x > -2).all(d[0], keepdim),
    "argmax": lambda x, d, keepdim: x.argmax(d[0], keepdim),
    "argmin": lambda x, d, keepdim: x.argmin(d[0], keepdim),
    "max": lambda x, d, keepdim: list(x.max(d[0], keepdim)),
    "min": lambda x, d, keepdim: list(x.min(d[0], keepdim)),
    "prod": lambda x, d, keepdim: x.prod(d[0], keepdim),
}
DIMS = [d for n in (1, 2, 3) for d in itertools.combinations(range(3), n)]


@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_over_any_dimensions(kind: str) -> None:
    x = torch.randn(5, 7, 6)
    check(lambda x: [r for d in DIMS for k in (False, True) for r in _listed(FLOAT_KINDS[kind](x, d, keepdim=k))], x)


def _listed(result: object) -> list[object]:
    return list(result) if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int8,
                                   torch.uint8, torch.bool], ids=str)  # fmt: skip
def test_over_any_dtype(dtype: torch.dtype) -> None:
    x = torch.randn(6, 37).to(dtype) if dtype.is_floating_point else torch.randint(0, 5, (6, 37)).to(dtype)

    def reduce(x: Tensor) -> list[Tensor]:
        found = [x.sum(1), x.sum(0), x.sum(), x.any(1), x.all(0), x.prod(1)]
        if dtype is not torch.bool:
            found += [x.amax(1), x.amin(0), x.max(), x.min(), x.argmax(1), x.argmin(0), *x.max(1), *x.min(0)]
        if dtype.is_floating_point:
            found += [x.mean(1), x.mean(), x.var(0), x.softmax(1), x.log_softmax(0)]
        return found

    check(reduce, x)


def test_into_another_dtype() -> None:
    x = torch.randn(4, 33).half()
    check(lambda x: [x.sum(1, dtype=torch.float32), x.mean(0, dtype=torch.float64), x.float().sum().half()], x)
    check(lambda x: [x.sum(1, dtype=torch.int64), x.prod(0, dtype=torch.float32)], torch.randint(0, 3, (4, 33)))
    check(lambda x: x.softmax(1, dtype=torch.float32), x)


def test_of_a_tensor_without_dimensions() -> None:
    x = torch.tensor(2.5)
    check(lambda x: [x.sum(), x.mean(), x.amax(), x.argmax(), x.prod(), x.any(), x.softmax(0)], x)


def test_over_dimensions_of_size_one() -> None:
    x = torch.randn(4, 1, 3)
    check(
        lambda x: [
            x.sum(1),
            x.mean(1, keepdim=True),
            x.argmax(1),
            x.amax((0, 1)),
            x.softmax(1),
            x.var(1, correction=0),
        ],
        x,
    )


def test_nan_wins_and_the_first_extremum_counts() -> None:
    x = torch.tensor(
        [[1.0, math.nan, 3.0, math.nan], [2.0, 2.0, 1.0, 2.0], [-math.inf] * 4, [math.inf, 0, math.inf, 1]]
    )
    check(lambda x: [*x.max(1), *x.min(1), x.amax(1), x.amin(0), x.argmax(0), x.argmin(0), x.argmax(), x.argmin()], x)
    rows = torch.zeros(2, 3 * DEFAULTS.persistent_inner)
    rows[0, 20_000], rows[0, 9_000], rows[1, 1], rows[1, 12_345] = math.nan, math.nan, 5.0, 5.0
    check(lambda x: [x.argmax(1), x.amax(1), x.argmin(1)], rows)


@pytest.mark.parametrize("rows", [7, 700])
def test_what_lies_beyond_the_last_row_is_no_position(rows: int) -> None:
    """A block may hold more rows than there are, and what is reduced there need not lie within any table."""
    whole, table = torch.randint(1, 10, (rows, 7)), torch.randn(9)
    check(lambda i, t: t[(9 - i).amin(1)], whole, table)
    check(lambda i, t: t[(9 - i).amin(1, keepdim=True)] + i, whole, table)


WAYS: dict[str, tuple[tuple[int, int], int]] = {
    "a short row in registers": ((7, 100), 1),
    "a row of exactly a block": ((5, 256), 1),
    "a long row in passes": ((3, DEFAULTS.persistent_inner + 37), 1),
    "a short column in registers": ((DEFAULTS.persistent_outer - 3, 40), 0),
    "a long column in passes": ((3 * DEFAULTS.persistent_outer + 5, 40), 0),
    "few outputs, split in parts": ((2, 140_003), 1),
    "few columns, split in parts": ((30_001, 9), 0),
}
KINDS: dict[str, Callable[[Tensor, int], list[Tensor]]] = {
    "sum and mean": lambda x, d: [x.sum(d), x.mean(d)],
    "extrema": lambda x, d: [x.amax(d), x.amin(d)],
    "positions": lambda x, d: [x.argmax(d), x.argmin(d)],
    "variance": lambda x, d: list(torch.var_mean(x, d)),
    "softmax": lambda x, d: [x.softmax(d)],
    "any and all": lambda x, d: [(x > 3.9).any(d), (x > -3.9).all(d)],
    "product": lambda x, d: [(1 + x.double() * 1e-3).prod(d)],  # float32 loses digits to the order of factors
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_in_every_way(way: str, kind: str) -> None:
    size, dim = WAYS[way]
    region = check(lambda x: KINDS[kind](x, dim), torch.randn(size))
    kernels = [launch.kernel for launch in launches(region)]
    reducing = [k for k in kernels if k.domain.r is not None]
    if "in registers" in way or "exactly" in way:
        assert all(k.persistent for k in reducing)
    elif "passes" in way:
        assert not any(k.persistent for k in reducing)
    else:
        assert len(reducing) > 1, "a split reduction has a second step"


def test_everything_of_a_large_tensor_is_split_without_remainder_or_with_one() -> None:
    for count in (1 << 19, 499_979):
        check(lambda x: [x.sum(), x.amax(), x.mean()], torch.randn(count))


@pytest.mark.parametrize(
    ("rows", "columns", "block"),
    [(4096, 64, 8), (16384, 80, 64)],
    ids=["that divides the columns", "that does not"],
)
def test_a_split_sum_across_rows_reads_a_rows_own_numbers_once_for_a_block(
    rows: int, columns: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weight_gradients(x: Tensor, grad: Tensor, mean: Tensor, rstd: Tensor) -> list[Tensor]:
        normal = (x - mean) * rstd
        return [(grad * normal).sum(0), grad.sum(0), normal * grad]

    # In the GPU's blocks, not the interpreter's larger ones.
    blocks: list[int] = []

    def as_on_a_gpu(kernel: KernelSource, config: KernelConfig) -> KernelConfig:
        blocks.append(config.blocks["XBLOCK"])
        return config

    monkeypatch.setattr("compiler.runtime.executable.interpreter_config", as_on_a_gpu)
    # Eighths, whose sums are exact.
    inputs = [torch.randint(-8, 9, (rows, size)) / 8 for size in (columns, columns, 1, 1)]
    region = check(weight_gradients, *inputs)
    assert block in blocks
    assert "xslowmask & rmask" in launches(region)[0].kernel.source


def test_a_split_reduction_with_a_prologue_and_neighbours() -> None:
    x, y = torch.randn(600, 1000), torch.randn(600, 1)
    check(lambda x, y: [((x - y) ** 2).mean(), (x * y).sum()], x, y)


# The last are so long that other sums of as few would be in two steps.
@pytest.mark.parametrize(("columns", "count"), [(50, 1), (DEFAULTS.persistent_inner + 100, 1), (1 << 16, 3)])
def test_a_sum_of_a_row_with_one_number_takes_no_pass_over_it(columns: int, count: int) -> None:
    def gradient(logits: Tensor, place: Tensor, weight: Tensor) -> list[Tensor]:
        hot = torch.where(torch.arange(columns) == place, -1.0, 0.0) * weight
        return [hot - logits.exp() * hot.sum(1, keepdim=True), hot.sum(1)]

    # The first and the last place, and two that are none; what is multiplied by zero is not always zero.
    place = torch.tensor([0, columns - 1, -100, columns, 7, 7])[:, None]
    weight = torch.tensor([0.5, -2.0, 3.0, 3.0, math.inf, math.nan])[:, None]
    region = check(gradient, torch.randn(6, columns) / 8, place, weight)
    assert len(launches(region)) == count
    for launch in launches(region):
        assert "tl.sum" not in launch.kernel.source
        assert "tl.reduce" not in launch.kernel.source


def test_a_sum_of_rows_with_more_than_one_number_is_summed() -> None:
    place = torch.tensor([0, 49, -100, 50, 7, 7])[:, None]

    def hot(place: Tensor, other: float = 0.0) -> Tensor:
        return torch.where(torch.arange(50) == place, -1.0, other)

    for weight in (torch.randn(6, 50), torch.randn(50)):
        region = check(lambda w, p: (hot(p) * w).sum(1), weight, place)
        assert "tl.sum" in launches(region)[0].kernel.source
    check(lambda p: hot(p, 0.5).sum(1), place)
    check(lambda p: hot(p).sum(0), place)
    check(lambda p: hot(p).sum(), place)


@pytest.mark.parametrize("narrow", [torch.uint8, torch.int8, torch.int16, torch.bool])
def test_a_row_whose_positions_repeat_in_a_narrow_dtype_is_summed(narrow: torch.dtype) -> None:
    columns = (1 << 16) + 300

    def hot(place: Tensor, weight: Tensor) -> Tensor:
        return (torch.where(torch.arange(columns).to(narrow) == place, -1.0, 0.0) * weight).sum(1)

    # Eighths, whose sums are exact.
    check(hot, torch.tensor([0, 1, 100, -5])[:, None], torch.tensor([0.5, -2.0, 3.0, 0.125])[:, None])


def test_several_reductions_of_one_row_share_a_kernel() -> None:
    region = check(lambda x: [x.sum(1), x.amax(1), (x * x).sum(1)], torch.randn(64, 200))
    assert len(launches(region)) == 1


@pytest.mark.parametrize("width", [30, DEFAULTS.persistent_inner + 100])
def test_normalizations(width: int) -> None:
    x, w, b = torch.randn(4, width), torch.randn(width), torch.randn(width)
    check(lambda x, w, b: F.layer_norm(x, (width,), w, b), x, w, b)
    check(lambda x, w: F.rms_norm(x, (width,), w, 1e-6), x, w)
    check(lambda x, w, b: F.layer_norm(F.gelu(x) + x, (width,), w, b).half(), x, w, b)


def test_group_instance_and_batch_norm() -> None:
    x, w, b = torch.randn(3, 8, 5, 7), torch.randn(8), torch.randn(8)
    mean, var = torch.randn(8), torch.rand(8) + 0.5
    check(lambda x, w, b: F.group_norm(x, 4, w, b), x, w, b)
    check(lambda x, w, b: F.group_norm(x, 4, w, b), x.to(memory_format=torch.channels_last), w, b)
    check(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), x, w, b)
    check(lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), x, mean, var, w, b)
    check(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, w, b)


def test_losses() -> None:
    logits, target = torch.randn(6, 11), torch.randint(0, 11, (6,))
    check(F.cross_entropy, logits, target)
    check(lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1), logits, target)
    check(
        lambda x, t: F.cross_entropy(x, t, ignore_index=3),
        logits,
        target.clone().fill_(3).index_fill(0, torch.tensor([1]), 5),
    )
    check(F.mse_loss, logits, torch.randn(6, 11))
    check(F.smooth_l1_loss, logits, torch.randn(6, 11))
    check(F.binary_cross_entropy_with_logits, logits, torch.rand(6, 11))
    check(lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), logits, torch.randn(6, 11))


def test_no_elements_are_left_to_the_library() -> None:
    x = torch.randn(3, 0)
    region = check(lambda x: [x.sum(1), x.sum(), x.any(1), x + 1], x)
    assert not launches(region)


def test_strides_do_not_matter() -> None:
    x = torch.randn(8, 6, 10)
    for view in (x.permute(2, 0, 1), x[::2, 1:, ::3], x[:, :1].expand(8, 6, 10), x.transpose(0, 2)):
        check(lambda x: [x.sum(0), x.sum((0, 2)), x.amax(1), x.softmax(-1), x.argmax(), x.mean()], view)


def test_positions_in_a_large_tensor_are_searched_in_two_steps() -> None:
    """The first of equals counts, and NaN, in whatever chunk it is."""
    for count in (1 << 19, 499_979):
        x = torch.randint(0, 200, (count,))
        region = check(lambda x: [x.argmax(), x.argmin()], x)
        assert len(launches(region)) == 3  # both pass over x together
        y = x.float()
        y[count // 2] = torch.nan
        check(lambda y: [y.argmax(), y[: len(y) // 3].argmin(), y.relu().argmin(), y.argmax() + y[0]], y)
    check(lambda x: x.argmax(), torch.full((600, 1000), -torch.inf))
    check(lambda x: [*x.max(0), *x.min(1)], torch.randint(0, 50, (2, 400_000)).t())


def test_extrema_of_booleans() -> None:
    x = torch.rand(6, 40) > 0.5
    check(lambda x: [x.amax(1), x.amin(0), x.max(), *x.max(1), *x.min(0)], x)


PASSES = Options(persistent_inner=0, persistent_outer=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1])
def test_a_maximum_and_the_sum_below_it_take_one_pass(dtype: torch.dtype, dim: int) -> None:
    """Also for rows with infinities and NaN, at the start, at the end, and alone."""
    x = (torch.randn(7, 5000) * 4).to(dtype)
    x[1] += torch.linspace(-30, 30, 5000).to(dtype)  # the maximum grows all along
    x[2, :3000] = x[3] = float("-inf")
    x[4, 4999] = float("inf")
    x[5, 17] = float("nan")
    x[6, 0], x[6, 1] = float("-inf"), 100
    rows = x if dim else x.t().contiguous()

    def likely(x: Tensor) -> list[Tensor]:
        return [x.log_softmax(dim), F.cross_entropy(x.movedim(dim, 1), torch.zeros(7, dtype=torch.int64) + 5)]

    region = check(likely, rows, options=PASSES)
    kernels = [launch.kernel.source for launch in launches(region)]
    assert sum("online_sum(" in source for source in kernels) == 1
    loss = check(lambda x: x.logsumexp(dim) + x.softmax(dim).sum(dim), rows[:, 2:] if dim else rows[2:], options=PASSES)
    assert any("online_sum(" in launch.kernel.source for launch in launches(loss))


def test_a_sum_of_other_exponentials_keeps_its_pass() -> None:
    def two(x: Tensor, y: Tensor) -> list[Tensor]:
        high = x.amax(1, True)
        return [(y - high).exp().sum(1), (x - high).exp2().sum(1), (high - x).exp().sum(1)]

    region = check(two, torch.randn(5, 300), torch.randn(5, 300), options=PASSES)
    assert not any("online_sum(" in launch.kernel.source for launch in launches(region))


@pytest.mark.parametrize("count", [41, 47, 83])
def test_a_mean_of_equal_numbers_is_that_number(count: int) -> None:
    """No float32 is the inverse of these counts: a sum times what is nearest to it is another number."""
    x = torch.full((3, count), 7.0)
    results, _ = generated(lambda x: [x.mean(1), x.mean(), *torch.var_mean(x, 1, correction=0)], x)
    for result, expected in zip(results, (7.0, 7.0, 0.0, 7.0), strict=True):
        assert bool((result == expected).all())


def test_a_single_pass_writes_over_what_it_reads() -> None:
    def function(a: Tensor, w: Tensor) -> list[Tensor]:
        product = a @ w
        return [product.exp(), product.sin() + 1, product.sum(0)]

    region = check(function, torch.randn(300, 8), torch.randn(8, 40))
    assert "ext_mm" in region.plan.in_place.values()


def test_a_loss_of_half_floats_is_rounded_once() -> None:
    torch.manual_seed(2)
    x, target = torch.randn(40, 3).bfloat16(), torch.randint(0, 3, (40,))
    weight = torch.rand(3).bfloat16()
    region = check(lambda x, t, w: F.nll_loss(x, t, weight=w), x, target, weight)
    kernel = launches(region)[0].kernel.source
    assert kernel.count(".to(tl.bfloat16)") == 1


def test_loops_end_where_the_interpreters_own_scalars_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.6 makes one of an array of one element as NumPy did before 2.4."""
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor

    def of_3_6(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", of_3_6)
    check(lambda x: x.sum(1), torch.ones(3, 9000))
