"""What became of an operator: a plain dictionary that outcomes are added to, one a case, as they come in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.ops.tables import Refusal, expected_refusals

CASES = ("passed", "failed", "refused", "skipped", "left_out", "uncompiled")
MAX_FAILURES_KEPT = 6

Record = dict[str, Any]
Unit = tuple[str, int, int]  # an operator's cases from one number on, every so many: (operator, first, step)


def new_record(op: str) -> Record:
    """An operator's record before its first case. The counts of ``CASES`` are of cases, "groups" and "externs" of
    what they launched and called; "skips" counts the reasons for skipping. "rest" has the first case, the step and
    the number of cases, where that is known, of every ``Unit`` that has not been run whole; "covered" the numbers of
    the rows of expected.toml that were needed, "ended" how often a process crashed or hung."""
    counts = dict.fromkeys(CASES, 0)
    return {
        "op": op, "status": "skip", **counts, "groups": 0, "externs": {}, "failures": [], "skips": {}, "dtypes": [],
        "rest": [[0, 1, 0]], "covered": [], "ended": 0, "seconds": 0.0,
    }  # fmt: skip


def add_outcome(record: Record, case: dict[str, Any], outcome: dict[str, Any]) -> None:
    """Count a case. ``case`` has its title, dtype and way; ``outcome`` the fields of ``running.Outcome``."""
    if case["dtype"] not in record["dtypes"]:
        record["dtypes"].append(case["dtype"])
    record["groups"] += outcome["groups"]
    record["uncompiled"] += not outcome["compiled"]
    for target, count in outcome["externs"].items():
        record["externs"][target] = record["externs"].get(target, 0) + count
    kind, message = outcome["kind"], outcome["message"]
    row = _row_for(record["op"], case, message) if kind == "refused" else None
    if row is not None:
        record["refused"] += 1
        record["covered"] = sorted({*record["covered"], row})
    elif kind == "pass":
        record["passed"] += 1
    elif kind == "skip":
        record["skipped"] += 1
        record["skips"][message] = record["skips"].get(message, 0) + 1
    else:
        add_failure(record, case["title"], kind, message)


def add_failure(record: Record, case: str, kind: str, message: str) -> None:
    """Count a case that failed; of many the first are kept in words."""
    record["failed"] += 1
    if len(record["failures"]) < MAX_FAILURES_KEPT:
        record["failures"].append({"case": case, "kind": kind, "message": message})


def judged(record: Record) -> Record:
    """The record with its status. An operator that has run whole fails where a row of expected.toml covered nothing."""
    record = {**record, "failures": [*record["failures"]], "left_out": sum(left for *_, left in record["rest"])}
    if not record["rest"]:
        for number, row in enumerate(expected_refusals()):
            if row.op == record["op"] and number not in record["covered"]:
                message = f"expected.toml says that it is refused ({row.error!r}), but it is not"
                add_failure(record, record["op"], "unexpected success", message)
    some = record["passed"] or record["refused"]
    record["status"] = "fail" if record["failed"] else "pass" if some else "skip"
    return record


def read_records(folders: Sequence[Path]) -> dict[str, Record]:
    """What the folders' ``ops.jsonl`` hold, by operator; of several lines about one operator the last."""
    found = {}
    for folder in folders:
        path = folder / "ops.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            record = json.loads(line)
            found[record["op"]] = record
    return found


def _row_for(op: str, case: dict[str, Any], message: str) -> int | None:
    rows: list[Refusal] = expected_refusals()
    covering = (n for n, row in enumerate(rows) if row.covers(op, case["dtype"], case["way"]) and row.error in message)
    return next(covering, None)
