"""Which kernels an iteration launches, as the profiler sees them. A pass of its own: traced time is not timed."""

from __future__ import annotations

from collections.abc import Callable


def launched_kernels(step: Callable[[], object]) -> list[str]:
    """Names of the kernels of one call of ``step`` in the order they ran, without copies and fills by the driver."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        step()
        torch.cuda.synchronize()
    events = [event for event in trace.events() if event.device_type.name == "CUDA"]
    events.sort(key=lambda event: event.time_range.start)
    return [event.name for event in events if not event.name.startswith(("Memcpy", "Memset"))]
