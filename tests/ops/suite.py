"""Every operator of torch's op_db through the compiler, in worker processes.

    python -m tests.ops.suite --device cpu --jobs 2 -o out/ops          kernels in Triton's interpreter
    python -m tests.ops.suite --device cuda --jobs 14 -o out/ops-cuda --budget-seconds 240
    python -m tests.ops.suite --report out/ops-0 out/ops-1 -o out/ops   the table of several shards

Writes ``ops.jsonl`` (an operator's record whenever more of it is done), ``summary.json`` and ``table.md`` into the
folder. Run again with the same folder it goes on where it stopped. Exits with 1 where an operator failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from tests.ops.choice import chosen_ops
from tests.ops.processes import ROOT, Worker
from tests.ops.records import Record, Unit, add_failure, add_outcome, judged, new_record, read_records
from tests.ops.report import write_merged, write_report

CASE_SECONDS = 300.0  # the most that one case may take before it counts as hanging
FIRST_SECONDS = 10.0  # then an operator's other cases wait until every operator has had its turn
SLICE_SECONDS = 30.0  # of a later turn
MAX_ENDED = 3  # crashes and hangs of one operator; then its other cases are left out


def main(arguments: list[str]) -> int:
    """Run what the folder does not have yet, and report everything in it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.ops.suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shard", type=shard, default="0/1", help="I/N: every N-th operator, from the I-th on")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--samples", type=int, default=5, help="of each operator and dtype")
    parser.add_argument("--all", action="store_true", help="all samples of each operator and dtype")
    parser.add_argument("--ops", default="", help="only these operators, by commas")
    parser.add_argument("--budget-seconds", type=float, default=0, help="begin no more cases after this time")
    parser.add_argument("--case-seconds", type=float, default=CASE_SECONDS, help="then a case counts as hanging")
    parser.add_argument("--report", type=Path, nargs="+", help="run nothing: report these folders as one")
    parser.add_argument("-o", dest="folder", type=Path, default=ROOT / "out" / "ops")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    if options.report:
        folder.mkdir(parents=True, exist_ok=True)
        records = [judged(record) for record in read_records(options.report).values()]
        summary = write_merged(folder, records, options.report, options.device)
    else:
        index, count = options.shard
        names = chosen_ops(parser, options.ops, operator_names())[index::count]
        folder.mkdir(parents=True, exist_ok=True)
        samples = 1 << 30 if options.all else options.samples
        workers = [Worker(options.device, samples, options.case_seconds) for _ in range(options.jobs)]
        known = read_records([folder])
        records = run_all([known.get(n) or new_record(n) for n in names], folder, workers, options.budget_seconds)
        command = "python -m tests.ops.suite " + " ".join(a for a in arguments if str(folder) not in a and a != "-o")
        summary = write_report(folder, [judged(record) for record in records], options.device, command.strip())
    print(summary["sentence"])
    return 0 if summary["fail"] == 0 else 1


def shard(text: str) -> tuple[int, int]:
    """ "I/N" as numbers."""
    index, count = (int(part) for part in text.split("/"))
    if not 0 <= index < count:
        raise ValueError
    return index, count


def operator_names() -> list[str]:
    """The names of op_db, asked for in a process of its own: this one stays small."""
    code = "from tests.ops.cases import operators; print('\\n'.join(operators()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


def run_all(records: Sequence[Record], folder: Path, workers: Sequence[Worker], budget: float) -> list[Record]:
    """Run what is left of the operators; a line goes to ``ops.jsonl`` whenever a part of one is done."""
    with (folder / "ops.jsonl").open("a") as log:
        turns = Turns(records, log, budget)

        def serve(worker: Worker) -> None:
            try:
                while (turn := turns.take()) is not None:
                    unit, seconds = turn
                    start = time.monotonic()
                    for message in worker.run(unit, seconds):
                        turns.heard(unit, message, time.monotonic() - start)
            finally:
                worker.stop()

        threads = [threading.Thread(target=serve, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return list(turns.records.values())


class Turns:
    """Whose cases run next. Every operator gets a slice of time first; those with more cases come again, in halves
    that run side by side, so that neither the many cases of one keep out another's nor end up in one process."""

    def __init__(self, records: Sequence[Record], log: TextIO, budget: float) -> None:
        self._log = log
        self.records = {record["op"]: record for record in records}
        self._waiting: deque[Unit] = deque((r["op"], first, step) for r in records for first, step, _ in r["rest"])
        self._running = 0
        self._changed = threading.Condition()
        self._end = time.monotonic() + budget if budget else float("inf")
        print(f"{len(records)} operators, {sum(not r['rest'] for r in records)} of them done before", flush=True)

    def take(self) -> tuple[Unit, float] | None:
        """The next unit and the seconds that it has, or None where nothing is left to do in time."""
        with self._changed:
            while True:
                left = self._end - time.monotonic()
                # An operator's first cases run even then: otherwise nothing would be known of it.
                while self._waiting and left <= 0 and self._waiting[0][1] > 0:
                    self._waiting.popleft()
                if self._waiting:
                    self._running += 1
                    unit = self._waiting.popleft()
                    return unit, max(0.0, min(SLICE_SECONDS if unit[1] else FIRST_SECONDS, left))
                if not self._running:
                    return None
                self._changed.wait()

    def heard(self, unit: Unit, message: dict[str, Any], seconds: float) -> None:
        """Take in what a worker says of a unit; where the unit's turn is over, the operator goes to the log: of its
        lines there the last counts, so they are written one at a time and in order."""
        op, first, step = unit
        with self._changed:
            record = self.records[op]
            if "outcome" in message:
                add_outcome(record, message["case"], message["outcome"])
                if message["outcome"]["kind"] not in ("pass", "skip"):
                    print(f"{message['case']['title']}: {message['outcome']['message']}", flush=True)
                return
            ended = message.get("ended")
            if ended:
                add_failure(record, ended["title"], ended["kind"], ended["message"])
                record["ended"] += 1
                print(f"{ended['title']}: {ended['message']}", flush=True)
            record["seconds"] = round(record["seconds"] + seconds, 2)
            record["rest"] = [part for part in record["rest"] if part[:2] != [first, step]]
            if message["next"] is not None:
                begin, left = message["next"], message["left"]
                record["rest"] += [[begin, 2 * step, (left + 1) // 2], [begin + step, 2 * step, left // 2]]
                if record["ended"] <= MAX_ENDED:
                    self._waiting += [(op, begin, 2 * step), (op, begin + step, 2 * step)]
            self._running -= 1
            self._log.write(json.dumps(record) + "\n")
            self._log.flush()
            self._changed.notify_all()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
