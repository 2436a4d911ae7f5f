"""How many warps of a kernel fit on one multiprocessor at a time, from its registers, shared memory and warps.

The rules are those of the CUDA Occupancy Calculator (``cuda_occupancy.h`` of the CUDA toolkit); the limits are from
the CUDA C++ Programming Guide, "Technical specifications per compute capability", and for CDNA 3 from AMD's
instruction set guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from compiler.report import Target


class MultiprocessorLimits(msgspec.Struct, frozen=True):
    """What one multiprocessor holds at most, and in what units it hands its resources out."""

    warps: int
    blocks: int
    shared_bytes: int
    reserved_shared_bytes: int  # taken by the system from every block
    shared_unit: int  # bytes
    register_unit: int  # 32-bit registers, per warp
    registers_per_thread: int
    partitions: int = 4  # each owns an equal share of the registers, and its warps stay in it


class Occupancy(msgspec.Struct, frozen=True):
    """What is resident at once; ``fraction`` is ``warps`` over the most that the multiprocessor holds."""

    blocks: int
    warps: int
    fraction: float
    limited_by: str  # "warps", "blocks", "registers", "shared memory"


def _nvidia(warps: int, blocks: int, shared_kib: int, reserved: int = 1024) -> MultiprocessorLimits:
    return MultiprocessorLimits(
        warps=warps,
        blocks=blocks,
        shared_bytes=shared_kib * 1024,
        reserved_shared_bytes=reserved,
        shared_unit=128 if reserved else 256,
        register_unit=256,
        registers_per_thread=255,
    )


LIMITS: Mapping[int | str, MultiprocessorLimits] = MappingProxyType(
    {
        70: _nvidia(64, 32, 96, reserved=0),
        75: _nvidia(32, 16, 64, reserved=0),
        80: _nvidia(64, 32, 164),
        86: _nvidia(48, 16, 100),
        87: _nvidia(48, 16, 164),
        89: _nvidia(48, 24, 100),
        90: _nvidia(64, 32, 228),
        100: _nvidia(64, 32, 228),
        103: _nvidia(64, 32, 228),
        120: _nvidia(48, 24, 100),
        121: _nvidia(48, 24, 100),
        "gfx942": MultiprocessorLimits(
            warps=32,
            blocks=32,
            shared_bytes=64 * 1024,
            reserved_shared_bytes=0,
            shared_unit=512,
            register_unit=512,
            registers_per_thread=512,
        ),
    }
)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(target: Target, *, registers: int, shared_bytes: int, warps: int) -> Occupancy | None:
    """Occupancy of a kernel on ``target``.

    Args:
        registers: per thread, as the assembler reports them.
        shared_bytes: static and dynamic shared memory of one block.
        warps: warps of one block.

    Returns:
        None where the target's limits are not known, or ``blocks == 0`` where one block does not fit.
    """
    limits = LIMITS.get(target.arch)
    if limits is None:
        return None
    fits = {"warps": limits.warps // warps, "blocks": limits.blocks}
    if registers > limits.registers_per_thread:
        fits["registers"] = 0
    elif registers:
        per_warp = _round_up(registers * target.warp_size, limits.register_unit)
        resident = target.registers // limits.partitions // per_warp * limits.partitions
        fits["registers"] = resident // warps
    if shared_bytes > target.shared_bytes:
        fits["shared memory"] = 0
    else:
        per_block = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit)
        if per_block:
            fits["shared memory"] = limits.shared_bytes // per_block
    limited_by = min(fits, key=lambda resource: fits[resource])
    blocks = fits[limited_by]
    return Occupancy(blocks=blocks, warps=blocks * warps, fraction=blocks * warps / limits.warps, limited_by=limited_by)
