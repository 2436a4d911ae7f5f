"""What panels have still to be told: only the one in sight is told at once, the others when they are looked at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

REPORT, KEPT, REGION, SELECTION = "report", "kept", "region", "selection"
_ORDER = (REPORT, KEPT, REGION, SELECTION)  # each outdates what was told of those after it


class Feed:
    """Keeps the latest word on each topic for every panel that is out of sight."""

    def __init__(self) -> None:
        self._due: dict[QWidget, dict[str, Callable[[], object]]] = {}

    def tell(self, panel: QWidget, topic: str, call: Callable[[], object], *, now: bool) -> None:
        """Call ``call`` now, or keep it for ``catch_up`` in place of what it outdates."""
        due = self._due.setdefault(panel, {})
        for later in _ORDER[_ORDER.index(topic) :]:
            due.pop(later, None)
        due[topic] = call
        if now:
            self.catch_up(panel)

    def catch_up(self, panel: QWidget) -> None:
        """Tell a panel what it has missed, in the order report, filters, region, selection."""
        due = self._due.pop(panel, {})
        for topic in _ORDER:
            if topic in due:
                due[topic]()
