"""Peak GPU memory of every gallery model in eager, compiled by Fusescope and by Inductor.

    python tests/benchmarks/bench_memory.py FOLDER [--only NAMES] [--jobs 8]

Each model is measured as its example runs and trained. Each mode runs in a process of its own: a few iterations, then
one whose peak is taken. What counts is what the iteration adds to what was there before it (parameters, inputs, and in
training last iteration's gradients are gone), in bytes as they were asked for, before the allocator rounds them up.
Nothing is timed, so several processes may run at once. Rows are appended to the folder's memory.jsonl as they come;
run again with the same folder and the same compiler it goes on with what is missing.

Another iteration takes the peak of each step of ours; memory.json has them beside what was planned, so that what a
library allocates inside a call is seen.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench_children import run_each
from bench_common import ROOT, first_line
from bench_gallery import CASES
from bench_store import RowFile, code_of_compiler

MODES = ("eager", "compiled", "inductor")
POOLED = ("graph", "inductor-graph")  # what these hold does not go up and down: their pools are measured
WARMUP = 3
SLACK = 1 << 12  # bytes: a scalar loss, seeds
OVER = "over"  # of the row that a process ends with


@dataclass
class MemoryRow:
    """One model in one mode, trained or not; ``example``: as its example runs.

    ``peak_bytes`` is above ``before_bytes``; ``planned_bytes`` is the highest of our own plans' peaks; ``pool_bytes``
    what CUDA Graphs keep in pools of their own. ``steps`` are (region, step, peak in bytes above ``before_bytes``) in
    the order they ran.
    """

    case: str
    mode: str
    training: bool = False
    example: bool = True
    peak_bytes: int = 0
    before_bytes: int = 0
    planned_bytes: int = 0
    pool_bytes: int = 0
    failure: str = ""
    steps: list[tuple[str, str, int]] = field(default_factory=list)


def requested(when: str) -> int:
    """Bytes that tensors ask for, "current" or at the "peak"."""
    import torch

    return int(torch.cuda.memory_stats()[f"requested_bytes.all.{when}"])


def run_case(case: str, mode: str, trained: bool) -> MemoryRow | None:
    """Measure one model in one mode in this process: as its example runs, or ``trained`` where that does not."""
    import gc

    import torch

    from compiler.backend import Session, default_target, fusescope
    from compiler.kernel_library import KernelLibrary
    from compiler.runtime.modes import prepare

    torch._dynamo.reset()
    model, inputs, example = CASES[case]()
    if trained and example:
        return None
    training = trained or example
    row = MemoryRow(case, mode, training, example=training == example)
    compiled = None
    session = None
    if mode == "compiled":
        target = default_target()
        session = Session(target, KernelLibrary(target, binaries=True, texts=False))
        settings = {"session": session}
        compiled = torch.compile(model, backend=lambda gm, x: fusescope(gm, x, options=settings))
    step = prepare(mode, model, inputs, training=training, compiled=compiled)

    def begin() -> None:
        step._latest = []
        for parameter in step.iteration.parameters:
            parameter.grad = None
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.reset_peak_memory_stats()
        row.before_bytes = requested("current")

    for _ in range(WARMUP):
        step()
    begin()
    step()
    row.peak_bytes = requested("peak") - row.before_bytes
    segments = torch.cuda.memory_snapshot()
    row.pool_bytes = sum(s["total_size"] for s in segments if tuple(s["segment_pool_id"]) != (0, 0))
    if session is None:
        return row
    row.planned_bytes = max((region.plan.peak_bytes for region in session.regions), default=0)
    running = ("", "")

    def mark(region: str, unit: str) -> None:
        nonlocal running
        if running != ("", ""):
            row.steps.append((*running, requested("peak") - row.before_bytes))
        torch.cuda.reset_peak_memory_stats()
        running = (region, unit)

    session.observer.mark = mark
    step()  # makes the observed programs
    row.steps.clear()
    begin()
    step()
    return row


def run_child(case: str, mode: str, store: RowFile) -> None:
    """Both ways of one model in one mode; pools only as the example runs."""
    for trained in (False, True) if mode in MODES else (False,):
        try:
            row = run_case(case, mode, trained)
        except Exception as error:
            traceback.print_exc()
            row = MemoryRow(case, mode, trained, example=not trained, failure=first_line(error))
        if row is not None:
            store.append(asdict(row))
    store.append(asdict(MemoryRow(case, mode, failure=OVER)))


def markdown(header: str, rows: Sequence[MemoryRow]) -> str:
    """A row a model: the peaks of each mode in MB, and whether ours is no more than the others'."""
    lines = ["# Peak memory of an iteration", "", header]
    ways = {"As the examples run": [row for row in rows if row.example]}
    ways["Every one trained"] = [row for row in rows if not row.example]
    for title, found in ways.items():
        lines += ["", f"## {title}", "", *_table(found)]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[MemoryRow]) -> list[str]:
    by_case: dict[str, dict[str, MemoryRow]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.mode] = row
    columns = "model,eager MB,fusescope MB,inductor MB,<= eager,<= inductor,planned MB,pools MB,note".split(",")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for case, known in by_case.items():
        missing = MemoryRow(case, "", failure="not measured")
        found = {mode: known.get(mode, missing) for mode in MODES}
        ours = found["compiled"]
        cells = [f"{found[m].peak_bytes / 1e6:.2f}" if not found[m].failure else "-" for m in MODES]
        for other in ("eager", "inductor"):
            both = not (ours.failure or found[other].failure)
            less = ours.peak_bytes <= found[other].peak_bytes + SLACK
            share = ours.peak_bytes / found[other].peak_bytes if found[other].peak_bytes else 1.0
            cells.append("-" if not both else f"yes ({share:.0%})" if less else f"**no** ({share:.1%})")
        notes = "; ".join(f"{mode}: {row.failure}" for mode, row in found.items() if row.failure)
        pools = ", ".join(f"{known[m].pool_bytes / 1e6:.1f} {m}" for m in POOLED if m in known)
        lines.append(f"| {case} | {' | '.join(cells)} | {ours.planned_bytes / 1e6:.2f} | {pools} | {notes} |")
    return lines


def rows_of(store: RowFile) -> dict[tuple[str, str, bool], MemoryRow]:
    """The latest row of each model, mode and way to run."""
    rows = [MemoryRow(**found) for found in store.read()]
    return {(row.case, row.mode, row.training): row for row in rows if row.failure != OVER}


def done(store: RowFile) -> set[tuple[str, str]]:
    """The models and modes whose process came to its end."""
    return {(row["case"], row["mode"]) for row in store.read() if row["failure"] == OVER}


def write_tables(folder: Path, stamp: str, store: RowFile) -> None:
    """memory.md and memory.json of all rows that there are."""
    found = rows_of(store)
    rows = [row for case in CASES for key, row in found.items() if key[0] == case]
    header = (
        f"{stamp}, {time.strftime('%Y-%m-%d', time.gmtime())}. What one iteration adds to the bytes that tensors ask "
        "torch's allocator for, workspaces of libraries included. Beside each answer stands our share."
    )
    (folder / "memory.md").write_text(markdown(header, rows))
    record = {"stamp": stamp, "rows": [asdict(row) for row in rows]}
    (folder / "memory.json").write_text(json.dumps(record, indent=1) + "\n")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="models whose names contain one of these, separated by commas")
    parser.add_argument("--jobs", type=int, default=4, help="processes at once")
    parser.add_argument("--case-seconds", type=float, default=240, help="the most that one mode of a model takes")
    parser.add_argument("--budget-seconds", type=float, default=560, help="the whole ends after that")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-mode", help=argparse.SUPPRESS)
    parser.add_argument("--stamp", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.child:
        run_child(options.child, options.child_mode, RowFile(folder / "memory.jsonl", options.stamp))
        return 0
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be measured here.", file=sys.stderr)
        return 1
    stamp = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, compiler {code_of_compiler()}"
    store = RowFile(folder / "memory.jsonl", stamp)
    words = [word for word in options.only.split(",") if word]
    chosen = [case for case in CASES if not words or any(word in case for word in words)]
    folder.mkdir(parents=True, exist_ok=True)
    base = [sys.executable, __file__, str(folder), "--stamp", stamp]
    finished = done(store)
    commands = {
        f"{case}-{mode}": [*base, "--child", case, "--child-mode", mode]
        for case in reversed(chosen)  # the large ones take longest
        for mode in (*MODES, *POOLED)
        if (case, mode) not in finished
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what there is then becomes a table, too
    began = time.perf_counter()
    try:
        for name, fate in run_each(
            commands,
            jobs=options.jobs,
            case_seconds=options.case_seconds,
            budget_seconds=options.budget_seconds,
            cwd=ROOT,
            logs=folder / "logs",
        ):
            print(f"{time.perf_counter() - began:6.1f} s  {name}: {fate}", flush=True)
    finally:
        write_tables(folder, stamp, store)
        print((folder / "memory.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
