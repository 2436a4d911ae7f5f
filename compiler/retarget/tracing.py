"""All that is told to torch while a model is traced on the CPU for a GPU that is not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compiler.report import Target
from compiler.retarget.attention import attention_of
from compiler.retarget.compositions import composed_as_on_gpu
from compiler.retarget.triton_kernels import triton_kernels_for


@contextmanager
def traced_for(target: Target) -> Iterator[None]:
    """While it lasts a model is traced as it is traced on ``target``."""
    with composed_as_on_gpu(True), attention_of(target), triton_kernels_for(target):
        yield
