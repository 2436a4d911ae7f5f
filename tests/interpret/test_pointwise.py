"""Every element-wise op on every dtype that eager takes, over values where arithmetic is delicate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.lowering import registry
from tests.graphs import launches
from tests.interpret.checking import check, generated

aten = torch.ops.aten
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int64, torch.int8, torch.uint8]  # the widths between are generated as int64 is
DTYPES = [*FLOATS, *INTEGERS, torch.bool]

REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 1e-3, 11.0, 80.0, -80.0]
SPECIAL = [math.nan, math.inf, -math.inf]
UNIT = [0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 0.9, -0.99, 1e-3]
POSITIVE = [0.0, 1.0, 0.5, 2.0, 3.5, 100.0, 1e-3, 7.0]
WHOLE = [0, 1, 2, 3, 5, 7, 100, 127, -1, -2, -3, -7, -128]


def values(dtype: torch.dtype, floats: list[float], special: bool = True, zero: bool = True) -> Tensor:
    """Delicate values of a dtype, in one dimension."""
    if dtype.is_floating_point:
        found = torch.tensor(floats + (SPECIAL if special else []), dtype=dtype)
        return found if zero else found[found != 0]
    if dtype is torch.bool:
        return torch.tensor([True, False, True])
    low = torch.iinfo(dtype).min
    return torch.tensor([v for v in WHOLE if v >= low and (zero or v)], dtype=dtype)


def accepted(function: Callable[..., Any], *inputs: Any) -> bool:
    """Whether eager has this op for these dtypes."""
    try:
        function(*inputs)
        function(*(x.to("meta") for x in inputs))
    except (RuntimeError, NotImplementedError):
        return False
    return True


UNARY: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "abs": (torch.abs, REAL),
    "acos": (torch.acos, UNIT),
    "acosh": (torch.acosh, [1.0, 1.5, 2.0, 30.0, 0.5]),
    "alias_copy": (aten.alias_copy.default, REAL),
    "asin": (torch.asin, UNIT),
    "asinh": (torch.asinh, REAL),
    "atan": (torch.atan, REAL),
    "atanh": (torch.atanh, UNIT),
    "bitwise_not": (torch.bitwise_not, REAL),
    "ceil": (torch.ceil, REAL),
    "clone": (torch.clone, REAL),
    "cos": (torch.cos, REAL),
    "cosh": (torch.cosh, REAL),
    "erf": (torch.erf, REAL),
    "erfc": (torch.erfc, REAL),
    "erfinv": (torch.erfinv, UNIT),
    "exp": (torch.exp, REAL),
    "exp2": (torch.exp2, REAL),
    "expm1": (torch.expm1, REAL),
    "fix": (torch.fix, REAL),
    "floor": (torch.floor, REAL),
    "gelu": (F.gelu, REAL),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 2.0), REAL),
    "isinf": (torch.isinf, REAL),
    "isnan": (torch.isnan, REAL),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), REAL),
    "lgamma": (torch.lgamma, POSITIVE),
    "lift_fresh_copy": (aten.lift_fresh_copy.default, REAL),
    "log": (torch.log, REAL),
    "log10": (torch.log10, REAL),
    "log1p": (torch.log1p, UNIT),
    "log2": (torch.log2, REAL),
    "logical_not": (torch.logical_not, REAL),
    "neg": (torch.neg, REAL),
    "reciprocal": (torch.reciprocal, REAL),
    "relu": (torch.relu, REAL),
    "round": (torch.round, REAL),
    "rsqrt": (torch.rsqrt, REAL),
    "sgn": (torch.sgn, REAL),
    "sigmoid": (torch.sigmoid, REAL),
    "sign": (torch.sign, REAL),
    "silu": (F.silu, REAL),
    "sin": (torch.sin, REAL),
    "sinh": (torch.sinh, REAL),
    "sqrt": (torch.sqrt, REAL),
    "square": (torch.square, REAL),
    "tan": (torch.tan, REAL),
    "tanh": (torch.tanh, REAL),
    "trunc": (torch.trunc, REAL),
}
UNARY_FORMS: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), REAL),
    "pow 0": (lambda x: x**0, REAL),
    "pow 2": (lambda x: x**2, REAL),
    "pow 3": (lambda x: x**3, REAL),
    "pow 7": (lambda x: x**7, REAL),
    "pow 0.5": (lambda x: x**0.5, REAL),
    "pow -0.5": (lambda x: x**-0.5, REAL),
    "pow -1": (lambda x: x**-1, REAL),
    "pow 2.5": (lambda x: x**2.5, REAL),
    "2 pow": (lambda x: 2**x, REAL),
    "clamp both": (lambda x: x.clamp(-1, 2), REAL),
    "clamp by fractions": (lambda x: x.clamp(-0.5, 2.5), REAL),
    "clamp crossed": (lambda x: x.clamp(3, 1), REAL),
    "clamp_min": (lambda x: aten.clamp_min.default(x, 1), REAL),
    "clamp_max": (lambda x: aten.clamp_max.default(x, 1), REAL),
    "hardswish": (F.hardswish, REAL),
    "hardsigmoid": (F.hardsigmoid, REAL),
    "elu": (F.elu, REAL),
    "selu": (F.selu, REAL),
    "celu": (F.celu, REAL),
    "mish": (F.mish, REAL),
    "softplus": (F.softplus, REAL),
    "logsigmoid": (F.logsigmoid, REAL),
    "softsign": (F.softsign, REAL),
    "tanhshrink": (F.tanhshrink, REAL),
    "hardshrink": (F.hardshrink, REAL),
    "softshrink": (F.softshrink, REAL),
    "frac": (torch.frac, REAL),
    "logit": (lambda x: torch.logit(x, eps=1e-3), UNIT),
    "nan_to_num": (torch.nan_to_num, REAL),
    "isfinite": (torch.isfinite, REAL),
    "signbit": (torch.signbit, REAL),
    "deg2rad": (torch.deg2rad, REAL),
    "sinc": (torch.sinc, REAL),
    "round to 1 decimal": (lambda x: torch.round(x, decimals=1), REAL),
    "add a number": (lambda x: x + 2, REAL),
    "add a fraction": (lambda x: x + 0.5, REAL),
    "add with alpha": (lambda x: torch.add(x, x, alpha=3), REAL),
    "subtract from a number": (lambda x: 3 - x, REAL),
    "rsub with alpha": (lambda x: torch.rsub(x, x * 2, alpha=2), REAL),
    "divide by a number": (lambda x: x / 3, REAL),
    "divide a number": (lambda x: 3 / x, REAL),
    "floor divide by a number": (lambda x: x // 2, REAL),
    "floor divide by a negative": (lambda x: x // -3, REAL),
    "remainder of a number": (lambda x: x % 3, REAL),
    "remainder of a negative": (lambda x: x % -3, REAL),
    "fmod of a number": (lambda x: torch.fmod(x, 3), REAL),
    "compare with a fraction": (lambda x: (x < 0.5) | (x == 2.5), REAL),
    "compare with a number": (lambda x: x >= 1, REAL),
    "where with a number": (lambda x: torch.where(x > 0, x, 7), REAL),
    "shift left": (lambda x: x << 2, REAL),
    "shift right": (lambda x: x >> 1, REAL),
}


@pytest.mark.parametrize("name", [*UNARY, *UNARY_FORMS])
def test_one_operand(name: str) -> None:
    function, floats = (UNARY | UNARY_FORMS)[name]
    inputs = [x for x in (values(dtype, floats) for dtype in DTYPES) if accepted(function, x)]
    assert inputs, "eager takes none of the dtypes"
    check(lambda *tensors: [function(x) for x in tensors], *inputs)


BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "atan2": torch.atan2,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "clamp": lambda x, y: torch.clamp(x, min=y, max=y + y),
    "clamp_max": aten.clamp_max.Tensor,
    "clamp_min": aten.clamp_min.Tensor,
    "copysign": torch.copysign,
    "eq": torch.eq,
    "ge": torch.ge,
    "gt": torch.gt,
    "hypot": torch.hypot,
    "le": torch.le,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "lt": torch.lt,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": torch.mul,
    "ne": torch.ne,
    "nextafter": torch.nextafter,
    "rsub": torch.rsub,
    "sub": torch.sub,
}
BINARY_FORMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "logaddexp": torch.logaddexp,
    "xlogy": torch.xlogy,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2),
    "heaviside": torch.heaviside,
}
DIVISIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "div": torch.div,
    "true_divide": torch.true_divide,
    "floor_divide": torch.floor_divide,
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
}


def every_pair(function: Callable[[Tensor, Tensor], Tensor], zero: bool) -> list[Tensor]:
    """Columns and rows of delicate values, dtype by dtype: together they broadcast to every pair."""
    found = []
    for dtype in DTYPES:
        x, y = values(dtype, REAL)[:, None], values(dtype, REAL, zero=zero)[None, :]
        if accepted(function, x, y):
            found += [x, y]
    assert found, "eager takes none of the dtypes"
    return found


def pairwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., list[Tensor]]:
    return lambda *tensors: [function(x, y) for x, y in zip(tensors[::2], tensors[1::2], strict=True)]


@pytest.mark.parametrize("name", [*BINARY, *BINARY_FORMS])
def test_two_operands(name: str) -> None:
    function = (BINARY | BINARY_FORMS)[name]
    check(pairwise(function), *every_pair(function, zero=True))


@pytest.mark.parametrize("name", DIVISIONS)
def test_division_rounds_as_torch_rounds_it(name: str) -> None:
    """Integers are not divided by zero: that is undefined on a GPU and raises on a CPU."""
    function = DIVISIONS[name]
    floats, integers = every_pair(function, zero=True)[: 2 * len(FLOATS)], every_pair(function, zero=False)
    check(pairwise(function), *floats, *integers[2 * len(FLOATS) :])


def test_powers_of_tensors() -> None:
    pairs = [
        t for dtype in FLOATS for t in (values(dtype, REAL)[:, None], values(dtype, [0.0, 1.0, 2.0, -1.5, 0.5])[None])
    ]
    check(pairwise(torch.pow), *pairs)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_powers_and_shifts_of_whole_numbers(dtype: torch.dtype) -> None:
    x = values(dtype, []).repeat_interleave(9)
    amounts = torch.tensor([0, 1, 2, 3, 5, 7, 8, 31, 63]).to(dtype).repeat(len(x) // 9)
    check(lambda x, n: [x**n, 3**n, x**11, x << 3, x >> 2, x << n, x >> n, 5 << n, x >> 100], x, amounts)
    if dtype.is_signed:
        check(lambda x, n: [x ** (-n), x << -n, x >> -n], x, amounts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_numbers_too_large_for_a_small_integer_lose_their_high_bits(dtype: torch.dtype) -> None:
    x = torch.tensor([200.5, -129.0, 40000.0, -40000.0, 65536.0, 1e6, -1e6], dtype=dtype)
    check(lambda x: [x.to(torch.int8), x.to(torch.int16), x.abs().to(torch.uint8)], x)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8(dtype: torch.dtype) -> None:
    """Every code is read as the number that torch reads, and numbers near any code are written as torch writes them."""
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    numbers = codes.float()
    (result, half, wide), _ = generated(lambda x: [x.float(), x.half() * 2, x.double() + 1], codes)
    torch.testing.assert_close(result, numbers, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(half, codes.half() * 2, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(wide, codes.double() + 1, rtol=0, atol=0, equal_nan=True)
    between = torch.cat([numbers * (1 + 2.0**-e * s) for e in range(2, 12) for s in (-1, 1)])
    more = torch.tensor([448.0, 463.9, 464, 464.1, 479, 480, 57344, 61439, 61440, 1e30, 3e-5, 2**-10, 2**-17, math.inf])
    x = torch.cat([between, more, -more])

    def function(x: Tensor) -> list[Tensor]:
        twice = (x.to(dtype).float() + x).double()
        return [x.to(dtype), twice.to(dtype), x.half().to(dtype), F.pad(x.to(dtype), (1, 2))]

    results, region = generated(function, x)
    assert len(launches(region)) == 2
    for found, expected in zip(results, function(x), strict=True):
        assert found.dtype is dtype
        torch.testing.assert_close(found.float(), expected.float(), rtol=0, atol=0, equal_nan=True)
        signs = (found.float().signbit() == expected.float().signbit()) | expected.float().isnan()
        assert bool(signs.all())


PAIRS = [
    (torch.float16, torch.float32), (torch.bfloat16, torch.float16), (torch.int32, torch.float16),
    (torch.int64, torch.int8), (torch.uint8, torch.int8), (torch.bool, torch.float32), (torch.bool, torch.int32),
    (torch.float32, torch.float64), (torch.int64, torch.float32),
]  # fmt: skip


@pytest.mark.parametrize("function", [torch.add, torch.mul, torch.div, torch.lt, torch.maximum, torch.where])
def test_mixed_dtypes_promote_as_in_torch(function: Callable[..., Tensor]) -> None:
    def apply(x: Tensor, y: Tensor) -> Tensor:
        return torch.where(x > 0, x, y) if function is torch.where else function(x, y)

    tensors = [t for a, b in PAIRS for t in (values(a, REAL)[:, None], values(b, POSITIVE[1:], zero=False)[None, :])]
    check(pairwise(apply), *tensors)


@pytest.mark.parametrize("function", [torch.add, torch.mul, torch.div, torch.pow])
def test_a_tensor_without_dimensions_counts_less_in_promotion(function: Callable[..., Tensor]) -> None:
    x, scalar = torch.randn(5, dtype=torch.float16).abs(), torch.tensor(1.5, dtype=torch.float32)
    check(function, x, scalar)


def test_conversions_between_all_dtypes() -> None:
    """Only values that both dtypes hold: what else becomes of a conversion is undefined in C."""
    dtypes = [*DTYPES, torch.int32, torch.int16]
    inputs = [torch.tensor([0, 1, 2, 3, 100, 127]).to(dtype) for dtype in dtypes]
    negative = [torch.tensor([-1, -2, -100], dtype=d) for d in (*FLOATS, torch.int64, torch.int32, torch.int16)]
    fractions = [torch.tensor([0.5, -2.75, 1.9, -0.1], dtype=dtype) for dtype in FLOATS]
    signed = [d for d in dtypes if d is not torch.uint8]
    check(lambda *tensors: [x.to(d) for x in tensors for d in dtypes if d is not x.dtype], *inputs)
    check(lambda *tensors: [x.to(d) for x in tensors for d in signed if d is not x.dtype], *negative, *fractions)


def test_where_and_masked_fill_read_both_sides_but_choose_one() -> None:
    condition = torch.tensor([[True], [False], [True]])
    x, y = torch.tensor([1.0, math.nan, math.inf]), torch.tensor([-1.0, 0.0, math.nan])
    check(lambda c, x, y: torch.where(c, x, y), condition, x, y)
    check(lambda c, x: x.expand(3, 3).masked_fill(c, -math.inf), condition, x)
    check(lambda c, x, v: x.expand(3, 3).masked_fill(c, v), condition, x, torch.tensor(2.0))
    check(lambda c, x: x.masked_fill(c, 7), condition, torch.arange(9).reshape(3, 3))


def test_gradient_formulas() -> None:
    g, x = torch.randn(3, 17), torch.linspace(-4, 4, 51).reshape(3, 17)
    check(lambda g, x: aten.gelu_backward(g, x), g, x)
    check(lambda g, x: aten.gelu_backward(g, x, approximate="tanh"), g, x)
    check(lambda g, x: aten.tanh_backward(g, x.tanh()), g, x)
    check(lambda g, x: aten.sigmoid_backward(g, x.sigmoid()), g, x)
    check(lambda g, x: aten.threshold_backward(g, x, 0.0), g, x)
    check(lambda x: aten.threshold(x, 0.3, 7.0), x)
    check(lambda g, x: aten.silu_backward(g, x), g, x)


def test_copies() -> None:
    x, y = torch.randn(3, 4), torch.randn(4).half()
    check(lambda x, y: aten.copy.default(x, y), x, y)
    check(lambda x: aten.clone.default(x, memory_format=torch.contiguous_format), x.t())
    check(lambda x: torch.ops.prims.convert_element_type.default(x, torch.int32), x)
    check(lambda x: torch.ops.prims.clone.default(x), x.t())
    check(lambda x: torch.ops.prims.ne.default(x, 0.5), x)


def test_half_precision_rounds_after_every_op() -> None:
    """2049 has no half: (2048 + 1) - 2048 is 0 there, and a fused kernel must not know better."""
    x = torch.full((4,), 2048.0, dtype=torch.float16)
    (result,), region = generated(lambda x: (x + 1) - 2048, x)
    assert len(launches(region)) == 1
    assert result.tolist() == [0.0] * 4


def test_large_integers_keep_every_digit() -> None:
    x = torch.tensor([2**53 + 1, -(2**62), 2**31, -(2**31) - 1])
    check(lambda x: [x + 1, x * 2, x // 3, x % 7, x.abs(), x.clamp(-(2**40), 2**40)], x)


def test_a_limit_that_the_dtype_cannot_hold_is_left_to_aten() -> None:
    """torch 2.14 takes -1 for 255 in uint8, torch 2.15 for no limit; inside the dtype's range kernels do it."""
    x = torch.tensor([0, 1, 2, 3, 250, 255], dtype=torch.uint8)
    region = check(lambda x: [x.clamp(-1, 2), aten.clamp_min.default(x, -1), aten.clamp.default(x, -1)], x)
    assert not launches(region)
    assert len(launches(check(lambda x: [x.clamp(0, 255), aten.clamp_max.default(x, 2)], x))) == 1


def test_every_registered_op_is_in_a_table() -> None:
    """A new rule comes with a test: these tables or one of the named tests above hold every op of the family."""
    elsewhere = {
        "pow", "where", "masked_fill", "gelu_backward", "tanh_backward", "sigmoid_backward", "threshold",
        "threshold_backward", "copy", "_to_copy", "to", "convert_element_type", "fma",
    }  # fmt: skip
    named = {str(op).split(".")[1] for op in registry.family("pointwise")}
    assert named - elsewhere <= {*UNARY, *BINARY, *DIVISIONS}


def test_literals_keep_every_digit_and_their_dtype() -> None:
    """Triton takes 0.1 for float32 and 200 for int32 wherever a function and not an operator meets them."""
    x, u = torch.randn(3, 5, dtype=torch.float64), torch.arange(250, 256).to(torch.uint8)
    check(
        lambda x: [x.clamp(-0.3, 0.1), x.masked_fill(x > 0, 0.1), x.abs() ** 2.3, 0.7**x, F.hardtanh(x, -0.1, 0.7)], x
    )
    check(lambda x: [torch.full((4, 5), 2.0).sum(1), torch.full((3,), 0.1, dtype=torch.float64)], x)
    check(lambda u: [(u.clamp(min=1) + 250) < 5, torch.where(u > 252, 1, 0) * (2**40), torch.maximum(u, u) + 9], u)


def test_values_without_an_index_broadcast_in_kernels_of_any_rank() -> None:
    x, scalar, flag = torch.randn(2, 5, 33), torch.tensor(0.7, dtype=torch.bfloat16), torch.tensor(True)
    check(lambda x, s: [F.silu((s * s + 1).rsqrt().expand(3, 1)).amin((0, 1), True), x.transpose(0, 2) + s], x, scalar)
    check(torch.logical_and, x, flag)
    check(lambda x: [(torch.full((7, 1), 5) % 3).sum(0), torch.full((3, 9000), 2.0).sum(1)], x)
