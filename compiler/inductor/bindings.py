"""Tensor methods that set the current device before they reach the dispatcher, routed past that.

A torch that was built without CUDA has no device to set, so on a fake tensor of a GPU ``x[0]`` and ``x.copy_(y)``
raise, where the ops behind them work.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten


class OpsInstead(TorchFunctionMode):
    """Calls the op behind a method that would set the device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if args and isinstance(args[0], Tensor) and args[0].device.type == "cuda":
            if func is Tensor.__getitem__:
                return index(args[0], args[1])
            if func is Tensor.__setitem__:
                aten.copy_.default(index(args[0], args[1]), torch.as_tensor(args[2], device=args[0].device))
                return None
            if func is Tensor.copy_:
                return aten.copy_.default(*args, **(kwargs or {}))
            if func is Tensor.index_put_:
                return aten.index_put_.default(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def index(x: Tensor, key: Any) -> Tensor:
    """``x[key]`` for ints, slices, None, ... and tensors, by ops alone."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        consumed = sum(k is not None and k is not Ellipsis for k in keys)
        keys[at : at + 1] = [slice(None)] * (x.dim() - consumed)
    dim = 0
    tensors: list[Tensor | None] = []
    for k in keys:
        if k is None:
            x = aten.unsqueeze.default(x, dim)
        elif isinstance(k, slice):
            if (k.start, k.stop, k.step) != (None, None, None):
                x = aten.slice.Tensor(x, dim, k.start, k.stop, 1 if k.step is None else k.step)
        elif isinstance(k, Tensor):
            tensors += [None] * (dim - len(tensors)) + [k]
        else:
            x = aten.select.int(x, dim, k)
            continue
        dim += 1
    return aten.index.Tensor(x, tensors) if tensors else x
