"""Tensor methods that set the current device before they reach the dispatcher, routed past that.

A torch that was built without CUDA has no device to set, so on a fake tensor of a GPU ``x[0]`` and ``x.copy_(y)``
raise, where the ops behind them work.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def getitem(x: Tensor, key: Any) -> Tensor:
    """``x[key]`` for ints, slices, None, ... and tensors, by ops alone."""
    if x.device.type != "cuda":
        return Tensor.__getitem__(x, key)
    keys = list(key) if isinstance(key, (tuple, list)) else [key]
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


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    if x.device.type != "cuda":
        Tensor.__setitem__(x, key, value)
    elif isinstance(value, Tensor):
        aten.copy_.default(getitem(x, key), value)
    else:
        aten.fill_.Scalar(getitem(x, key), value)


def _by_op(method: Callable[..., Any], op: Any) -> Callable[..., Any]:
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return op(x, *args, **kwargs) if x.device.type == "cuda" else method(x, *args, **kwargs)

    return call


# What a fake tensor's class is given while there is no device to set.
METHODS: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "__getitem__": getitem,
        "__setitem__": setitem,
        "__invert__": _by_op(Tensor.__invert__, aten.bitwise_not.default),
        "contiguous": _by_op(Tensor.contiguous, aten.contiguous.default),
        "copy_": _by_op(Tensor.copy_, aten.copy_.default),
        "index_put_": _by_op(Tensor.index_put_, aten.index_put_.default),
        "index_put": _by_op(Tensor.index_put, aten.index_put.default),
        "nonzero": _by_op(Tensor.nonzero, aten.nonzero.default),
    }
)
