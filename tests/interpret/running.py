"""A random program run eagerly and by its generated kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tests.interpret.checking import generated
from tests.interpret.programs import Program

NOISE_FACTOR = 4.0
MOST_NOISE = 0.01  # a comparison or a rounding that comes out otherwise excuses nothing
DRAWS = 4


def run_program(program: Program) -> str:
    """What differs from eager, in words; "" where nothing does. Strides count too."""
    function = program.function()
    expected = function(*program.inputs)
    results, _ = generated(function, *program.inputs)
    fault = _difference(program, results, expected, [torch.zeros(()) for _ in expected])
    return fault and _difference(program, results, expected, _sensitivity(program, expected))


def _difference(program: Program, results: list[Tensor], expected: list[Tensor], noise: list[Tensor]) -> str:
    for name, result, eager, moved in zip(program.outputs, results, expected, noise, strict=True):
        if result.shape != eager.shape or result.dtype is not eager.dtype:
            return f"{name} is {result.dtype}{list(result.shape)}, not {eager.dtype}{list(eager.shape)}"
        if eager.dtype.is_floating_point:
            error = (result.double() - eager.double()).abs()
            wrong = ~(error <= program.tolerance() * eager.double().abs().clamp(min=1.0) + NOISE_FACTOR * moved)
        else:
            wrong = result != eager
        if bool(wrong.any()):
            at = tuple(wrong.nonzero()[0].tolist())
            return f"{name}: {int(wrong.sum())} of {wrong.numel()} differ, first at {at}: {result[at]} for {eager[at]}"
    return ""


def _sensitivity(program: Program, expected: list[Tensor]) -> list[Tensor]:
    """How far eager's own outputs move, an output at most and over a few draws, where every input and every op's result
    is rounded otherwise.

    Where equal numbers cancel exactly in eager (the mean of a row of equal ones), another order of the same sum leaves
    a rounding error, and a normalization may make much of it.
    """
    moved = [torch.zeros((), dtype=torch.float64) for _ in expected]
    for seed in range(DRAWS):
        jitter = _Jitter(seed)
        inputs = [jitter.moved(x) for x in program.inputs]
        with jitter:
            results = program.function()(*inputs)
        for k, (result, eager) in enumerate(zip(results, expected, strict=True)):
            if eager.dtype.is_floating_point and eager.numel():
                distance = (result.double() - eager.double()).abs().nan_to_num(posinf=0.0).max()
                moved[k] = torch.maximum(moved[k], distance).clamp(max=MOST_NOISE)
    return moved


class _Jitter(TorchDispatchMode):
    """Moves every floating-point result by up to one unit in its last place; views stay views."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        shares = any(r.alias_info is not None for r in func._schema.returns)
        return result if shares else pytree.tree_map_only(Tensor, self.moved, result)

    def moved(self, x: Tensor) -> Tensor:
        """The tensor with its strides, its elements moved."""
        if not x.dtype.is_floating_point:
            return x
        draw = torch.rand(x.shape, generator=self._generator, dtype=torch.float64) * 2 - 1
        return torch.empty_like(x).copy_(x.double() * (1 + torch.finfo(x.dtype).eps * draw))
