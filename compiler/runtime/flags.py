"""Memory that stands for the conjugates or the negatives of the numbers that lie in it.

A tensor says so in two flags. PyTorch's operations look at them; kernels, and graphs that read an address, do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Flags = tuple[str, ...]  # those of "conj" and "neg" that a tensor has

_FLIPPED: Mapping[str, Callable[[Tensor], Tensor]] = {"conj": torch.conj, "neg": torch._neg_view}


def flags(tensor: Tensor) -> Flags:
    """What the tensor's memory stands for, beside what lies in it."""
    conj, neg = tensor.is_conj(), tensor.is_neg()
    return (*(("conj",) if conj else ()), *(("neg",) if neg else ())) if conj or neg else ()


def flipped(tensor: Tensor, names: Flags) -> Tensor:
    """A view of the same memory with these flags turned over: with the tensor's own it has none."""
    for name in names:
        tensor = _FLIPPED[name](tensor)
    return tensor


def differing(a: Tensor, b: Tensor) -> Flags:
    """The flags that one of the two has alone."""
    here, there = flags(a), flags(b)
    return tuple(name for name in _FLIPPED if (name in here) != (name in there))


def with_flags(tensor: Tensor, wanted: Flags) -> Tensor:
    """The same numbers under these flags: the tensor itself where it has them, else new memory."""
    if flags(tensor) == wanted:
        return tensor
    made = tensor.resolve_conj().resolve_neg()
    if "conj" in wanted:
        made = torch.conj_physical(made)
    return flipped(-made if "neg" in wanted else made, wanted)
