"""How one tensor is a view of another, so that the same view can be had of a third."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from compiler.runtime.flags import Flags, differing, flags, flipped
from compiler.runtime.signature import extent_bytes


@dataclass(frozen=True)
class View:
    """``offset`` and ``extent`` are bytes: from the other tensor's first element on, and to the view's last.

    ``dtype`` is None where it is the other's; ``flips`` are then the flags in which the two differ, else the view's.
    """

    size: torch.Size
    stride: tuple[int, ...]
    offset: int
    extent: int
    dtype: torch.dtype | None
    flips: Flags

    def of(self, base: Tensor) -> Tensor:
        """The view of another tensor; call it without gradients. Writes to either count for both."""
        behind, rest = divmod(self.offset, base.element_size())
        begin = base.storage_offset() + behind
        if self.dtype is None:
            return flipped(base.as_strided(self.size, self.stride, begin), self.flips)
        bare = flipped(base, flags(base))
        count = -(-(rest + self.extent) // base.element_size())
        elements = bare.as_strided((count,), (1,), begin).view(self.dtype)
        first = elements.storage_offset() + rest // self.dtype.itemsize
        return flipped(elements.as_strided(self.size, self.stride, first), self.flips)


def view_of(tensor: Tensor, base: Tensor) -> View | None:
    """How ``tensor`` is a view of ``base``; None where it is in other memory."""
    ours, theirs = tensor.untyped_storage(), base.untyped_storage()
    address = ours.data_ptr()
    shared = ours._cdata == theirs._cdata or (address != 0 and address == theirs.data_ptr())
    if not shared or tensor.device != base.device:
        return None
    begin, base_begin = (int(each.storage_offset()) * each.element_size() for each in (tensor, base))
    same = tensor.dtype is base.dtype
    return View(
        tensor.shape,
        tensor.stride(),
        begin - base_begin,
        extent_bytes(tensor),
        None if same else tensor.dtype,
        differing(tensor, base) if same else flags(tensor),
    )
