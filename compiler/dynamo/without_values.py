"""Models without values, on torch's ``meta`` device: one larger than memory can be compiled and looked at.

Compiling reads shapes, not values. Tensors on ``meta`` become fake ones on the CPU, where Dynamo and autograd trace
them like any other, and the one call that compiles the model computes shapes alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree


def lacks_values(model: Callable[..., Any], inputs: tuple[Any, ...]) -> bool:
    """Whether some parameter, buffer or input is on ``meta``."""
    leaves = pytree.tree_leaves(inputs)
    return any(isinstance(t, Tensor) and t.is_meta for t in (*_tensors_of(model), *leaves))


def with_fakes(model: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Copies of a model and its inputs with fake tensors on the CPU for all tensors, sharing what was shared."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes: dict[int, Any] = {}

    def fake(tensor: Tensor) -> Tensor:
        if id(tensor) not in fakes:
            fakes[id(tensor)] = _fake(tensor, mode)
        known: Tensor = fakes[id(tensor)]
        return known

    for tensor in _tensors_of(model):
        fake(tensor)
    # deepcopy takes what the memo holds in place of copying: no tensor of the model is copied
    copied = copy.deepcopy(model, dict(fakes)) if isinstance(model, nn.Module) else model
    return copied, pytree.tree_map_only(Tensor, fake, inputs)


def by_shape(run: Callable[..., Any], args: list[Any]) -> Any:
    """``run(*args)``; where the arguments are fake, so is everything that it makes.

    Of a subclass that only changes functions of torch (``__torch_function__``) the plain tensor is taken: Dynamo has
    traced what it changes, and ops find no handler in it.
    """
    args = [a.as_subclass(Tensor) if isinstance(a, Tensor) and _is_plain_within(type(a)) else a for a in args]
    mode = next((a.fake_mode for a in args if isinstance(a, FakeTensor)), None)
    with mode or nullcontext():
        return run(*args)


def _is_plain_within(kind: type[Tensor]) -> bool:
    return kind not in (Tensor, nn.Parameter) and kind.__torch_dispatch__ is Tensor.__torch_dispatch__


def _tensors_of(model: Callable[..., Any]) -> Iterator[Tensor]:
    """Parameters, buffers, and tensors that a module holds as plain attributes."""
    if isinstance(model, nn.Module):
        for module in model.modules():
            held = (*module._parameters.values(), *module._buffers.values(), *vars(module).values())
            yield from (value for value in held if isinstance(value, Tensor))


def _fake(tensor: Tensor, mode: FakeTensorMode) -> Tensor:
    with mode:
        made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)
