"""The quickest core at the moment: on a host that others share some run at half the speed of their neighbours."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator

RUNS = 7  # of the work, on each core; about a millisecond each
OBJECTS = 20_000  # more than a core's first cache holds


@contextlib.contextmanager
def quickest_core() -> Iterator[int]:
    """The calling thread stays on the core, of those it may use, that does the same work in the least time.

    Threads that it starts meanwhile stay there as well; those that run already do not.
    """
    allowed = os.sched_getaffinity(0)
    things = [object() for _ in range(OBJECTS)]
    try:
        core = min(sorted(allowed), key=lambda core: _seconds_on(core, things))
        os.sched_setaffinity(0, {core})
        yield core
    finally:
        os.sched_setaffinity(0, allowed)


def _seconds_on(core: int, things: list[object]) -> float:
    os.sched_setaffinity(0, {core})
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        dict.fromkeys(things)
        times.append(time.perf_counter() - began)
    return statistics.median(times)
