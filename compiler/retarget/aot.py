"""AOTAutograd's compilers and partitioner for a GPU that is not here.

Each graph that AOTAutograd is about to hand over is moved to the target and compiled there for its code; what runs for
the model's values is AOTAutograd's own graph, on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext

from compiler.dynamo.without_values import by_shape
from compiler.retarget.decompositions import before_the_move
from compiler.retarget.device import DEVICE
from compiler.retarget.graph import fake_mode_of, on_device, retarget
from compiler.retarget.on_cpu import has_triton_kernels, runs_here
from compiler.runtime.calling import boxed, emptying


def for_target(
    real: Mapping[str, Any], on_target: Callable[[], AbstractContextManager[None]], note: Callable[[str], None]
) -> dict[str, Any]:
    """What AOTAutograd is given in place of ``real``: ``fw_compiler``, ``bw_compiler``, ``inference_compiler``,
    ``partition_fn`` and ``decompositions``, by these names.

    ``on_target`` makes the context in which graphs are moved, cut in two and compiled. ``note`` is told what whoever
    reads the report has to know.
    """
    real = dict(real)
    table = real["decompositions"]
    halves: dict[str, fx.GraphModule] = {}

    def moved(graph: fx.GraphModule) -> fx.GraphModule:
        return retarget(graph, DEVICE, fake_mode_of(graph), decompositions=table)

    def as_traced(graph: fx.GraphModule) -> Any:
        if has_triton_kernels(graph):
            note("Triton kernels of the model's own are not run on the CPU: what they write stays as it was there.")
        run = runs_here(graph)
        return boxed(emptying(lambda args: by_shape(run, args)))

    def partition_fn(joint: fx.GraphModule, inputs: Any, **keywords: Any) -> Any:
        from torch._functorch.partitioners import default_partition

        with on_target():
            given = on_device(inputs, DEVICE, fake_mode_of(joint))
            halves["forward"], halves["backward"] = real["partition_fn"](moved(joint), given, **keywords)
        keywords.pop("compiler", None)
        return default_partition(joint, inputs, **keywords)

    def fw_compiler(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        forward = halves["forward"]
        # Inductor reports the strides it chose to AOTAutograd, which must not take them for those of the CPU's graph
        with TracingContext.report_output_strides() as strides, on_target():
            real["fw_compiler"](forward, _placeholder_values(forward))
        _restride(halves["backward"], forward, strides or [])
        return as_traced(gm)

    def bw_compiler(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        backward = halves["backward"]
        with TracingContext.report_output_strides(), on_target():
            real["bw_compiler"](backward, _placeholder_values(backward))
        return as_traced(gm)

    def inference_compiler(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        with TracingContext.report_output_strides(), on_target():
            graph = moved(gm)
            real["inference_compiler"](graph, _placeholder_values(graph))
        return as_traced(gm)

    return {
        "partition_fn": partition_fn,
        "fw_compiler": fw_compiler,
        "bw_compiler": bw_compiler,
        "inference_compiler": inference_compiler,
        "decompositions": before_the_move(table),
    }


def _restride(backward: fx.GraphModule, forward: fx.GraphModule, strides: Sequence[Any]) -> None:
    """Give what the backward gets from the forward the strides that were chosen for it there."""
    (outputs,) = (n for n in forward.graph.nodes if n.op == "output")
    chosen = {n.name: s for n, s in zip(outputs.args[0], strides, strict=False) if isinstance(n, fx.Node)}
    for node in backward.graph.nodes:
        value = node.meta.get("val")
        stride = chosen.get(node.name)
        if node.op == "placeholder" and isinstance(value, torch.Tensor) and stride is not None:
            stride = tuple(int(s) for s in stride)
            if stride != tuple(value.stride()):
                with torch.no_grad():
                    node.meta["val"] = value.as_strided(value.size(), stride)


def _placeholder_values(graph: fx.GraphModule) -> list[Any]:
    """The fake inputs of a graph."""
    return [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]
