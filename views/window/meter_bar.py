"""The provenance meter in the status bar: how much of the report is traced back, exactly or by inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from compiler.report import Report
from views.background.jobs import Job
from views.look.theme import Theme, mix

if TYPE_CHECKING:
    from app.meter import Meter, Share

_BAR = 74  # pixels
_LINKS = (
    ("nodes", "ops lead to a line of the model"),
    ("kernels", "kernels lead to ops"),
    ("source_lines", "lines of generated kernels lead to ops"),
    ("ir_lines", "lines of the lower levels lead to a kernel's line"),
    ("time", "time leads to ops"),
)


class MeterBar(QWidget):
    """One bar over all links; the tool tip has each by itself."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._job: Job | None = None
        self._meter: Meter | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Provenance")
        self.setVisible(False)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self.update()

    def set_report(self, report: Report, known: Meter | None = None) -> None:
        """Show what its session knows; else measure it off the GUI thread, for that reads every text."""
        if self._job is not None:
            self._job.cancel()
            self._job = None
        if known is not None:
            self._measured(known)
            return
        self.setVisible(False)
        from app.meter import meter  # with patterns that opening the window need not wait for

        self._job = Job(lambda cancelled: meter(report), self)
        self._job.done.connect(self._measured)
        self._job.start()

    def clear(self) -> None:
        """No report is open."""
        if self._job is not None:
            self._job.cancel()
        self._job = self._meter = None
        self.setVisible(False)

    def refresh(self, report: Report) -> None:
        """A run has left its times in the report shown; nothing else of it has changed."""
        if self._meter is None or self._job is not None:
            self.set_report(report)
            return
        from app.meter import with_time

        self._measured(with_time(self._meter, report))

    @property
    def meter(self) -> Meter | None:
        """What is shown."""
        return self._meter

    def sizeHint(self) -> QSize:
        """The bar and its text."""
        return QSize(_BAR + 12 + self.fontMetrics().horizontalAdvance("Traced back 100%"), 18)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Exact, then inferred, in what is left of the whole."""
        if self._meter is None:
            return
        exact, inferred = overall(self._meter)
        theme = self._theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            bar = QRectF(0, self.height() / 2 - 4, _BAR, 8)
            painter.setBrush(mix(theme.window, theme.muted, 0.3))
            painter.drawRoundedRect(bar, 4, 4)
            painter.setBrush(mix(theme.window, theme.success, 0.45))
            painter.drawRoundedRect(QRectF(bar.left(), bar.top(), bar.width() * (exact + inferred), 8), 4, 4)
            painter.setBrush(theme.success)
            if exact > 0:
                painter.drawRoundedRect(QRectF(bar.left(), bar.top(), bar.width() * exact, 8), 4, 4)
            painter.setPen(theme.muted)
            text = QRectF(_BAR + 8, 0, self.width() - _BAR - 8, self.height())
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, f"Traced back {_percent(exact + inferred)}")

    def _measured(self, found: Meter) -> None:
        self._job = None
        self._meter = found
        self.setToolTip(meter_text(found))
        self.setAccessibleDescription(meter_text(found))
        self.setVisible(any(getattr(found, name).total for name, _ in _LINKS))
        self.update()


def overall(found: Meter) -> tuple[float, float]:
    """(exact, inferred) shares, 0..1, over the links that the report has, each link counting the same."""
    shares: list[Share] = [share for name, _ in _LINKS if (share := getattr(found, name)).total]
    if not shares:
        return 1.0, 0.0
    return (
        sum(share.exact / share.total for share in shares) / len(shares),
        sum(share.inferred / share.total for share in shares) / len(shares),
    )


def meter_text(found: Meter) -> str:
    """Every link with its share, a line each."""
    from app.meter import share_text

    lines = ["How much of this report is traced back to where it came from:"]
    for name, text in _LINKS:
        share: Share = getattr(found, name)
        if name == "time":
            text = f"of the {'measured' if found.time_measured else 'estimated'} {text}"
        if share.total:
            lines.append(f"{share_text(share)} {text}")
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{min(round(share * 100), 99 if share < 1 else 100)}%"
