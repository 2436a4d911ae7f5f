"""The memory map under the mouse: a buffer tells its kernels and shows its life, a step what is live."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from compiler.report import BufferPlan, Memory
from tests.fake_runs import lab_report
from tests.gui.conftest import settle
from views.charts.memory_map import MemoryMap, memory_view
from views.look.theme import light
from views.panels.memory import MemoryPanel, buffer_lines
from views.selection.index import RegionIndex


def test_hovering_tells_kernels_and_lifetimes(qtbot: QtBot) -> None:
    report = lab_report(120)
    index = RegionIndex(report, report.regions[0])
    panel = MemoryPanel(light())
    qtbot.addWidget(panel)
    panel.resize(860, 300)
    panel.set_region(index)
    panel.show()
    settle()
    buffers = [buffer for buffer in index.region.memory.buffers if buffer.bytes]
    buffer = next(b for b in buffers if any(index.unit_of(node) for node in index.readers.get(b.node, ())))
    lines = buffer_lines(buffer, index)
    assert lines[1] == f"Written by {index.unit_of(buffer.node)}"
    assert lines[2].startswith("Read by ")
    assert f"Lives from step {buffer.first_use} to {buffer.last_use}" in lines
    plain = panel.map.grab().toImage()
    qtbot.mouseMove(panel.map, panel.map.buffer_box(buffer.name).center().toPoint())
    QApplication.processEvents()
    assert panel.map.grab().toImage() != plain
    qtbot.mouseMove(panel.map, QPoint(400, 60))  # over the curve
    over_curve = panel.map.grab().toImage()
    assert over_curve != plain
    qtbot.mouseMove(panel.map, QPoint(2, 2))
    QApplication.processEvents()
    file = panel.map.picture(1.0).toImage().convertToFormat(plain.format())
    assert file == plain, "what hangs on the mouse is in no file"


def test_many_storages_leave_the_large_ones_their_size(qtbot: QtBot) -> None:
    sizes = [1_000_000, *([1000] * 300)]
    plan = Memory([BufferPlan(f"b{i}", f"n{i}", size, i, i + 1) for i, size in enumerate(sizes)], 1, 1)
    chart = MemoryMap(light())
    qtbot.addWidget(chart)
    chart.resize(800, 300)
    chart.set_view(memory_view(plan, lambda node: 0), lambda buffer: [], lambda step: "")
    boxes = [chart.buffer_box(f"b{i}") for i in range(301)]
    assert boxes[0].height() > 0.3 * 300 * 0.58
    assert all(box.height() >= 1 for box in boxes)
    assert max(box.bottom() for box in boxes) <= 300
