"""Graphs of symbolic sizes that no one program serves: compiled anew for the sizes that they meet."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

Region = Callable[[Any], Any]  # takes the region's inputs as one sequence


class Built(NamedTuple):
    """A compiled region; ``release`` lets go of its CUDA Graphs, which are captured again when they are needed."""

    run: Region
    release: Callable[[], None] | None = None


class Specializing:
    """A graph that no one program serves at every size, compiled once per combination of sizes that it meets.

    The sizes used last keep their CUDA Graphs, ``graph_capacity`` of them.
    """

    def __init__(
        self, compile_static: Callable[[torch.fx.GraphModule], Built], graph: torch.fx.GraphModule, graph_capacity: int
    ) -> None:
        self._compile = compile_static
        self._graph = graph
        self._capacity = graph_capacity
        self._compiled: dict[tuple[Any, ...], Built] = {}
        self._captured: OrderedDict[tuple[Any, ...], Callable[[], None]] = OrderedDict()  # by use

    def __call__(self, args: list[Any]) -> Any:
        """Compile for these sizes if they are new, and run."""
        key = tuple((tuple(a.shape), tuple(a.stride())) if isinstance(a, torch.Tensor) else a for a in args)
        built = self._compiled.get(key)
        if built is None:
            built = self._compiled[key] = self._compile(specialize(self._graph, args))
        results = built.run(args)
        if built.release is not None:
            self._captured[key] = built.release
            self._captured.move_to_end(key)
            # Only now that there is another, for torch does not let a pool without graphs be captured into again.
            if len(self._captured) > self._capacity:
                _, release = self._captured.popitem(last=False)
                release()
        return results


def specialize(graph: torch.fx.GraphModule, args: Sequence[Any]) -> torch.fx.GraphModule:
    """A copy of the graph whose fake values have the sizes of ``args``."""
    fixed = copy.deepcopy(graph)
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    fakes = [_fake(a, mode) if isinstance(a, torch.Tensor) else a for a in args]
    for node in fixed.graph.nodes:
        node.meta.pop("val", None)
    FakeTensorProp(fixed, mode).propagate_dont_convert_inputs(*fakes)
    for node, value in zip((n for n in fixed.graph.nodes if n.op == "placeholder"), fakes, strict=True):
        node.meta["val"] = value
    return fixed


def _fake(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    if isinstance(tensor, FakeTensor):  # of another mode
        with mode:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return mode.from_tensor(tensor, static_shapes=True)


def example_inputs(graph: torch.fx.GraphModule) -> list[Any]:
    """Fake inputs of the sizes that the graph was captured with."""

    def number(value: Any) -> Any:
        return value.node.hint if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) else value

    def example(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return number(value)
        size, stride = ([number(n) for n in numbers] for numbers in (value.shape, value.stride()))
        with FakeTensorMode():
            return torch.empty_strided(size, stride, dtype=value.dtype, device=value.device)

    return [example(node.meta.get("val")) for node in graph.graph.find_nodes(op="placeholder")]


def has_symbolic_sizes(graph: torch.fx.GraphModule) -> bool:
    """Whether a graph's inputs bring along numbers that differ between calls: inputs, or the sizes of tensors."""
    values = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
    strided = [v for v in values if isinstance(v, torch.Tensor) and v.layout is torch.strided]
    numbers = [*values, *(number for v in strided for number in (*v.shape, *v.stride()))]
    return any(isinstance(number, torch.SymInt) for number in numbers)
