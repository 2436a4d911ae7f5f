"""Peak GPU memory of every gallery model in eager, compiled by Fusescope and by Inductor.

    python tests/benchmarks/bench_memory.py FOLDER [--only NAMES] [--jobs 8]

Each model and mode runs in a process of its own: a few iterations, then one whose peak is taken. What counts is what
the iteration adds to what was there before it (parameters, inputs, and in training last iteration's gradients are
gone). Nothing is timed, so several processes may run at once.
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
from dataclasses import asdict, dataclass
from pathlib import Path

from bench_common import ROOT, first_line
from bench_gallery import CASES

MODES = ("eager", "compiled", "inductor")
WARMUP = 3
SLACK = 1 << 20  # bytes: the allocator hands out blocks of 512 bytes to 2 MB


@dataclass
class MemoryRow:
    """One model in one mode. ``peak_bytes`` is above ``before_bytes``; ``planned_bytes`` are our own plans' peaks."""

    case: str
    mode: str
    peak_bytes: int = 0
    before_bytes: int = 0
    planned_bytes: int = 0
    failure: str = ""


def run_case(case: str, mode: str) -> MemoryRow:
    """Measure one model in one mode in this process."""
    import gc

    import torch

    from compiler.backend import Session, default_target, fusescope
    from compiler.region import KernelLibrary
    from compiler.runtime.modes import prepare

    row = MemoryRow(case, mode)
    model, inputs, training = CASES[case]()
    compiled = None
    session = None
    if mode == "compiled":
        target = default_target()
        session = Session(target, KernelLibrary(target, binaries=True, texts=False))
        settings = {"session": session}
        compiled = torch.compile(model, backend=lambda gm, x: fusescope(gm, x, options=settings))
    step = prepare(mode, model, inputs, training=training, compiled=compiled)
    for _ in range(WARMUP):
        step()
    step._latest = []
    for parameter in step.iteration.parameters:
        parameter.grad = None
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    row.before_bytes = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    row.peak_bytes = torch.cuda.max_memory_allocated() - row.before_bytes
    if session is not None:
        row.planned_bytes = max((region.plan.peak_bytes for region in session.regions), default=0)
    return row


def run_child(case: str, mode: str, seconds: float) -> MemoryRow:
    """``run_case`` in a process of its own."""
    command = [sys.executable, __file__, "--child", case, "--child-mode", mode]
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
    lines += ["| model | eager MB | fusescope MB | inductor MB | <= eager | <= inductor | planned MB | note |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for case, found in by_case.items():
        ours = found["compiled"]
        cells = [f"{found[m].peak_bytes / 1e6:.2f}" if not found[m].failure else "-" for m in MODES]
        for other in ("eager", "inductor"):
            known = not (ours.failure or found[other].failure)
            less = ours.peak_bytes <= found[other].peak_bytes + SLACK
            cells.append("-" if not known else "yes" if less else "**no**")
        notes = "; ".join(f"{row.mode}: {row.failure}" for row in found.values() if row.failure)
        lines.append(f"| {case} | {' | '.join(cells)} | {ours.planned_bytes / 1e6:.2f} | {notes} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="models whose names contain one of these, separated by commas")
    parser.add_argument("--jobs", type=int, default=4, help="processes at once")
    parser.add_argument("--case-seconds", type=float, default=240)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-mode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        try:
            row = run_case(options.child, options.child_mode)
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
    pairs = [(case, mode) for case in chosen for mode in MODES]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda pair: run_child(*pair, options.case_seconds), pairs))
    header = (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d', time.gmtime())}. What "
        f"one iteration adds to the memory in use, by torch's allocator; equal within {SLACK >> 20} MB counts as equal."
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
