"""Attention as torch chooses it on the target, while a model is traced on the CPU.

``scaled_dot_product_attention`` asks the GPU which of its library's kernels take these tensors, and calls the first
that does. There is no GPU to ask, so its rules are repeated here: those of torch's ``sdp_utils.cpp``, for tensors that
are not nested.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch.nn import functional as F
from torch.nn.attention import SDPBackend

from compiler.report import Target

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)
_DEFAULT_ORDER = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
_FLASH_ALIGNMENT = 8  # elements of a head, which are padded to a multiple
_MASK_ALIGNMENT = 8  # elements between rows of a mask, for the memory-efficient kernels
_TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_LOWEST_HALF = -65504.0  # cuDNN's mask takes no infinity


@contextmanager
def attention_of(target: Target) -> Iterator[None]:
    """While it lasts, attention is traced as the call that torch makes on ``target``."""
    op = aten.scaled_dot_product_attention.default
    before = {key: op.py_kernels[key] for key in _KEYS if key in op.py_kernels}
    op.py_kernels.update(dict.fromkeys(_KEYS, partial(_attention, target)))
    op._dispatch_cache.clear()
    try:
        yield
    finally:
        for key in _KEYS:
            op.py_kernels.pop(key, None)
        op.py_kernels.update(before)
        op._dispatch_cache.clear()


@dataclass(frozen=True)
class Call:
    """What attention is asked for."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    grouped: bool = False  # several heads of the query may share one of the key and value

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value."""
        return self.query, self.key, self.value

    @property
    def trained(self) -> bool:
        """Whether a backward follows."""
        return torch.is_grad_enabled() and any(t.requires_grad for t in self.tensors)


def chosen(target: Target, call: Call) -> SDPBackend:
    """The kernels that torch takes for ``call`` on ``target``."""
    takes = {
        SDPBackend.CUDNN_ATTENTION: _cudnn_takes,
        SDPBackend.FLASH_ATTENTION: _flash_takes,
        SDPBackend.EFFICIENT_ATTENTION: _efficient_takes,
        SDPBackend.MATH: _math_takes,
    }
    return next((kind for kind in _order(target) if kind in takes and takes[kind](target, call)), SDPBackend.MATH)


def _attention(
    target: Target,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``aten.scaled_dot_product_attention``, decided for ``target``."""
    call = Call(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    kind = chosen(target, call)
    if kind is SDPBackend.FLASH_ATTENTION:
        head = query.shape[-1]
        padded = [_padded(t) for t in call.tensors]
        of_head = scale if scale is not None else 1 / math.sqrt(head)  # of the head before it is padded
        out: Tensor = aten._scaled_dot_product_flash_attention.default(*padded, dropout_p, is_causal, scale=of_head)[0]
        return out if out.shape[-1] == head else out[..., :head]
    mask = _additive(attn_mask, query, _LOWEST_HALF if kind is SDPBackend.CUDNN_ATTENTION else -math.inf)
    rest: tuple[Any, ...] = (call.trained, dropout_p, is_causal)
    if kind is SDPBackend.CUDNN_ATTENTION:
        out, *_ = aten._scaled_dot_product_cudnn_attention.default(*call.tensors, mask, *rest, scale=scale)
    elif kind is SDPBackend.EFFICIENT_ATTENTION:
        mask = _spread(mask, query, key) if mask is not None else None
        out, *_ = aten._scaled_dot_product_efficient_attention.default(*call.tensors, mask, *rest, scale=scale)
    else:
        rest = (mask, dropout_p, is_causal, None)
        out, *_ = aten._scaled_dot_product_attention_math.default(
            *call.tensors, *rest, scale=scale, enable_gqa=enable_gqa
        )
    return out


# --- which kernels ------------------------------------------------------------------------------------------------


def _order(target: Target) -> tuple[SDPBackend, ...]:
    """Which are asked first: what the user set (``sdpa_kernel(..., set_priority=True)``), else torch's own order."""
    kinds = {kind.value: kind for kind in SDPBackend.__members__.values()}
    order = tuple(kinds[number] for number in torch._C._get_sdp_priority_order())
    default = order[: len(_DEFAULT_ORDER)] == _DEFAULT_ORDER
    return (SDPBackend.CUDNN_ATTENTION, *order) if default and _prefers_cudnn(target) else order


def _prefers_cudnn(target: Target) -> bool:
    """Data centres' GPUs since Hopper, with the cuDNN that comes with torch 2.11 and newer."""
    return _is_nvidia(target, 90, 100) and os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") != "1"


def _is_nvidia(target: Target, *archs: int) -> bool:
    return target.backend == "cuda" and (not archs or target.arch in archs)


def _cudnn_takes(target: Target, call: Call) -> bool:
    widest = 256 if _is_nvidia(target, 90) else 128
    heads = (call.query.shape[-1], call.value.shape[-1])
    sequences = (call.query.shape[-2], call.key.shape[-2])
    return (
        torch.backends.cuda.cudnn_sdp_enabled()
        and _is_nvidia(target)
        and _half_takes(target, call)
        and _shapes_fit(call, grouped=True)
        and (not torch.are_deterministic_algorithms_enabled() or torch.is_deterministic_algorithms_warn_only_enabled())
        and all(head <= widest and head % 8 == 0 for head in heads)
        and sequences[1] != 1
        and not (sequences[0] == 1 and call.dropout > 0)
    )


def _flash_takes(target: Target, call: Call) -> bool:
    widest = 256 if _is_nvidia(target) else 512
    head = call.query.shape[-1]
    small_gpu = _is_nvidia(target, 86, 87, 89, 120, 121)
    untrainable = 192 < head <= 224 or (head > 224 and call.dropout > 0)
    return (
        torch.backends.cuda.flash_sdp_enabled()
        and _half_takes(target, call)
        and _shapes_fit(call, grouped=True)
        and call.mask is None
        and head <= widest
        and all(t.shape[-1] == head for t in call.tensors)
        and not (call.trained and small_gpu and untrainable)
        and not (call.causal and call.query.shape[-2] != call.key.shape[-2])
    )


def _efficient_takes(target: Target, call: Call) -> bool:
    half = call.query.dtype in _HALF
    narrow = target.backend == "cuda" and int(target.arch) < 80
    aligned = 8 if half else 4
    heads = [t.shape[-1] for t in call.tensors]
    fits = heads[0] == heads[1] if _is_nvidia(target) else heads[0] == heads[1] == heads[2] <= 512
    return (
        torch.backends.cuda.mem_efficient_sdp_enabled()
        and call.query.dtype in ((torch.float32, torch.float16) if narrow else (torch.float32, *_HALF))
        and len({t.dtype for t in call.tensors}) == 1
        and _shapes_fit(call, grouped=_is_nvidia(target) and _TORCH >= (2, 14))
        and fits
        and all(head % aligned == 0 and head > 0 for head in (heads[0], heads[2]))
        and (call.mask is None or call.mask.stride(-1) == 1)
        and (call.mask is None or _is_nvidia(target) or call.mask.dtype in (torch.bool, call.query.dtype))
    )


def _math_takes(target: Target, call: Call) -> bool:
    return bool(torch.backends.cuda.math_sdp_enabled())


def _half_takes(target: Target, call: Call) -> bool:
    """The dtypes of kernels for half floats, which begin with compute capability 8.0."""
    capable = target.backend == "hip" or int(target.arch) >= 80
    return capable and call.query.dtype in _HALF and len({t.dtype for t in call.tensors}) == 1


def _shapes_fit(call: Call, *, grouped: bool) -> bool:
    """Batches of sequences with heads, as many in each, or groups of heads where the kernels take these."""
    if any(t.dim() != 4 for t in call.tensors):
        return False
    query, key, value = call.tensors
    same_batch = query.shape[0] == key.shape[0] == value.shape[0]
    heads = [t.shape[1] for t in call.tensors]
    if grouped and call.grouped:
        same_heads = heads[1] == heads[2] and heads[0] % heads[1] == 0
    else:
        same_heads = heads[0] == heads[1] == heads[2]
    dense = all(t.stride(-1) == 1 or t.shape[-1] == 1 for t in call.tensors)
    return bool(same_batch and same_heads and dense and query.shape[-2] != 0 and key.shape[-2] != 0)


# --- operands as the kernels want them -----------------------------------------------------------------------------


def _padded(tensor: Tensor) -> Tensor:
    missing = -tensor.shape[-1] % _FLASH_ALIGNMENT
    return F.pad(tensor, [0, missing]) if missing else tensor


def _additive(mask: Tensor | None, query: Tensor, lowest: float) -> Tensor | None:
    """The mask as numbers to add: a mask of truths lets through where it is true."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.where(mask, 0.0, torch.scalar_tensor(lowest, dtype=query.dtype, device=mask.device))


def _spread(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """A mask for every head of every sequence, its rows aligned."""
    steps = [mask.stride(dim) for dim in range(mask.dim() - 1)]
    if mask.stride(-1) != 1 or any(step % _MASK_ALIGNMENT for step in steps):
        size = mask.shape[-1]
        mask = F.pad(mask, [0, _MASK_ALIGNMENT - size % _MASK_ALIGNMENT])[..., :size]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
