"""The modes in which a model runs, as people read them."""

from __future__ import annotations

from collections.abc import Iterable

MODE_TITLES = {
    "eager": "Eager",
    "compiled": "Compiled",
    "graph": "Graph replay",
    "inductor": "Inductor",
    "inductor-graph": "Inductor replay",
}
REPLAYED = {"compiled": "graph", "inductor": "inductor-graph"}  # a mode, and the same with CUDA Graphs


def mode_title(mode: str) -> str:
    """A mode as people read it."""
    return MODE_TITLES.get(mode, mode)


def in_order(modes: Iterable[str]) -> list[str]:
    """The modes as they are listed everywhere."""
    order = list(MODE_TITLES)
    return sorted(modes, key=lambda mode: order.index(mode) if mode in order else len(order))
