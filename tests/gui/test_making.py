"""The panels of a report are made in turns once the window is open, or at once for who cannot wait."""

from __future__ import annotations

import gc
from collections.abc import Generator
from functools import partial
from itertools import pairwise

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QObject, QThreadPool
from pytestqt.qtbot import QtBot

from app.worker.protocol import Ready
from tests.fake_reports import transformer_report
from tests.gui.conftest import MakeWindow, printed, settle
from views.background import warm_up
from views.background.jobs import Job, uncollected
from views.background.turns import Making, finished, in_a_turn, is_waiting


def three_steps(done: list[int]) -> Generator[None, None, str]:
    for step in range(3):
        done.append(step)
        yield
    return "thing"


def test_a_turn_does_one_step(qtbot: QtBot) -> None:
    settle()  # a window of an earlier test may still wait for its turn
    done: list[int] = []
    parent = QObject()
    making = Making(three_steps(done), parent)
    with qtbot.waitSignal(making.made) as told:
        making.start()
        assert done == [], "the first step comes in the next turn"
        QCoreApplication.processEvents()
        assert done == [0]
    assert (done, told.args) == ([0, 1, 2], ["thing"])


def test_who_cannot_wait_gets_the_rest_at_once(qtbot: QtBot) -> None:
    done: list[int] = []
    parent, made = QObject(), list[str]()
    making = Making(three_steps(done), parent)
    making.made.connect(made.append)
    making.start()
    QCoreApplication.processEvents()
    making.finish()
    assert (done, made) == ([0, 1, 2], ["thing"])
    QCoreApplication.processEvents()
    assert made == ["thing"], "and only once"
    assert finished(three_steps([])) == "thing"


def test_what_was_cancelled_is_not_made(qtbot: QtBot) -> None:
    done: list[int] = []
    parent, made = QObject(), list[str]()
    making = Making(three_steps(done), parent)
    making.made.connect(made.append)
    making.start()
    making.cancel()
    QCoreApplication.processEvents()
    assert (done, made) == ([], [])


def test_calls_of_several_owners_take_their_turns_one_by_one(qtbot: QtBot) -> None:
    first, second, gone, done = QObject(), QObject(), QObject(), list[str]()
    for owner, name in ((first, "a"), (gone, "never"), (second, "b"), (first, "c")):
        in_a_turn(owner, partial(done.append, name))
    shiboken6.delete(gone)
    for so_far in (["a"], ["a", "b"], ["a", "b", "c"]):
        assert is_waiting()
        QCoreApplication.processEvents()
        assert done == so_far
    assert not is_waiting()


def test_results_of_jobs_take_their_turns(qtbot: QtBot) -> None:
    parent, done = QObject(), list[int]()
    for number in range(3):
        job = Job(lambda cancelled, number=number: number, parent)
        job.done.connect(done.append)
        job.start()
    QThreadPool.globalInstance().waitForDone()
    counts = []
    while len(done) < 3:
        QCoreApplication.processEvents()
        counts.append(len(done))
    assert sorted(done) == [0, 1, 2]
    assert all(after - before <= 1 for before, after in pairwise([0, *counts]))


def test_what_is_made_uncollected_is_looked_at_no_more() -> None:
    before = gc.get_freeze_count()
    with uncollected():
        assert not gc.isenabled()
        kept = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)
    gc.unfreeze()


def test_what_is_imported_is_looked_at_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    collected = []
    monkeypatch.setattr(warm_up.importlib, "import_module", lambda name: collected.append(gc.isenabled()))
    next(warm_up.import_in_turns())
    assert gc.isenabled()
    warm_up.import_anywhere()
    assert gc.isenabled()
    assert collected == [False] * (1 + len(warm_up._ANYWHERE))
    gc.unfreeze()


def test_no_step_imports_many_modules() -> None:
    code = (
        "import sys\nimport views.main_window\nfrom views.background.warm_up import *\nimport_anywhere()\n"
        "count = lambda: sum(name.startswith('views') for name in sys.modules)\n"
        "counts = [count(), *(count() for _ in import_in_turns())]\n"
        "print(*(after - before for before, after in zip(counts, counts[1:])))"
    )
    counts = list(map(int, printed(code).split()))
    assert sum(counts) > len(counts) > 50
    assert max(counts) <= 7


def test_the_panels_are_made_after_the_window_is_open(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    assert window.on_demand.panels is None
    qtbot.waitUntil(lambda: window.on_demand.panels is not None, timeout=60_000)
    assert window.workspace.panels.count() == 12
    assert not window.shows_report


def test_a_report_waits_for_the_panels_and_the_last_one_is_shown(make_window: MakeWindow, qtbot: QtBot) -> None:
    window, last = make_window(worker=False), transformer_report(120)
    with qtbot.waitSignal(window.report_shown, timeout=60_000):
        window.open_report(transformer_report(60), "one.py")
        window.open_report(last, "two.py")
        assert window.on_demand.panels is None
    assert window.workspace.graph.report is last


def test_asking_for_the_panels_shows_the_report_that_waits(make_window: MakeWindow) -> None:
    window = make_window(worker=False)
    window.open_report(transformer_report(60), "one.py")
    assert window.workspace.graph.report is window.session.report
    assert window.shows_report


def test_a_worker_that_was_ready_before_the_panels_is_known_to_them(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(gpu=True)
    with qtbot.waitSignal(window.bridge.ready, timeout=60_000) as told:
        window.bridge.start()
    assert isinstance(told.args[0], Ready)
    assert window.run_control._has_gpu is True


def test_a_window_can_close_while_its_panels_are_made(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(worker=False)
    qtbot.waitUntil(lambda: window.on_demand.is_making or window.on_demand.panels is not None, timeout=60_000)
    assert window.close()
    assert not window.on_demand.is_making


def test_what_another_thread_imports_knows_no_qt() -> None:
    code = (
        f"import sys, importlib\nfor name in {warm_up._ANYWHERE}: importlib.import_module(name)\n"
        "print('PySide6' in sys.modules)"
    )
    assert printed(code).strip() == "False"


def test_nothing_large_is_left_to_import_when_the_panels_are_made() -> None:
    code = (
        "import sys\nfrom views.app import make_application\nfrom views.background.warm_up import *\n"
        "import_anywhere()\nlist(import_in_turns())\n"
        "import views.main_window\nfrom app.settings import Settings\nfrom app.worker.client import WorkerClient\n"
        "before = set(sys.modules)\nmake_application()\n"
        "window = views.main_window.MainWindow(WorkerClient, Settings(), start_worker=False)\n"
        "assert window.workspace\nprint(*sorted(set(sys.modules) - before))"
    )
    assert [name for name in printed(code).split() if name.startswith(("views", "app", "numpy"))] == []


def test_patterns_that_colour_code_are_there_before_a_code_is() -> None:
    code = (
        "from views.background.warm_up import import_anywhere\nimport_anywhere()\nimport re\n"
        "re.compile = re._compile = None\nfrom views.code.python_tokens import python_line_spans\n"
        "from views.code.tokens import line_spans\n"
        "print(*python_line_spans('x = 1', '', 5), *line_spans('ptx', 'mov.u32 %r1, 7;', 15))"
    )
    assert "number" in printed(code)
