"""Undo and redo of how the graph is looked at: grouping, open boxes, colours, where the camera is."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.layout.nested import Folding
from views.canvas.camera import Camera


@dataclass(frozen=True)
class ViewState:
    """How a region is looked at. ``folding`` is None where it is not grouped by modules."""

    region: str
    grouping: str
    overlay: str
    camera: Camera
    folding: Folding | None = None


@dataclass
class ViewHistory:
    """Views that were left, and those that Undo left."""

    limit: int = 100
    before: list[ViewState] = field(default_factory=list)
    after: list[ViewState] = field(default_factory=list)

    def leave(self, state: ViewState) -> None:
        """Something is about to change; what lay ahead is forgotten."""
        if not self.before or self.before[-1] != state:
            self.before = [*self.before, state][-self.limit :]
        self.after = []

    def undo(self, current: ViewState) -> ViewState | None:
        """The view before, or None."""
        while self.before:
            state = self.before.pop()
            if state != current:
                self.after.append(current)
                return state
        return None

    def redo(self, current: ViewState) -> ViewState | None:
        """The view that Undo left, or None."""
        while self.after:
            state = self.after.pop()
            if state != current:
                self.before.append(current)
                return state
        return None

    def clear(self) -> None:
        """Another report: its predecessor's views mean nothing."""
        self.before, self.after = [], []
