"""One function through the compiler and the interpreter, judged against eager and against float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from compiler.backend import executable_of
from compiler.options import DEFAULTS, Options
from compiler.region import CompiledRegion
from tests.graphs import compiled, launches

# A few units in the last place of results of size one; float64 stands for itself, so it is held to eager.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 5e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
EAGER_FACTOR = 3.0


def program(
    function: Callable[..., Any], *inputs: Any, options: Options = DEFAULTS
) -> tuple[Callable[[list[Any]], Sequence[Any]], CompiledRegion]:
    """The generated program, which takes inputs of these sizes and dtypes, and the region it belongs to."""
    on_gpu = any(isinstance(x, Tensor) and x.is_cuda for x in inputs)
    region, library = compiled(function, *inputs, options=options, binaries=on_gpu)
    return executable_of(region, library, frozenset()), region


def generated(
    function: Callable[..., Any], *inputs: Any, options: Options = DEFAULTS
) -> tuple[list[Any], CompiledRegion]:
    """What the generated kernels return, and the region they belong to."""
    run, region = program(function, *inputs, options=options)
    return list(run(list(inputs))), region


def check(function: Callable[..., Any], *inputs: Any, options: Options = DEFAULTS) -> CompiledRegion:
    """Assert that the kernels give eager's sizes, dtypes and numbers; the region says how they were generated.

    A floating-point element is right where it equals eager's, or is as near to the float64 result as its dtype can
    tell, or at most a few times farther from it than eager is. Everything else is equal to eager's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _listed(function(*_copies(inputs)))
        exact = _listed(function(*pytree.tree_map_only(Tensor, _widened, tuple(_copies(inputs)))))
        results, region = generated(function, *_copies(inputs), options=options)
    assert len(results) == len(expected)
    for number, (result, eager, reference) in enumerate(zip(results, expected, exact, strict=True)):
        fault = difference(result, eager, reference)
        assert not fault, f"output {number}: {fault}\n\n{sources(region)}"
    return region


def difference(result: Any, eager: Any, reference: Any) -> str:
    """What is wrong with a result, in words; "" where nothing is."""
    if not isinstance(eager, Tensor):
        return "" if result == eager else f"{result} where eager returns {eager}"
    if result.shape != eager.shape or result.dtype is not eager.dtype:
        return f"{result.dtype}{list(result.shape)} where eager returns {eager.dtype}{list(eager.shape)}"
    same = (result == eager) | ((result != result) & (eager != eager))
    if eager.dtype.is_floating_point:
        wide, near = result.double(), reference.double()
        same |= (wide == near) | ((wide != wide) & (near != near))  # torch's half floats know another sqrt(-inf)
        error, eager_error = (wide - near).abs(), (eager.double() - near).abs()
        allowed = TOLERANCE[eager.dtype] * near.abs().clamp(min=1.0)
        same |= (error <= allowed) | (error <= EAGER_FACTOR * eager_error)
    if bool(same.all()):
        return ""
    wrong = (~same).nonzero()
    at = tuple(wrong[0].tolist())
    text = f"{len(wrong)} of {same.numel()} elements, first at {list(at)}: {result[at].item()} for {eager[at].item()}"
    return text + (f" ({reference[at].item()} in float64)" if eager.dtype.is_floating_point else "")


def sources(region: CompiledRegion) -> str:
    """The generated program, for a failing test's message."""
    kernels = [launch.kernel.source for launch in launches(region)]
    return "\n".join([region.graph.code, *kernels[:3], region.wrapper])


def _widened(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _copies(inputs: tuple[Any, ...]) -> list[Any]:
    """The inputs in fresh memory with the strides they have, so that writes into them do not carry over."""

    def copy(tensor: Tensor) -> Tensor:
        if tensor.numel() == 0:
            return tensor.clone()
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        memory = tensor.as_strided((extent,), (1,)).clone()
        return memory.as_strided(tensor.shape, tensor.stride(), 0)

    return list(pytree.tree_map_only(Tensor, copy, tuple(inputs)))


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]
