"""Inductor's graph patterns, traced for a GPU that is not there.

Where a pattern matches, Inductor traces what it looks for and what it puts in its place with the matched shapes. That
runs Python on fake tensors of the GPU, backward included, which a torch without a GPU cannot: attention would take the
slow way, autograd would end the process. So these traces, too, run on the CPU and are moved to the target.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from compiler.patching import replaced
from compiler.retarget.graph import fake_mode_of, retarget

CPU = torch.device("cpu")


@contextmanager
def patterns_for(device: torch.device) -> Iterator[None]:
    """Trace patterns for a target whose tensors are on ``device``."""
    pattern_matcher: Any = importlib.import_module("torch._inductor.pattern_matcher")

    def make_fx(function: Callable[..., Any], *settings: Any, **keywords: Any) -> Callable[..., Any]:
        def trace(*args: Any) -> fx.GraphModule:
            graph = real_make_fx(function, *settings, **keywords)(*_on_cpu(args))
            return _moved(graph, device)

        return trace

    def aot_function(
        function: Callable[..., Any], *settings: Any, partition_fn: Callable[..., Any], **keywords: Any
    ) -> Callable[..., Any]:
        def partition(joint: fx.GraphModule, inputs: Any, **more: Any) -> Any:
            from torch._functorch.partitioners import default_partition

            partition_fn(_moved(joint, device), inputs, **more)  # keeps the graph it is given
            return default_partition(joint, inputs, **more)

        compiled = real_aot_function(function, *settings, partition_fn=partition, **keywords)
        return lambda *args: compiled(*_on_cpu(args))

    real_make_fx, real_aot_function = pattern_matcher.make_fx, pattern_matcher.aot_function
    with replaced(pattern_matcher, "make_fx", make_fx), replaced(pattern_matcher, "aot_function", aot_function):
        yield


def _moved(graph: fx.GraphModule, device: torch.device) -> fx.GraphModule:
    return retarget(graph, device, fake_mode_of(graph))


def _on_cpu(args: Any) -> Any:
    """The fake tensors among ``args`` as fake ones on the CPU, leaves that need a gradient where they did."""

    def move(tensor: Tensor) -> Tensor:
        mode: Any = getattr(tensor, "fake_mode", None)
        if mode is None or tensor.device == CPU:
            return tensor
        with mode:
            made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=CPU)
        return made.requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(Tensor, move, args)
