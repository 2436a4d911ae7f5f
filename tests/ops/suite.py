"""Every operator of torch's op_db through the compiler, in worker processes.

    python -m tests.ops.suite --device cpu --jobs 2 -o out/ops          kernels in Triton's interpreter
    python -m tests.ops.suite --device cuda --jobs 14 -o out/ops-cuda --budget-seconds 240

Writes ``ops.jsonl`` (a line an operator, as they finish), ``summary.json`` and ``table.md`` into the folder. Run again
with the same folder it goes on where it stopped. Exits with 1 where an operator failed.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.ops.report import new_record, write_report

ROOT = Path(__file__).resolve().parents[2]
OP_SECONDS = 300.0  # the most that one operator may take before it counts as hanging


def main(arguments: list[str]) -> int:
    """Run what the folder does not have yet, and report everything in it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.ops.suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th operator, beginning with the I-th")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--samples", type=int, default=5, help="of each operator and dtype")
    parser.add_argument("--all", action="store_true", help="all samples of each operator and dtype")
    parser.add_argument("--ops", default="", help="only these operators, by commas")
    parser.add_argument("--budget-seconds", type=float, default=0, help="aim to finish in this time: fewer samples")
    parser.add_argument("--op-seconds", type=float, default=OP_SECONDS, help="then an operator counts as hanging")
    parser.add_argument("-o", dest="folder", type=Path, default=ROOT / "out" / "ops")
    options = parser.parse_args(arguments)
    samples = 1 << 30 if options.all else options.samples
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    names = [n for n in options.ops.split(",") if n] or operator_names()
    index, count = (int(part) for part in options.shard.split("/"))
    names = names[index::count]
    done = {record["op"] for record in read_records(folder)}
    left = [n for n in names if n not in done]
    print(f"{len(names)} operators, {len(names) - len(left)} of them done before", flush=True)
    run_all(left, folder, options.device, samples, options.jobs, options.budget_seconds, options.op_seconds)
    records = [r for r in read_records(folder) if r["op"] in set(names)]
    command = "python -m tests.ops.suite " + " ".join(a for a in arguments if str(folder) not in a and a != "-o")
    summary = write_report(folder, records, options.device, command.strip())
    print(summary["sentence"])
    return 0 if summary["fail"] == 0 else 1


def operator_names() -> list[str]:
    """The names of op_db, asked for in a process of its own: this one stays small."""
    code = "from tests.ops.cases import operators; print('\\n'.join(operators()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


def read_records(folder: Path) -> list[dict[str, Any]]:
    """What ``ops.jsonl`` holds; of several lines about one operator the last."""
    path = folder / "ops.jsonl"
    if not path.exists():
        return []
    found = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        found[record["op"]] = record
    return list(found.values())


def run_all(
    names: Sequence[str], folder: Path, device: str, samples: int, jobs: int, budget: float, op_seconds: float
) -> None:
    """Run the operators in ``jobs`` worker processes; a line goes to ``ops.jsonl`` as each one is done."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    start = time.monotonic()
    lock = threading.Lock()
    with (folder / "ops.jsonl").open("a") as log:

        def share() -> float:
            """An operator's part of the time that is left; most need less, so it may take more than its part."""
            if not budget:
                return op_seconds
            rest = budget - (time.monotonic() - start)
            return max(0.0, 1.5 * rest * jobs / (waiting.qsize() + jobs))

        def save(record: dict[str, Any]) -> None:
            with lock:
                log.write(json.dumps(record) + "\n")
                log.flush()
                if record["status"] == "fail":
                    first = record["failures"][0]
                    print(f"{record['op']}: {first['kind']}: {first['case']}: {first['message']}", flush=True)

        def serve() -> None:
            worker = Worker(device, samples)
            try:
                while True:
                    try:
                        name = waiting.get_nowait()
                    except queue.Empty:
                        return
                    save(worker.run(name, min(share(), op_seconds), op_seconds))
            finally:
                worker.stop()

        threads = [threading.Thread(target=serve) for _ in range(min(jobs, max(len(names), 1)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Worker:
    """A worker process, replaced whenever it dies, hangs or has grown too large."""

    def __init__(self, device: str, samples: int) -> None:
        self._command = [sys.executable, "-m", "tests.ops.worker", "--device", device, "--samples", str(samples)]
        self._process: subprocess.Popen[str] | None = None

    def run(self, name: str, seconds: float, limit: float) -> dict[str, Any]:
        """One operator's record. ``seconds`` is what it should take, ``limit`` the most it may."""
        process = self._started()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"op": name, "seconds": seconds}) + "\n")
        process.stdin.flush()
        killer = threading.Timer(limit, process.kill)
        killer.start()
        start, at = time.monotonic(), name
        try:
            for message in self._messages(process):
                at = message.get("at", at)
                if "record" in message:
                    if message["last"]:
                        self.stop()
                    return message["record"]
        finally:
            killer.cancel()
        status = process.wait()
        self._process = None
        spent = time.monotonic() - start
        hung = spent >= limit - 1
        kind = "hang" if hung else "crash"
        text = f"nothing came back in {limit:.0f} s" if hung else f"the process ended with {status}"
        record = new_record(name)
        record.update(status="fail", failed=1, seconds=round(spent, 2))
        record["failures"].append({"case": at, "kind": kind, "message": text})
        return record

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            next(self._messages(self._process))  # it is ready
        return self._process

    def _messages(self, process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
