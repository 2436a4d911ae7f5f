"""Numbers beside tensors and made of indices: zeros with a sign, half floats, and what no int32 holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusescope
from tests.graphs import launches
from tests.interpret.checking import check, generated, program

HALF = (torch.float16, torch.bfloat16)
FLOATS = (torch.float64, torch.float32, *HALF)
ZEROS = torch.tensor([0.0, -0.0, 1.0, -1.0])


def negatives(x: Tensor) -> list[Tensor]:
    return [-x, (-x).neg(), 1 / -x, -x.abs(), -x * 2, torch.atan2(-x, x - 3)]


def negative_constants(x: Tensor) -> list[Tensor]:
    filled = [torch.where(x > 0, x, -0.0), x.masked_fill(x > 0, -0.0), torch.full_like(x, -0.0)]
    return [*filled, x * -0.0, -0.0 - x, x + -0.0, F.pad(x, (1, 1), value=-0.0)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [negatives, negative_constants])
def test_zeros_have_eagers_sign(function: Callable[[Tensor], list[Tensor]], dtype: torch.dtype) -> None:
    x = ZEROS.to(dtype)
    results, _ = generated(function, x)
    for number, (result, eager) in enumerate(zip(results, function(x), strict=True)):
        torch.testing.assert_close(result, eager, rtol=0, atol=0)
        assert result.signbit().tolist() == eager.signbit().tolist(), number


def extrema(x: Tensor) -> list[Tensor]:
    y = x.t().contiguous()  # reduced across rows
    pools = [F.max_pool2d(x[None], (1, 3), return_indices=True), F.adaptive_max_pool2d(x[None], 1, return_indices=True)]
    found = [x.max(1), x.min(1), y.max(0), y.min(0, keepdim=True), x.cummax(1), x.cummin(1), y.cummax(0), y.cummin(0)]
    return [part for both in (*found, *pools) for part in both]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [3, 64, 5000])  # a row with idle lanes, one without, one in several steps
def test_an_extremum_is_the_zero_or_nan_whose_place_it_has(length: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(length)
    below = torch.randint(0, 2, (2, 4, length), generator=generator) * 2 - 1
    zeros = (below[0] * 0.0).to(dtype)
    spread = torch.where(torch.rand(4, length, generator=generator) < 3 / length, float("nan"), zeros)
    function = extrema if length < 5000 else lambda x: extrema(x)[:16]
    run, _ = program(function, zeros)
    for x in (zeros, spread, spread * below[1], torch.full_like(zeros, float("-inf"))):
        for number, (result, eager) in enumerate(zip(run([x]), function(x), strict=True)):
            torch.testing.assert_close(result, eager, rtol=0, atol=0, equal_nan=True, msg=f"result {number}")
            if result.is_floating_point():
                signs = torch.where(eager.isnan(), 0, eager.signbit())
                assert torch.equal(torch.where(result.isnan(), 0, result.signbit()), signs), number


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_extremum_found_in_two_steps_is_the_zero_whose_place_it_has(name: str) -> None:
    signs = torch.randint(0, 2, (100_000, 8), generator=torch.Generator().manual_seed(0)) * 2 - 1
    x = signs * 0.0
    (value, place), region = generated(lambda x: getattr(x, name)(0), x)
    assert len(launches(region)) > 1
    assert place.tolist() == [0] * 8
    assert torch.equal(value.signbit(), x[0].signbit())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 2, 8, 5000])
def test_sums_of_negative_zeros_are_zero_and_products_of_zeros_have_a_sign(length: int, dtype: torch.dtype) -> None:
    def function(x: Tensor) -> list[Tensor]:
        pooled = [F.avg_pool2d(x[None], (2, 1)), F.avg_pool2d(x[None], 1)]
        scans = [x.cumsum(1), x.cumsum(0), x.logcumsumexp(1)[:, 0], (x - x.sign()).cumprod(1)]
        return [x.sum(1), x.sum(0), x.sum(), x.mean(1), x.mean(0), *scans, *pooled, x.prod(1), (-x).cumprod(1)]

    x = torch.full((3, length), -0.0, dtype=dtype)
    for number, (result, eager) in enumerate(zip(generated(function, x)[0], function(x), strict=True)):
        torch.testing.assert_close(result, eager, rtol=0, atol=0)
        assert torch.equal(result.signbit(), eager.signbit()), number


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
@pytest.mark.parametrize("length", [3, 64, 5000])
def test_extrema_of_integers_reach_to_the_ends_of_their_dtype(length: int, dtype: torch.dtype) -> None:
    ends = torch.iinfo(dtype)
    mixed = torch.where(torch.arange(2 * length).reshape(2, length) % 3 == 1, ends.max, ends.min).to(dtype)
    for x in (mixed, torch.full_like(mixed, ends.min), torch.full_like(mixed, ends.max)):
        check(lambda x: [*x.max(1), *x.min(1), x.argmax(), x.argmin(1), *x.cummax(1), *x.cummin(1), x.amax()], x)


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
@pytest.mark.parametrize("number", [0.1, 0.3, 0.7, 1.3, 257, -0.1, 1e-7, 1e6])
def test_half_floats_are_compared_with_numbers_rounded_to_them(number: float, dtype: torch.dtype) -> None:
    x = torch.tensor([0.1, 0.3, 0.7, 1.3, 256, 258, 70.1, -0.1, 0.0, 1e-7, float("inf")]).to(dtype)

    def compare(x: Tensor, y: Tensor) -> list[Tensor]:
        results = [op(x, number) for op in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)]
        return [*results, x == y, x < y, x + 0 == number, F.threshold(x, number, 7.0)]

    wide = torch.tensor(number, dtype=torch.float64)  # of no dimensions, so the other's dtype wins
    results, _ = generated(compare, x, wide)
    for place, (result, eager) in enumerate(zip(results, compare(x, wide), strict=True)):
        assert result.tolist() == eager.tolist(), place


@pytest.mark.parametrize("number", [-0.5, 0.5, 2])
def test_integers_meet_a_threshold_of_their_own_dtype(number: float) -> None:
    check(lambda x: F.threshold(x, number, 7), torch.arange(-3, 4))


@pytest.mark.parametrize("dtype", HALF)
def test_gradients_stop_where_the_threshold_of_half_floats_does(dtype: torch.dtype) -> None:
    def gradient(function: Callable[[Tensor], Tensor]) -> list[float]:
        x = torch.tensor([0.1, 0.3, 0.2, 0.7], dtype=dtype, requires_grad=True)
        function(x).sum().backward()
        assert x.grad is not None
        return x.grad.tolist()

    for bound in (0.1, 0.3, 0.7):
        function = lambda x, bound=bound: F.threshold(x, bound, 7.0) * 2  # noqa: E731
        torch._dynamo.reset()
        assert gradient(torch.compile(function, backend=fusescope)) == gradient(function)


@pytest.mark.parametrize("dtype", HALF)
def test_half_floats_are_divided_with_rest_by_numbers_rounded_to_them(dtype: torch.dtype) -> None:
    x = torch.linspace(-9, 9, 37).to(dtype)
    for number in (1.3, -0.7, 2):
        results, _ = generated(lambda x, n=number: [x % n, torch.fmod(x, n)], x)
        assert [r.tolist() for r in results] == [(x % number).tolist(), torch.fmod(x, number).tolist()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_next_float_is_the_next_of_its_dtype(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 2.0, 0.0, float("inf"), 3.0], dtype=dtype)
    y = torch.tensor([2.0, -2.0, 1.0, 0.0, 3.0], dtype=dtype)
    results, _ = generated(lambda x, y: torch.nextafter(x, y) * 1, x, y)
    assert results[0].tolist() == torch.nextafter(x, y).tolist()


STEPS = [
    (0, 5 * 10**9, 10**9), (0, -5 * 10**9, -(10**9)), (2**40, 2**40 + 5, 1), (-(2**40), 2**42, 2**40),
    (2**31 - 3, 2**31 + 2, 1), (-(2**31) - 3, -(2**31) + 2, 1), (0, 2**60, 2**58),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.float32])
@pytest.mark.parametrize("bounds", STEPS)
def test_numbers_of_indices_may_leave_an_int32(bounds: tuple[int, int, int], dtype: torch.dtype) -> None:
    check(lambda x: torch.arange(*bounds, dtype=dtype) + x, torch.zeros(1, dtype=torch.int32))
    check(lambda x: torch.arange(*bounds, dtype=dtype)[:4].view(2, 2).t() + x, torch.zeros(1, dtype=torch.int32))


def test_numbers_of_sizes_may_leave_an_int32() -> None:
    def function(x: Tensor) -> list[Tensor]:
        n = x.shape[0]
        start = n * 10**9
        numbers = [x + start, x * (n * 2**31), x / (n * 10**10), x - n**13, torch.full((2,), start)]
        return [*numbers, torch.arange(start, start + 5) + x.sum(), torch.arange(n) * 10**9 + torch.arange(n) * n]

    run = torch.compile(function, backend=fusescope, dynamic=True)
    for size in (5, 3, 12):
        x = torch.arange(size)
        for result, eager in zip(run(x), function(x), strict=True):
            torch.testing.assert_close(result, eager, rtol=1e-6, atol=0)


def test_a_factor_of_integers_loses_its_fraction() -> None:
    x = torch.tensor([3, 4, -5])
    check(lambda x: [torch.addcmul(x, x, x, value=v) for v in (0.5, 2.7, 2, -1.5)], x)
    check(lambda x, y: [torch.addcmul(x, x, y, value=0.5), torch.addcmul(y, x, x, value=0.5)], x, x.double())


@pytest.mark.parametrize("loss", [F.huber_loss, F.soft_margin_loss])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_some_losses_have_the_first_operands_dtype(loss: Callable[..., Tensor], dtype: torch.dtype) -> None:
    x, target = torch.linspace(-2, 2, 9), torch.linspace(-1, 3, 9).to(dtype)
    for reduction in ("none", "mean", "sum"):
        check(lambda x, target, r=reduction: loss(x, target, reduction=r), x, target)
        (result,), _ = generated(lambda x, target, r=reduction: loss(target, x, reduction=r), x, target)
        assert result.dtype is dtype


def constants(x: Tensor, dtype: torch.dtype) -> list[Tensor]:
    number = torch.full((4,), 0.1, dtype=dtype)
    x = x.to(dtype)
    filled = [torch.where(x > 0, x, number), x.masked_fill(x > 0, 0.1), F.pad(x, (1, 1), value=0.1)]
    return [t.double() * 3 for t in (number, *filled)] + [number.double() == 0.1, number.double().float() > 0.1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_has_the_digits_of_its_dtype_where_it_becomes_another(dtype: torch.dtype) -> None:
    check(lambda x: constants(x, dtype), ZEROS.double())


def test_an_integer_constant_loses_what_a_float_cannot_hold() -> None:
    odd = (1 << 24) + 1
    check(lambda x: torch.full((4,), odd, dtype=torch.int64).float().long() + x, torch.arange(4))


def test_float64s_are_compared_with_all_digits_of_a_number() -> None:
    x = torch.tensor([0.1, -0.1, float(torch.tensor(0.1)), 0.3], dtype=torch.float64)
    check(lambda x: [x == 0.1, x != 0.1, x > 0.1, x < 0.1, x >= 0.1, x <= 0.1, x <= -0.1, F.threshold(x, 0.1, 0.3)], x)
