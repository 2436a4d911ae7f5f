"""torch's answers about the GPU while graphs are made for one that is not there.

Nothing can be run in here: tensors on the target are fake ones. Everything that is changed for it is put back on the
way out, whatever happened inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from compiler.occupancy import LIMITS
from compiler.patching import replaced
from compiler.report import Target
from compiler.retarget.bindings import METHODS

DEVICE = torch.device("cuda", 0)


@contextmanager
def device_of(target: Target) -> Iterator[None]:
    """Answer for ``target`` wherever torch asks about the GPU, and let fake tensors lie on it."""
    with ExitStack() as stack:
        if target.backend == "hip":  # torch keeps shapes that it computed for CUDA, and some differ
            FakeTensorMode.cache_clear()
            stack.callback(FakeTensorMode.cache_clear)
        for name, answer in answers_of(target).items():
            stack.enter_context(replaced(torch.cuda, name, answer))
        # recomputed random ops are given the state of a generator, of which torch asks for a copy
        stack.enter_context(replaced(torch.cuda, "default_generators", (torch.Generator(),)))
        stack.enter_context(replaced(torch._C, "_cuda_cudaCachingAllocator_is_enabled", lambda: True))
        stack.enter_context(replaced(torch.version, "hip", "6.4" if target.backend == "hip" else None))
        stack.enter_context(replaced(torch._subclasses.fake_tensor, "init_gpu_context", lambda device: None))
        # constants stay what they are; torch decides by is_available(), which is answered for the target here
        stack.enter_context(replaced(FakeTensorMode, "avoid_device_init", property(lambda mode: True)))
        if not torch.backends.cuda.is_built():
            for name, method in METHODS.items():
                stack.enter_context(replaced(FakeTensor, name, method))
        yield


def answers_of(target: Target) -> Mapping[str, Callable[..., Any]]:
    """What stands for the functions of ``torch.cuda``, by name."""
    properties = device_properties(target)
    capability = (properties.major, properties.minor)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_compiled": lambda: True,
        "_lazy_init": lambda: None,
        "init": lambda: None,
        "synchronize": lambda device=None: None,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device_count": lambda: 1,
        "get_device_name": lambda device=None: target.title,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: capability,
        "get_arch_list": lambda: [f"sm_{target.arch}"],
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: properties.major >= 8,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
        "get_rng_state": lambda device=0: torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda state, device=0: None,
        "memory_allocated": lambda device=None: 0,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
    }


def device_properties(target: Target) -> Any:
    """What ``torch.cuda.get_device_properties`` would return on ``target``."""
    hip = target.backend == "hip"
    major, minor = (9, 4) if hip else divmod(int(target.arch), 10)
    return SimpleNamespace(
        name=target.title,
        major=major,
        minor=minor,
        gcnArchName=str(target.arch) if hip else "",
        multi_processor_count=target.multiprocessors,
        warp_size=target.warp_size,
        L2_cache_size=target.l2_bytes,
        total_memory=int(target.memory_gb * 1e9),
        regs_per_multiprocessor=target.registers,
        max_threads_per_multi_processor=_threads_per_multiprocessor(target),
        max_threads_per_block=1024,
        shared_memory_per_block=64 * 1024 if hip else 48 * 1024,
        shared_memory_per_block_optin=target.shared_bytes,
        shared_memory_per_multiprocessor=target.shared_bytes + (0 if hip else 1024),
    )


def _threads_per_multiprocessor(target: Target) -> int:
    limits = LIMITS.get(target.arch)
    return (limits.warps if limits is not None else 64) * target.warp_size
