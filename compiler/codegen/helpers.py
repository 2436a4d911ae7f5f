"""Functions that kernels call. A kernel's source carries those it uses, so it stands by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

HELPERS = {
    "max_nan": """@triton.jit
def max_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "min_nan": """@triton.jit
def min_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "multiply": """@triton.jit
def multiply(a, b):
    return a * b
""",
    "plus": """@triton.jit
def plus(a, b):
    return a + b
""",
    "log_add_exp": """@triton.jit
def log_add_exp(a, b):
    high = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    low = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    # equal infinities have no difference
    return tl.where((low == high) & (tl.abs(high) == float("inf")), high, high + libdevice.log1p(tl.exp(low - high)))
""",
    "online_sum": """@triton.jit
def online_sum(high, total, x):
    # total is relative to high: where x is higher it shrinks, else x is; one exponential serves for both
    factor = tl.exp(tl.where(x == high, 0.0, -tl.abs(x - high)))
    total = tl.where(x > high, total * factor + 1.0, total + factor)
    return tl.maximum(high, x, propagate_nan=tl.PropagateNan.ALL), total
""",
    "later_max": """@triton.jit
def later_max(a, i, b, j):
    # NaN stays; equal values take the later position
    later = (b >= a) | (b != b)
    return tl.where(later, b, a), tl.where(later, j, i)
""",
    "later_min": """@triton.jit
def later_min(a, i, b, j):
    # NaN stays; equal values take the later position
    later = (b <= a) | (b != b)
    return tl.where(later, b, a), tl.where(later, j, i)
""",
    "first_max": """@triton.jit
def first_max(a, i, b, j):
    # NaN counts as the largest; equal values keep the lower position
    wins = (a > b) | ((a != a) & (b == b))
    ties = (a == b) | ((a != a) & (b != b))
    left = wins | (ties & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)
""",
    "first_min": """@triton.jit
def first_min(a, i, b, j):
    # NaN counts as the smallest; equal values keep the lower position
    wins = (a < b) | ((a != a) & (b == b))
    ties = (a == b) | ((a != a) & (b != b))
    left = wins | (ties & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)
""",
    "integer_power": """@triton.jit
def integer_power(x, n):
    # by squaring; of negative powers only those of 1 and -1 are whole
    negative = tl.where(x == 1, 1, tl.where((x + 1 == 0) & (n < 0), 1 - 2 * (n & 1), 0))
    result = tl.where(n < 0, negative, 1).to(x.dtype)
    square = x + n * 0
    rest = tl.where(n < 0, 0, n)
    for _ in range(x.dtype.primitive_bitwidth):
        result = tl.where((rest & 1) != 0, result * square, result)
        square = square * square
        rest = rest >> 1
    return result
""",
    "order_key": """@triton.jit
def order_key(x):
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
    else:
        bits = x.to(tl.int32, bitcast=True)
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return key
""",
    "order_value": """@triton.jit
def order_value(key):
    if key.dtype == tl.int64:
        value = tl.where(key < 0, key ^ 0x7FFFFFFFFFFFFFFF, key).to(tl.float64, bitcast=True)
    else:
        value = tl.where(key < 0, key ^ 0x7FFFFFFF, key).to(tl.float32, bitcast=True)
    return value
""",
    "to_e4m3": """@triton.jit
def to_e4m3(x, overflow: tl.constexpr):
    # to the nearest even; there is no infinity: what is too large becomes what this version of torch makes of it
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    # adding 2**14 leaves the digits of a number without a leading one at the end, rounded
    small = (size.to(tl.float32, bitcast=True) + 16384.0).to(tl.int32, bitcast=True) - (141 << 23)
    large = (size - (120 << 23) + 0x7FFFF + ((size >> 20) & 1)) >> 20
    code = tl.where(size < (121 << 23), small, tl.where((size >= (1087 << 20)) | (large >= 0x7F), overflow, large))
    code = tl.where(size > (255 << 23), 0x7F, code)
    return (code | ((bits >> 24) & 0x80)).to(tl.uint8)
""",
    "from_e4m3": """@triton.jit
def from_e4m3(code):
    size = code.to(tl.int32) & 0x7F
    large = ((size << 20) + (120 << 23)).to(tl.float32, bitcast=True)
    value = tl.where(size < 8, size.to(tl.float32) * (1.0 / 512), large)
    value = tl.where(size == 0x7F, float("nan"), value)
    return value * tl.where(code.to(tl.int32) >= 0x80, -1.0, 1.0)
""",
    "to_e5m2": """@triton.jit
def to_e5m2(x, overflow: tl.constexpr):
    # to the nearest even; what is too large becomes infinite
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    small = (size.to(tl.float32, bitcast=True) + 128.0).to(tl.int32, bitcast=True) - (134 << 23)
    large = (size - (112 << 23) + 0xFFFFF + ((size >> 21) & 1)) >> 21
    code = tl.where(size < (113 << 23), small, large)
    code = tl.where(size >= (143 << 23), tl.where(size > (255 << 23), 0x7F, overflow), code)
    return (code | ((bits >> 24) & 0x80)).to(tl.uint8)
""",
    "from_e5m2": """@triton.jit
def from_e5m2(code):
    size = code.to(tl.int32) & 0x7F
    large = ((size << 21) + (112 << 23)).to(tl.float32, bitcast=True)
    value = tl.where(size < 4, size.to(tl.float32) * (1.0 / 65536), large)
    value = tl.where(size >= 0x7C, ((size << 21) | 0x7F800000).to(tl.float32, bitcast=True), value)
    return value * tl.where(code.to(tl.int32) >= 0x80, -1.0, 1.0)
""",
    "random_words": """@triton.jit
def random_words(seed, counter):
    low = counter.to(tl.uint32)
    high = (counter >> 32).to(tl.uint32)
    zero = tl.zeros_like(low)
    return tl.philox(seed, low, high, zero, zero)
""",
    "random_bits": """@triton.jit
def random_bits(seed, place):
    # four places share a counter
    a, b, c, d = random_words(seed, place >> 2)
    lane = place & 3
    return tl.where(lane < 2, tl.where(lane == 0, a, b), tl.where(lane == 2, c, d))
""",
    "random_long": """@triton.jit
def random_long(seed, place):
    # 63 bits; two places share a counter
    a, b, c, d = random_words(seed, place >> 1)
    first = (place & 1) == 0
    high = tl.where(first, a, c).to(tl.int64)
    low = tl.where(first, b, d).to(tl.int64)
    return (high << 31) | (low >> 1)
""",
    "uniform": """@triton.jit
def uniform(seed, place, digits: tl.constexpr):
    return (random_bits(seed, place) >> (32 - digits)).to(tl.float32) * (1.0 / (1 << digits))
""",
    "uniform_double": """@triton.jit
def uniform_double(seed, place):
    return (random_long(seed, place) >> 10).to(tl.float64) * (1.0 / (1 << 53))
""",
    "random_integer": """@triton.jit
def random_integer(seed, place, span, first):
    return random_long(seed, place) % span + first
""",
    "normal": """@triton.jit
def normal(seed, place):
    # Box and Muller: the cosine and the sine of an angle, each times the same radius
    a, b, c, d = random_words(seed, place >> 2)
    low = (place & 2) == 0
    first = (tl.where(low, a, c).to(tl.float32) + 0.5) * (1.0 / (1 << 32))
    angle = tl.where(low, b, d).to(tl.float32) * 1.4629180792671596e-09  # 2 pi / 2**32
    turned = tl.where((place & 1) == 0, libdevice.cos(angle), libdevice.sin(angle))
    return libdevice.sqrt(-2.0 * tl.log(first)) * turned
""",
    "normal_double": """@triton.jit
def normal_double(seed, place):
    a, b, c, d = random_words(seed, place >> 2)
    low = (place & 2) == 0
    first = (tl.where(low, a, c).to(tl.float64) + 0.5) * (1.0 / (1 << 32))
    angle = tl.where(low, b, d).to(tl.float64) * tl.full([1], 1.4629180792671596e-09, tl.float64)
    turned = tl.where((place & 1) == 0, libdevice.cos(angle), libdevice.sin(angle))
    return libdevice.sqrt(-2.0 * tl.log(first)) * turned
""",
}


def with_dependencies(names: Iterable[str]) -> list[str]:
    """The helpers named and those that they call, each after what it calls."""
    ordered: dict[str, None] = {}

    def visit(name: str) -> None:
        body = HELPERS[name].split("\n", 2)[2]
        for called in re.findall(r"(\w+)\(", body):
            if called in HELPERS and called != name and called not in ordered:
                visit(called)
        ordered[name] = None

    for name in names:
        visit(name)
    return list(ordered)
