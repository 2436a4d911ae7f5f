"""Peak GPU memory of every gallery model in eager, compiled by Fusescope and by Inductor.

    python tests/benchmarks/bench_memory.py FOLDER [--only NAMES] [--jobs 8] [--training]

Each model and mode runs in a process of its own: a few iterations, then one whose peak is taken. What counts is what
the iteration adds to what was there before it (parameters, inputs, and in training last iteration's gradients are
gone), in bytes as they were asked for, before the allocator rounds them up. Nothing is timed, so several processes may
run at once. With --training every model is trained, whatever its example does.

Another iteration takes the peak of each step of ours; memory.json has them beside what was planned, so that what a
library allocates inside a call is seen.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench_common import ROOT, first_line
from bench_gallery import CASES

MODES = ("eager", "compiled", "inductor")
POOLED = ("graph", "inductor-graph")  # what these hold does not go up and down: their pools are measured
WARMUP = 3
SLACK = 1 << 12  # bytes: a scalar loss, seeds


@dataclass
class MemoryRow:
    """One model in one mode. ``peak_bytes`` is above ``before_bytes``; ``planned_bytes`` is the highest of our own
    plans' peaks; ``pool_bytes`` what CUDA Graphs keep in pools of their own. ``steps`` are (region, step, peak in bytes
    above ``before_bytes``) in the order they ran.
    """

    case: str
    mode: str
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


def run_case(case: str, mode: str, train: bool = False) -> MemoryRow:
    """Measure one model in one mode in this process."""
    import gc

    import torch

    from compiler.backend import Session, default_target, fusescope
    from compiler.region import KernelLibrary
    from compiler.runtime.modes import prepare

    row = MemoryRow(case, mode)
    model, inputs, training = CASES[case]()
    training |= train
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


def run_child(case: str, mode: str, seconds: float, train: bool) -> MemoryRow:
    """``run_case`` in a process of its own."""
    command = [sys.executable, __file__, "--child", case, "--child-mode", mode, *(["--training"] if train else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired:
        return MemoryRow(case, mode, failure=f"Stopped after {seconds:.0f} s.")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        return MemoryRow(case, mode, failure=last[0])
    return MemoryRow(**json.loads(lines[-1]))


def markdown(header: str, rows: Sequence[MemoryRow]) -> str:
    """A row a model: the peaks of each mode in MB, and whether ours is no more than the others'."""
    by_case: dict[str, dict[str, MemoryRow]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.mode] = row
    lines = ["# Peak memory of an iteration", "", header, ""]
    columns = "model,eager MB,fusescope MB,inductor MB,<= eager,<= inductor,planned MB,pools MB,note".split(",")
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for case, found in by_case.items():
        ours = found["compiled"]
        cells = [f"{found[m].peak_bytes / 1e6:.2f}" if not found[m].failure else "-" for m in MODES]
        for other in ("eager", "inductor"):
            known = not (ours.failure or found[other].failure)
            less = ours.peak_bytes <= found[other].peak_bytes + SLACK
            share = ours.peak_bytes / found[other].peak_bytes if found[other].peak_bytes else 1.0
            cells.append("-" if not known else f"yes ({share:.0%})" if less else f"**no** ({share:.1%})")
        notes = "; ".join(f"{row.mode}: {row.failure}" for row in found.values() if row.failure)
        pools = ", ".join(f"{found[m].pool_bytes / 1e6:.1f} {m}" for m in POOLED if m in found)
        lines.append(f"| {case} | {' | '.join(cells)} | {ours.planned_bytes / 1e6:.2f} | {pools} | {notes} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="models whose names contain one of these, separated by commas")
    parser.add_argument("--jobs", type=int, default=4, help="processes at once")
    parser.add_argument("--case-seconds", type=float, default=240)
    parser.add_argument("--pools", action="store_true", help="measure the pools of CUDA Graphs, too")
    parser.add_argument("--training", action="store_true", help="train every model")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-mode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        try:
            row = run_case(options.child, options.child_mode, options.training)
        except Exception as error:
            traceback.print_exc()
            row = MemoryRow(options.child, options.child_mode, failure=first_line(error))
        print(json.dumps(asdict(row)))
        return 0
    if options.folder is None:
        parser.error("give the folder to write to")
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be measured here.", file=sys.stderr)
        return 1
    words = [word for word in options.only.split(",") if word]
    chosen = [case for case in CASES if not words or any(word in case for word in words)]
    modes = (*MODES, *(POOLED if options.pools else ()))
    pairs = [(case, mode) for case in chosen for mode in modes]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda pair: run_child(*pair, options.case_seconds, options.training), pairs))
    which = "every model is trained" if options.training else "as the examples run"
    header = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d', time.gmtime())}. What "
        "one iteration adds to the bytes that tensors ask torch's allocator for, workspaces of libraries included; "
        f"{which}. Beside each answer stands our share."
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    text = markdown(header, rows)
    (options.folder / "memory.md").write_text(text)
    record = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": [asdict(r) for r in rows]}
    (options.folder / "memory.json").write_text(json.dumps(record, indent=1) + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
