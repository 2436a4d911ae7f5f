"""What library calls return, beside what was known of it when the code that reads it was generated.

Sizes, strides and dtypes of a call's results are what torch says of them without running the call. Now and then it is
mistaken (of ``_batch_norm_with_update`` in bfloat16 it says that the statistics are float32), and a kernel that takes
the memory for something else computes nonsense. So the first call of a region compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.collectives import COLLECTIVES, arrived
from compiler.errors import CompileError


class Conform:
    """``conform(tensor, size, stride, dtype, reader)``: the tensor as it was expected to be.

    That is the tensor itself but where it differs; ``differed`` tells whether any has, so that later calls need not
    compare where none did. What a region was compiled for does not change between its calls.
    """

    def __init__(self) -> None:
        self.differed = False

    def __call__(
        self, tensor: Any, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, op: str, read: bool
    ) -> Any:
        """``op`` is the call's name; ``read`` says that a kernel reads the result.

        Raises:
            CompileError: a kernel reads it, and it has another size.
        """
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            return tensor
        if tuple(tensor.shape) != tuple(size):
            if not read:
                return tensor
            raise CompileError(
                f"{op} returned a tensor of size {tuple(tensor.shape)} where torch said that it would be {tuple(size)}",
                stage="run",
                hint="Report the op to PyTorch, and leave it out of the compiled region (torch._dynamo.disable).",
            )
        strides = zip(tensor.stride(), stride, size, strict=True)
        if tensor.dtype is dtype and (not tensor.numel() or all(a == b or n == 1 for a, b, n in strides)):
            return tensor
        self.differed = True
        if op.startswith(COLLECTIVES):
            tensor = arrived(tensor)
        return _laid_out(tensor, size, stride, dtype)


def _laid_out(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A copy with these strides and this dtype; along dimensions of stride 0 all elements are the first."""
    held = [1 if step == 0 else count for count, step in zip(size, stride, strict=True)]
    copy = torch.empty_strided(held, stride, dtype=dtype, device=tensor.device)
    copy.copy_(tensor[tuple(slice(count) for count in held)])
    return copy.as_strided(size, stride)
