"""Which GPU a log's kernels were generated for, as their sources say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compiler.report import Target
from compiler.targets import TARGETS, cpu_target

_DEVICE = re.compile(r"DeviceProperties\((?P<fields>[^)]*)\)")
_MAX_DIGITS = 9  # of any count that a GPU's properties have
_FIELD = re.compile(r"(\w+)='?([\w.]+)'?")


def target_of(sources: Iterable[str]) -> Target:
    """The GPU that the first kernel with a device names: one that is known by its architecture and size, else one with
    the figures of the source alone. Kernels without a device are the CPU's.
    """
    for source in sources:
        match = _DEVICE.search(source)
        if match is not None:
            return _gpu(dict(_FIELD.findall(match["fields"])))
    return cpu_target("", "the log, which has no kernel for a GPU")


def _gpu(fields: dict[str, str]) -> Target:
    arch: int | str = _number(fields, "cc") or fields.get("cc", "")
    count = _number(fields, "multi_processor_count")
    alike = [t for t in TARGETS.values() if t.arch == arch and t.multiprocessors == count]
    if len(alike) == 1:
        return alike[0]
    hip = fields.get("type") == "hip"
    names = " or ".join(target.title for target in alike)
    return Target(
        name=f"{'gfx' if hip and isinstance(arch, int) else 'sm' if not hip else ''}{arch}",
        title=names or f"GPU of architecture {arch} with {count} multiprocessors",
        backend="hip" if hip else "cuda",
        arch=arch,
        warp_size=_number(fields, "warp_size") or 32,
        multiprocessors=count,
        shared_bytes=0,
        l2_bytes=0,
        bandwidth_gbs=0.0,
        tflops_fp32=0.0,
        tflops_fp16=0.0,
        memory_gb=0.0,
        registers=_number(fields, "regs_per_multiprocessor") or 65536,
        source="the kernels' sources in the log, which have no rates",
    )


def _number(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0
