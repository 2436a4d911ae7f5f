"""A captured graph at a glance: how much of an iteration it covers, what each step of its life took, its memory."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter, QPen, QResizeEvent

from compiler.report import CudaGraph
from views.charts.chart import Chart
from views.look import format as fmt
from views.look.theme import Theme, mix

_LEAST_WIDTH, _WIDTH = 100, 190  # pixels of a column, which figures and stations share
_FIGURE, _GAP, _STEPS = 56, 18, 62  # heights of a row of figures, of what is below all of them, of the stations


def lifecycle(graph: CudaGraph) -> list[tuple[str, float]]:
    """(step, milliseconds) in the order that a graph goes through."""
    return [
        ("Warm-up", graph.warmup_ms),
        ("Capture", graph.capture_ms),
        ("Instantiate", graph.instantiate_ms),
        ("Upload", graph.upload_ms),
        ("First replay", graph.first_replay_ms),
    ]


def headlines(graph: CudaGraph) -> list[tuple[str, str]]:
    """(figure, what it is)."""
    found = []
    if graph.covered_kernels is not None:
        found.append((_percent(graph.covered_kernels), "of kernels run inside graphs"))
    if graph.covered_time is not None:
        found.append((_percent(graph.covered_time), "of GPU time runs inside graphs"))
    found += [
        (fmt.count(graph.nodes), "graph nodes" if graph.partitions == 1 else f"nodes in {graph.partitions} partitions"),
        (fmt.size(graph.pool_bytes), "graph pool"),
        (fmt.size(graph.copied_bytes), "copied in before a replay"),
        (fmt.count(graph.captures), "capture" if graph.captures == 1 else "captures"),
    ]
    if graph.fills_as_kernels:
        made = "fill made a kernel" if graph.fills_as_kernels == 1 else "fills made kernels"
        found.append((fmt.count(graph.fills_as_kernels), made))
    found += [(fmt.count(times), f"captured again: {cause}") for cause, times in graph.recaptures.items()]
    if graph.one_stream_us is not None and graph.forked_us is not None:
        several = f"{graph.streams} streams, {fmt.microseconds(graph.one_stream_us)} on one"
        one = f"one stream, {fmt.microseconds(graph.forked_us)} on several"
        took = graph.one_stream_us if graph.streams == 1 else graph.forked_us
        found.append((fmt.microseconds(took), f"a replay on {one if graph.streams == 1 else several}"))
    return found


def _percent(share: float) -> str:
    return "100%" if share >= 0.9995 else f"{share:.1%}"


class LifecycleChart(Chart):
    """Figures above, the steps as a line of stations below."""

    def __init__(self, theme: Theme) -> None:
        super().__init__("CUDA Graph lifecycle", theme)
        self._graph = CudaGraph()

    def set_graph(self, graph: CudaGraph) -> None:
        """Show another graph's facts."""
        self._graph = graph
        texts = [f"{figure} {what}." for figure, what in headlines(graph)]
        texts += [f"{step} {fmt.milliseconds(ms)}." for step, ms in lifecycle(graph)]
        self.setAccessibleDescription(" ".join(texts))
        self._take_height()
        self.redraw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Figures that do not fit beside each other make another row."""
        super().resizeEvent(event)
        self._take_height()

    def _take_height(self) -> None:
        height = self._rows(self.area().width()) * _FIGURE + _GAP + _STEPS
        self.setFixedHeight(round(height * self.enlarged))

    def _columns(self, width: float) -> int:
        """As many as fit, or as few as fill the same rows: none stands alone in its row."""
        count = len(headlines(self._graph))
        fitting = max(1, min(count, int(width // _LEAST_WIDTH)))
        return -(-count // -(-count // fitting))

    def _rows(self, width: float) -> int:
        return -(-len(headlines(self._graph)) // self._columns(width))

    def paint_base(self, painter: QPainter, area: QRectF) -> None:
        """Figures, then stations."""
        theme = self.theme
        columns = self._columns(area.width())
        width = min(area.width() / columns, _WIDTH)
        large = theme.ui_font(14.0)
        large.setWeight(QFont.Weight.DemiBold)
        for number, (figure, what) in enumerate(headlines(self._graph)):
            row, column = divmod(number, columns)
            box = QRectF(area.left() + column * width, area.top() + 2 + row * _FIGURE, width - 8, _FIGURE - 4)
            painter.setFont(large)
            painter.setPen(theme.accent if number < 2 and self._graph.covered_time is not None else theme.text)
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, figure)
            painter.setFont(theme.ui_font(8.5))
            painter.setPen(theme.muted)
            wrap = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
            painter.drawText(box.adjusted(0, 24, 0, 8), wrap, what)
        top = area.top() + self._rows(area.width()) * _FIGURE + _GAP
        steps = lifecycle(self._graph)
        self._paint_steps(painter, steps, QPointF(area.left(), top), min(width, area.width() / len(steps)))

    def _paint_steps(self, painter: QPainter, steps: list[tuple[str, float]], corner: QPointF, width: float) -> None:
        """Stations, each below a figure's column."""
        theme = self.theme
        middle = corner.y() + 10
        painter.setPen(QPen(theme.border, 2.0))
        painter.drawLine(QPointF(corner.x() + 6, middle), QPointF(corner.x() + 6 + width * (len(steps) - 1), middle))
        for number, (step, ms) in enumerate(steps):
            at = corner.x() + 6 + number * width
            painter.setPen(Qt.PenStyle.NoPen)
            known = ms > 0
            painter.setBrush(theme.accent if known else mix(theme.surface, theme.muted, 0.4))
            painter.drawEllipse(QPointF(at, middle), 5, 5)
            painter.setPen(theme.muted)
            painter.setFont(theme.ui_font(8.5))
            painter.drawText(QRectF(at - 6, middle + 9, width, 15), Qt.AlignmentFlag.AlignLeft, step)
            strong = theme.ui_font(9.5)
            strong.setWeight(QFont.Weight.DemiBold)
            painter.setFont(strong)
            painter.setPen(theme.text if known else theme.muted)
            text = fmt.milliseconds(ms) if known else "–"
            painter.drawText(QRectF(at - 6, middle + 24, width, 18), Qt.AlignmentFlag.AlignLeft, text)
