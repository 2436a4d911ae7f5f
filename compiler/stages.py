"""What a compilation tells of its stages while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StageEvent:
    """A stage of a region began (``ms`` None) or ended. ``fraction`` (0..1) is how far the compilation has come."""

    stage: str
    region: str
    fraction: float
    ms: float | None = None


OnStage = Callable[[StageEvent], None]
