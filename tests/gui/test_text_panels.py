"""What Dynamo said, as entries of the panel "Graph breaks"."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from compiler.report import GraphBreak, Guard, Recompile, Report, SourceLine
from compiler.targets import TARGETS
from views.bottom_panel import BottomPanel
from views.text_panels import GUARDS_SHOWN, break_entries
from views.theme import light

PLACE = SourceLine("model.py", 7, "f", "return g(x)")


def report(**fields: object) -> Report:
    return Report("fusescope", "x", TARGETS["h100"], **fields)  # type: ignore[arg-type]


def test_breaks_recompiles_and_guards_with_their_lines() -> None:
    entries = break_entries(
        report(
            graph_breaks=[GraphBreak("no LSTM", PLACE, "Hint: none", skipped_frame=True)],
            recompiles=[Recompile("n == 2", "f", PLACE)],
            guards=[Guard("L['n'] == 2", "EQUALS_MATCH", "L['n']")],
        )
    )
    where = "model.py:7  return g(x)"
    assert entries == [
        ("break", "no LSTM", f"{where}\nThe whole function is left to eager.\nHint: none"),
        ("info", "Recompiled f: n == 2", where),
        ("info", "Guard EQUALS_MATCH: L['n'] == 2", ""),
    ]


def test_thousands_of_guards_do_not_become_thousands_of_rows() -> None:
    entries = break_entries(report(guards=[Guard(f"n == {i}") for i in range(GUARDS_SHOWN + 900)]))
    assert len(entries) == GUARDS_SHOWN + 1
    assert entries[-1][1].startswith("900 more guards")


def test_the_panel_says_that_nothing_broke(qtbot: QtBot) -> None:
    panel = BottomPanel(light())
    qtbot.addWidget(panel)
    panel.set_report(report(guards=[Guard("n == 2", "EQUALS_MATCH")]))
    panel.setCurrentWidget(panel.breaks)
    texts = [label.text() for label in panel.breaks.findChildren(QLabel)]
    assert any("Dynamo captured the whole model" in text for text in texts)
    assert "Guard EQUALS_MATCH: n == 2" in texts
