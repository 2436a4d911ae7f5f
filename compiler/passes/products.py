"""Matrix products whose rows do not begin at aligned addresses, and what padding them costs and saves.

cuBLAS's fast kernels load 16 bytes at a time. Where the contiguous dimension of an operand or of the result is no
multiple of that, slower ones run. A product padded to multiples computes a little more and may have to copy: operands
that no kernel of ours makes, and a result that somebody outside reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from compiler.report import Target

aten = torch.ops.aten
PRODUCTS: frozenset[Any] = frozenset({aten.mm.default, aten.addmm.default, aten.bmm.default})

ALIGNED_BYTES = 16
# Parts of the tensor cores' peak rate that cuBLAS reaches, measured on an H200 with products of 30 to 600 GFLOP: with
# aligned rows, with rows that begin at any 2 bytes, and at any 4.
ALIGNED_RATE = 0.7
RATE_BY_TWO_BYTES = 0.1
RATE_BY_FOUR_BYTES = 0.24
LAUNCH_US = 2.0  # of a copy more
LEAST_GAIN = 0.05  # of the time without padding
LEAST_US = 10.0  # shorter products end before two more launches have paid for themselves


@dataclass(frozen=True)
class Operand:
    """A matrix, or a batch of them: its size and strides."""

    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def by_columns(self) -> bool:
        """Whether columns are contiguous, not rows."""
        return self.stride[-1] != 1 and self.stride[-2] == 1

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.size)


@dataclass(frozen=True)
class Product:
    """``a @ b``, and what each side costs to pad. Sizes known only at run time are as in the example that was captured;
    ``fixed`` names the others among "m", "k" and "n".

    ``free_a`` and ``free_b``: a kernel of ours makes the operand, and can as well write it padded. ``copied``: the
    result has to be copied out of its padding for a reader outside.
    """

    dtype: torch.dtype
    device: torch.device
    a: Operand
    b: Operand
    fixed: frozenset[str]
    free_a: bool
    free_b: bool
    copied: bool

    @property
    def batch(self) -> int:
        """Products that the call makes."""
        return self.a.size[0] if len(self.a.size) == 3 else 1

    @property
    def mkn(self) -> tuple[int, int, int]:
        """Rows, inner dimension and columns."""
        return self.a.size[-2], self.a.size[-1], self.b.size[-1]


@dataclass(frozen=True)
class Padding:
    """By how much the rows, the inner dimension and the columns of a product grow."""

    m: int
    k: int
    n: int

    def __bool__(self) -> bool:
        return bool(self.m or self.k or self.n)


@dataclass(frozen=True)
class Choice:
    """Whether a product is padded, and why: microseconds of both ways, ``measured`` on this machine's GPU or estimated
    for the target."""

    padding: Padding
    plain_us: float
    padded_us: float
    measured: bool

    @property
    def pads(self) -> bool:
        """Whether padding is clearly faster."""
        return self.padded_us < self.plain_us * (1 - LEAST_GAIN)


def padding_of(product: Product) -> Padding:
    """What makes every contiguous dimension a multiple of 16 bytes."""
    unit = ALIGNED_BYTES // product.dtype.itemsize
    m, k, n = product.mkn
    contiguous = {"n", "m" if product.a.by_columns else "k", "k" if product.b.by_columns else "n"}

    def missing(name: str, size: int) -> int:
        return -size % unit if name in contiguous & product.fixed and size > 1 else 0

    return Padding(missing("m", m), missing("k", k), missing("n", n))


def can_be_padded(product: Product, target: Target) -> bool:
    """Whether the target's tensor cores would run the product, and each operand has a contiguous dimension."""
    if target.backend != "cuda" or any(1 not in x.stride[-2:] for x in (product.a, product.b)):
        return False
    return rate(product.dtype, target) is not None and 0 not in (*product.a.size, *product.b.size)


def rate(dtype: torch.dtype, target: Target) -> float | None:
    """The tensor cores' peak in FLOPs a microsecond; None where products of the dtype do not run there."""
    if dtype in (torch.float16, torch.bfloat16):
        return target.tflops_fp16 * 1e6
    if dtype is torch.float32 and torch.get_float32_matmul_precision() != "highest":
        return target.tflops_fp16 / 2 * 1e6
    return None


def estimated(product: Product, padding: Padding, target: Target) -> Choice:
    """Both ways by the target's datasheet."""
    m, k, n = product.mkn
    peak = rate(product.dtype, target)
    assert peak is not None
    bandwidth = target.bandwidth_gbs * 1e3  # bytes a microsecond
    moved = product.batch * (m * k + k * n + m * n) * product.dtype.itemsize
    odd = padding.m % 2 or padding.k % 2 or padding.n % 2
    slow = RATE_BY_TWO_BYTES if odd and product.dtype.itemsize == 2 else RATE_BY_FOUR_BYTES
    plain = max(2 * product.batch * m * k * n / (peak * slow), moved / bandwidth)
    m, k, n = m + padding.m, k + padding.k, n + padding.n
    padded = max(2 * product.batch * m * k * n / (peak * ALIGNED_RATE), moved / bandwidth)
    copies = []
    if (padding.m or padding.k) and not product.free_a:
        copies.append(product.a.numel)
    if (padding.k or padding.n) and not product.free_b:
        copies.append(product.b.numel)
    if (padding.m or padding.n) and product.copied:
        copies.append(product.batch * m * n)
    copying = sum(LAUNCH_US + 2 * count * product.dtype.itemsize / bandwidth for count in copies)
    return Choice(padding, plain, padded + copying, measured=False)
