"""The status bar's fields: the report's target, torch's version, the worker's state."""

from __future__ import annotations

import platform

from PySide6.QtWidgets import QHBoxLayout, QLabel, QStatusBar, QWidget

from app.worker.protocol import Ready
from views.compile.worker_bridge import WorkerBridge

_READY = "Worker: ready"


class StatusFields:
    """What is told of the report, then two labels at the right end."""

    def __init__(self, bar: QStatusBar, bridge: WorkerBridge, meter: QWidget) -> None:
        self.target, self.torch, self.worker = QLabel(), QLabel(), QLabel()
        self._of_report = QWidget()
        row = QHBoxLayout(self._of_report)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(meter)
        row.addWidget(self.target)
        bar.addPermanentWidget(self._of_report)
        for name, field in (("target", self.target), ("torch", self.torch), ("worker", self.worker)):
            field.setAccessibleName(f"Status: {name}")
            if field is not self.target:
                bar.addPermanentWidget(field)
            field.hide()  # until it has something to tell
        bar.setSizeGripEnabled(False)
        bridge.started.connect(lambda: _tell(self.worker, "Worker: starting"))

    @property
    def is_ready(self) -> bool:
        """Whether the worker said that it is ready."""
        return self.worker.text() == _READY

    def show_ready(self, event: Ready) -> None:
        """The worker is up."""
        _tell(self.worker, _READY)
        _tell(self.torch, f"torch {event.versions.get('torch', '?')}")

    def show_target(self, title: str) -> None:
        """What the report on screen was compiled for."""
        _tell(self.target, f"Target: {title}")

    def show_report_fields(self, on: bool) -> None:
        """Whether a report is on screen, to which the first fields belong."""
        self._of_report.setVisible(on)

    def clear(self) -> None:
        """No report is open."""
        self.target.hide()

    def show_died(self, *, no_torch: bool) -> None:
        """The worker ended."""
        _tell(self.worker, "Worker: torch is not installed" if no_torch else "Worker: starting again")

    def versions(self) -> list[tuple[str, str]]:
        """What runs here, for the About box."""
        from PySide6 import __version__

        worker = self.torch.text() or self.worker.text().removeprefix("Worker: ") or "not started"
        return [("Python", platform.python_version()), ("Qt", __version__), ("Worker", worker)]


def _tell(field: QLabel, text: str) -> None:
    field.setText(text)
    field.show()
