"""Dynamo's guard on hooks for saved tensors, which what is never differentiated can do without."""

from __future__ import annotations

import torch
from torch._guards import TracingContext

_GUARD = "AUTOGRAD_SAVED_TENSORS_HOOKS"


def is_all_of_a_frame(gm: torch.fx.GraphModule) -> bool:
    """Whether Dynamo captured the graph as it is. What is between it and a backend may cut it, as DDP's optimizer does,
    and some parts may be trained and others not."""
    return "dynamo_compile_id" in gm.meta


def leave_out_hooks_guard() -> None:
    """Let the frame under compilation serve calls under any ``torch.autograd.graph.saved_tensors_hooks``.

    Only right where all of the frame's graph is an inference graph: whatever the hooks are, nothing is saved. The guard
    is there because AOTAutograd may inline hooks into a forward and a backward. Of those on every frame it is the one
    that runs in Python, four functions deep: a tenth of the time of a call with a small graph.
    """
    context = TracingContext.try_get()
    if context is not None:
        guards = context.guards_context.dynamo_guards
        for guard in [guard for guard in guards if guard.create_fn_name() == _GUARD]:
            guards.inner.discard(guard)
