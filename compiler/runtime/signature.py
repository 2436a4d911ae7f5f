"""What tells two calls of a captured region apart, and how inputs are copied into memory that a graph reads."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from compiler.runtime.flags import flags, flipped

Signature = tuple[Hashable, ...]


def describe(value: Any) -> Hashable:
    """Everything about one input that is baked into a graph but for the address.

    Raises:
        TypeError: the value is not hashable, so no signature can hold it.
    """
    if isinstance(value, Tensor):
        return (value.dtype, value.device, value.shape, value.stride(), flags(value))
    hash(value)
    # 1, 1.0 and True are equal but are not the same input.
    return (type(value), value)


def signature(inputs: Sequence[Any]) -> Signature:
    """Everything about the inputs that is baked into a graph but for addresses.

    Raises:
        TypeError: a value is not hashable.
    """
    return tuple(describe(value) for value in inputs)


def span(tensor: Tensor) -> int:
    """How many elements of its storage lie between the tensor's first and last element, both included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def extent_bytes(tensor: Tensor) -> int:
    """Bytes from the tensor's first to its last element, both included."""
    return span(tensor) * tensor.element_size()


def new_with_layout(tensor: Tensor) -> Tensor:
    """New memory with the tensor's sizes and strides, overlapping or with holes where the tensor has them, that stands
    for conjugates or negatives where the tensor's does."""
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return flipped(made, flags(tensor))


def empty_with_layout(tensor: Tensor) -> Tensor:
    """The same, but no inference tensor even in inference mode, for a later call may write to it outside."""
    with torch.inference_mode(False):
        return new_with_layout(tensor)


def copyable(tensor: Tensor) -> Tensor:
    """A view of what lies in the memory in which no element appears twice, so that it can be written to by a copy.

    Two tensors of the same layout and flags give views of the same layout.
    """
    tensor = flipped(tensor, flags(tensor))  # torch copies several tensors at once only where they have no flags
    if torch._debug_has_internal_overlap(tensor) == 0:
        return tensor
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    if torch._debug_has_internal_overlap(tensor) == 1 or not _strides_are_disjoint(tensor):
        return tensor.as_strided((span(tensor),), (1,), tensor.storage_offset())
    return tensor


def _strides_are_disjoint(tensor: Tensor) -> bool:
    """Whether each dimension steps over everything the smaller ones reach, so that no two indices meet."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True


def copy_all(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy each source into its target, in as few launches as torch allows."""
    if len(targets) == 1:
        targets[0].copy_(sources[0])
    elif targets:
        torch._foreach_copy_(targets, sources)


class CopyPlan:
    """Copies into fixed tensors, grouped by dtype, for one launch serves tensors of one dtype."""

    def __init__(self, targets: dict[int, Tensor]) -> None:
        """``targets`` maps a position in the call's inputs to the tensor that is to hold its value."""
        self.bytes_of: dict[int, int] = {}
        self._groups: list[tuple[list[int], list[Tensor], bool]] = []
        by_dtype: dict[torch.dtype, list[int]] = {}
        for index, target in targets.items():
            by_dtype.setdefault(target.dtype, []).append(index)
        for indices in by_dtype.values():
            views = [copyable(targets[index]) for index in indices]
            plain = all(view is targets[index] for view, index in zip(views, indices, strict=True))
            self._groups.append((indices, views, plain))
            self.bytes_of |= {i: view.numel() * view.element_size() for i, view in zip(indices, views, strict=True)}
        self.bytes = sum(self.bytes_of.values())

    def copy_from(self, inputs: Sequence[Any]) -> None:
        """Copy the inputs in. Gradients must be disabled."""
        for indices, targets, plain in self._groups:
            sources = [inputs[index] if plain else copyable(inputs[index]) for index in indices]
            copy_all(targets, sources)

    def copy_back(self, inputs: Sequence[Any], indices: Collection[int]) -> None:
        """Copy the targets at ``indices`` back into the caller's tensors."""
        for group, targets, _ in self._groups:
            for index, target in zip(group, targets, strict=True):
                if index in indices:
                    copyable(inputs[index]).copy_(target)
