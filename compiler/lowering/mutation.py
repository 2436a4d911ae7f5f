"""What a graph leaves in its inputs: a copy into one becomes a loop that writes there."""

from __future__ import annotations

import torch

from compiler.ir import Lazy
from compiler.lowering.registry import Scope, lower


@lower(torch.ops.aten.copy_.default)
def copy_(scope: Scope, target: Lazy, source: Lazy, non_blocking: bool = False) -> Lazy:
    """The target's memory with the source's elements; ``extern.copies_into_input`` says which copies come here."""
    return scope.overwrite(target, source)
