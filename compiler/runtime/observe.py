"""Which step of a compiled region does what: regions tell an observer where each step begins, while one listens.

While nobody listens a region runs its plain wrapper. Listeners are a capture, which asks which nodes of the graph a
step issued, and a trace, which asks which launches it made.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from compiler.runtime import driver

# Called with the names of a region and of the step (fusion group or extern call) that begins; with "" and "" where
# what follows is no region's.
Mark = Callable[[str, str], None]
Units = dict[int, tuple[str, str]]  # handle of a graph node -> region and step that issued it
NO_STEP = ("", "")  # what stands for them between regions


class Observer:
    """Shared by the regions of one compilation. ``mark`` is None while nobody listens."""

    def __init__(self) -> None:
        self.mark: Mark | None = None


class StepLog:
    """Listens only for which ``step`` is running; "" between regions."""

    def __init__(self) -> None:
        self.step = ""

    def __call__(self, region: str, unit: str) -> None:
        self.step = unit


class NodeLog:
    """Listens during a capture: the nodes that are new in the graph since the last mark are the last step's.

    That is exact, for it asks the driver for the graph as it grows. A region may run on any thread, as a backward does.
    """

    def __init__(self, device: torch.device, nodes_now: Callable[[], list[int]] | None = None) -> None:
        """``nodes_now`` lists the graph's nodes; the driver is asked by default."""
        self._device = device
        self._nodes_now = nodes_now or self._captured_nodes
        self._current = NO_STEP
        self._last: int | None = None
        self.units: Units = {}

    def __call__(self, region: str, unit: str) -> None:
        """Give the new nodes to the step before this one."""
        nodes = self._nodes_now()
        known = len(self.units)
        # The driver lists nodes as they were added, so those before the last known one need no second look.
        appended = 0 < known <= len(nodes) and nodes[known - 1] == self._last
        for node in nodes[known:] if appended else nodes:
            self.units.setdefault(node, self._current)
        self._last = nodes[-1] if nodes else None
        self._current = (region, unit)

    @property
    def step(self) -> str:
        """The step that is running, or ""."""
        return self._current[1]

    def _captured_nodes(self) -> list[int]:
        graph = driver.capturing_graph(torch._C._cuda_getCurrentRawStream(self._device.index))
        return driver.nodes(graph) if graph is not None else []
