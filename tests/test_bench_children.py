"""Child processes of benchmarks: ready side by side, timed one after another, and what is lost when one fails."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent / "benchmarks"
CHILD = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
from bench_children import Child
case, folder = sys.argv[sys.argv.index("--child") + 1], Path(sys.argv[sys.argv.index("--child-folder") + 1])
child = Child(case, folder)
if case == "broken":
    sys.exit(3)
if case == "slow":
    time.sleep(60)
(folder / "pid").write_text(str(os.getpid()))
child.rows.write_text("prepared\\n")
others = [lane / name for name in ("a", "b") for lane in folder.parent.parent.iterdir()]
while not all((other / "rows").read_text() for other in others if other.exists()):
    time.sleep(0.01)
with child.quiet():
    child.rows.open("a").write("quiet\\n")
child.wait_for_turn()
for turn in (1, 2):
    timed = folder.parent / "timed"
    assert not timed.exists()
    timed.touch()
    for mate in (p for p in folder.parent.iterdir() if (p / "pid").exists() and p != folder):
        stat = Path("/proc", (mate / "pid").read_text(), "stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "TZX", stat.read_text()
        assert abs((mate / "rows").read_text().count("timed") - turn) <= 1, "turns are taken in turn"
    time.sleep(0.1)
    timed.unlink()
    child.rows.open("a").write("timed " + " ".join(sys.argv[5:]) + "\\n")
    child.end_turn()
assert all((other / "rows").read_text().count("timed") == 2 for other in others if other.exists())
child.rows.open("a").write("lane " + os.environ["LANE"] + "\\n")
"""


@pytest.mark.parametrize("lanes", [[{"LANE": "0"}], [{"LANE": "0"}, {"LANE": "1"}, {"LANE": "2"}]])
def test_children_prepare_together_and_are_timed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: list[dict[str, str]]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_children import run_children

    script = tmp_path / "script.py"
    script.write_text(CHILD.format(benchmarks=str(BENCHMARKS)))
    found = {
        case: (lines, fate)
        for case, lines, fate in run_children(
            str(script),
            ["--modes", "graph"],
            ["a", "broken", "b", "slow"],
            workers=4,
            case_seconds=3,
            budget_seconds=60,
            cwd=tmp_path,
            lanes=lanes,
            turns=2,
        )
    }
    for at, case in enumerate(("a", "b")):
        said = ["prepared", "quiet", *["timed --modes graph"] * 2, f"lane {lanes[2 * at % len(lanes)]['LANE']}"]
        assert found[case] == (said, "The process ended with code 0.")
    assert found["broken"] == ([], "The process ended with code 3.")
    assert found["slow"][1].startswith("Not ready after 3 s")


def test_what_is_never_timed_runs_side_by_side_within_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_children import run_each

    def python(code: str) -> list[str]:
        return [sys.executable, "-c", code]

    sees_other = (
        "import pathlib, time\npathlib.Path('{0}').touch()\nwhile not pathlib.Path('{1}').exists(): time.sleep(.01)"
    )
    commands = {
        "a": python(sees_other.format("a", "b")),
        "b": python(sees_other.format("b", "a")),
        "broken": python("print('why'); raise SystemExit(3)"),
        "slow": python("import time; time.sleep(60)"),
    }
    logs = tmp_path / "logs"
    fates = dict(run_each(commands, jobs=2, case_seconds=2, budget_seconds=60, cwd=tmp_path, logs=logs))
    assert fates == {
        "a": "The process ended with code 0.",
        "b": "The process ended with code 0.",
        "broken": "The process ended with code 3.",
        "slow": "Stopped: its time was over.",
    }
    assert (logs / "broken.log").read_text() == "why\n"
    late = run_each({"a": python("pass")}, jobs=2, case_seconds=5, budget_seconds=5, cwd=tmp_path, logs=logs)
    assert dict(late) == {"a": "Not run: the time for the whole benchmark was over."}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_what_is_timed_stays_on_the_quickest_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import cores

    allowed, on = {2, 5, 7}, [{2, 5, 7}]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: on[-1])
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: on.append(cores))
    monkeypatch.setattr(cores, "_seconds_on", lambda core, things: {2: 3.0, 5: 1.0, 7: 2.0}[core])
    with cores.quickest_core() as core:
        assert core == 5
        assert on[-1] == {5}
    assert on[-1] == allowed


def test_models_whose_peak_is_above_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_memory import MemoryRow, markdown

    peaks = {"eager": 2_000_000, "compiled": 2_100_000, "inductor": 4_200_000}
    rows = [MemoryRow("mlp", mode, peak_bytes=peak) for mode, peak in peaks.items()]
    rows += [MemoryRow("mlp", "graph", pool_bytes=5_000_000), MemoryRow("mlp", "eager", training=True, example=False)]
    as_example, trained = markdown("H", rows).split("## Every one trained")
    assert "| mlp | 2.00 | 2.10 | 4.20 | **no** (105.0%) | yes (50%) | 0.00 | 5.0 graph |  |" in as_example
    assert "compiled: not measured" in trained


def test_cases_and_modes_of_a_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_common import children_of, modes_of
    from bench_rows import Row, markdown, ratios

    assert modes_of("relu_256M", ["graph", "moving@256M"]) == ["graph", "moving"]
    assert modes_of("mlp", ["graph", "moving@256M"]) == ["graph"]
    assert modes_of("gpt2_training", ["regions", "floor"]) == ["regions"], "no gradients"
    asked = ["graph", "bound", "regions", "moving@256M"]
    assert children_of("mlp", asked, apart=False) == {"mlp": ["graph", "bound", "regions"]}
    assert children_of("mlp", asked, apart=True) == {"mlp@own": ["graph", "regions"], "mlp@inductor": ["bound"]}
    assert children_of("mlp", ["bound"], apart=True) == {"mlp@inductor": ["bound"]}
    by_case = {
        "mlp": {m: Row("mlp", m, wall_us=w, cpu_us=c) for m, w, c in (("bound", 10, 1), ("graph", 11, 1))},
        "gpt2_training": {m: Row("gpt2_training", m, wall_us=w) for m, w in (("graph", 5), ("inductor-graph", 10))},
    }
    first, second = ratios(by_case)
    assert "1.100x the bound's" in first
    assert "0.50x reduce-overhead's" in second
    rows = [row for found in by_case.values() for row in found.values()] + [Row("x", "graph", failure="out of | time")]
    text = markdown("T", "H", rows, ["graph", "bound", "inductor-graph"])
    assert "| mlp | 11.0 | 10.0 | - |" in text
    assert "| mlp | graph | 11.0 | 1.0 | 0.0 | - | 0.0 |" in text, "kernels that were not counted"
    assert "out of \\| time" in text
    assert "Dynamo" not in text
    assert "least" not in text
    by_mode = (("inductor-graph", 300, 100), ("regions", 40, 30), ("floor", 30, 20), ("bound", 20, 6))
    rows = [Row("mlp", mode, wall_us=wall, cpu_us=cpu) for mode, wall, cpu in by_mode]
    text = markdown("T", "H", [*rows, Row("x", "floor", failure="none")], [mode for mode, *_ in by_mode])
    assert "| mlp | 100.0 | 30.0 | 20.0 | 0.30 | 0.20 |" in text
    assert "| **geometric mean** | | | | 0.30 | 0.20 |" in text
    assert "| mlp | 20.0 | 40.0 | 30.0 | 2.00 | 1.50 |" in text
    assert "quietest" not in text
    quiet = {"inductor-graph": (200, 80), "regions": (24, 20), "floor": (22, 18), "bound": (20, 6)}
    rows = [replace(row, turns=5, quiet_wall_us=quiet[row.mode][0], quiet_cpu_us=quiet[row.mode][1]) for row in rows]
    usual, quietest = markdown("T", "H", rows, [mode for mode, *_ in by_mode]).split("quietest turn")
    assert "| mlp | 20.0 | 40.0 | 30.0 | 2.00 | 1.50 |" in usual
    assert "| mlp | 20.0 | 24.0 | 22.0 | 1.20 | 1.10 |" in quietest
    assert "regions: 1.200x the bound's" in quietest


def test_rows_of_one_compiler_are_kept_and_never_mixed_with_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_store import RowFile, code_of_compiler

    path = tmp_path / "rows.jsonl"
    RowFile(path, "one").append({"case": "a"})
    RowFile(path, "two").append({"case": "b"})
    with path.open("a") as output:
        output.write('{"stamp": "one", "row": {"ca')  # the process was stopped while it wrote
    assert RowFile(path, "one").read() == [{"case": "a"}]
    sources = tmp_path / "compiler"
    sources.mkdir()
    (sources / "a.py").write_text("x = 1\n")
    before = code_of_compiler(tmp_path)
    (sources / "a.py").write_text("x = 2\n")
    assert code_of_compiler(tmp_path) != before


def test_models_that_are_slower_than_inductor_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from models_table import MODES, ModelRow, markdown

    times = {"fast": (100, 50, 25, 100), "slow": (100, 100, 90, 80)}
    rows = [
        ModelRow(case, "inference", mode, equal=True, wall_us=us, cpu_us=us, gpu_us=us, launches=3)
        for case, found in times.items()
        for mode, us in zip(MODES, found, strict=True)
    ]
    rows.append(ModelRow("broken", "inference", "compiled", failure="CompileError: a | b"))
    text = markdown("H", rows, MODES, timed=True)
    assert "**2 of 3 right**" in text
    assert "| inference: ours over Inductor | 1.26x | 1.26x | 1.26x | 2 |" in text  # the root of 100/50 times 80/100
    assert "- inference, ours: over 1.03x Inductor's wall time in 1 of 2: slow 1.25x." in text
    assert "| slow | 100 | 100 | 90 | 80 |" in text
    assert "| broken | **failed** |" in text
    assert "a \\| b" in text


def test_searches_for_configurations_wait_for_a_quiet_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_children import Child

    from compiler import kernel_library

    held: list[bool] = []

    def tune(what: str) -> str:
        with (tmp_path / "lock").open("w") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(True)
        return what

    for search in ("tune", "time_padding", "time_bias"):
        monkeypatch.setattr(kernel_library, search, tune)  # put back afterwards
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    triton_heuristics = pytest.importorskip("torch._inductor.runtime.triton_heuristics")
    tuner = triton_heuristics.CachingAutotuner
    monkeypatch.setattr(tuner, "benchmark_all_configs", tuner.benchmark_all_configs)
    (tmp_path / "child").mkdir()
    Child("a", tmp_path / "child").search_quietly()
    library = kernel_library
    assert [library.tune("a"), library.time_padding("b"), library.time_bias("c")] == ["a", "b", "c"]
    assert len(held) == 3
