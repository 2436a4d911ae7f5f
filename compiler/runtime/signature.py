"""What tells two calls of a captured region apart, and how inputs and outputs cross between the caller and the graph.

A graph reads and writes fixed addresses. So each input is either static (the graph uses the caller's own memory, and
the address is part of the signature) or copied into a buffer of the same layout before a replay; each output is
either one of the inputs, a view of one, or memory of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Signature = tuple[Hashable, ...]


def describe(value: Any) -> Hashable:
    """Everything about one input that is baked into a graph but for the address.

    Raises:
        TypeError: the value is not hashable, so no signature can hold it.
    """
    if isinstance(value, Tensor):
        return (value.dtype, value.device, value.shape, value.stride())
    hash(value)
    # 1, 1.0 and True are equal but are not the same input.
    return (type(value), value)


def signature(inputs: Sequence[Any], static: Collection[int]) -> Signature:
    """The key of the graph that serves ``inputs``; ``static`` are the positions whose address counts."""
    return tuple(
        (describe(value), value.data_ptr()) if index in static and isinstance(value, Tensor) else describe(value)
        for index, value in enumerate(inputs)
    )


def span(tensor: Tensor) -> int:
    """How many elements of its storage lie between the tensor's first and last element, both included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def empty_with_layout(tensor: Tensor) -> Tensor:
    """New memory with the tensor's sizes and strides, overlapping or with holes where the tensor has them."""
    # Not an inference tensor even in inference mode, for a later call may write to it outside.
    with torch.inference_mode(False):
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def copyable(tensor: Tensor) -> Tensor:
    """A view of the same memory in which no element appears twice, so that it can be written to by a copy.

    Two tensors of the same layout give views of the same layout.
    """
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
        self.bytes = 0
        self._groups: list[tuple[list[int], list[Tensor], bool]] = []
        by_dtype: dict[torch.dtype, list[int]] = {}
        for index, target in targets.items():
            by_dtype.setdefault(target.dtype, []).append(index)
        for indices in by_dtype.values():
            views = [copyable(targets[index]) for index in indices]
            plain = all(view is targets[index] for view, index in zip(views, indices, strict=True))
            self._groups.append((indices, views, plain))
            self.bytes += sum(view.numel() * view.element_size() for view in views)

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


@dataclass(frozen=True)
class Constant:
    """An output that is no tensor; it depends on nothing but the signature."""

    value: Any


@dataclass(frozen=True)
class ViewOfInput:
    """An output in an input's memory. ``layout`` is None where the output is the input itself."""

    index: int
    layout: tuple[torch.Size, tuple[int, ...], int] | None  # sizes, strides, offset from the input's own


@dataclass(frozen=True)
class Owned:
    """An output in the graph's memory. ``slot`` counts the distinct ones."""

    slot: int


class OutputPlan:
    """Turns the tensors a graph writes into what a call returns."""

    def __init__(self, outputs: Sequence[Any], arguments: Sequence[Any], *, clone: bool) -> None:
        """``arguments`` are the tensors and values the graph was captured with, ``outputs`` what it returned."""
        self._clone = clone
        self._owned: list[Tensor] = []
        self._steps = [self._step(output, arguments) for output in outputs]
        views = [copyable(tensor) for tensor in self._owned]
        groups: dict[torch.dtype, list[int]] = {}
        for slot, tensor in enumerate(self._owned):
            groups.setdefault(tensor.dtype, []).append(slot)
        self._groups = [
            (slots, [views[slot] for slot in slots], all(views[slot] is self._owned[slot] for slot in slots))
            for slots in groups.values()
        ]

    def _step(self, output: Any, arguments: Sequence[Any]) -> Constant | ViewOfInput | Owned:
        if not isinstance(output, Tensor):
            return Constant(output)
        for index, argument in enumerate(arguments):
            if output is argument:
                return ViewOfInput(index, None)
        for index, argument in enumerate(arguments):
            if isinstance(argument, Tensor) and _same_memory(output, argument):
                offset = int(output.storage_offset() - argument.storage_offset())
                return ViewOfInput(index, (output.shape, output.stride(), offset))
        for slot, owned in enumerate(self._owned):
            if owned is output:
                return Owned(slot)
        self._owned.append(output)
        return Owned(len(self._owned) - 1)

    def results(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of the replay just submitted, given the caller's inputs. Gradients must be disabled."""
        owned = self._cloned() if self._clone else self._owned
        results: list[Any] = []
        for step in self._steps:
            if isinstance(step, Owned):
                results.append(owned[step.slot])
            elif isinstance(step, Constant):
                results.append(step.value)
            elif step.layout is None:
                results.append(inputs[step.index])
            else:
                tensor = inputs[step.index]
                sizes, strides, offset = step.layout
                results.append(tensor.as_strided(sizes, strides, tensor.storage_offset() + offset))
        return results

    def _cloned(self) -> list[Tensor]:
        clones = [
            torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
            for tensor in self._owned
        ]
        for slots, sources, plain in self._groups:
            targets = [clones[slot] if plain else copyable(clones[slot]) for slot in slots]
            copy_all(targets, sources)
        return clones


def _same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether ``a`` is a view of the storage of ``b`` that a strided view of ``b`` can express."""
    return (
        a.numel() > 0
        and a.dtype == b.dtype
        and a.device == b.device
        and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    )
