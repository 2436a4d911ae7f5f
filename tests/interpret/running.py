"""A random program run eagerly and by its generated kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.backend import Session, fusescope
from compiler.kernel_library import KernelLibrary
from tests.graphs import TARGET
from tests.interpret.checking import generated
from tests.interpret.programs import Program

NOISE_FACTOR = 4.0
MOST_NOISE = 0.01  # a comparison or a rounding that comes out otherwise excuses nothing
DRAWS = 4


Call = Callable[..., list[Tensor]]


def run_program(program: Program) -> str:
    """What differs from eager, in words; "" where nothing does. Strides count too."""
    function = program.function()
    results, _ = generated(function, *program.inputs)
    return _fault(program, program.outputs, results, function)


def train_program(program: Program) -> str:
    """The same of the results, and of the gradients of a weighted sum of them, by torch.compile."""
    function = program.function()
    inputs = [f"gradient of x{i}" for i, x in enumerate(program.inputs) if x.is_floating_point()]
    torch._dynamo.reset()
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    compiled = torch.compile(function, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    results = _trained(compiled)(*program.inputs)
    return _fault(program, [*program.outputs, *inputs], results, _trained(function))


def _trained(function: Call) -> Call:
    """The function's results, and the gradients of its floating-point inputs, zero where there is none."""

    def call(*inputs: Tensor) -> list[Tensor]:
        mine = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
        results = function(*mine)
        wanted = [x for x in mine if x.requires_grad]
        sums = [
            (result.double() * torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape)).sum()
            for result in results
            if result.requires_grad
        ]
        gradients = [torch.zeros_like(x) for x in wanted]
        if sums:
            loss = torch.stack(sums).sum()
            gradients = list(torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True))
        return [*(result.detach() for result in results), *gradients]

    return call


def _fault(program: Program, names: list[str], results: list[Tensor], eager: Call) -> str:
    expected = eager(*program.inputs)
    fault = _difference(program, names, results, expected, [torch.zeros(()) for _ in expected])
    return fault and _difference(program, names, results, expected, _sensitivity(program, eager, expected))


def _difference(
    program: Program, names: list[str], results: list[Tensor], expected: list[Tensor], noise: list[Tensor]
) -> str:
    for name, result, eager, moved in zip(names, results, expected, noise, strict=True):
        if result.shape != eager.shape or result.dtype is not eager.dtype:
            return f"{name} is {result.dtype}{list(result.shape)}, not {eager.dtype}{list(eager.shape)}"
        if eager.dtype.is_floating_point:
            error = (result.double() - eager.double()).abs()
            wrong = ~(error <= program.tolerance() * eager.double().abs().clamp(min=1.0) + NOISE_FACTOR * moved)
            wrong &= (result != eager) & ~(result.isnan() & eager.isnan())
        else:
            wrong = result != eager
        if bool(wrong.any()):
            at = tuple(wrong.nonzero()[0].tolist())
            return f"{name}: {int(wrong.sum())} of {wrong.numel()} differ, first at {at}: {result[at]} for {eager[at]}"
    return ""


def _sensitivity(program: Program, function: Call, expected: list[Tensor]) -> list[Tensor]:
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
            results = function(*inputs)
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
