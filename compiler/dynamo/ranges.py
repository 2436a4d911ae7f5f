"""Leaving Dynamo's profiler ranges out of what is compiled now."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.callback import callback_handler
from torch._guards import CompileContext


def leave_out_profiler_ranges() -> None:
    """Until the compilation under way ends, Dynamo and AOTAutograd generate code without ranges for profilers.

    Such a range is entered and left at every call before the graph is, with or without a profiler, and takes as long
    as the launch of a small graph. Called from a backend it comes before Dynamo's code for the call is generated.
    Nothing else changes, and a setting of the user's own is back when the compilation has ended.
    """
    config = torch._dynamo.config
    if not getattr(config, "record_runtime_overhead", False) or CompileContext.try_get() is None:
        return
    config.record_runtime_overhead = False

    def restore(_: Any) -> None:
        # It is the last of the list, so none is passed over while the list is walked. Not a context manager of the
        # setting, for where two threads compile at once the later one to end calls this.
        callback_handler.remove_end_callback(restore)
        config.record_runtime_overhead = True

    callback_handler.register_end_callback(restore)
