"""Block sizes and warps of a kernel, from its shape and the target's size.

The aim is bandwidth: every thread moves 16 bytes at a time, a block holds a few thousand elements, and there are
enough blocks to fill every multiprocessor at least twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compiler.codegen.kernel import MAX_GRID_HEIGHT, KernelSource
from compiler.options import DEFAULTS, Options
from compiler.report import Target
from compiler.sizes import Size, hint

LIKELY_POINTS = 1024
LEAST_ROW_BLOCK = 64  # fewer would be one more kernel to compile for no gain
THREADS = 2048  # that a multiprocessor runs at once
SMALL = 1 << 20  # elements that one multiprocessor's share of is done within a few microseconds
INTERPRETER_BLOCK = 1 << 19  # elements; Triton refuses blocks beyond 2^20


@dataclass(frozen=True)
class KernelConfig:
    """Values of the kernel's constexpr parameters (by name) and Triton's launch options."""

    blocks: dict[str, int]
    num_warps: int
    num_stages: int

    def as_dict(self) -> dict[str, int]:
        """For the report."""
        return {**self.blocks, "num_warps": self.num_warps, "num_stages": self.num_stages}


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n``."""
    return 1 << max(n - 1, 0).bit_length()


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _expected(numel: Size) -> int:
    """Points along an axis, to choose blocks by. Where any number may come, blocks for many are the better choice."""
    return numel if isinstance(numel, int) else max(hint(numel), LIKELY_POINTS)


def choose_config(
    kernel: KernelSource, target: Target, options: Options = DEFAULTS, *, row: int | None = None
) -> KernelConfig:
    """The default configuration, with what ``options`` fix. ``row`` is the RBLOCK of a kernel that keeps the row in
    registers, where it is not the one for the example."""
    return configs(kernel, target, options, row=row)[0]


def configs(
    kernel: KernelSource, target: Target, options: Options = DEFAULTS, *, row: int | None = None
) -> list[KernelConfig]:
    """Configurations worth trying, the default first; they differ only in what ``options`` leave open."""
    return _unique([_fixed(choice, kernel, options) for choice in _choices(kernel, target, row)])


def _fixed(choice: KernelConfig, kernel: KernelSource, options: Options) -> KernelConfig:
    if options.pointwise_block and list(choice.blocks) == ["XBLOCK"]:
        block = min(options.pointwise_block, next_power_of_2(_expected(kernel.domain.x.numel)))
        choice = KernelConfig({"XBLOCK": block}, _warps(block, 8), choice.num_stages)
    return replace(choice, num_warps=options.num_warps) if options.num_warps else choice


def _choices(kernel: KernelSource, target: Target, row: int | None) -> list[KernelConfig]:
    domain = kernel.domain
    if domain.r is None:
        return _tiled(kernel, target) if domain.y is not None else _pointwise(kernel, target)
    return _persistent(kernel, target, row) if kernel.persistent else _looped(kernel, target)


def _warps(elements: int, per_thread: int) -> int:
    return _clamp(next_power_of_2(elements // (32 * per_thread)), 1, 16)


def _unique(found: list[KernelConfig]) -> list[KernelConfig]:
    return list({str(c): c for c in found}.values())


def _pointwise(kernel: KernelSource, target: Target) -> list[KernelConfig]:
    numel = _expected(kernel.domain.x.numel)
    # A small kernel is as slow as one of its threads: it gets as many as run at once before any gets a second element.
    # Combined kernels hold loops of several sizes: 16 bytes a thread.
    per_thread = _clamp(next_power_of_2(numel // (target.multiprocessors * THREADS)), 4 if kernel.parts else 1, 8)
    block = min(128 * per_thread, next_power_of_2(numel))
    choices = [KernelConfig({"XBLOCK": block}, _warps(block, per_thread), 1)]
    for other, warps in ((512, 4), (1024, 8), (2048, 8), (256, 4)):
        if numel >= other:
            choices.append(KernelConfig({"XBLOCK": other}, warps, 1))
    return _unique(choices)


def _tiled(kernel: KernelSource, target: Target) -> list[KernelConfig]:
    assert kernel.domain.y is not None
    x, y = (next_power_of_2(_expected(axis.numel)) for axis in (kernel.domain.x, kernel.domain.y))
    choices = []
    for xb, yb, warps in ((64, 32, 4), (32, 32, 4), (64, 64, 8), (32, 64, 4), (128, 16, 4), (16, 128, 4)):
        xb, yb = min(xb, x), min(yb, y)
        choices.append(KernelConfig({"YBLOCK": yb, "XBLOCK": xb}, min(warps, _warps(xb * yb, 4)), 1))
    return _unique(choices)


def row_block(row: int) -> int:
    """RBLOCK for a row whose length is known only when it comes."""
    return max(next_power_of_2(row), LEAST_ROW_BLOCK)


def _persistent(kernel: KernelSource, target: Target, row: int | None) -> list[KernelConfig]:
    domain = kernel.domain
    assert domain.r is not None
    numel = domain.r.numel
    rblock = row or (next_power_of_2(numel) if isinstance(numel, int) else row_block(hint(numel)))
    rows = _expected(domain.x.numel)
    small = rows * rblock <= SMALL
    choices = []
    # outer: many columns side by side make the accesses wide; inner: the row itself is wide
    blocks = (32, 64, 16, 128) if not domain.inner else (max(1, 1024 // rblock), max(1, 4096 // rblock), 1)
    for xblock in blocks:
        spread = next_power_of_2(max(rows // (2 * target.multiprocessors), 1))
        xblock = _clamp(min(xblock, spread), 1 if domain.inner else 16, max(1, next_power_of_2(rows)))
        if xblock * rblock > 16384:
            continue
        # long rows: fewer warps with more elements each took a sixth less time on an H200 (softmax over 4096)
        alone = rows <= target.multiprocessors * xblock  # at most one program each: many warps hide what it waits for
        long = (8, 16, 4) if alone else (16, 8, 32)
        for per_thread in long if xblock * rblock >= 4096 else (4, 8, 16) if small else (8, 16, 4):
            choices.append(KernelConfig({"XBLOCK": xblock, "RBLOCK": rblock}, _warps(xblock * rblock, per_thread), 1))
    if not choices:
        choices = [KernelConfig({"XBLOCK": 1, "RBLOCK": rblock}, 16, 1)]
    return _unique(choices)


def _looped(kernel: KernelSource, target: Target) -> list[KernelConfig]:
    domain = kernel.domain
    assert domain.r is not None
    r = next_power_of_2(_expected(domain.r.numel))
    shapes: tuple[tuple[int, int, int], ...]
    if domain.inner:
        shapes = ((1, 2048, 8), (1, 4096, 32), (1, 4096, 16), (1, 8192, 32), (2, 2048, 8), (1, 1024, 4))
    else:
        shapes = ((64, 32, 8), (128, 16, 8), (32, 64, 8), (64, 16, 4), (32, 32, 4), (128, 64, 16))
        if _expected(domain.x.numel) * _expected(domain.r.numel) <= SMALL:  # few passes over few columns side by side
            shapes = ((8, 512, 8), (16, 256, 8), (32, 128, 8), (64, 32, 8))
        elif _expected(domain.x.numel) < shapes[0][0] * target.multiprocessors:
            # Too few columns for blocks as wide as memory likes: every multiprocessor gets some.
            each = max(_expected(domain.x.numel) // target.multiprocessors, 1)
            xblock = 1 << (each.bit_length() - 1)
            shapes = ((xblock, 2048 // xblock, 8), *shapes)
    rows = next_power_of_2(_expected(domain.x.numel))
    return _unique([KernelConfig({"XBLOCK": min(x, rows), "RBLOCK": min(rb, r)}, warps, 1) for x, rb, warps in shapes])


def interpreter_config(kernel: KernelSource, config: KernelConfig) -> KernelConfig:
    """The same kernel in large blocks: the interpreter's cost is per program, numpy's per element is small."""
    blocks = dict(config.blocks)
    names = [f"{a.prefix.upper()}BLOCK" for a in kernel.domain.axes if a.prefix != "r"]
    for axis, name in zip((a for a in kernel.domain.axes if a.prefix != "r"), names, strict=True):
        while blocks[name] < hint(axis.numel) // 2 and _elements(blocks) < INTERPRETER_BLOCK:
            blocks[name] *= 2
    return KernelConfig(blocks, config.num_warps, config.num_stages)


def _elements(blocks: dict[str, int]) -> int:
    result = 1
    for block in blocks.values():
        result *= block
    return result


Grid = tuple[int, int, int]


def grid_of(kernel: KernelSource, config: KernelConfig) -> Grid:
    """How many programs run along x, y and z, at the example's sizes."""
    return grid_function(kernel, config)([hint(value) for _, value in kernel.sizes])


def grid_function(kernel: KernelSource, config: KernelConfig) -> Callable[[Sequence[int]], Grid]:
    """The grid as a function of the values of the kernel's size parameters; it is called at every launch.

    Zero along an axis says that there is nothing to compute.
    """
    if kernel.parts:
        total = sum(-(-length // config.blocks["XBLOCK"]) for length in kernel.parts)
        return lambda sizes: (total, 1, 1)
    place = {name: number for number, (name, _) in enumerate(kernel.sizes)}
    counts = [
        _programs(axis.numel, place.get(f"{axis.prefix}numel"), config.blocks[f"{axis.prefix.upper()}BLOCK"])
        for axis in reversed(kernel.domain.axes)
        if axis.prefix != "r"
    ]
    along_x = counts[0]
    if len(counts) == 1:
        return lambda sizes: (along_x(sizes), 1, 1)
    along_y = counts[1]

    def layered(sizes: Sequence[int]) -> Grid:
        y = along_y(sizes)
        layers = max(-(-y // MAX_GRID_HEIGHT), 1)
        return along_x(sizes), -(-y // layers), layers

    return layered


def _programs(numel: Size, place: int | None, block: int) -> Callable[[Sequence[int]], int]:
    if place is None:
        count = -(-numel // block)
        return lambda sizes: count
    return lambda sizes: -(-sizes[place] // block)
