"""Element-by-element ops, with torch's type promotion and broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from compiler.index import Index
from compiler.ir import Const, Lazy, Value
from compiler.lowering.registry import NotLowered, Scope, lower
from compiler.ops import cast, const, held, op, scalar
from compiler.sizes import Size, at_least

aten = torch.ops.aten
prims = torch.ops.prims
Body = Callable[..., Value]
KIND = ELEMENTWISE_TYPE_PROMOTION_KIND


def broadcast_index(lazy: Lazy, index: Index) -> Index:
    """The index into ``lazy`` of the output element ``index`` by torch's broadcasting."""
    trailing = index[len(index) - len(lazy.size) :]
    return tuple(sympy.Integer(0) if size == 1 else i for size, i in zip(lazy.size, trailing, strict=True))


def broadcast_size(sizes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The size that several broadcast to."""
    rank = max((len(size) for size in sizes), default=0)
    result: list[Size] = []
    for dim in range(rank):
        given = {size[dim - rank + len(size)] for size in sizes if dim - rank + len(size) >= 0} - {1}
        if len(given) > 1:
            raise NotLowered(f"whether the sizes {', '.join(map(str, given))} are equal is known only at run time")
        result.append(given.pop() if given else 1)
    return tuple(result)


def check_broadcast(operands: Sequence[Any], size: Sequence[Size]) -> None:
    """Refuse operands of which it depends on a size known only at run time whether they are broadcast to ``size``.

    A size of at least 2 is never broadcast, so that torch has seen to it that it is the result's.
    """
    for lazy in operands:
        if isinstance(lazy, Lazy):
            for own, wanted in zip(lazy.size[::-1], size[::-1], strict=False):
                if own != wanted and not isinstance(own, int) and not at_least(own, 2):
                    raise NotLowered(f"whether the size {own} is broadcast is known only at run time")


def elementwise(
    scope: Scope, body: Body, kind: ELEMENTWISE_TYPE_PROMOTION_KIND, operands: Sequence[Any], rounded: bool = False
) -> Lazy:
    """Apply ``body(dtype, *values)`` to broadcast operands, promoted by ``kind``, cast to the node's output dtype.

    ``rounded``: what stands beside half floats is first rounded to one, as eager's kernels of the op do it.
    """
    tensors = [x for x in operands if isinstance(x, Lazy)]
    if any(not isinstance(x, Lazy | bool | int | float | sympy.Expr) for x in operands):
        raise NotLowered("an operand is neither a tensor nor a number")
    check_broadcast(operands, scope.shape())
    probes = [_probe(x) for x in operands]
    compute_dtype, _ = elementwise_dtypes(*probes, type_promotion_kind=kind)
    if compute_dtype.is_complex:
        raise NotLowered("complex arithmetic")
    result_dtype = scope.output.dtype
    common = elementwise_dtypes(*probes, type_promotion_kind=KIND.NO_OPMATH)[0] if rounded else compute_dtype

    def operand(x: Any, index: Index) -> Value:
        if isinstance(x, Lazy):
            return cast(cast(x.load(broadcast_index(x, index)), common), compute_dtype)
        number = scalar(x, compute_dtype)
        exact = common is compute_dtype or (isinstance(number, Const) and _is_exact(float(number.value), common))
        return number if exact else cast(cast(number, common), compute_dtype)

    def compute(index: Index) -> Value:
        values = [operand(x, index) for x in operands]
        return cast(body(compute_dtype, *values), result_dtype)

    return scope.pointwise(tensors, compute)


def _probe(operand: Any) -> Any:
    """What type promotion looks at: a tensor on the meta device of the operand's dtype and rank, or a number."""
    if isinstance(operand, Lazy):
        return torch.empty((1,) * len(operand.size), dtype=operand.dtype, device="meta")
    if isinstance(operand, sympy.Expr):
        return 1 if operand.is_integer else 1.0
    return operand


def _is_exact(number: float, dtype: torch.dtype) -> bool:
    """Whether a half float has all digits of the number."""
    info = torch.finfo(dtype)
    if not math.isfinite(number) or number == 0:
        return True
    digits = math.frexp(number)[0] * 2 / info.eps
    return digits.is_integer() and info.tiny <= abs(number) <= info.max


def _register(
    ops: Sequence[Any], kind: ELEMENTWISE_TYPE_PROMOTION_KIND, body: Body, rounded: bool = False
) -> None:
    def rule(scope: Scope, *operands: Any, **kwargs: Any) -> Lazy:
        if kwargs:
            raise NotLowered(f"keyword arguments {sorted(kwargs)}")
        return elementwise(scope, body, kind, operands, rounded)

    lower(*ops)(rule)


def _primitive(name: str) -> Body:
    return lambda dtype, *values: op(name, dtype, *values)


def _round_to(dtype: torch.dtype, value: Value) -> Value:
    return op("round", dtype, value) if dtype.is_floating_point else value


# --- one primitive each --------------------------------------------------------------------------------------------

for _name in "abs maximum minimum".split():
    _register([getattr(aten, _name)], KIND.DEFAULT, _primitive(_name))
_register(
    [aten.mul], KIND.DEFAULT, lambda dtype, a, b: op("logical_and" if dtype is torch.bool else "mul", dtype, a, b)
)
for _name in (
    "exp log sqrt rsqrt sin cos tan tanh sinh cosh asin acos atan asinh acosh atanh erf erfc erfinv expm1 log1p log2 "
    "log10 exp2 sigmoid lgamma"
).split():
    _register([getattr(aten, _name)], KIND.INT_TO_FLOAT, _primitive(_name))
for _name in "atan2 copysign".split():
    _register([getattr(aten, _name)], KIND.INT_TO_FLOAT, _primitive(_name))
_register([aten.hypot], KIND.DEFAULT, _primitive("hypot"))
for _name in "lt le gt ge eq ne".split():
    _register([getattr(aten, _name)], KIND.ALWAYS_BOOL, _primitive(_name), rounded=True)
_register([prims.ne], KIND.ALWAYS_BOOL, _primitive("ne"), rounded=True)


def neg(dtype: torch.dtype, x: Value) -> Value:
    """-x. Triton's minus is 0 - x, which makes +0 of 0."""
    return op("mul", dtype, x, const(-1, dtype)) if dtype.is_floating_point else op("neg", dtype, x)


_register([aten.neg], KIND.DEFAULT, neg)


@lower(aten.nextafter)
def nextafter(scope: Scope, x: Lazy, other: Lazy) -> Lazy:
    """The neighbour of x on the way to other."""
    if scope.output.dtype.itemsize < 4:
        raise NotLowered("kernels carry half floats as float32, whose neighbours are others")
    return elementwise(scope, _primitive("nextafter"), KIND.DEFAULT, (x, other))


def _logical(name: str) -> Body:
    return lambda dtype, *values: op(name, torch.bool, *(cast(value, torch.bool) for value in values))


for _name in "logical_and logical_or logical_xor logical_not".split():
    _register([getattr(aten, _name)], KIND.ALWAYS_BOOL, _logical(_name))


for _name in "bitwise_and bitwise_or bitwise_xor".split():
    _register([getattr(aten, _name)], KIND.DEFAULT, _primitive(_name))
_register([aten.bitwise_not], KIND.DEFAULT, lambda dtype, x: op("bitwise_xor", dtype, x, const(-1, dtype)))


def _if_float(name: str) -> Body:
    """Rounding ops leave integers as they are."""
    return lambda dtype, value: op(name, dtype, value) if dtype.is_floating_point else value


for _name in "floor ceil trunc".split():
    _register([getattr(aten, _name)], KIND.DEFAULT, _if_float(_name))
_register([aten.fix], KIND.DEFAULT, _if_float("trunc"))
_register([aten.round.default], KIND.DEFAULT, _round_to)


def _true_of_floats(name: str) -> Body:
    """A question whose answer is no for every whole number."""
    return lambda dtype, x: op(name, torch.bool, x) if dtype.is_floating_point else const(False, torch.bool)


for _name in "isnan isinf".split():
    _register([getattr(aten, _name)], KIND.ALWAYS_BOOL, _true_of_floats(_name))
_register([aten.reciprocal], KIND.INT_TO_FLOAT, lambda dtype, x: divide(dtype, const(1, dtype), x))
_register([aten.square], KIND.DEFAULT, lambda dtype, x: op("mul", dtype, x, x))
_register([aten.alias_copy, aten.lift_fresh_copy, prims.clone], KIND.DEFAULT, lambda dtype, x: x)


# --- a few primitives each -----------------------------------------------------------------------------------------


def relu(dtype: torch.dtype, x: Value) -> Value:
    """max(x, 0); NaN stays NaN."""
    return op("maximum", dtype, x, const(0, dtype))


_register([aten.relu], KIND.DEFAULT, relu)


@lower(aten.add, aten.sub)
def add(scope: Scope, a: Any, b: Any, alpha: Any = 1) -> Lazy:
    """a ± alpha * b; on booleans addition is "or" and multiplication "and"."""
    name = scope.node.target.overloadpacket.__name__

    def body(dtype: torch.dtype, x: Value, y: Value) -> Value:
        if dtype is torch.bool:
            return op("logical_or", dtype, x, y) if alpha else x
        return op(name, dtype, x, y if alpha == 1 else op("mul", dtype, y, const(alpha, dtype)))

    return elementwise(scope, body, KIND.DEFAULT, (a, b))


@lower(aten.rsub)
def rsub(scope: Scope, a: Any, b: Any, alpha: Any = 1) -> Lazy:
    """b - alpha * a."""

    def body(dtype: torch.dtype, x: Value, y: Value) -> Value:
        return op("sub", dtype, y, x if alpha == 1 else op("mul", dtype, x, const(alpha, dtype)))

    return elementwise(scope, body, KIND.DEFAULT, (a, b))


def divide(dtype: torch.dtype, a: Value, b: Value, exact: bool = False) -> Value:
    """a / b to the nearest float, as torch divides: 6 / 3 is 2, whatever rounds it afterwards.

    Triton's own ``/`` is quicker and may be off by two in the last place of float32, which half floats hide unless
    ``exact``; in float64 it is exact.
    """
    rounded = dtype is torch.float32 or (exact and dtype.itemsize < 4)
    return op("div_rn" if rounded else "div", dtype, a, b)


@lower(aten.gelu)
def gelu(scope: Scope, x: Lazy, approximate: str = "none") -> Lazy:
    """x * Phi(x), with Phi by erf or by tanh (torch.nn.functional.gelu's formulas)."""

    def body(dtype: torch.dtype, v: Value) -> Value:
        half_v = op("mul", dtype, v, const(0.5, dtype))
        if approximate == "tanh":
            cubed = op("mul", dtype, op("mul", dtype, op("mul", dtype, v, v), v), const(0.044715, dtype))
            inner = op("mul", dtype, op("add", dtype, v, cubed), const(math.sqrt(2 / math.pi), dtype))
            gate = op("tanh", dtype, inner)
        else:
            gate = op("erf", dtype, op("mul", dtype, v, const(math.sqrt(0.5), dtype)))
        return op("mul", dtype, half_v, op("add", dtype, gate, const(1, dtype)))

    return elementwise(scope, body, KIND.DEFAULT, (x,))


def silu(dtype: torch.dtype, x: Value) -> Value:
    """x * sigmoid(x)."""
    return op("mul", dtype, x, op("sigmoid", dtype, x))


_register([aten.silu], KIND.DEFAULT, silu)


def sign(dtype: torch.dtype, x: Value) -> Value:
    """-1, 0 or 1; NaN gives 0, as torch.sign does on floats."""
    if dtype is torch.bool:
        return x
    one, zero, minus = const(1, dtype), const(0, dtype), const(-1, dtype)
    positive = op("where", dtype, op("gt", dtype, x, zero), one, zero)
    return op("where", dtype, op("lt", dtype, x, zero), minus, positive)


_register([aten.sign, aten.sgn], KIND.DEFAULT, sign)


@lower(aten.where.self)
def where(scope: Scope, condition: Lazy, a: Lazy, b: Lazy) -> Lazy:
    """a where the condition holds, else b."""
    dtype = scope.output.dtype
    check_broadcast((condition, a, b), scope.shape())

    def compute(index: Index) -> Value:
        chosen, x, y = (lazy.load(broadcast_index(lazy, index)) for lazy in (condition, a, b))
        return op("where", dtype, cast(chosen, torch.bool), cast(x, dtype), cast(y, dtype))

    return scope.pointwise((condition, a, b), compute)


@lower(aten.masked_fill)
def masked_fill(scope: Scope, x: Lazy, mask: Lazy, value: Any) -> Lazy:
    """``value`` where the mask holds, else x."""
    dtype = scope.output.dtype
    check_broadcast((x, mask, value), scope.shape())
    inputs = [lazy for lazy in (x, mask, value) if isinstance(lazy, Lazy)]

    def compute(index: Index) -> Value:
        filled = value.load(broadcast_index(value, index)) if isinstance(value, Lazy) else scalar(value, dtype)
        chosen = cast(mask.load(broadcast_index(mask, index)), torch.bool)
        return op("where", dtype, chosen, cast(filled, dtype), cast(x.load(broadcast_index(x, index)), dtype))

    return scope.pointwise(inputs, compute)


@lower(aten.clamp, aten.clamp_min, aten.clamp_max)
def clamp(scope: Scope, x: Lazy, *limits: Any, min: Any = None, max: Any = None) -> Lazy:
    """x held between two limits; NaN stays NaN."""
    packet = scope.node.target.overloadpacket
    if packet is aten.clamp_min:
        low, high = limits[0], None
    elif packet is aten.clamp_max:
        low, high = None, limits[0]
    else:
        low = limits[0] if limits else min
        high = limits[1] if len(limits) > 1 else max
    limits = tuple(limit for limit in (low, high) if limit is not None)
    _check_limits(scope, *limits)

    def body(dtype: torch.dtype, value: Value, *bounds: Value) -> Value:
        names = [name for name, limit in (("maximum", low), ("minimum", high)) if limit is not None]
        for name, bound in zip(names, bounds, strict=True):
            value = op(name, dtype, value, bound)
        return value

    return elementwise(scope, body, KIND.DEFAULT, (x, *limits))


def _check_limits(scope: Scope, *limits: Any) -> None:
    """Refuse a limit that the result's dtype cannot hold, such as -1 for uint8.

    Up to torch 2.14 it is wrapped (255) or an error, from 2.15 on it limits nothing or is an error: ATen knows.
    """
    dtype = scope.output.dtype
    if not dtype.is_floating_point and dtype is not torch.bool:
        held = torch.iinfo(dtype)
        if any(isinstance(limit, int | float) and not held.min <= limit <= held.max for limit in limits):
            raise NotLowered(f"a limit that {str(dtype).removeprefix('torch.')} cannot hold")


@lower(aten.hardtanh)
def hardtanh(scope: Scope, x: Lazy, low: float = -1, high: float = 1) -> Lazy:
    """x held between ``low`` and ``high``."""
    _check_limits(scope, low, high)

    def body(dtype: torch.dtype, v: Value) -> Value:
        return op("minimum", dtype, op("maximum", dtype, v, const(low, dtype)), const(high, dtype))

    return elementwise(scope, body, KIND.DEFAULT, (x,))


@lower(aten.leaky_relu)
def leaky_relu(scope: Scope, x: Lazy, slope: float = 0.01) -> Lazy:
    """x where positive, else slope * x."""

    def body(dtype: torch.dtype, v: Value) -> Value:
        return op("where", dtype, op("gt", dtype, v, const(0, dtype)), v, op("mul", dtype, v, const(slope, dtype)))

    return elementwise(scope, body, KIND.DEFAULT, (x,))


def _integer_power(dtype: torch.dtype, x: Value, exponent: int) -> Value:
    """x ** exponent by squaring."""
    result: Value | None = None
    square, n = x, exponent
    while n:
        if n & 1:
            result = square if result is None else op("mul", dtype, result, square)
        n >>= 1
        if n:
            square = op("mul", dtype, square, square)
    return result if result is not None else const(1, dtype)


@lower(aten.pow)
def power(scope: Scope, a: Any, b: Any) -> Lazy:
    """a ** b; small whole exponents are multiplied out."""
    small = isinstance(b, int | float) and b in range(9)

    def body(dtype: torch.dtype, x: Value, y: Value) -> Value:
        if isinstance(b, int | float):
            if b == 0.5 and dtype.is_floating_point:
                return op("sqrt", dtype, x)
            if b == -0.5 and dtype.is_floating_point:
                return op("rsqrt", dtype, x)
            if small:
                return _integer_power(dtype, x, int(b))
            if b == -1 and dtype.is_floating_point:
                return divide(dtype, const(1, dtype), x)
        return op("pow" if dtype.is_floating_point else "integer_power", dtype, x, y)

    return elementwise(scope, body, KIND.BOOL_TO_LONG, (a, b))


@lower(aten.clone)
def clone(scope: Scope, x: Lazy, memory_format: Any = None) -> Lazy:
    """The same elements in memory of their own (the layout is the node's output's)."""
    return scope.pointwise((x,), x.load)


@lower(prims.convert_element_type, aten._to_copy, aten.to)
def convert(scope: Scope, x: Lazy, dtype: torch.dtype | None = None, **kwargs: Any) -> Lazy:
    """A copy in another dtype; a copy to another device is not ours to make."""
    output = scope.output
    if kwargs.get("device") is not None and torch.device(kwargs["device"]).type != x.device.type:
        raise NotLowered("a copy between devices")
    return scope.pointwise((x,), lambda index: cast(x.load(index), output.dtype))


@lower(aten.copy)
def copy(scope: Scope, target: Lazy, source: Lazy | float, non_blocking: bool = False) -> Lazy:
    """``source``, a tensor or a number, broadcast and cast to ``target``'s size and dtype."""
    dtype = scope.output.dtype
    if not isinstance(source, Lazy):
        return scope.pointwise((), lambda index: scalar(source, dtype))
    check_broadcast((source,), scope.shape())
    return scope.pointwise((source,), lambda index: cast(source.load(broadcast_index(source, index)), dtype))


@lower(aten.threshold)
def threshold(scope: Scope, x: Lazy, threshold: float, value: float) -> Lazy:
    """``value`` where x <= threshold, else x."""
    limit = _limit(threshold, x)

    def body(dtype: torch.dtype, v: Value) -> Value:
        return op("where", dtype, op("le", torch.bool, v, const(limit, dtype)), const(value, dtype), v)

    return elementwise(scope, body, KIND.DEFAULT, (x,))


@lower(aten.threshold_backward)
def threshold_backward(scope: Scope, gradient: Lazy, x: Lazy, threshold: float) -> Lazy:
    """The gradient where x > threshold, else 0."""
    limit = _limit(threshold, x)

    def body(dtype: torch.dtype, g: Value, v: Value) -> Value:
        return op("where", dtype, op("le", torch.bool, v, const(limit, dtype)), const(0, dtype), g)

    return elementwise(scope, body, KIND.DEFAULT, (gradient, x))


def _limit(threshold: float, x: Lazy) -> float:
    """The threshold as eager compares x with it: in x's dtype, but on a CPU not rounded to half floats."""
    if x.device.type == "cpu" and x.dtype.is_floating_point:
        return threshold
    try:
        return held(threshold, x.dtype)
    except RuntimeError as error:
        raise NotLowered("a threshold beyond its tensor's dtype") from error


@lower(aten.gelu_backward)
def gelu_backward(scope: Scope, gradient: Lazy, x: Lazy, approximate: str = "none") -> Lazy:
    """The gradient times d gelu(x) / dx."""

    def body(dtype: torch.dtype, g: Value, v: Value) -> Value:
        def mul(*values: Value) -> Value:
            result = values[0]
            for value in values[1:]:
                result = op("mul", dtype, result, value)
            return result

        def add(a: Value, b: Value) -> Value:
            return op("add", dtype, a, b)

        half, one = const(0.5, dtype), const(1, dtype)
        if approximate == "tanh":
            k, c = const(math.sqrt(2 / math.pi), dtype), const(0.044715, dtype)
            square = mul(v, v)
            t = op("tanh", dtype, mul(k, add(v, mul(c, square, v))))
            slope = mul(k, add(one, mul(const(3 * 0.044715, dtype), square)))
            left = mul(half, add(one, t))
            right = mul(half, v, op("sub", dtype, one, mul(t, t)), slope)
            return mul(g, add(left, right))
        cdf = mul(half, add(one, op("erf", dtype, mul(v, const(math.sqrt(0.5), dtype)))))
        pdf = mul(const(1 / math.sqrt(2 * math.pi), dtype), op("exp", dtype, mul(v, v, const(-0.5, dtype))))
        return mul(g, add(cdf, mul(v, pdf)))

    return elementwise(scope, body, KIND.DEFAULT, (gradient, x))


_register(
    [aten.tanh_backward],
    KIND.DEFAULT,
    lambda dtype, g, y: op("mul", dtype, g, op("sub", dtype, const(1, dtype), op("mul", dtype, y, y))),
)
_register(
    [aten.sigmoid_backward],
    KIND.DEFAULT,
    lambda dtype, g, y: op("mul", dtype, g, op("mul", dtype, y, op("sub", dtype, const(1, dtype), y))),
)
_register(
    [prims.fma], KIND.DEFAULT, lambda dtype, a, b, c: op("add", dtype, op("mul", dtype, a, b), c)
)  # Triton joins the two again
