"""What charts write: each text whole inside of the chart, and none over another, at any size and in any state."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontInfo, QFontMetricsF, QImage, QPainter
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.roofline import Point, UnitTime, points
from app.statistics import compare_medians
from compiler.report import BufferPlan, CudaGraph, Memory, Report
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report
from tests.gui.conftest import settle
from views.charts.chart import Chart
from views.charts.gantt import Gantt
from views.charts.memory_map import MemoryMap, memory_view
from views.charts.roofline_chart import RooflineChart, cloud
from views.cuda_graph.lifecycle_chart import LifecycleChart, headlines
from views.look.resources import load_fonts
from views.look.theme import light
from views.panels.timeline import TimelinePanel, _colors, bands_of
from views.run.compare import ComparePlot
from views.run.distribution import DistributionPlot
from views.run.plot import RunPlot
from views.run.record import RunRecord


class Written(QPainter):
    """Remembers where texts were written."""

    def __init__(self, image: QImage) -> None:
        super().__init__(image)
        self.texts: list[tuple[str, QRectF]] = []

    def drawText(self, *where: Any) -> None:
        text = where[-1]
        if isinstance(where[0], QPointF):
            box = QFontMetricsF(self.font()).tightBoundingRect(text).translated(where[0])
        else:
            box = self.boundingRect(where[0], int(where[1]), text)
            assert box.width() <= where[0].width() + 2, f"'{text}' is cut"
            box.adjust(0, 2, 0, -2)  # a line's height is more than its letters'
        if text:
            self.texts.append((text, self.transform().mapRect(box)))
        super().drawText(*where)


def written(chart: Chart, width: int, height: int) -> list[tuple[str, QRectF]]:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    with Written(image) as painter:
        chart.paint_chart(painter, QRectF(0, 0, width, height))
        return painter.texts


def record_of(report: Report, factor: float) -> tuple[RunRecord, list[str]]:
    record = RunRecord()
    for number, one in enumerate(report.measurements):
        scaled = [[value * factor * 10.0**number for value in values] for values in (one.cpu_samples, one.gpu_samples)]
        record.add(one.mode, scaled[0][:5], scaled[1][:5], warmup=True)
        record.add(one.mode, *scaled)
    return record, [one.mode for one in report.measurements]


def run_plot(layout: str, factor: float, *, log: bool = False) -> Chart:
    chart = RunPlot(light())
    chart.set_log(log)
    chart.set_layout(layout)
    chart.show_record(*record_of(lab_report(60), factor))
    return chart


def switched_to_log() -> Chart:
    """As by the box below the plot, while nothing runs."""
    chart = RunPlot(light())
    chart.show_record(*record_of(lab_report(60), 1.0))
    chart.set_log(True)
    return chart


def histogram(factor: float, *, log: bool = False) -> Chart:
    chart = DistributionPlot(light())
    chart.set_log(log)
    chart.show_record(*record_of(lab_report(60), factor))
    return chart


def comparison(factor: float) -> Chart:
    record, _ = record_of(lab_report(60), factor)
    one, other = record.series("compiled").recorded, record.series("graph").recorded
    found = {figure: compare_medians(one[i], other[i]) for i, figure in enumerate(("CPU time to submit", "GPU time"))}
    chart = ComparePlot(light())
    chart.show_found("compiled", "graph", {figure: one for figure, one in found.items() if one is not None})
    return chart


def memory(steps: int, bytes_: int) -> Chart:
    plan = Memory([BufferPlan(f"b{i}", f"n{i}", bytes_ * (i + 1), i, i) for i in range(steps)], 1, 1)
    chart = MemoryMap(light())
    chart.set_view(memory_view(plan, lambda node: 0), lambda buffer: [], lambda step: "")
    return chart


def roofline(nodes: int, *, measured: bool) -> Chart:
    report = lab_report(nodes) if measured else transformer_report(nodes)
    chart = RooflineChart(light())
    chart.set_cloud(cloud(list(points(report, report.regions[0])), {}), report.target)
    return chart


def timeline(lanes: int) -> Chart:
    chart = Gantt(light())
    chart.set_bands(bands_of(lab_report(lanes)), _colors(light()))
    return chart


def lifecycle() -> Chart:
    chart = LifecycleChart(light())
    chart.set_graph(
        CudaGraph(
            captured=True, nodes=12_345, partitions=12, covered_kernels=0.986, covered_time=0.994, captures=3,
            recaptures={"an address moved": 2}, pool_bytes=50_300_000, warmup_ms=181.0, capture_ms=8.1,
        )
    )  # fmt: skip
    return chart


def test_no_figure_of_a_cuda_graph_stands_alone_in_its_row(qtbot: QtBot) -> None:
    chart = LifecycleChart(light())
    qtbot.addWidget(chart)
    covered = {"covered_kernels": 1.0, "covered_time": 1.0}
    chart.set_graph(CudaGraph(captured=True, nodes=134, partitions=1, captures=1, **covered))
    heights = {}
    for width in (560, 640):
        chart.resize(width, 200)
        chart.grab()
        heights[width] = chart.height()
    assert heights[640] < heights[560], "six beside each other, and three above three"
    assert chart._columns(560) == 3


@pytest.mark.parametrize(("fills", "told"), [(13, "fills made kernels"), (1, "fill made a kernel")])
def test_fills_that_were_made_kernels_are_told_where_there_are_any(fills: int, told: str) -> None:
    assert (str(fills), told) in headlines(CudaGraph(captured=True, nodes=134, fills_as_kernels=fills))
    assert not any("fill" in what for _, what in headlines(CudaGraph(captured=True, nodes=134)))


CHARTS: dict[str, Callable[[], Chart]] = {
    **{f"{layout}-{factor}": lambda layout=layout, factor=factor: run_plot(layout, factor)
       for layout in ("order", "overlaid", "side") for factor in (1e-3, 1.0, 1e4)},
    "order-log": lambda: run_plot("order", 1.0, log=True), "switched-to-log": switched_to_log,
    "histogram": lambda: histogram(1.0), "histogram-long": lambda: histogram(1e4),
    "histogram-log": lambda: histogram(1.0, log=True),
    "comparison": lambda: comparison(1.0), "comparison-long": lambda: comparison(1e4),
    "memory-one": lambda: memory(1, 12_600_000), "memory-two": lambda: memory(2, 500),
    "memory-many": lambda: memory(300, 1 << 32),
    "roofline": lambda: roofline(300, measured=True), "roofline-estimated": lambda: roofline(120, measured=False),
    "timeline": lambda: timeline(120), "lifecycle": lifecycle,
}  # fmt: skip


@pytest.mark.parametrize("size", [(330, 190), (480, 240), (1500, 460)], ids=["small", "middle", "large"])
@pytest.mark.parametrize("name", CHARTS)
def test_texts_are_whole_and_apart(qtbot: QtBot, name: str, size: tuple[int, int]) -> None:
    chart = CHARTS[name]()
    qtbot.addWidget(chart)
    chart.resize(*size)
    chart.show()
    width, height = chart.width(), max(size[1], chart.minimumHeight())
    texts = written(chart, width, height)
    assert texts
    room = QRectF(-1, -1, width + 2, height + 2)
    for text, box in texts:
        assert room.contains(box), f"'{text}' is cut"
    for (one, a), (other, b) in combinations(texts, 2):
        common = a.intersected(b)
        assert common.width() < 1.5 or common.height() < 1.5, f"'{one}' and '{other}' are written over each other"


@pytest.mark.parametrize("layout", ["order", "side"])
def test_the_keys_of_a_very_narrow_plot_are_whole(qtbot: QtBot, layout: str) -> None:
    """As wide as it is in a window of 1024 pixels."""
    chart = run_plot(layout, 1.0)
    qtbot.addWidget(chart)
    chart.resize(258, 190)
    boxes = dict(written(chart, 258, 190))
    submit, busy = boxes["CPU time to submit"], boxes["GPU time"]
    assert submit.left() > 19
    assert submit.right() < busy.left()
    assert busy.right() <= 258


def test_each_mode_of_a_narrow_plot_is_named_where_it_begins(qtbot: QtBot) -> None:
    record = RunRecord()
    for mode in ("eager", "compiled", "graph", "inductor", "inductor-graph"):
        record.add(mode, [1.0] * 500, [2.0] * 500)
    chart = RunPlot(light())
    chart.show_record(record, [])
    qtbot.addWidget(chart)
    chart.resize(360, 190)
    names = [text for text, box in written(chart, 360, 190) if box.top() < 30 and not text.startswith(("CPU", "GPU"))]
    names = [name for name in names if name not in ("µs", "ms")]
    assert [name[:4] for name in names] == ["Eage", "Comp", "Grap", "Indu", "Indu"]
    assert any(name.endswith("…") for name in names), "one that is cut leaves room for the next"


def test_modes_that_change_often_have_some_whole_names(qtbot: QtBot) -> None:
    record = RunRecord()
    for _ in range(5):
        for mode in ("compiled", "graph"):
            record.add(mode, [1.0] * 60, [2.0] * 60)
    chart = RunPlot(light())
    chart.show_record(record, [])
    qtbot.addWidget(chart)
    names = [text for text, _ in written(chart, 360, 190)]
    assert names.count("Compiled") > 3, "what is cut to three letters names nothing"


def test_both_histograms_are_in_one_unit(qtbot: QtBot) -> None:
    record = RunRecord()
    record.add("compiled", [60_000.0 + i for i in range(300)], [200.0 + i for i in range(300)])
    chart = DistributionPlot(light())
    qtbot.addWidget(chart)
    chart.show_record(record, ["compiled"])
    texts = [text for text, _ in written(chart, 700, 260)]
    assert texts.count("ms") == 2
    assert "µs" not in texts


def test_titles_of_narrow_histograms_are_whole(qtbot: QtBot) -> None:
    load_fonts()  # of others the titles may be wider
    chart = histogram(1.0)
    qtbot.addWidget(chart)
    assert "CPU time to submit" in [text for text, _ in written(chart, 284, 200)]


def test_rates_are_written_plainly(qtbot: QtBot) -> None:
    report = lab_report(60)
    for node in report.regions[0].cuda_graph.topology:
        node.measured_us = 0.3  # no GPU is so fast
    chart = RooflineChart(light())
    qtbot.addWidget(chart)
    chart.set_cloud(cloud(list(points(report, report.regions[0])), {}), report.target)
    assert not [text for text, _ in written(chart, 600, 300) if "e+" in text]
    for node in report.regions[0].cuda_graph.topology:
        node.measured_us = 1e-7
    chart.set_cloud(cloud(list(points(report, report.regions[0])), {}), report.target)
    rates = [text for text, _ in written(chart, 600, 300) if text.endswith((" T", " P", " E"))]
    assert max(map(len, rates)) <= len("1,000 T"), rates


@pytest.mark.parametrize("intensity", [0.3, 1.0, 3.0, 10.0, 30.0])
def test_the_bandwidth_s_name_stands_where_no_unit_does(qtbot: QtBot, intensity: float) -> None:
    target = lab_report(20).target
    us = 1e6 / (target.bandwidth_gbs * 1e9) * 1e6
    chart = RooflineChart(light())
    qtbot.addWidget(chart)
    chart.resize(360, 240)
    flops = round(1e6 * intensity)
    unit = Point("on the slope", 1_000_000, flops, UnitTime(us, False, "estimate"), us, "memory")
    chart.set_cloud(cloud([unit], {}), target)
    (name,) = [box for text, box in written(chart, 360, 240) if "TB/s" in text]
    assert not name.contains(chart.position_of("on the slope"))


def test_times_stay_in_sight_where_a_timeline_is_scrolled(qtbot: QtBot) -> None:
    panel = TimelinePanel(light())
    qtbot.addWidget(panel)
    panel.resize(700, 150)
    panel.show()
    panel.set_report(lab_report(120))
    settle()
    gantt = panel.gantt
    edge = gantt.visibleRegion().boundingRect().bottom()
    assert edge < gantt.height() - 30, "the chart is higher than what is in sight of it"
    image = QImage(gantt.size(), QImage.Format.Format_RGB32)
    with Written(image) as painter:
        gantt.paint_hover(painter, QRectF(gantt.rect()))
        assert next(text for text, box in painter.texts if box.bottom() <= edge + 1) == "0"


def test_a_curve_that_leaves_the_plot_ends_above_it_in_a_file_too(qtbot: QtBot, tmp_path: Path) -> None:
    """A file's painter does not clip."""
    record = RunRecord()
    values = [100.0] * 400
    values[200] = 90_000.0
    record.add("compiled", values, values)
    chart = RunPlot(light())
    qtbot.addWidget(chart)
    chart.resize(700, 260)
    chart.show_record(record, ["compiled"])
    chart.save(tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text(encoding="utf-8")
    (box, *_) = chart._boxes(QRectF(0, 0, 700, 260))[0]
    lines = re.findall(r'<polyline[^>]*points="([^"]+)"', text)
    tops = [min(float(point.split(",")[1]) for point in line.split()) for line in lines]
    assert tops
    assert min(tops) >= box.top() - 6
    size = QFontInfo(light().ui_font(8.5)).pixelSize()
    assert any(abs(float(found) - size) < 1.5 for found in re.findall(r'font-size="([0-9.]+)"', text))
    assert 'd=""' not in text


def test_a_ring_shows_that_the_keyboard_is_at_a_chart(qtbot: QtBot) -> None:
    chart = memory(3, 1000)
    other = QPushButton()
    for widget in (chart, other):
        qtbot.addWidget(widget)
        widget.show()
        qtbot.waitExposed(widget)
    plain = chart.grab().toImage()
    for reason, rings in ((Qt.FocusReason.MouseFocusReason, False), (Qt.FocusReason.TabFocusReason, True)):
        chart.activateWindow()
        chart.setFocus(reason)
        qtbot.waitUntil(chart.hasFocus, timeout=3_000)
        assert (chart.grab().toImage() != plain) is rings
        chart.clearFocus()
