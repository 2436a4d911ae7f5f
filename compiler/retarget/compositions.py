"""What is put together in another way where a model is traced on the CPU for a GPU.

torch would take oneDNN's layer for an LSTM there, an op that no GPU has, and would compose an RMS norm of elementary
ops, which a GPU has a kernel for, and a backward of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._decomp import decompositions, get_decompositions

from compiler.patching import replaced
from compiler.retarget.autocast import autocast_as_on_gpu

aten = torch.ops.aten


@contextmanager
def composed_as_on_gpu(traced_on_cpu: bool) -> Iterator[None]:
    """While the context is held ops, and autocast, are traced as they are on a GPU."""
    if not traced_on_cpu:
        yield
        return
    with (
        replaced(decompositions, "select_one_layer_lstm_function", lambda *_: decompositions.one_layer_lstm),
        _whole_rms_norm(),
        autocast_as_on_gpu(),
    ):
        yield


@contextmanager
def _whole_rms_norm() -> Iterator[None]:
    """With a kernel on the CPU, too, torch differentiates the op itself and not its composition."""
    ops = [aten._fused_rms_norm.default, aten._fused_rms_norm_backward.default]
    with torch.library._scoped_library("aten", "IMPL") as library:
        for op, rule in get_decompositions(ops).items():
            library.impl(op.name(), rule, "CPU")
        for op in ops:
            op._dispatch_cache.clear()
        yield
    for op in ops:
        op._dispatch_cache.clear()
