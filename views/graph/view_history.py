"""Undo and redo of how the graph is looked at: grouping, open boxes, colours, camera, filters, search, pin."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.filters import Filter
from app.layout.folding import Folding
from views.canvas.camera import Camera
from views.selection.selection import Selection


@dataclass(frozen=True)
class Around:
    """What the graph is looked at through: the filters of the window, what is searched for, and what is pinned."""

    filters: tuple[Filter, ...] = ()
    search: str = ""
    pinned: Selection | None = None

    def goes_on(self, before: Around) -> bool:
        """Whether only more, or less, of the same search was typed: one step for an undo."""
        if (self.filters, self.pinned) != (before.filters, before.pinned):
            return False
        shorter, longer = sorted((self.search, before.search), key=len)
        return bool(shorter) and longer.startswith(shorter)


@dataclass(frozen=True)
class ViewState:
    """How a region is looked at. ``folding`` is None where it is not grouped by modules."""

    region: str
    grouping: str
    overlay: str
    camera: Camera
    folding: Folding | None = None
    around: Around = Around()


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
