"""How long products take on this machine's GPU: padded, with the copies that needs, and with and without a bias."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes

from compiler.passes.products import Choice, Operand, Padding, Product
from compiler.report import Target

REPEATS = 7


def time_padding(product: Product, padding: Padding, target: Target) -> Choice | None:
    """A product as it is and padded; None where that cannot be tried, for want of memory or of the GPU."""
    times = _tried(lambda: _padding_times(product, padding, target), product)
    return Choice(padding, *times, measured=True) if times is not None else None


def time_bias(product: Product, target: Target) -> tuple[float, float] | None:
    """A product with a bias of its columns and without, in µs; None where that cannot be tried."""
    return _tried(lambda: _bias_times(product, target), product)


def _tried(trial: Callable[[], tuple[float, float]], product: Product) -> tuple[float, float] | None:
    if product.device.type != "cuda":
        return None
    # Regions are compiled while Dynamo traces, when a new tensor would be a fake one.
    with _disable_current_modes(), torch.no_grad():
        try:
            return trial()
        except torch.OutOfMemoryError:
            return None
        finally:
            torch.cuda.empty_cache()


def _bias_times(product: Product, target: Target) -> tuple[float, float]:
    a, b = (_filled(x, product) for x in (product.a, product.b))
    bias = torch.zeros(b.shape[-1], dtype=product.dtype, device=product.device)
    flush = _flush(product, target)
    return _microseconds(lambda: torch.addmm(bias, a, b), flush), _microseconds(lambda: torch.mm(a, b), flush)


def _padding_times(product: Product, padding: Padding, target: Target) -> tuple[float, float]:
    a, b = (_filled(x, product) for x in (product.a, product.b))
    grown = [_grown(a, padding.m, padding.k), _grown(b, padding.k, padding.n)]
    multiply = torch.bmm if a.dim() == 3 else torch.mm
    flush = _flush(product, target)

    def padded() -> torch.Tensor:
        left = grown[0] if product.free_a else _grown(a, padding.m, padding.k)
        right = grown[1] if product.free_b else _grown(b, padding.k, padding.n)
        result = multiply(left, right)[..., : a.shape[-2], : b.shape[-1]]
        return result.contiguous() if product.copied else result

    return _microseconds(lambda: multiply(a, b), flush), _microseconds(padded, flush)


def _microseconds(run: Callable[[], torch.Tensor], flush: torch.Tensor) -> float:
    run()
    times = []
    for _ in range(REPEATS):
        flush.zero_()  # other data in the caches, and the launches in the queue when it ends
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        times.append((begin, end))
    torch.cuda.synchronize()
    return float(statistics.median(begin.elapsed_time(end) for begin, end in times)) * 1e3


def _flush(product: Product, target: Target) -> torch.Tensor:
    """What fills the caches when it is written."""
    return torch.empty(2 * target.l2_bytes, dtype=torch.int8, device=product.device)


def _filled(operand: Operand, product: Product) -> torch.Tensor:
    tensor = torch.empty_strided(operand.size, operand.stride, dtype=product.dtype, device=product.device)
    return tensor.normal_(generator=torch.Generator(product.device).manual_seed(0))


def _grown(matrix: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """With zeros below and to the right, padded as it lies in memory."""
    if not rows and not columns:
        return matrix
    if matrix.stride(-1) != 1 and matrix.stride(-2) == 1:
        return F.pad(matrix.mT, (0, rows, 0, columns)).mT
    return F.pad(matrix, (0, columns, 0, rows))
