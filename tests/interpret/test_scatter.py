"""Writes at computed places, against eager: sums, plain writes, masks, duplicates, negative and wrong positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.backend import Session
from compiler.ir import Extern
from compiler.kernel_library import KernelLibrary
from compiler.region import CompiledRegion
from tests.graphs import TARGET, launches
from tests.interpret.checking import check, generated

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.uint8]

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def fused(function: Callable[..., Any], *inputs: Any) -> CompiledRegion:
    """As ``check``; nothing may be left to a library."""
    region = check(function, *inputs)
    assert not [step.detail for step in region.steps if isinstance(step, Extern)]
    return region


def put(x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """``index_put`` with None for whole dimensions, which the method does not take."""
    return torch.ops.aten.index_put.default(x, indices, values, accumulate)


def numbers(dtype: torch.dtype, *size: int) -> Tensor:
    values = torch.randint(0, 60, size, generator=torch.Generator().manual_seed(1))
    return (values / 8).to(dtype) if dtype.is_floating_point else values.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(dtype: torch.dtype) -> None:
    x, source = numbers(dtype, 5, 7), numbers(dtype, 6, 3)
    index, rows = torch.randint(0, 5, (6, 3)), torch.tensor([4, 0, 4, 4, -1, 2])
    fused(lambda x, i, s: x.scatter_add(0, i, s) * 2, x, index, source)
    fused(lambda x, i, s: x.index_put((i,), s, accumulate=True), x, rows, numbers(dtype, 6, 7))
    fused(lambda x, i, s: x.index_add(1, i, s, alpha=2), x, rows.abs() + 1, numbers(dtype, 5, 6))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool])
def test_plain_writes(dtype: torch.dtype) -> None:
    x = numbers(dtype, 5, 7)
    rows, columns = torch.tensor([3, -1, 0]), torch.tensor([[6], [-7]])
    fused(lambda x, i, s: x.scatter(1, i, s), x, torch.tensor([[1, 0, 6], [2, 3, 4]]), numbers(dtype, 5, 4))
    fused(lambda x, i: x.scatter(0, i, 1), x, torch.tensor([[1, 0, 4], [2, 3, 4]]))
    fused(lambda x, i, j, s: x.index_put((i, j), s), x, rows, columns, numbers(dtype, 2, 3))
    fused(lambda x, i, s: x.index_put((i,), s), x, rows, numbers(dtype, 7))
    fused(lambda x, i: x.index_fill(1, i, 1), x, rows.abs())
    fused(lambda x, i, s: x.index_copy(0, i, s), x, torch.tensor([4, 1]), numbers(dtype, 2, 7))


def test_indices_between_other_dimensions() -> None:
    x, i, j = torch.randn(4, 5, 6, 3), torch.tensor([0, 3, 1]), torch.tensor([[-2], [4]])
    fused(lambda x, i, j, s: put(x, [None, j, None, i % 3], s), x, i, j, torch.randn(2, 3, 4, 6))
    fused(lambda x, i, j, s: put(x, [None, j, i], s, True), x, i, j, torch.randn(4, 2, 3, 3))
    fused(lambda x, i, s: put(x, [None, i], s.sum(1, keepdim=True)), x, i, torch.randn(4, 8, 6, 3))


def test_masks() -> None:
    x = torch.randn(4, 6)
    fused(lambda x: x.index_put((x > 0,), x.new_tensor(2.0)), x)
    fused(lambda x: put(x, [x[:, 0] > 0], x.new_full((), 2.0), True), x)
    fused(lambda x: put(x.masked_fill(x > 0.5, -1.0), [None, x[0] > 0], x.new_zeros(1)), x)
    fused(lambda x, s: [x.masked_scatter(x > 0, s), x.masked_scatter(x[:, :1] > 0, s.t())], x, x * 2)
    for one in (True, False):  # the scan of one mask for all elements still numbers them
        fused(lambda x, m, s: x.masked_scatter(m, s), x[:, :5].clone(), torch.tensor(one), x[:, 1:].clone())


def test_extrema_and_other_ways_to_combine() -> None:
    x, index = torch.randint(-9, 9, (4, 6)), torch.randint(0, 4, (7, 5))
    source = torch.randint(-20, 20, (7, 6))
    for reduce in ("amax", "amin", "sum"):
        fused(lambda x, i, s, r=reduce: x.scatter_reduce(0, i, s, r), x, index, source)
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64):
        for reduce, with_self in itertools.product(("sum", "mean", "amax", "amin"), (True, False)):
            fused(
                lambda x, i, s, r=reduce, w=with_self: x.scatter_reduce(0, i, s, r, include_self=w) + 1,
                x.to(dtype), index, source.to(dtype),
            )  # fmt: skip
    check(lambda x, i, s: x.scatter_reduce(0, i, s, "prod"), x.float(), index, source.float())


def test_extrema_with_nan_infinities_and_signs() -> None:
    x = torch.tensor([0.0, -0.0, -1.5, math.inf, -math.inf, math.nan, 1e-40, -3.0])
    index, source = torch.tensor([0, 0, 2, 5, 7, 7, 4, 3]), torch.tensor([-1.0, 1e-30, -2, 1, math.nan, 4, -9, 8])
    for dtype in (torch.float32, torch.float16, torch.float64):
        fused(
            lambda x, i, s: [x.scatter_reduce(0, i, s, "amax"), x.scatter_reduce(0, i, s, "amin")],
            x.to(dtype), index, source.to(dtype),
        )  # fmt: skip


def test_strides_views_and_neighbours() -> None:
    x, index, source = torch.randn(6, 8), torch.randint(0, 6, (6, 8)), torch.randn(6, 8)
    for view in (x.t().contiguous().t(), x[:, :1].expand(6, 8), torch.randn(12, 16)[::2, 1::2]):
        fused(lambda x, i, s: x.scatter_add(0, i, s), view, index, source)
    fused(lambda x, i, s: (x + 1).scatter_add(0, i, s.exp() * 2).relu().sum(1), x, index, source)
    fused(lambda x, i, s: [x.scatter_add(0, i, x[:, :4].sin().repeat(1, 2)), x], x, index, source)
    # what is written in place is read by the very same op, or by another
    fused(lambda x, i: (x + 1).scatter_add(0, i, (x + 1).flip(1)), x, index)
    fused(lambda x, i, s: [(y := x.sum(1)).index_add(0, i[0, :4], s[0, :4]), y * 2], x, index, source)
    fused(lambda x, i, s: x.scatter_add(0, i, s).scatter_add(1, i, s).scatter_add(0, i, s), x, index, source)
    fused(lambda x, i, s: x.softmax(1).scatter_add(1, i, s.softmax(1)).softmax(1), x, index, source)


def test_rows_that_a_reduction_left() -> None:
    """A scatter of one value a row shares the reduction's kernel and writes each row once."""
    x, rows = torch.randn(40, 33), torch.randint(0, 5, (40,))
    region = fused(lambda x, i: [x.new_zeros(5).index_add(0, i, x.sum(1)), x.sum(1)], x, rows)
    assert len(launches(region)) == 2
    long = torch.randn(6, 9000)
    fused(lambda x, i: x.new_zeros(5).index_add(0, i[:6], x.sum(1)), long, rows)
    fused(lambda x, i: x.new_zeros(5, 33).index_add(0, i, x.softmax(1)), x, rows)
    fused(lambda x, i: x.new_zeros(5).index_add(0, i, x.new_ones(40)) + x.sum(), x, rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax"])
def test_a_tensor_combined_into_itself(reduce: str, dtype: torch.dtype) -> None:
    """Where it does not count as one of what is combined, it is emptied first, and read all the same."""

    def function(x: Tensor, i: Tensor) -> list[Tensor]:
        y, z, w = x + 1, x * 2, x - 3
        combined = y.scatter_reduce(0, i, y, reduce, include_self=False)
        turned = z.scatter_reduce(0, i, z.flip(0), reduce, include_self=False)
        return [combined, turned, w.scatter_reduce(0, i, w[1:], reduce, include_self=False)]

    i = torch.arange(24).reshape(6, 4) * 7 % 6
    check(function, torch.arange(24).reshape(6, 4).to(dtype), i[:5])


def test_positions_that_are_numbers() -> None:
    def function(x: Tensor) -> list[Tensor]:
        first, last = (torch.full((1, 4), n, dtype=torch.int64) for n in (0, 2))
        rows = [x.scatter(0, first, 7.0), x.scatter(0, last, x[1:2]), x.scatter_add(0, last, x[:1]), x[last[0], 1:]]
        return [*rows, x[:1, :1].scatter(0, first[:, :1], 1.0), x.index_put((torch.full((2,), -1),), x[0]), x[-last]]

    check(function, torch.randn(3, 4))


def test_no_elements() -> None:
    x, none = torch.randn(4, 3), torch.zeros(0, dtype=torch.int64)
    check(lambda x, i: [x.index_put((i,), x[i]), x[:, :0].scatter_add(0, i.reshape(0, 0), x[:0, :0])], x, none)


def test_duplicates_leave_one_of_the_values_whole() -> None:
    x, source = torch.zeros(3, 50), torch.randn(4, 50)
    results, _ = generated(lambda x, i, s: x.index_put((i,), s), x, torch.tensor([1, 1, 1, 1]), source)
    assert any(torch.equal(results[0][1], row) for row in source)


def test_deterministic_algorithms_are_the_librarys() -> None:
    x, index = torch.zeros(3, 5), torch.zeros(4, 5, dtype=torch.int64)
    torch.use_deterministic_algorithms(True)
    try:
        region = check(lambda x, i: x.scatter_add(0, i, x.new_ones(4, 5)), x, index)
        calls = [step for step in region.steps if isinstance(step, Extern)]
        assert "deterministic" in calls[0].detail
        fused(lambda x, i: x.scatter_add(0, i, torch.ones(4, 5, dtype=torch.int64)), x.long(), index)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("wrong", [3, -4])
def test_positions_outside_are_errors_as_in_eager(wrong: int) -> None:
    x, index = torch.randn(3, 5), torch.tensor([0, wrong])
    for function in (
        lambda x, i: x[i] + 1,
        lambda x, i: x.index_put((i,), torch.ones(5)) + 1,
        lambda x, i: F.embedding(i, x) * 2,
    ):
        with pytest.raises(IndexError):
            generated(function, x, index)


class Cache(nn.Module):
    """Keys written into a buffer, and read with all that were written before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 12, 8))
        self.register_buffer("seen", torch.zeros(12, dtype=torch.int64))

    def forward(self, key: Tensor, place: Tensor) -> Tensor:
        before = self.seen.sum() * 2
        self.keys.index_copy_(1, place, key.sin())
        self.seen.index_add_(0, place, torch.ones_like(place))
        return self.keys.sum(1) + before


def test_a_cache_is_written_in_place() -> None:
    eager, model = Cache(), Cache()
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    with torch.no_grad():
        run = torch.compile(model, backend="fusescope", options={"session": session})
        for step in range(3):
            key, place = torch.randn(2, 2, 8), torch.tensor([2 * step, 2 * step + 1])
            torch.testing.assert_close(run(key, place), eager(key, place))
            torch.testing.assert_close(model.keys, eager.keys)
            assert torch.equal(model.seen, eager.seen)
    stored = [b for launch in launches(session.regions[0]) for b in launch.stored if tuple(b.size) == (2, 12, 8)]
    assert [b.fx_node for b in stored] == ["index_copy"]  # neither copied before nor copied back


def test_slices_at_positions() -> None:
    x, rows, scalar = numbers(torch.float32, 5, 7), torch.tensor([3, 0, 1]), torch.tensor(2)
    fused(lambda x, i, s: x.index_copy(1, i, s) + 1, x, rows, numbers(torch.float32, 5, 3))
    fused(lambda x, i: x.index_fill(0, i - 2, 7.5), x, rows)  # these count from the end
    fused(lambda x, i, v: x.index_fill(-1, i, v), x.t(), scalar, torch.tensor(3.0))
    fused(lambda x, i, s: x.index_add(0, i, s), x, scalar, numbers(torch.float32, 1, 7))
    mask = numbers(torch.int64, 5, 7) > 30
    fused(lambda x, i, s: x.index_add(1, i, s), mask, rows, ~mask[:, :3])
    check(lambda x, i, s: x.index_add(0, i, s), torch.tensor(1.0), torch.tensor(0), torch.tensor(2.0))


@pytest.mark.parametrize("write", ["index_add", "index_copy"])
@pytest.mark.parametrize("place", [-1, 5])
def test_slices_at_positions_outside_are_an_error(write: str, place: int) -> None:
    with pytest.raises(IndexError, match="index out of range for size 5"):
        generated(lambda x, i: getattr(x, write)(0, i, x[:1] + 1), torch.zeros(5, 2), torch.tensor([place]))


def test_an_input_that_is_read_in_between_is_copied() -> None:
    def function(x: Tensor, i: Tensor) -> list[Tensor]:
        y = x.index_put((i,), x.new_ones(3))
        z = x * 2
        x.copy_(y)
        return [z, y + 1]

    def returned(x: Tensor, i: Tensor) -> Tensor:
        y = x.index_put((i,), x.new_ones(3))
        x.copy_(y)
        return y

    def twice(x: Tensor, i: Tensor) -> Tensor:
        x.index_put_((i,), x.new_ones(3), accumulate=True)
        x.index_put_((i + 1,), x.sum(0), accumulate=True)
        return x.sum(0)

    i = torch.tensor([0, 2])
    for each in (function, returned, twice):
        x = torch.randn(4, 3)
        expected_x, result_x = x.clone(), x.clone()
        with torch.no_grad():
            expected = each(expected_x, i)
            result = torch.compile(each, backend="fusescope")(result_x, i)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(result_x, expected_x)


class Table(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 6, padding_idx=2, dtype=dtype)

    def forward(self, ids: Tensor, places: Tensor) -> Tensor:
        rows = self.table(ids)
        return (rows * rows.gather(1, places) + rows[:, places[0, :, 0]]).sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_gradients_of_embedding_gather_and_indexing(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Table(dtype)
    ids, places = torch.randint(0, 9, (4, 7)), torch.randint(0, 7, (4, 7, 6))
    model(ids, places).backward()
    expected = model.table.weight.grad
    assert expected is not None
    model.table.weight.grad = None
    torch.compile(model, backend="fusescope")(ids, places).backward()
    result = model.table.weight.grad
    assert result is not None
    torch.testing.assert_close(result, expected, rtol=1e-5 if dtype is torch.float32 else 4e-3, atol=1e-5)


def test_a_position_that_a_mask_keeps_from_memory_may_be_anything() -> None:
    def rolled(x: Tensor) -> Tensor:
        part = x.roll(5, 2).select(0, 3)
        return torch.cat([part, part, part], 1).roll(-2, 1)

    check(rolled, torch.randn(4, 8, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_one_hot_needs_no_memory(dtype: torch.dtype) -> None:
    """A constant in which every row gets one element is computed by index: one kernel, and nothing is filled first."""

    def replaced(index: Tensor, source: Tensor, y: Tensor) -> Tensor:
        start = torch.full((6, 7), 3, dtype=source.dtype)
        by_row = start.scatter(1, index[:, :1], 5) * y
        return by_row + start.scatter(0, index[:1, :7], source)

    index = torch.randint(0, 6, (6, 8), generator=torch.Generator().manual_seed(2))
    region = fused(replaced, index, numbers(dtype, 2, 9), numbers(dtype, 6, 7))
    assert len(region.steps) == 1


def test_gradient_of_a_loss_by_class_is_one_kernel() -> None:
    def gradient(logits: Tensor, target: Tensor, scale: Tensor) -> Tensor:
        likely = logits.log_softmax(1)
        _, weight = torch.ops.aten.nll_loss_forward(likely, target, None, 1, -100)
        into = torch.ops.aten.nll_loss_backward(scale, likely, target, None, 1, -100, weight)
        return torch.ops.aten._log_softmax_backward_data(into, likely, 1, logits.dtype)

    region = fused(gradient, torch.randn(4, 11), torch.tensor([3, -100, 0, 10]), torch.tensor(2.0))
    assert not any(step.into for step in launches(region))


@pytest.mark.parametrize("accumulate", [True, False])
def test_elements_numbered_as_if_flat(accumulate: bool) -> None:
    places = torch.randperm(21)[:8].reshape(2, 4)
    places[0, 0] -= 21
    values = torch.randn(2, 4)
    for x in (torch.randn(3, 7), torch.randn(7, 3).t(), torch.randn(3, 14)[:, ::2]):
        region = check(lambda x, i, v: torch.ops.aten.put(x, i, v, accumulate) * 2, x, places, values)
        assert not [step for step in region.steps if isinstance(step, Extern)]
    check(lambda x, v: torch.ops.aten.put(x, torch.tensor([1, 1, 5, 1]), v, True), torch.randn(3, 7), torch.randn(4))


@pytest.mark.parametrize("viewed", ["narrow", "select", "t", "expand", "as_strided"])
def test_views_of_a_permuted_target_with_elements_scattered_into_it(viewed: str) -> None:
    """The result is laid out as eager's, which is not permuted, and its views are of that."""
    index = (torch.arange(4)[:, None] + torch.arange(6)) % 4
    views = {
        "narrow": lambda y: y.narrow(1, 2, 3) + 1,
        "select": lambda y: y[2] * 2,
        "t": lambda y: y.t() + 1,
        "expand": lambda y: y[:, None].expand(4, 2, 6) * 2,
        "as_strided": lambda y: y.as_strided((3, 4), (1, 6), 2) + 1,
    }

    def function(x: Tensor, source: Tensor, index: Tensor) -> list[Tensor]:
        written = (x.t() * 2).scatter(0, index[:2], 1.0)
        summed = (x.t() * 3).scatter_add(0, index, source)
        return [views[viewed](written), views[viewed](summed), summed]

    x, source = torch.randn(6, 4), torch.randn(4, 6)
    region = check(function, x, source, index)
    results, _ = generated(function, x, source, index)
    assert [r.stride() for r in results] == [r.stride() for r in function(x, source, index)]
    assert any(step.into for step in launches(region))
