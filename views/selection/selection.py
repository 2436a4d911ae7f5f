"""The one selection that every panel follows, with the history that Back and Forward walk."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal


@dataclass(frozen=True)
class Selection:
    """What is selected. ``unit`` is a group or extern call; ``node`` is set when one op of it is in focus."""

    region: str = ""
    unit: str = ""
    node: str = ""
    nodes: frozenset[str] = frozenset()
    line: int = 0  # of the source of the unit's kernel, where a line of one of its levels was chosen

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return not (self.unit or self.nodes)


@dataclass(frozen=True)
class Hint:
    """What the mouse is over: nodes of the region shown, and the lines of a kernel's source that compute them."""

    nodes: frozenset[str] = frozenset()
    kernel: str = ""
    lines: frozenset[int] = frozenset()


@dataclass
class History:
    """A line of selections with a place in it. Selecting anew drops what lay ahead."""

    items: list[Selection] = field(default_factory=lambda: [Selection()])
    position: int = 0
    limit: int = 200

    @property
    def current(self) -> Selection:
        """The selection at the present place."""
        return self.items[self.position]

    def push(self, selection: Selection) -> bool:
        """Go to ``selection``; False where it is the current one already."""
        if selection == self.current:
            return False
        self.items = [*self.items[: self.position + 1], selection][-self.limit :]
        self.position = len(self.items) - 1
        return True

    def step(self, by: int) -> bool:
        """Move ``by`` places; False at an end."""
        target = self.position + by
        if not 0 <= target < len(self.items):
            return False
        self.position = target
        return True


class SelectionModel(QObject):
    """Tells every view when the selection changes. Views call the setters, and listen."""

    changed = Signal(object)  # Selection
    history_changed = Signal(bool, bool)  # can go back, can go forward
    hinted = Signal(object)  # Hint
    pin_changed = Signal(object)  # the Selection that stays, or None

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history = History()
        self._hint = Hint()
        self.pinned: Selection | None = None

    @property
    def current(self) -> Selection:
        """What is selected now."""
        return self._history.current

    def select(self, selection: Selection) -> None:
        """Select, and remember where we were."""
        if self._history.push(selection):
            self._tell()

    def hint(self, hint: Hint) -> None:
        """Something else is under the mouse: views show it lightly, and the selection stays."""
        if hint != self._hint:
            self._hint = hint
            self.hinted.emit(hint)

    def toggle_pin(self) -> None:
        """Keep what is selected in sight while the selection walks on; what was pinned is let go."""
        self.pin(None if self.pinned is not None or self.current.is_empty else self.current)

    def pin(self, selection: Selection | None) -> None:
        """Keep this in sight; None lets go of what was pinned."""
        if selection != self.pinned:
            self.pinned = selection
            self.pin_changed.emit(selection)

    def clear(self) -> None:
        """Select nothing, staying in the region."""
        self.select(Selection(region=self.current.region))

    def back(self) -> None:
        """The selection before this one."""
        if self._history.step(-1):
            self._tell()

    def forward(self) -> None:
        """The selection that Back left."""
        if self._history.step(1):
            self._tell()

    def reset(self, selection: Selection) -> None:
        """Start over, as for another report."""
        self._history = History([selection])
        self.pin(None)
        self._tell()

    def _tell(self) -> None:
        self.changed.emit(self.current)
        history = self._history
        self.history_changed.emit(history.position > 0, history.position < len(history.items) - 1)
