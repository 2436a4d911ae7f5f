"""Why kernels are apart: on the edges of the graph and in the Refusals tab, by real events."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QLabel, QToolTip
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from compiler.report import (
    ExternCall,
    ExternReason,
    Group,
    GroupKind,
    Node,
    NodeKind,
    Refusal,
    RefusalRule,
    Region,
    Report,
)
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report
from tests.gui.conftest import MakeWindow
from tests.gui.test_window import show
from views.canvas.camera import Camera
from views.look import format as fmt
from views.main_window import MainWindow
from views.refusals.index import RefusalIndex, lost_text, refusal_text, unrecorded_text
from views.refusals.model import RefusalsModel
from views.selection.index import RegionIndex

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def report() -> Report:
    return transformer_report(160, training=True)


def edge_between_units(window: MainWindow) -> tuple[QPoint, str, str]:
    """A point on a drawn edge between two units, brought to the middle of the view, and its two nodes."""
    canvas = window.workspace.graph.canvas
    scene = canvas.scene
    assert scene is not None
    for edge in range(len(scene.layout.edges)):
        pieces = scene.layout.edge_pieces[scene.layout.edge_start[edge] : scene.layout.edge_start[edge + 1]]
        if not scene.joins_units(edge) or scene.layout.edge_cut[edge]:
            continue
        for piece in pieces:
            x0, y0, x1, y1 = (float(v) for v in scene.pieces[piece])
            x, y = (x0 + x1) / 2, (y0 + y1) / 2
            if abs(x0 - x1) < 1 and scene.hit(x, y, 2.0).edge == edge:
                canvas.move_to(Camera().centred(x, y, canvas.viewport().width(), canvas.viewport().height(), 1.0))
                QApplication.processEvents()
                at = canvas.camera.to_view(x, y)
                return QPoint(round(at[0]), round(at[1])), *scene.ends(edge)
    raise AssertionError("no edge between two units is drawn straight")


def test_units_apart_have_the_reason_that_any_two_of_their_nodes_have() -> None:
    nodes = [
        Node("x", NodeKind.CALL, "aten.relu.default", []), Node("y", NodeKind.CALL, "aten.view.default", ["x"]),
        Node("z", NodeKind.CALL, "aten.mm.default", ["y"]), Node("w", NodeKind.CALL, "aten.tanh.default", ["x"]),
    ]  # fmt: skip
    groups = [Group("group0", GroupKind.POINTWISE, ["x"], "", ""), Group("group2", GroupKind.POINTWISE, ["w"], "", "")]
    call = ExternCall("ext_mm", ["y", "z"], "aten.mm.default", ExternReason.LIBRARY_IS_FASTER)
    region = Region("region_0", "inference", nodes, groups, [call])
    report = lab_report(60)
    found = RegionIndex(report, region).neighbours(["x"])
    assert [(n.unit, n.refusal) for n in found] == [("ext_mm", None), ("group2", None)]
    assert RegionIndex(report, region).has_call(["x", "y"])
    assert not RegionIndex(report, region).has_call(["x", "w"])
    assert (unrecorded_text(True), unrecorded_text(False)) == (
        "One of them is an extern call.", "The compiler recorded no reason."
    )  # fmt: skip
    region.refusals = [Refusal("x", "z", RefusalRule.EXTERN, "aten.mm.default is a library call", 8)]
    (first, second) = RegionIndex(report, region).neighbours(["x"])
    assert first.refusal is region.refusals[0], "the edge goes to y, the refusal is of z in the same call"
    assert second.refusal is None


def test_hovering_an_edge_says_why_its_ends_are_apart(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    report.regions[0].refusals = []
    show(qtbot, window, report)
    canvas = window.workspace.graph.canvas
    at, a, b = edge_between_units(window)
    tip = QHelpEvent(QEvent.Type.ToolTip, at, canvas.viewport().mapToGlobal(at))
    QApplication.sendEvent(canvas.viewport(), tip)
    assert "Kept apart: One of them is an extern call." in QToolTip.text(), "which no refusal need tell"
    report.regions[0].refusals = [Refusal(a, b, RefusalRule.DOMAIN_MISMATCH, "iteration spaces 6 and 7", 2_500_000)]
    show(qtbot, window, report)
    at, *_ = edge_between_units(window)
    QApplication.sendEvent(canvas.viewport(), QHelpEvent(tip.type(), at, canvas.viewport().mapToGlobal(at)))
    text = QToolTip.text()
    assert "They iterate over different domains (iteration spaces 6 and 7)." in text
    assert f"Fusing {a} and {b} would have saved 2.50 MB of traffic (estimated)." in text
    qtbot.mouseMove(canvas.viewport(), at)
    qtbot.waitUntil(lambda: canvas._marks.edge >= 0, timeout=2_000)
    qtbot.mouseMove(canvas.viewport(), QPoint(2, 2))
    qtbot.waitUntil(lambda: canvas._marks.edge < 0, timeout=2_000)


def test_titles_stand_over_what_they_name(make_window: MakeWindow, report: Report) -> None:
    tree = make_window(worker=False).workspace.panels.refusals.tree
    assert tree.header().defaultAlignment() & Qt.AlignmentFlag.AlignLeft


def test_clicking_an_edge_inspects_the_pair(make_window: MakeWindow, qtbot: QtBot, report: Report) -> None:
    window = make_window(worker=False)
    show(qtbot, window, report)
    at, a, b = edge_between_units(window)
    report.regions[0].refusals.append(Refusal(a, b, RefusalRule.TOO_LARGE, "together 60 loops", 4_000))
    window.workspace.index.__dict__.pop("refusals", None)
    qtbot.mouseClick(window.workspace.graph.canvas.viewport(), LEFT, pos=at)
    assert window.workspace.selection.current.nodes == {a, b}
    inspector = window.workspace.inspector
    assert inspector.title.text() == f"{a} → {b}"
    texts = [label.text() for label in inspector.page.findChildren(QLabel)]
    assert "The fused kernel would be too large (together 60 loops)." in texts


def test_a_row_of_the_tab_selects_both_nodes_in_their_region(
    make_window: MakeWindow, qtbot: QtBot, report: Report
) -> None:
    window = make_window(worker=False)
    backward = report.regions[1]
    a, b = backward.groups[0].nodes[0], backward.groups[1].nodes[0]
    backward.refusals = [Refusal(a, b, RefusalRule.CYCLE, "mm must run between them", 999_000_000)]
    show(qtbot, window, report)
    panel = window.workspace.panels.refusals
    window.workspace.panels.setCurrentWidget(panel)
    button = window.workspace.panels.rail.buttons[window.workspace.panels.indexOf(panel)]
    assert button.accessibleName() == f"Refusals ({panel.count:,})"
    assert panel.model.rules[0].rule is RefusalRule.CYCLE, "the rule that costs most comes first"
    row = panel.model.index(0, 0, panel.model.index(0, 0))
    with qtbot.waitSignal(window.workspace.graph.laid_out, timeout=20_000):
        qtbot.mouseClick(panel.tree.viewport(), LEFT, pos=panel.tree.visualRect(row).center())
    assert window.workspace.graph.region is backward
    assert window.workspace.selection.current.nodes == {a, b}
    canvas = window.workspace.graph.canvas
    qtbot.wait(500)  # the view glides there
    inside = canvas.viewport().rect()
    assert inside.contains(canvas.view_position(a))
    assert inside.contains(canvas.view_position(b))


def test_filter_and_order(qtbot: QtBot, report: Report, qtmodeltester: ModelTester) -> None:
    model = RefusalsModel()
    model.set_report(report)
    qtmodeltester.check(model)
    total = sum(len(region.refusals) for region in report.regions)
    assert model.count == sum(len(rule.pairs) for rule in model.rules) == total
    lost = [rule.bytes_lost for rule in model.rules]
    assert lost == sorted(lost, reverse=True)
    for rule in model.rules:
        costs = [pair.refusal.bytes_lost for pair in rule.pairs]
        assert costs == sorted(costs, reverse=True)
        assert {pair.refusal.rule for pair in rule.pairs} == {rule.rule}
    name = model.rules[0].pairs[0].refusal.a
    model.set_filter(f"{name} extern")
    assert 0 < sum(len(rule.pairs) for rule in model.rules) < total
    model.set_filter("no such node")
    assert not model.rules
    model.set_filter("")
    model.sort(0)
    names = [pair.refusal.a for pair in model.rules[0].pairs]
    assert names == sorted(names)
    assert cell(model, model.index(0, 0), 0).endswith(f"({len(model.rules[0].pairs)})")


def cell(model: QAbstractItemModel, index: QModelIndex, column: int) -> str:
    return str(index.siblingAtColumn(column).data())


def test_every_rule_has_its_words() -> None:
    assert set(fmt.REFUSAL_RULES) == set(RefusalRule)
    refusal = Refusal("a", "b", RefusalRule.NO_SHARED_DATA, "")
    assert refusal_text(refusal) == "They share no data."
    assert lost_text(refusal) == ""


def test_a_pair_without_a_record_takes_its_units(report: Report) -> None:
    region = report.regions[0]
    one, two = region.groups[:2]
    region.refusals = [
        Refusal(one.nodes[0], two.nodes[0], RefusalRule.CYCLE, "cheap", 1),
        Refusal(one.nodes[1], two.nodes[1], RefusalRule.CYCLE, "costly", 2),
    ]
    unit_of = {node: group.name for group in region.groups for node in group.nodes}
    index = RefusalIndex(region, unit_of)
    assert index.of_nodes(two.nodes[0], one.nodes[0]) is region.refusals[0]
    found = index.between(one.nodes[2], two.nodes[2])
    assert found is region.refusals[1]
    assert index.between(one.nodes[2], "input_ids") is None
