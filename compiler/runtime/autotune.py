"""Which of a kernel's configurations is the fastest on this machine's GPU: each is compiled, run and timed.

Kernels that move little are left alone: their time is the launch's, whatever their blocks. A trial finds the caches
as an iteration would leave them, full of other data.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from compiler.codegen.compile import CompiledKernel
from compiler.ir import Buffer
from compiler.report import Target, Trial
from compiler.sizes import hint, hints

MIN_BYTES = 4 << 20  # about a microsecond of memory traffic
REPEATS = 7
MIN_GAIN = 0.02  # the default stays unless another is faster by this part


def worth_tuning(kernel: CompiledKernel) -> bool:
    """Whether its blocks can make a difference that shows, and made-up arguments cannot lead it out of its buffers
    (a position computed from zeros may, and the memory of another device), which would end the program."""
    source = kernel.source
    on_gpu = all(buffer.device.type == "cuda" for buffer in source.arguments)
    return on_gpu and source.bytes >= MIN_BYTES and "tl.device_assert(" not in source.source


def tune(
    candidates: Sequence[CompiledKernel], launcher: Callable[[CompiledKernel], Callable[..., None]], target: Target
) -> tuple[CompiledKernel, list[Trial]]:
    """The fastest of ``candidates``, all of one kernel and the default first, and what each took.

    Without trials, and so the default, where the arguments do not fit into memory.
    """
    # Regions are compiled while Dynamo traces, when a new tensor would be a fake one.
    with _disable_current_modes(), torch.no_grad():
        try:
            found = _timed(candidates, launcher, target)
        except torch.OutOfMemoryError:
            found = []
    return fastest(found) if found else (candidates[0], [])


Timed = list[tuple[CompiledKernel, Trial]]


def _timed(
    candidates: Sequence[CompiledKernel], launcher: Callable[[CompiledKernel], Callable[..., None]], target: Target
) -> Timed:
    source = candidates[0].source
    arguments: list[Any] = [*made_up(source.arguments), *(hint(value) for _, value in source.sizes)]
    flush = torch.empty(2 * target.l2_bytes, dtype=torch.int8, device=arguments[0].device)
    found: Timed = []
    for candidate in candidates:
        try:
            run = launcher(candidate)
            run(*arguments)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # the device lacks the shared memory or registers: no candidate
            continue
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
        found.append((candidate, Trial(candidate.config.as_dict(), us)))
    return found


def fastest(found: Timed) -> tuple[CompiledKernel, list[Trial]]:
    """The fastest kernel and all trials; the first kernel where none is clearly faster."""
    best, least = min(found, key=lambda pair: pair[1].us)
    first, default = found[0]
    return best if least.us < default.us * (1 - MIN_GAIN) else first, [trial for _, trial in found]


def made_up(buffers: Sequence[Buffer]) -> list[torch.Tensor]:
    """Tensors for a kernel's arguments, of their sizes and strides.

    Integers are zero, so that a kernel that takes them for indices stays inside its buffers. The numbers come from a
    generator of their own: torch's is the user's.
    """
    made = []
    for buffer in buffers:
        tensor = torch.empty_strided(hints(buffer.size), hints(buffer.stride), dtype=buffer.dtype, device=buffer.device)
        if buffer.dtype.is_floating_point and buffer.dtype.itemsize > 1:
            made.append(tensor.normal_(generator=torch.Generator(buffer.device).manual_seed(0)))
        else:
            made.append(tensor.zero_())
    return made
