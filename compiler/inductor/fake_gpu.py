"""A GPU that is not there: while the context is open, torch, Inductor and Triton are told that they run on the target.

Nothing can be run in it, only compiled: tensors on the target are fake ones. Everything that is changed for it is put
back on the way out, whatever happened inside.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.patching import replaced
from compiler.report import Target
from compiler.retarget.device import DEVICE, answers_of, device_of
from compiler.retarget.graph import on_device
from compiler.retarget.triton_kernels import triton_driver_of

CPU = torch.device("cpu")

# Modules with functions that remember an answer about the device.
_REMEMBERING = (
    "torch.utils._triton",
    "torch._inductor.utils",
    "torch._inductor.runtime.hints",
    "torch._inductor.runtime.triton_compat",
    "torch._inductor.runtime.triton_helpers",
    "torch._inductor.runtime.triton_heuristics",
    "torch._inductor.codegen.common",
    "torch._inductor.codegen.triton",
    "torch._inductor.codegen.triton_utils",
    "torch._inductor.codegen.wrapper",
    "torch._inductor.choices",
    "torch._inductor.scheduler",
    "torch._inductor.ir",
)


@contextmanager
def fake_gpu(target: Target) -> Iterator[None]:
    """Answer for ``target`` wherever torch, Inductor or Triton asks about the GPU."""
    import torch._inductor.compile_fx
    import torch._inductor.runtime.triton_heuristics
    import torch._inductor.utils
    from torch._inductor.constant_folding import ConstantFolder

    with ExitStack() as stack:
        stack.callback(_forget_answers)
        stack.enter_context(device_of(target))
        stack.enter_context(replaced(torch._inductor.runtime.triton_helpers, "set_driver_to_gpu", lambda: None))
        stack.enter_context(replaced(torch._inductor.utils, "get_gpu_dram_gbps", lambda: target.bandwidth_gbs))
        stack.enter_context(replaced(torch._inductor.utils, "get_device_tflops", lambda dtype: _tflops(dtype, target)))
        stack.enter_context(replaced(ConstantFolder, "run", _on_cpu(ConstantFolder.run)))
        by_running = fake_tensor.run_fallback_kernel
        stack.enter_context(replaced(fake_tensor, "run_fallback_kernel", _run_on_cpu(by_running)))
        stack.enter_context(_device_interface(target))
        stack.enter_context(triton_driver_of(target))
        _forget_answers()
        yield


def _on_cpu(real: Callable[..., Any]) -> Callable[..., Any]:
    """``real``, which computes with real constants, computing them on the CPU: their values are what counts."""

    def call(*args: Any, **keywords: Any) -> Any:
        with _CpuInstead():  # type: ignore[no-untyped-call]
            return real(*args, **keywords)

    return call


class _CpuInstead(TorchDispatchMode):
    """Ops asked for the GPU run on the CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map_only(torch.device, lambda device: torch.device("cpu"), (args, kwargs or {}))
        return func(*args, **kwargs)


def _run_on_cpu(real: Callable[..., Any]) -> Callable[..., Any]:
    """``real``, by which torch learns what an op returns that it has no rule for, running the op on the CPU."""

    def call(mode: FakeTensorMode, func: Any, flat_args: Sequence[Any], *rest: Any) -> Any:
        given = [on_device(x, CPU, mode) if is_on_gpu(x) else CPU if x == DEVICE else x for x in flat_args]
        stood_for = {id(there): x for there, x in zip(given, flat_args, strict=True)}

        def back(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return stood_for[id(value)] if id(value) in stood_for else on_device(value, DEVICE, mode)

        return pytree.tree_map(back, real(mode, func, given, *rest))

    def is_on_gpu(value: Any) -> bool:
        return isinstance(value, Tensor) and value.device.type == DEVICE.type

    return call


def _tflops(dtype: torch.dtype, target: Target) -> float:
    return target.tflops_fp32 if dtype == torch.float32 else target.tflops_fp16


@contextmanager
def _device_interface(target: Target) -> Iterator[None]:
    """Register an interface of the target for "cuda", and the former ones again afterwards."""
    from torch._dynamo import device_interface as di

    dict(di.get_registered_device_interfaces())  # its first use registers the real ones, over any that were there
    before = {name: di.device_interfaces.get(name) for name in ("cuda", "cuda:0")}
    answers = answers_of(target)
    properties = answers["get_device_properties"]()
    arch = target.arch

    class FakeCudaInterface(di.CudaInterface):
        """What Inductor asks of a GPU."""

        class Worker:
            """The same, as asked in a compile worker."""

            set_device = staticmethod(lambda device: None)
            current_device = staticmethod(lambda: 0)
            get_device_properties = staticmethod(lambda device=None: properties)

        current_device = staticmethod(answers["current_device"])
        set_device = staticmethod(answers["set_device"])
        device_count = staticmethod(answers["device_count"])
        synchronize = staticmethod(answers["synchronize"])
        get_device_properties = staticmethod(lambda device=None: properties)
        get_raw_stream = staticmethod(lambda index=0: 0)
        exchange_device = staticmethod(answers["_exchange_device"])
        maybe_exchange_device = staticmethod(answers["_maybe_exchange_device"])
        memory_allocated = staticmethod(answers["memory_allocated"])
        is_bf16_supported = staticmethod(answers["is_bf16_supported"])
        is_available = staticmethod(answers["is_available"])
        get_compute_capability = staticmethod(lambda device=None: arch)
        is_triton_capable = staticmethod(lambda device=None: True)
        raise_if_triton_unavailable = staticmethod(lambda device=None: None)

    try:
        for name in before:
            di.register_interface_for_device(name, FakeCudaInterface)
        yield
    finally:
        for name, interface in before.items():
            if interface is None:
                di.device_interfaces.pop(name, None)
            else:
                di.device_interfaces[name] = interface


def _forget_answers() -> None:
    """Empty the caches of functions that remember what the device is."""
    for name in _REMEMBERING:
        module = sys.modules.get(name)
        for value in list(vars(module).values()) if module else ():
            if isinstance(value, functools._lru_cache_wrapper) and "init" not in value.__name__:
                value.cache_clear()
    from torch._inductor.runtime.hints import DeviceProperties

    create = DeviceProperties.create
    getattr(create, "cache_clear", lambda: None)()
