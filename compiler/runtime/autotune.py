"""Which of a kernel's configurations is the fastest on this machine's GPU: each is compiled, run and timed.

Kernels that move little are left alone: their time is the launch's, whatever their blocks. A trial finds the caches
as an iteration would leave them, full of other data.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

from compiler.codegen.compile import CompiledKernel
from compiler.ir import Buffer
from compiler.report import Target, Trial

MIN_BYTES = 4 << 20  # about a microsecond of memory traffic
REPEATS = 7
MIN_GAIN = 0.02  # the default stays unless another is faster by this part


def worth_tuning(kernel: CompiledKernel) -> bool:
    """Whether its blocks can make a difference that shows, and made-up arguments cannot lead it out of its buffers
    (a position computed from zeros may), which would end the program."""
    return kernel.source.bytes >= MIN_BYTES and "tl.device_assert(" not in kernel.source.source


def trials(
    candidates: Sequence[CompiledKernel], launcher: Callable[[CompiledKernel], Callable[..., None]], target: Target
) -> list[Trial]:
    """Time every candidate, all of one kernel, on made-up arguments.

    Integers are zero, so that a kernel that takes them for indices stays inside its buffers. Empty where the
    arguments do not fit into memory.
    """
    try:
        arguments = [_made_up(buffer) for buffer in candidates[0].source.arguments]
        flush = torch.empty(2 * target.l2_bytes, dtype=torch.int8, device="cuda")
    except torch.OutOfMemoryError:
        return []
    found = []
    for candidate in candidates:
        run = launcher(candidate)
        run(*arguments)
        times = []
        for _ in range(REPEATS):
            flush.zero_()  # long enough for the launch to be waiting in the queue when it ends
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run(*arguments)
            end.record()
            times.append((begin, end))
        torch.cuda.synchronize()
        us = statistics.median(begin.elapsed_time(end) for begin, end in times) * 1e3
        found.append(Trial(candidate.config.as_dict(), us))
    return found


def fastest(found: Sequence[Trial]) -> int:
    """The position of the fastest; 0, the default's, where none is clearly faster."""
    best = min(range(len(found)), key=lambda i: found[i].us)
    return best if found[best].us < found[0].us * (1 - MIN_GAIN) else 0


def _made_up(buffer: Buffer) -> torch.Tensor:
    tensor = torch.empty_strided(buffer.size, buffer.stride, dtype=buffer.dtype, device=buffer.device)
    return tensor.normal_() if buffer.dtype.is_floating_point and buffer.dtype.itemsize > 1 else tensor.zero_()
