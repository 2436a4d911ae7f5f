"""How the suite hands out operators' cases, with workers that only count."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ops import promotion
from tests.ops.processes import Worker
from tests.ops.records import Record, Unit, judged, new_record, read_records
from tests.ops.report import write_merged
from tests.ops.suite import main, run_all

CASES = {"few": 3, "many": 100, "broken": 20}
PASSED = {"kind": "pass", "message": "", "groups": 1, "externs": {}, "compiled": True}


class Counting:
    """A worker that runs four cases of a unit at most; the process of "broken" ends in its case 7."""

    def __init__(self, ran: list[tuple[str, int]]) -> None:
        self.ran = ran

    def run(self, unit: Unit, seconds: float) -> Iterator[dict[str, Any]]:
        op, first, step = unit
        numbers = list(range(first, CASES[op], step))
        for place, number in enumerate(numbers):
            case = {"title": f"{op}[{number}]", "dtype": "float32", "way": "forward"}
            if place == 4:
                yield {"next": number, "left": len(numbers) - place}
                return
            if (op, number) == ("broken", 7):
                ended = {"title": case["title"], "kind": "crash", "message": "the process ended"}
                yield {"next": number + step, "left": 0, "ended": ended}
                return
            self.ran.append((op, number))
            yield {"case": case, "outcome": PASSED}
        yield {"next": None, "left": 0}

    def stop(self) -> None:
        """There is no process."""


def run(folder: Path, names: list[str], ran: list[tuple[str, int]], budget: float = 0) -> dict[str, Record]:
    known = read_records([folder])
    records = [known.get(name) or new_record(name) for name in names]
    workers: Any = [Counting(ran) for _ in range(3)]
    done = {record["op"]: record for record in run_all(records, folder, workers, budget)}
    assert read_records([folder]).items() >= done.items()  # the log's last line of each is its last state
    return {op: judged(record) for op, record in done.items()}


def test_every_case_runs_once_and_a_crash_costs_one(tmp_path: Path) -> None:
    ran: list[tuple[str, int]] = []
    found = run(tmp_path, list(CASES), ran)
    every = {(op, number) for op, count in CASES.items() for number in range(count)}
    assert sorted(ran) == sorted(every - {("broken", 7)})
    assert [found[op]["passed"] for op in CASES] == [3, 100, 19]
    assert [found[op]["status"] for op in CASES] == ["pass", "pass", "fail"]
    assert found["broken"]["failures"][0]["case"] == "broken[7]"
    assert not any(record["left_out"] for record in found.values())


def test_what_is_left_out_for_time_is_counted_and_run_the_next_time(tmp_path: Path) -> None:
    ran: list[tuple[str, int]] = []
    found = run(tmp_path, ["few", "many"], ran, budget=1e-9)  # the first turns alone
    assert (found["many"]["passed"], found["many"]["left_out"]) == (4, 96)
    found = run(tmp_path, ["few", "many"], ran)
    assert (found["many"]["passed"], found["many"]["left_out"]) == (100, 0)
    assert sorted(ran) == sorted((op, n) for op in ("few", "many") for n in range(CASES[op]))


def test_shards_are_reported_as_one_table(tmp_path: Path) -> None:
    for number, name in enumerate(("few", "many")):
        shard = tmp_path / str(number)
        shard.mkdir()
        run(shard, [name], [])
        (shard / "summary.json").write_text(
            json.dumps({"command": f"shard {number}", "device": "a GPU", "date": "today", "versions": {"torch": "2"}})
        )
    shards = [tmp_path / "0", tmp_path / "1"]
    summary = write_merged(tmp_path, [judged(r) for r in read_records(shards).values()], shards, "cuda")
    assert (summary["pass"], summary["cases"]["passed"]) == (2, 103)
    assert (summary["device"], summary["command"]) == ("a GPU", "shard 0; shard 1")
    assert "| many | pass | 100 |" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize("last", ["hangs", "crashes"])
def test_the_time_is_a_cases_own_and_what_it_costs_is_named(last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import json, os, sys, time
say = lambda **message: print(json.dumps(message), flush=True)
say(ready=True)
sys.stdin.readline()
for number in range(5):
    say(number=number, case={"title": f"op[{number}]", "dtype": "", "way": ""})
    time.sleep(0.25)
    if number == 4:
        time.sleep(60 if sys.argv[1] == "hangs" else 0)
        os._exit(3)
    say(outcome={"kind": "pass"})
"""
    worker = Worker("cpu", 1, case_seconds=1.0)
    monkeypatch.setattr(worker, "_command", [sys.executable, "-c", code, last])
    messages = list(worker.run(("op", 0, 1), 60))
    worker.stop()
    assert [m["case"]["title"] for m in messages[:-1]] == ["op[0]", "op[1]", "op[2]", "op[3]"]  # 1.25 s in all
    assert messages[-1]["next"] == 5
    assert messages[-1]["ended"]["title"] == "op[4]"
    assert messages[-1]["ended"]["kind"] == {"hangs": "hang", "crashes": "crash"}[last]


@pytest.mark.parametrize("command", [main, promotion.main])
def test_an_operator_that_there_is_not_is_named(
    command: Callable[[list[str]], int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.ops.suite.operator_names", lambda: ["add", "sub"])
    with pytest.raises(SystemExit) as ended:
        command(["--ops", "sub,ad,WRONG"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "There is no operator called 'ad' or 'WRONG'; near are add.\n"


@pytest.mark.parametrize("shard", ["one", "1/1", "0/0", "-1/2", "1"])
def test_a_shard_that_there_is_not_is_wrong_usage(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--shard={shard}"])
    assert ended.value.code == 2
    assert f"argument --shard: invalid shard value: '{shard}'" in capsys.readouterr().err
