"""The stages of the compilation: how long each took, in which region."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from compiler.report import Stage
from views import format as fmt
from views.progress_panel import STAGES
from views.theme import Theme, mix
from views.widgets import as_panel

_ROW = 26


class StagesPanel(QScrollArea):
    """One bar a stage, its length the share of the longest."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.bars = _Bars(theme)
        page = QWidget()
        as_panel(page)
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 10, 14, 10)
        column.addWidget(self.bars)
        column.addStretch()
        self.setWidget(page)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.bars.set_theme(theme)

    def set_stages(self, stages: list[Stage]) -> None:
        """Show these stages."""
        self.bars.set_stages(stages)


class _Bars(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._stages: list[Stage] = []
        self.setAccessibleName("Stages and their times")

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_stages(self, stages: list[Stage]) -> None:
        self._stages = stages
        total = sum(stage.ms for stage in stages)
        self.setAccessibleDescription(
            f"{fmt.milliseconds(total)} in all. "
            + " ".join(f"{_name(stage)} {fmt.milliseconds(stage.ms)}." for stage in stages)
        )
        self.setMinimumHeight(_ROW * (len(stages) + 1))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, _ROW * (len(self._stages) + 1))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        total = sum(stage.ms for stage in self._stages)
        longest = max((stage.ms for stage in self._stages), default=1.0) or 1.0
        left, figures = 210, 90
        room = max(60, min(self.width() - left - figures, 620))
        side = Qt.AlignmentFlag.AlignVCenter
        for row, stage in enumerate([*self._stages, Stage("All stages", total)]):
            top = row * _ROW
            last = row == len(self._stages)
            painter.setPen(theme.text)
            painter.drawText(QRectF(0, top, left - 10, _ROW), side, _name(stage))
            if not last:
                painter.setPen(theme.muted)
                painter.drawText(QRectF(110, top, left - 120, _ROW), side, stage.region)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(mix(theme.surface, theme.muted, 0.18))
                painter.drawRoundedRect(QRectF(left, top + 9, room, 8), 4, 4)
                painter.setBrush(theme.accent)
                painter.drawRoundedRect(QRectF(left, top + 9, max(3.0, room * stage.ms / longest), 8), 4, 4)
            painter.setPen(theme.text)
            where = QRectF(left + room + 8, top, figures - 8, _ROW)
            painter.drawText(where, side | Qt.AlignmentFlag.AlignRight, fmt.milliseconds(stage.ms))
        painter.end()


def _name(stage: Stage) -> str:
    return STAGES.get(stage.name, stage.name)
