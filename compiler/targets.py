"""The GPUs that code is generated for: the local one as its driver describes it, and named ones from datasheets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from compiler.report import Target

if TYPE_CHECKING:
    from triton.backends.compiler import GPUTarget

KIB = 1024
MIB = 1024 * 1024

# Tensor-core figures are dense (no sparsity) with float32 accumulation, for they bound what a matmul can reach.
_DATASHEETS = (
    Target(
        name="a100", title="NVIDIA A100 SXM 80GB", backend="cuda", arch=80, warp_size=32, multiprocessors=108,
        shared_bytes=163 * KIB, l2_bytes=40 * MIB, bandwidth_gbs=2039.0, tflops_fp32=19.5, tflops_fp16=312.0,
        memory_gb=80.0, source="NVIDIA A100 datasheet (2021) and A100 architecture whitepaper",
    ),
    Target(
        name="h100", title="NVIDIA H100 SXM", backend="cuda", arch=90, warp_size=32, multiprocessors=132,
        shared_bytes=227 * KIB, l2_bytes=50 * MIB, bandwidth_gbs=3350.0, tflops_fp32=67.0, tflops_fp16=989.5,
        memory_gb=80.0, source="NVIDIA H100 datasheet (half its sparse figures) and H100 architecture whitepaper",
    ),
    Target(
        name="h200", title="NVIDIA H200 SXM", backend="cuda", arch=90, warp_size=32, multiprocessors=132,
        shared_bytes=227 * KIB, l2_bytes=60 * MIB, bandwidth_gbs=4800.0, tflops_fp32=67.0, tflops_fp16=989.5,
        memory_gb=141.0, source="NVIDIA H200 datasheet (half its sparse figures); L2 as the CUDA driver reports it",
    ),
    Target(
        name="b200", title="NVIDIA B200", backend="cuda", arch=100, warp_size=32, multiprocessors=148,
        shared_bytes=227 * KIB, l2_bytes=126 * MIB, bandwidth_gbs=8000.0, tflops_fp32=75.0, tflops_fp16=2250.0,
        memory_gb=180.0, source="NVIDIA DGX B200 and HGX B200 datasheets (an eighth of the system) and Blackwell "
        "tuning guide",
    ),
    Target(
        name="rtx4090", title="NVIDIA GeForce RTX 4090", backend="cuda", arch=89, warp_size=32, multiprocessors=128,
        shared_bytes=99 * KIB, l2_bytes=72 * MIB, bandwidth_gbs=1008.0, tflops_fp32=82.6, tflops_fp16=165.2,
        memory_gb=24.0, source="NVIDIA Ada GPU architecture whitepaper, appendix A",
    ),
    Target(
        name="rtx5090", title="NVIDIA GeForce RTX 5090", backend="cuda", arch=120, warp_size=32, multiprocessors=170,
        shared_bytes=99 * KIB, l2_bytes=96 * MIB, bandwidth_gbs=1792.0, tflops_fp32=104.8, tflops_fp16=209.5,
        memory_gb=32.0, source="NVIDIA RTX Blackwell GPU architecture whitepaper, appendix A",
    ),
    Target(
        name="l4", title="NVIDIA L4", backend="cuda", arch=89, warp_size=32, multiprocessors=58,
        shared_bytes=99 * KIB, l2_bytes=48 * MIB, bandwidth_gbs=300.0, tflops_fp32=30.3, tflops_fp16=121.0,
        memory_gb=24.0, source="NVIDIA L4 datasheet (half its sparse figures); L2 as the CUDA driver reports it",
    ),
    Target(
        name="mi300x", title="AMD Instinct MI300X", backend="hip", arch="gfx942", warp_size=64, multiprocessors=304,
        shared_bytes=64 * KIB, l2_bytes=32 * MIB, bandwidth_gbs=5300.0, tflops_fp32=163.4, tflops_fp16=1307.4,
        memory_gb=192.0, registers=131072,
        source="AMD Instinct MI300X datasheet and CDNA 3 whitepaper (L2 over 8 dies)",
    ),
)  # fmt: skip

TARGETS: Mapping[str, Target] = MappingProxyType({target.name: target for target in _DATASHEETS})

# The name the driver gives a board -> the datasheet that holds its bandwidth and peak rates.
_DRIVER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "NVIDIA A100-SXM4-80GB": "a100",
        "NVIDIA H100 80GB HBM3": "h100",
        "NVIDIA H200": "h200",
        "NVIDIA B200": "b200",
        "NVIDIA GeForce RTX 4090": "rtx4090",
        "NVIDIA GeForce RTX 5090": "rtx5090",
        "NVIDIA L4": "l4",
        "AMD Instinct MI300X": "mi300x",
    }
)

# Per multiprocessor and clock, by compute capability: float32 lanes, and dense float16 tensor multiply-adds with
# float32 accumulation (CUDA C++ Programming Guide, "Arithmetic instructions", and the architecture whitepapers).
# Used only for a board that no datasheet above describes.
_RATES_PER_CLOCK: Mapping[int, tuple[int, int]] = MappingProxyType(
    {
        70: (64, 512),
        75: (64, 256),
        80: (64, 1024),
        86: (128, 256),
        87: (128, 512),
        89: (128, 256),
        90: (128, 2048),
        100: (128, 4096),
        103: (128, 4096),
        120: (128, 256),
        121: (128, 256),
    }
)


def resolve(name: str) -> Target:
    """The target called ``name``; "local" is this machine's GPU.

    Raises:
        ValueError: no such target, or "local" where there is no GPU. The message is one sentence.
    """
    if name == "local":
        target = local_target()
        if target is None:
            raise ValueError(f"This machine has no GPU that torch can use; name a target: {', '.join(TARGETS)}.")
        return target
    found = TARGETS.get(name.lower())
    if found is None:
        raise ValueError(f'There is no target called "{name}"; the targets are local, {", ".join(TARGETS)}.')
    return found


def local_target() -> Target | None:
    """The current GPU of this machine as a target called "local", or None where torch sees none.

    Sizes come from the driver. Bandwidth and peak rates come from the board's datasheet where it is known (scaled for
    a MIG slice), else they are computed from clocks and bus width.
    """
    import torch

    if not torch.cuda.is_available():
        return None
    return target_from_properties(torch.cuda.get_device_properties(torch.cuda.current_device()))


def target_from_properties(properties: Any) -> Target:
    """A target from what ``torch.cuda.get_device_properties`` returns."""
    title = properties.name
    board = title.split(" MIG ")[0]
    hip = bool(getattr(properties, "gcnArchName", "")) and title.startswith("AMD")
    arch: int | str = properties.major * 10 + properties.minor
    if hip:
        arch = properties.gcnArchName.split(":")[0]
    measured = Target(
        name="local",
        title=title,
        backend="hip" if hip else "cuda",
        arch=arch,
        warp_size=properties.warp_size,
        multiprocessors=properties.multi_processor_count,
        shared_bytes=_shared_limit(properties),
        l2_bytes=properties.L2_cache_size,
        bandwidth_gbs=0.0,
        tflops_fp32=0.0,
        tflops_fp16=0.0,
        memory_gb=round(properties.total_memory / 1e9, 1),
        registers=131072 if hip else 65536,
        local=True,
        source="CUDA driver",
    )
    sheet = TARGETS.get(_DRIVER_NAMES.get(board, ""))
    if sheet is None:
        return _with_rates_from_clocks(measured, properties)
    cores = measured.multiprocessors / sheet.multiprocessors
    # A MIG slice owns a share of the memory controllers, in proportion to its memory.
    memory = measured.memory_gb / sheet.memory_gb if board != title else 1.0
    return msgspec.structs.replace(
        measured,
        bandwidth_gbs=round(sheet.bandwidth_gbs * memory, 1),
        tflops_fp32=round(sheet.tflops_fp32 * cores, 1),
        tflops_fp16=round(sheet.tflops_fp16 * cores, 1),
        source=f"CUDA driver; bandwidth and peak rates from {sheet.source}",
    )


def _shared_limit(properties: Any) -> int:
    """Shared memory one block may use at most, in bytes."""
    opt_in = getattr(properties, "shared_memory_per_block_optin", 0)
    return int(opt_in or properties.shared_memory_per_block)


def _with_rates_from_clocks(target: Target, properties: Any) -> Target:
    """Peak rates from the driver's clocks; 0 where the driver or torch does not tell them."""
    clock_khz = getattr(properties, "clock_rate", 0)
    memory_khz = getattr(properties, "memory_clock_rate", 0)
    bus_bits = getattr(properties, "memory_bus_width", 0)
    lanes, tensor = _RATES_PER_CLOCK.get(target.arch, (0, 0)) if isinstance(target.arch, int) else (0, 0)
    clocks_per_second = clock_khz * 1e3 * target.multiprocessors
    return msgspec.structs.replace(
        target,
        # Memory transfers data on both edges of its clock.
        bandwidth_gbs=round(2 * memory_khz * 1e3 * bus_bits / 8 / 1e9, 1),
        tflops_fp32=round(2 * lanes * clocks_per_second / 1e12, 1),
        tflops_fp16=round(2 * tensor * clocks_per_second / 1e12, 1),
        source="CUDA driver; bandwidth and peak rates computed from its clocks",
    )


def cpu_target(arch: str, source: str) -> Target:
    """A CPU, which a recorded or logged program may have been compiled for; no rates of it are known."""
    return Target(
        name="cpu", title="CPU", backend="cpu", arch=arch, warp_size=1, multiprocessors=0, shared_bytes=0, l2_bytes=0,
        bandwidth_gbs=0.0, tflops_fp32=0.0, tflops_fp16=0.0, memory_gb=0.0, registers=0, source=source,
    )  # fmt: skip


def gpu_target(target: Target) -> GPUTarget:
    """What ``triton.compile`` takes as its target."""
    from triton.backends.compiler import GPUTarget

    return GPUTarget(target.backend, target.arch, target.warp_size)
