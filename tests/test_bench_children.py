"""Child processes of benchmarks: ready side by side, timed one after another, and what is lost when one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent / "benchmarks"
CHILD = """
import sys, time
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
from bench_children import Child
case, folder = sys.argv[sys.argv.index("--child") + 1], Path(sys.argv[sys.argv.index("--child-folder") + 1])
child = Child(case, folder)
if case == "broken":
    sys.exit(3)
if case == "slow":
    time.sleep(60)
child.rows.write_text("prepared\\n")
others = [folder.parent / name for name in ("a", "b")]
while not all((other / "rows").read_text() for other in others if other.exists()):
    time.sleep(0.01)
with child.quiet():
    child.rows.open("a").write("quiet\\n")
child.wait_for_turn()
timed = folder.parent / "timed"
assert not timed.exists()
timed.touch()
time.sleep(0.1)
timed.unlink()
child.rows.open("a").write("timed " + " ".join(sys.argv[5:]) + "\\n")
"""


def test_children_prepare_together_and_are_timed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        )
    }
    for case in ("a", "b"):
        assert found[case] == (["prepared", "quiet", "timed --modes graph"], "The process ended with code 0.")
    assert found["broken"] == ([], "The process ended with code 3.")
    assert found["slow"][1].startswith("Not ready after 3 s")


def test_cases_and_modes_of_a_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_common import modes_of
    from bench_rows import Row, markdown, ratios

    assert modes_of("relu_256M", ["graph", "moving@256M"]) == ["graph", "moving"]
    assert modes_of("mlp", ["graph", "moving@256M"]) == ["graph"]
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
    assert "out of \\| time" in text
