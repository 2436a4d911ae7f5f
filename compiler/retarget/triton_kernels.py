"""Triton kernels of the model's own, traced where no GPU is that they could run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._triton

from compiler.patching import replaced
from compiler.report import Target
from compiler.retarget.device import DEVICE
from compiler.targets import gpu_target


@contextmanager
def triton_kernels_for(target: Target) -> Iterator[None]:
    """While it lasts Dynamo captures launches of Triton kernels, as it does where there is a GPU."""
    if not torch.utils._triton.has_triton_package():
        yield
        return
    with replaced(torch.utils._triton, "has_triton", lambda: True), triton_driver_of(target):
        yield


@contextmanager
def triton_driver_of(target: Target) -> Iterator[None]:
    """Make a driver active that knows the target and can run nothing."""
    from triton.runtime import driver

    gpu = gpu_target(target)

    class FakeDriver:
        """What Triton asks of the active driver while it only compiles."""

        def get_current_target(self) -> Any:
            return gpu

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            return None

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_active_torch_device(self) -> torch.device:
            return DEVICE

        @staticmethod
        def is_active() -> bool:
            return True

    before = driver._active
    driver.set_active(FakeDriver())
    try:
        yield
    finally:
        driver._active = before
