"""The steps of the window's benchmarks, over small reports: each does in the window what it says that it times."""

from __future__ import annotations

from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from tests.benchmarks.bench_open import walk as walk_large
from tests.benchmarks.bench_tour import STEPS, walk
from tests.fake_reports import transformer_report
from tests.gui.conftest import MakeWindow, open_laid_out, settle
from views.canvas.camera import Camera
from views.main_window import MainWindow
from views.selection.selection import Selection


def opened(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    """Both reports open, the second one in front."""
    window = make_window(worker=False)
    report = transformer_report(300, training=True)
    open_laid_out(qtbot, window, report)
    open_laid_out(qtbot, window, replace(report, compiler="inductor", regions=list(report.regions)))
    settle()
    return window


def test_every_step_does_what_it_times(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = opened(make_window, qtbot)
    workspace = window.workspace
    seen: dict[str, list[object]] = {}
    now: list[object] = []
    workspace.selection.changed.connect(lambda selection: now.append(("selected", selection)))
    workspace.selection.pin_changed.connect(lambda pinned: now.append(("pinned", pinned is not None)))
    workspace.selection.hinted.connect(lambda hint: now.append(("hinted", hint)))
    workspace.filters.changed.connect(lambda: now.append(("filters", len(workspace.filters.filters))))
    workspace.graph.overlay_chosen.connect(lambda kind: now.append(("overlay", kind)))
    workspace.graph.head.grouping_chosen.connect(lambda kind: now.append(("grouping", kind)))
    for box in (workspace.graph.head.open_wanted, workspace.graph.head.close_wanted):
        box.connect(lambda: now.append("boxes"))
    workspace.panels.current_changed.connect(lambda place: now.append(("panel", place)))
    window.report_shown.connect(lambda: now.append(("report", workspace.graph.report)))
    workspace.graph.canvas.jumping.connect(lambda: now.append("jump"))
    cameras: dict[str, Camera] = {}
    for name, frames in walk(window, pace_s=0.001):
        assert frames.cpu_ms, name
        seen[name], cameras[name] = list(now), workspace.graph.canvas.camera
        now.clear()
    assert list(seen) == [name for name, _ in STEPS]

    def of(step: str, kind: str) -> list[object]:
        return [one[1] for one in seen[step] if isinstance(one, tuple) and one[0] == kind]

    assert len(set(of("select", "selected"))) >= 15
    assert cameras["pan"] != cameras["select"]
    assert cameras["zoom"] != cameras["pan"]
    assert len(of("hover", "hinted")) > 4
    assert of("expand and collapse", "grouping") == ["modules", "fusion"]
    assert seen["expand and collapse"].count("boxes") == 2
    assert set(of("switch panels", "panel")) == set(range(workspace.panels.count()))
    assert len(set(of("overlays", "overlay"))) == workspace.graph.overlays.count()
    assert of("filter", "filters") == [1, 0]
    assert of("find", "selected")
    assert of("pin and history", "pinned") == [True, False]
    assert len(of("pin and history", "selected")) == 4 + 4
    assert workspace.panels.compare.diff is not None
    assert [report.compiler for report in of("switch reports", "report")] == ["fusescope", "inductor"] * 2


def test_every_step_over_a_large_session_does_what_it_times(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    open_laid_out(qtbot, window, transformer_report(150))
    workspace = window.workspace
    shown: list[int] = []
    selected: list[Selection] = []
    workspace.panels.current_changed.connect(shown.append)
    workspace.selection.changed.connect(selected.append)
    sizes: dict[str, int] = {}
    for name, step in walk_large(window, pace=0.02):
        selected.clear()
        step()
        settle()
        sizes[name] = max((len(selection.nodes) for selection in selected), default=0)
    assert set(shown) == set(range(workspace.panels.count()))
    assert all(sizes[f"select with {workspace.panels.title(place)} in front"] for place in range(4))
    assert sizes["walk the history"]
    assert sizes["all that depends on it"] > sizes["select with Run in front"]
    assert window.theme.is_dark
