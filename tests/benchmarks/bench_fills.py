"""What fills as kernels (``compiler/runtime/fills.py``) bring: python tests/benchmarks/bench_fills.py [--only WORDS].

For anchor rows, each in a process of its own: the iteration's graph with kernels in the place of memsets, and as it was
captured, in turns. Launch and wall time of a replay are medians of CPU time (least in brackets) after a wait for the
GPU, GPU time is between two events; in microseconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

ROWS = "gpt2_b1,gpt2_b8,vit_b16,resnet50,bert_b32,gpt2_training_b1"
FORMS = ("kernels", "memsets")
TURNS, REPLAYS = 5, 40


def main() -> int:
    """The command line above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=ROWS, help="rows whose names contain one of these, separated by commas")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("\n".join(row(options.child)))
        return 0
    from bench_anchors import CASES

    print("| model | fills | as | launch | wall | GPU |\n|---|---|---|---|---|---|")
    for case in CASES:
        if any(word in case for word in options.only.split(",")):
            command = [sys.executable, __file__, "--child", case]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            found = [line for line in done.stdout.splitlines() if line.startswith("|")]
            print("\n".join(found or [f"| {case} | failed: {(done.stderr.splitlines() or ['?'])[-1]} |"]), flush=True)
    return 0


def row(case: str) -> list[str]:
    """A line of the table for each form, both captured from what was compiled once."""
    import torch
    from bench_anchors import CASES

    from compiler.runtime import capture, modes
    from compiler.runtime.observe import Observer

    torch.set_float32_matmul_precision("high")
    model, inputs, training = CASES[case]()
    observer = Observer()
    call = torch.compile(model, backend=modes._own_backend(), fullgraph=True, options={"observer": observer})
    iteration = modes.Iteration(call, model, inputs, training=training)
    modes._without_breaks(iteration)
    device = torch.device("cuda", torch.cuda.current_device())
    made = capture._fills_as_kernels
    steps: dict[str, Any] = {}
    for form in FORMS:
        capture._fills_as_kernels = made if form == "kernels" else lambda *_: 0
        steps[form] = modes.WholeGraphStep(iteration, device, model, observer)
    times: dict[str, list[tuple[float, float, float]]] = {form: [] for form in FORMS}
    for _ in range(TURNS):
        for form, step in steps.items():
            times[form] += timed(step, step._recording.replay, device)
    lines = []
    for form, found in times.items():
        launch, wall, gpu = zip(*found, strict=True)
        fills = steps["kernels"].cuda_graph.fills_as_kernels
        cells = [median_and_least(launch), median_and_least(wall), f"{statistics.median(gpu):.1f}"]
        lines.append(f"| {case} | {fills} | {form} | {' | '.join(cells)} |")
    return lines


def timed(step: Callable[[], object], replay: Callable[[int], None], device: Any) -> list[tuple[float, float, float]]:
    """Launch, wall and GPU time of some replays; the GPU's is the median of replays of its own."""
    import torch

    from compiler.runtime.capture import replay_us

    gpu = replay_us(replay, device, REPLAYS)
    found = []
    for _ in range(REPLAYS):
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        step()
        launched = time.perf_counter_ns()
        torch.cuda.synchronize()
        found.append(((launched - began) / 1e3, (time.perf_counter_ns() - began) / 1e3, gpu))
    return found


def median_and_least(values: Sequence[float]) -> str:
    """A cell of the table."""
    return f"{statistics.median(values):.1f} ({min(values):.1f})"


if __name__ == "__main__":
    sys.exit(main())
