"""Two modes compared: medians, their difference with its interval, and whether that is more than noise."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from app.statistics import Comparison, compare_medians
from views.background.jobs import Job
from views.charts.chart import Chart
from views.charts.scale import Scale, in_unit, time_unit
from views.look import format as fmt
from views.look.theme import Theme, mix
from views.run.modes import mode_title
from views.run.record import RunRecord
from views.widgets.basic import ElidedLabel, label

_ROW = 56.0
_FOOT = 34.0  # ticks, and which side is which
_MARGIN = 36  # half of a tick's text stands outside of the scale
_FIGURES = ("CPU time to submit", "GPU time")


def sentence(a: str, b: str, found: Comparison) -> str:
    """What may be said of mode ``b`` against mode ``a``."""
    interval = f"{signed(found.low)} to {signed(found.high)}"
    if found.verdict == "noise":
        return f"No difference beyond noise: {found.confidence:.0%} interval {interval} holds zero."
    fast = found.median_a / found.median_b if found.median_b else 0.0
    ratio = f", {abs(found.difference) / found.median_a:.1%}" if found.median_a else ""
    if found.verdict == "faster" and fast >= 1.2:
        ratio = f", {fmt.ratio(fast)} as fast"
    elif found.verdict == "slower" and 0 < fast <= 0.5:
        ratio = f", {fmt.ratio(1 / fast)} as long"
    return f"{mode_title(b)} is {found.verdict} by {_plain(found.difference)}{ratio} ({interval})."


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{'−' if value < 0 else '+'}{fmt.microseconds(abs(value))}"


def _plain(value: float) -> str:
    return fmt.microseconds(abs(value))


class ComparePlot(Chart):
    """Intervals around zero, a row a figure."""

    def __init__(self, theme: Theme) -> None:
        super().__init__("Comparison of two modes", theme)
        self._modes = ("", "")
        self._found: dict[str, Comparison] = {}

    def show_found(self, a: str, b: str, found: dict[str, Comparison]) -> None:
        """Draw other comparisons, of ``b`` against ``a``."""
        self._modes, self._found = (a, b), found
        texts = [f"{figure}: {sentence(a, b, one)}" for figure, one in found.items()]
        self.setAccessibleDescription(" ".join(texts))
        self.redraw()

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """The sentences, and below each its interval."""
        theme = self.theme
        if not self._found:
            painter.setPen(theme.muted)
            text = "Two modes with at least eight recorded iterations are needed."
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
            return
        reach = max(max(abs(one.low), abs(one.high)) for one in self._found.values()) * 1.15 or 1.0
        room = min(area.width() - 2 * _MARGIN, 760.0)
        x = Scale(-reach, reach, area.left() + _MARGIN, area.left() + _MARGIN + room)
        height = max(_ROW, min(78.0, (area.height() - _FOOT) / len(self._found)))
        for row, (figure, one) in enumerate(self._found.items()):
            place = QRectF(area.left(), area.top() + row * height, area.width(), height)
            self._paint_row(painter, figure, one, x, place)
        bottom = area.top() + height * len(self._found)
        painter.setFont(theme.ui_font(8.5))
        painter.setPen(theme.muted)
        ticks = x.ticks(90.0)
        size, unit = time_unit(reach)
        for value, text in zip(ticks, in_unit(ticks, size), strict=True):
            where = QRectF(x.px(value) - 50, bottom - 2, 100, 15)
            painter.drawText(where, Qt.AlignmentFlag.AlignHCenter, f"{text} {unit}" if value else "0")
        sides = QRectF(x.start, bottom + 13, x.end - x.start, 15)
        name = f"{mode_title(self._modes[1])} is "
        if 2 * painter.fontMetrics().horizontalAdvance(f"{name}slower →") + 20 > sides.width():
            name = ""
        painter.drawText(sides, Qt.AlignmentFlag.AlignLeft, f"← {name}faster")
        painter.drawText(sides, Qt.AlignmentFlag.AlignRight, f"{name}slower →")

    def _paint_row(self, painter: QPainter, figure: str, one: Comparison, x: Scale, row: QRectF) -> None:
        theme = self.theme
        color = {"faster": theme.success, "slower": theme.danger, "noise": theme.muted}[one.verdict]
        strong = theme.ui_font(9.5)
        strong.setWeight(QFont.Weight.DemiBold)
        painter.setFont(strong)
        painter.setPen(theme.text)
        line = QRectF(row.left(), row.top() + 2, row.width() - 30, 18)
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, figure)
        left = painter.fontMetrics().horizontalAdvance(figure) + 12
        painter.setFont(theme.ui_font(9.5))
        painter.setPen(color if one.verdict != "noise" else theme.text)
        text = sentence(*self._modes, one)
        elided = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(line.width() - left))
        painter.drawText(line.adjusted(left, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, elided)
        middle = row.top() + 20 + (row.height() - 20) / 2 - 2
        painter.setPen(QPen(mix(theme.surface, theme.muted, 0.25), 1.0))
        painter.drawLine(QPointF(x.start, middle), QPointF(x.end, middle))
        painter.setPen(QPen(theme.muted, 1.0, Qt.PenStyle.DotLine))
        painter.drawLine(QPointF(x.px(0), row.top() + 22), QPointF(x.px(0), row.bottom() - 2))
        painter.setPen(QPen(color, 5.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        low, high = x.px(one.low), x.px(one.high)
        painter.drawLine(QPointF(low, middle), QPointF(max(high, low + 0.5), middle))
        painter.setPen(QPen(theme.surface, 1.4))
        painter.setBrush(color)
        painter.drawEllipse(QPointF(x.px(one.difference), middle), 5.5, 5.5)


class ComparePage(QWidget):
    """Choose two modes; the intervals are made off the GUI thread."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._record = RunRecord()
        self._job: Job | None = None
        self._shown: tuple[object, ...] = ()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.first, self.second = QComboBox(), QComboBox()
        for box, name in ((self.second, "Mode to compare"), (self.first, "Mode to compare against")):
            box.setAccessibleName(name)
            box.setMinimumWidth(110)
            box.activated.connect(self._chosen)
        row.addWidget(self.second)
        row.addWidget(label("against", "muted"))
        row.addWidget(self.first)
        self._note = ElidedLabel("", "muted", is_sentence=True)
        row.addWidget(self._note, 1)
        column.addLayout(row)
        self.plot = ComparePlot(theme)
        column.addWidget(self.plot, 1)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.plot.set_theme(theme)

    @property
    def found(self) -> dict[str, Comparison]:
        """The comparisons shown."""
        return self.plot._found

    def show_record(self, record: RunRecord) -> None:
        """Offer the modes of ``record`` and compare the two chosen."""
        self._record = record
        modes = [row.mode for row in record.rows()]
        if [self.first.itemData(i) for i in range(self.first.count())] != modes:
            kept = self.first.currentData(), self.second.currentData()
            for box, before, other in ((self.first, kept[0], "compiled"), (self.second, kept[1], "graph")):
                box.clear()
                for mode in modes:
                    box.addItem(mode_title(mode), mode)
                box.setCurrentIndex(max(box.findData(before if before in modes else other), 0))
            if self.first.currentIndex() == self.second.currentIndex() and len(modes) > 1:
                self.second.setCurrentIndex(1 - min(self.first.currentIndex(), 1))
        self._compare()

    def _chosen(self) -> None:
        self._shown = ()
        self._compare()

    def _compare(self) -> None:
        a, b = self.first.currentData(), self.second.currentData()
        if a is None or b is None:
            self.plot.show_found("", "", {})
            return
        one, other = self._record.series(a).recorded, self._record.series(b).recorded
        state = (a, b, len(one[0]), len(other[0]))
        if state == self._shown or self._job is not None:
            return
        self._shown = state
        self._job = Job(lambda cancelled: _compare(one, other), self)
        self._job.done.connect(lambda found: self._done(a, b, found))
        self._job.start()

    def _done(self, a: str, b: str, found: dict[str, Comparison]) -> None:
        self._job = None
        if (a, b) != (self.first.currentData(), self.second.currentData()):
            self._chosen()
            return
        counts = next((one.iterations for one in found.values()), None)
        self._note.setText(f"latest {counts[1]:,} and {counts[0]:,} iterations, block bootstrap" if counts else "")
        self.plot.show_found(a, b, found)


def _compare(one: tuple[object, object], other: tuple[object, object]) -> dict[str, Comparison]:
    made = {figure: compare_medians(one[i], other[i]) for i, figure in enumerate(_FIGURES)}  # type: ignore[arg-type]
    return {figure: found for figure, found in made.items() if found is not None}
