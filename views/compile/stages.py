"""The stages of the compilation: how long each took, and what it does, in three sentences."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.filtered import hides_stage
from app.filters import Kept
from compiler.report import Stage
from views.compile.progress import stage_title
from views.compile.stage_texts import explanation
from views.look import format as fmt
from views.look.sizes import fitted, px
from views.look.theme import Theme, mix
from views.selection.hidden_note import HiddenNote, hidden_text
from views.tables.table_menu import csv_text
from views.widgets.basic import add_copy, as_panel, label
from views.widgets.empty import Empty

_ROW = 26
_FAINT = 0.38
_LEAST_TEXT_WIDTH, _TEXT_WIDTH = 230, 380
_BAR = 620  # pixels of the longest bar at most
_NAME, _MOST_NAME, _PAD = 104, 190, 12  # pixels of a stage's name, and before and after a region's
_WIDTH = 14 + 210 + _BAR + 90 + 4 + 16 + _TEXT_WIDTH + 14


class StagesPanel(QWidget):
    """One bar a stage, its length the share of the longest; a click explains it.

    A stage works on a whole region: it is faint where the filters leave nothing of its region.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        as_panel(self)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        self._content = QWidget()
        fitted(self, lambda: self._content.setMaximumWidth(px(_WIDTH)))  # bars and text stay beside each other
        whole.addWidget(self._content, 1000)
        self._empty = Empty("stages", theme, "Nothing is known of the stages of this compilation.")
        whole.addWidget(self._empty, 1000)
        whole.addStretch(1)
        row = QHBoxLayout(self._content)
        row.setContentsMargins(0, 0, 14, 0)
        row.setSpacing(16)
        self._stages: list[Stage] = []
        self._kept: dict[str, Kept] | None = None
        self.bars = _Bars(theme)
        self.bars.chosen.connect(self._explain)
        page = QWidget()
        as_panel(page)
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 10, 4, 10)
        self.note = HiddenNote()
        column.addWidget(self.note)
        column.addWidget(self.bars)
        column.addStretch()
        scroll = QScrollArea()
        scroll.setAccessibleName("Stages, scrolled")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(page)
        row.addWidget(scroll, 3)
        self._card = QFrame()
        self._card.setProperty("role", "card")
        texts = QVBoxLayout(self._card)
        texts.setContentsMargins(14, 12, 14, 12)
        self._title = label("", "strong")
        texts.addWidget(self._title)
        self.text = label("", wrap=True, selectable=True)
        texts.addWidget(self.text)
        side = QVBoxLayout()
        side.setContentsMargins(0, 12, 0, 12)
        side.addWidget(self._card)
        side.addStretch()
        row.addLayout(side, 2)
        self.set_stages([])

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.bars.set_theme(theme)
        self._empty.set_theme(theme)

    def set_stages(self, stages: list[Stage]) -> None:
        """Show these stages, the longest explained."""
        self._stages = stages
        self.bars.set_stages(stages)
        self._content.setVisible(bool(stages))
        self._empty.setVisible(not stages)
        if stages:
            self.bars.choose(max(range(len(stages)), key=lambda i: stages[i].ms))
        self._filter()

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """What the filters leave, by region; None for everything."""
        self._kept = kept
        self._filter()

    def _filter(self) -> None:
        hidden = frozenset(row for row, stage in enumerate(self._stages) if hides_stage(stage, self._kept))
        self.bars.fade(hidden)
        if self._kept is None or not self._stages:
            self.note.tell("")
        elif not hidden:
            self.note.tell("Stages work on whole regions: the filters hide none of them.")
        else:
            spent = fmt.milliseconds(sum(self._stages[row].ms for row in hidden))
            of_all = hidden_text(len(hidden), len(self._stages), "stage", "faint")
            self.note.tell(f"{of_all.removesuffix('.')}, {spent} of other regions.")

    def _explain(self, stage: Stage) -> None:
        self._title.setText(f"{stage_title(stage.name)}  ·  {fmt.milliseconds(stage.ms)}")
        self.text.setText(explanation(stage.name))
        self._fit_text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The text shares the room with the bars."""
        super().resizeEvent(event)
        self._fit_text()

    def _fit_text(self) -> None:
        """As wide as there is room for, and no higher than its lines."""
        width = max(px(_LEAST_TEXT_WIDTH), min(self.width() * 2 // 5 - 14, px(_TEXT_WIDTH)))
        self._card.setFixedSize(width, self._card.layout().totalHeightForWidth(width))


class _Bars(QWidget):
    chosen = Signal(object)  # Stage

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._stages: list[Stage] = []
        self._chosen = -1
        fitted(self, self._take_height)
        self.faint: frozenset[int] = frozenset()
        self.setAccessibleName("Stages and their times")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        add_copy(self, self.csv_text)

    def csv_text(self) -> str:
        """Stage, region, milliseconds."""
        return csv_text(("stage", "region", "ms"), ((stage.name, stage.region, stage.ms) for stage in self._stages))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_stages(self, stages: list[Stage]) -> None:
        self._stages = stages
        self._chosen = -1
        total = sum(stage.ms for stage in stages)
        self.setAccessibleDescription(
            f"{fmt.milliseconds(total)} in all. "
            + " ".join(f"{stage_title(stage.name)} {fmt.milliseconds(stage.ms)}." for stage in stages)
        )
        self._take_height()
        self.update()

    def _take_height(self) -> None:
        self.setMinimumHeight(px(_ROW * (len(self._stages) + 1)))
        self.updateGeometry()

    def fade(self, rows: frozenset[int]) -> None:
        """Paint these rows faintly."""
        self.faint = rows
        self.update()

    def choose(self, row: int) -> None:
        """Explain a stage."""
        if 0 <= row < len(self._stages):
            self._chosen = row
            self.chosen.emit(self._stages[row])
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.choose(int(event.position().y() / self._theme.zoom // _ROW))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.choose(self._chosen + step)

    @property
    def name_width(self) -> int:
        """Up to where regions may begin, in the units that are drawn in: every compiler has names of its own."""
        measure = QFontMetrics(self._theme.unzoomed().ui_font()).horizontalAdvance
        widest = max((measure(stage_title(stage.name)) for stage in self._stages), default=0)
        return min(max(widest + 8, _NAME), _MOST_NAME)

    def _region_width(self, room: float) -> float:
        """What the regions' names take of ``room``, which bars share; the only one of a report goes without saying."""
        names = {stage.region for stage in self._stages} - {""}
        if len(names) < 2:
            return 2 * _PAD
        widest = max(map(QFontMetrics(self._theme.unzoomed().ui_font()).horizontalAdvance, names))
        return max(min(widest + 2 * _PAD + 2, room - 80), 66)

    def sizeHint(self) -> QSize:
        return QSize(px(400), px(_ROW * (len(self._stages) + 1)))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, width = self._theme.unzoomed(), int(self.width() / self._theme.zoom)
        painter = QPainter(self)
        painter.scale(self._theme.zoom, self._theme.zoom)
        painter.setFont(theme.ui_font())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        total = sum(stage.ms for stage in self._stages)
        longest = max((stage.ms for stage in self._stages), default=1.0) or 1.0
        figures = 90 if width > 420 else 78
        metrics = painter.fontMetrics()
        name = self.name_width
        left = name + self._region_width(width - name - figures)
        room = max(24, min(width - left - figures, _BAR))
        side = Qt.AlignmentFlag.AlignVCenter
        for row, stage in enumerate([*self._stages, Stage("All stages", total)]):
            top = row * _ROW
            last = row == len(self._stages)
            if row == self._chosen:
                painter.setOpacity(1.0)
                painter.setPen(theme.accent if self.hasFocus() else Qt.PenStyle.NoPen)
                painter.setBrush(mix(theme.surface, theme.accent, 0.1))
                painter.drawRoundedRect(QRectF(0.5, top + 1.5, left + room + figures - 1.5, _ROW - 3), 5, 5)
            painter.setOpacity(_FAINT if row in self.faint else 1.0)
            painter.setPen(theme.text)
            title = metrics.elidedText(stage_title(stage.name), Qt.TextElideMode.ElideRight, name)
            painter.drawText(QRectF(6, top, left - 6, _ROW), side, title)
            if not last:
                if beside := max(left - name - 2 * _PAD, 0):
                    painter.setPen(theme.muted)
                    region = metrics.elidedText(stage.region, Qt.TextElideMode.ElideMiddle, beside)
                    painter.drawText(QRectF(name + _PAD, top, beside + 2, _ROW), side, region)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(mix(theme.surface, theme.muted, 0.18))
                painter.drawRoundedRect(QRectF(left, top + 9, room, 8), 4, 4)
                painter.setBrush(theme.accent)
                painter.drawRoundedRect(QRectF(left, top + 9, max(3.0, room * stage.ms / longest), 8), 4, 4)
            painter.setPen(theme.text)
            where = QRectF(left + room + 8, top, figures - 16, _ROW)
            painter.drawText(where, side | Qt.AlignmentFlag.AlignRight, fmt.milliseconds(stage.ms))
        painter.end()
