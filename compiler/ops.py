"""The primitives that kernels are made of, each with its Triton text.

An ATen op is lowered to these (``compiler/lowering``); a new primitive is one line here. In a template ``{0}``,
``{1}``, … are the operands' names. Half floats are carried as float32, so templates see float32, float64, integers
or booleans.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

from compiler.ir import Const, IndexValue, Load, Op, Value


@dataclass(frozen=True)
class Primitive:
    """``triton`` is the expression's template; ``flops`` a rough count used for estimates (a transcendental is 8).

    ``helper`` names the function of ``codegen/helpers.py`` that the template calls.
    """

    triton: str
    flops: int = 1
    helper: str = ""


_LIBDEVICE_UNARY = (
    "sqrt rsqrt tanh sinh cosh asin acos atan asinh acosh atanh sin cos tan expm1 log1p log2 log10 exp2 erfc erfinv "
    "lgamma"
).split()

PRIMITIVES: dict[str, Primitive] = {
    # arithmetic
    "add": Primitive("{0} + {1}"),
    "sub": Primitive("{0} - {1}"),
    "mul": Primitive("{0} * {1}"),
    "div": Primitive("{0} / {1}"),
    "div_rn": Primitive("tl.div_rn({0}, {1})"),
    "neg": Primitive("-{0}"),
    "abs": Primitive("tl.abs({0})"),
    "trunc_div": Primitive("{0} // {1}", 4),  # integers: Triton truncates, as C does
    "trunc_rem": Primitive("{0} % {1}", 4),
    "fmod": Primitive("libdevice.fmod({0}, {1})", 8),
    "floor": Primitive("libdevice.floor({0})"),
    "ceil": Primitive("libdevice.ceil({0})"),
    "trunc": Primitive("libdevice.trunc({0})"),
    "round": Primitive("libdevice.nearbyint({0})"),
    # transcendental
    "exp": Primitive("tl.exp({0})", 8),
    "log": Primitive("tl.log({0})", 8),
    "erf": Primitive("tl.erf({0})", 8),
    "sigmoid": Primitive("tl.sigmoid({0})", 8),
    "pow": Primitive("libdevice.pow({0}, {1})", 16),
    "atan2": Primitive("libdevice.atan2({0}, {1})", 16),
    "hypot": Primitive("libdevice.hypot({0}, {1})", 8),
    "copysign": Primitive("libdevice.copysign({0}, {1})"),
    "nextafter": Primitive("libdevice.nextafter({0}, {1})"),
    # choice; minimum and maximum return NaN where either operand is NaN, as torch does. Of 0.0 and -0.0 either may come
    # out: what eager returns depends on the device, and on a CPU on the length and the strides
    "maximum": Primitive("tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
    "minimum": Primitive("tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
    "where": Primitive("tl.where({0}, {1}, {2})"),
    # comparison and logic
    "lt": Primitive("{0} < {1}"),
    "le": Primitive("{0} <= {1}"),
    "gt": Primitive("{0} > {1}"),
    "ge": Primitive("{0} >= {1}"),
    "eq": Primitive("{0} == {1}"),
    "ne": Primitive("{0} != {1}"),
    "logical_and": Primitive("{0} & {1}"),
    "logical_or": Primitive("{0} | {1}"),
    "logical_xor": Primitive("{0} ^ {1}"),
    "logical_not": Primitive("{0} == 0"),
    "isnan": Primitive("{0} != {0}"),
    "isinf": Primitive('tl.abs({0}) == float("inf")'),
    "signbit": Primitive("libdevice.signbit({0}) != 0"),
    # bits
    "bitwise_and": Primitive("{0} & {1}"),
    "bitwise_or": Primitive("{0} | {1}"),
    "bitwise_xor": Primitive("{0} ^ {1}"),
    "shift_left": Primitive("{0} << {1}"),
    "shift_right": Primitive("{0} >> {1}"),
    "integer_power": Primitive("integer_power({0}, {1})", 128, "integer_power"),
    # floats as whole numbers of the same order, and back; NaN is not among them
    "order_key": Primitive("order_key({0})", 3, "order_key"),
    "order_value": Primitive("order_value({0})", 3, "order_value"),
    # random numbers from a seed and an element's place (compiler/passes/random_numbers.py)
    "uniform": Primitive("uniform({0}, {1}, {2})", 60, "uniform"),
    "uniform_double": Primitive("uniform_double({0}, {1})", 60, "uniform_double"),
    "normal": Primitive("normal({0}, {1})", 90, "normal"),
    "normal_double": Primitive("normal_double({0}, {1})", 90, "normal_double"),
    "random_integer": Primitive("random_integer({0}, {1}, {2}, {3})", 70, "random_integer"),
    **{name: Primitive(f"libdevice.{name}({{0}})", 8) for name in _LIBDEVICE_UNARY},
}

RESULT_IS_BOOL = frozenset(
    "lt le gt ge eq ne logical_and logical_or logical_xor logical_not isnan isinf signbit".split()
)


@dataclass(frozen=True)
class Reduction:
    """How values are combined. ``identity`` names the neutral element of ``combine``, a primitive.

    "lowest" and "highest" stand for the smallest and largest value of the dtype (infinities for floats).
    """

    combine: str
    identity: str | int


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction("add", 0),
    "prod": Reduction("mul", 1),
    "max": Reduction("maximum", "lowest"),
    "min": Reduction("minimum", "highest"),
    "any": Reduction("logical_or", 0),
    "all": Reduction("logical_and", 1),
    "argmax": Reduction("maximum", "lowest"),
    "argmin": Reduction("minimum", "highest"),
    "firstmax": Reduction("maximum", "lowest"),
    "firstmin": Reduction("minimum", "highest"),
}

FIRST_EXTREMA = frozenset("argmax argmin firstmax firstmin".split())


@dataclass(frozen=True)
class Scanned:
    """How a scan combines what came before with a value: a function of ``codegen/helpers.py``, and its neutral
    element as in ``Reduction``."""

    combine: str
    identity: str | int


SCANS: dict[str, Scanned] = {
    "sum": Scanned("plus", 0),
    "prod": Scanned("multiply", 1),
    "max": Scanned("later_max", "lowest"),
    "min": Scanned("later_min", "highest"),
    "logsumexp": Scanned("log_add_exp", "lowest"),
}


def op(name: str, dtype: torch.dtype, *args: Value) -> Value:
    """Apply a primitive; comparisons are bool whatever ``dtype`` says."""
    return Op(torch.bool if name in RESULT_IS_BOOL else dtype, name, args)


def const(value: bool | int | float, dtype: torch.dtype) -> Const:
    """A literal, converted to ``dtype``; integers wrap around, as torch's numbers beside tensors do.

    Of a half float it has the digits. Of a float32 it may have more, which the kernel drops where it is written.
    """
    if dtype is torch.bool:
        return Const(dtype, bool(value))
    if dtype.is_floating_point:
        number = float(value)
        return Const(dtype, held(number, dtype) if dtype.itemsize < 4 else number)
    info = torch.iinfo(dtype)
    return Const(dtype, (int(value) - info.min) % (1 << info.bits) + info.min)


def held(number: float, dtype: torch.dtype) -> float:
    """The number as memory of ``dtype`` has it.

    Raises:
        RuntimeError: an integer dtype does not reach it.
    """
    with torch._C._DisableTorchDispatch():  # a number also while graphs are captured with fake tensors
        return torch.tensor(number, dtype=dtype, device="cpu").item()


def scalar(value: Any, dtype: torch.dtype) -> Value:
    """A literal, or a number made of sizes that are known only at run time."""
    if isinstance(value, bool | int | float):
        return const(value, dtype)
    return cast(IndexValue(torch.int64, value) if value.is_integer else _real(value), dtype)


# Functions of sympy's and torch's by which real numbers are made of sizes, each as a primitive ("" leaves them as is).
REAL_ARITHMETIC = {
    "Add": "add", "Mul": "mul", "FloatTrueDiv": "div", "IntTrueDiv": "div", "FloatPow": "pow",
    "OpaqueUnaryFn_sqrt": "sqrt", "ToFloat": "",
}  # fmt: skip


def _real(expr: Any) -> Value:
    """Arithmetic over sizes in float64, which Python's floats are, too."""
    if expr.is_number:
        return const(float(expr), torch.float64)
    if expr.is_integer:
        return cast(IndexValue(torch.int64, expr), torch.float64)
    name = REAL_ARITHMETIC[expr.func.__name__]
    first, *others = map(_real, expr.args)
    if len(others) < 2:
        return op(name, torch.float64, first, *others) if name else first
    return functools.reduce(lambda a, b: op(name, torch.float64, a, b), others, first)


def cast(value: Value, dtype: torch.dtype) -> Value:
    """``value`` as ``dtype``; casting to a half float rounds, as a store and a load would."""
    if value.dtype is dtype:
        return value
    if isinstance(value, Const) and not (dtype.is_floating_point and dtype.itemsize < 4):
        number = value.value
        return const(held(number, value.dtype) if value.dtype.is_floating_point else number, dtype)
    return Op(dtype, "cast", (value,))


def summand(kind: str, value: Value) -> Value:
    """``value`` as the only element of a reduction or scan: torch's sums begin with 0.0, so that -0.0 becomes it."""
    signed = kind in ("sum", "logsumexp") and value.dtype.is_floating_point
    return op("add", value.dtype, value, const(0, value.dtype)) if signed else value


def round_to(value: Value, dtype: torch.dtype) -> Value:
    """``value`` as it would come back from memory of ``dtype``: half floats lose their extra digits."""
    half = dtype.is_floating_point and dtype.itemsize < 4
    exact = isinstance(value, Load) or (isinstance(value, Op) and value.name == "cast")
    if not half or (exact and value.dtype is dtype):
        return value
    return Op(dtype, "cast", (value,), origin=value.origin)
