"""Functions as lowered programs, partitions and compiled regions, without Dynamo: the short way in for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.backend import default_target
from compiler.fusion import Partition, Refused, partition
from compiler.ir import Program
from compiler.kernel_library import KernelLibrary
from compiler.lowering.graph import lower_graph
from compiler.options import DEFAULTS, Options
from compiler.passes.decompositions import decomposition_table
from compiler.passes.random_numbers import draw_from_seeds
from compiler.planning.schedule import Launch
from compiler.region import CompiledRegion, compile_region
from compiler.targets import resolve

TARGET = resolve("h100")
_table = cache(decomposition_table)


def capture(function: Callable[..., Any], *inputs: Any) -> torch.fx.GraphModule:
    """The ATen graph of a function that returns a tensor or a sequence of them, as AOTAutograd would hand it over."""

    def listed(*args: Any) -> list[Any]:
        result = function(*args)
        return list(result) if isinstance(result, tuple | list) else [result]

    return draw_from_seeds(make_fx(listed, decomposition_table=_table(), tracing_mode="fake")(*inputs))


def lowered(function: Callable[..., Any], *inputs: Any) -> Program:
    """The function's loops and library calls."""
    return lower_graph(capture(function, *inputs), TARGET)


def partitioned(function: Callable[..., Any], *inputs: Any, options: Options = DEFAULTS) -> Partition:
    """The function's fusion groups and refusals."""
    return partition(lowered(function, *inputs), options)


def compiled(
    function: Callable[..., Any], *inputs: Any, options: Options = DEFAULTS, binaries: bool = False
) -> tuple[CompiledRegion, KernelLibrary]:
    """The function as one region, with its kernels printed and defined; with ``binaries`` also compiled, for this
    machine's GPU or an H100."""
    target = default_target() if binaries else TARGET
    library = KernelLibrary(target, binaries=binaries, texts=binaries, options=options)
    graph = capture(function, *inputs)
    region = compile_region(graph, name="inference", kind="inference", target=target, library=library)
    assert not [kernel.error for kernel in library.by_source.values() if kernel.error]
    return region, library


def launches(region: CompiledRegion) -> list[Launch]:
    """The region's kernel launches in the order they run."""
    return [step for step in region.steps if isinstance(step, Launch)]


def rules(refusals: Sequence[Refused]) -> set[str]:
    """The names of the rules that refused something."""
    return {str(refusal.rule) for refusal in refusals}
