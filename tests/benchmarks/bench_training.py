"""Where the time of the training rows goes: python tests/benchmarks/bench_training.py [FILE.md] [--only WORD].

For each training row of ``bench_anchors`` and each mode, in a process of its own: the wall time of an iteration, and of
each part of it (letting go of the gradients, the call of the model, the loss, the backward, detaching what is returned)

- the CPU time until the next part begins,
- the time on the GPU from when it has done all before the part until it has done the part, waiting included,
- how many Python functions are called.

Then how long the GPU is busy with kernels in an iteration, and the ten that take longest, each mode's beside the
others'. The rows have no optimizer. Medians, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

MODES = ("graph", "regions", "inductor-graph", "bound")
WHOLE = ("graph", "bound")  # modes that have no parts where the whole iteration is one graph
PARTS = ("gradients", "forward", "loss", "backward", "detach")
WARM_CALLS, CALLS, LONGEST = 20, 100, 10
Mark = Callable[[str], None]


class Iterated(Protocol):
    """``compiler.runtime.modes.Iteration``, as far as its parts are called here one by one."""

    _call: Callable[..., Any]
    _inputs: Sequence[Any]
    parameters: list[Any]


def in_parts(iteration: Iterated, mark: Mark) -> list[Any]:
    """What calling the iteration does, with a mark before each part and one after the last."""
    import torch
    from torch.utils import _pytree as pytree

    mark("gradients")
    for parameter in iteration.parameters:
        parameter.grad = None
    mark("forward")
    outputs = pytree.tree_leaves(iteration._call(*iteration._inputs))
    mark("loss")
    loss = sum(value.mean() for value in outputs if isinstance(value, torch.Tensor) and value.requires_grad)
    mark("backward")
    loss.backward()  # type: ignore[union-attr]
    mark("detach")
    returned = [value.detach() if isinstance(value, torch.Tensor) else value for value in outputs]
    mark("")
    return returned


def timed_parts(iteration: Iterated, event: Callable[[], Any], wait: Callable[[], None]) -> dict[str, list[float]]:
    """Each part's CPU and GPU time in microseconds, medians; ``event`` makes one and records it."""
    cpu: dict[str, list[float]] = defaultdict(list)
    gpu: dict[str, list[float]] = defaultdict(list)
    for number in range(WARM_CALLS + CALLS):
        wait()
        marks = _marks(iteration, event)
        wait()
        if number < WARM_CALLS:
            continue
        for (part, before, began), (_, after, ended) in pairwise(marks):
            cpu[part].append((ended - began) / 1e3)
            gpu[part].append(before.elapsed_time(after) * 1e3)
    return {part: [statistics.median(cpu[part]), statistics.median(gpu[part])] for part in cpu}


def _marks(iteration: Iterated, event: Callable[[], Any]) -> list[tuple[str, Any, int]]:
    """Each part of one iteration with an event and the time before it: the event counts to the part before."""
    marks: list[tuple[str, Any, int]] = []
    in_parts(iteration, lambda part: marks.append((part, event(), time.perf_counter_ns())))
    return marks


def python_calls(iteration: Iterated) -> dict[str, int]:
    """How many Python functions each part calls; those of the threads that run a backward are not seen."""
    counts: Counter[str] = Counter()
    now = ""

    def mark(part: str) -> None:
        nonlocal now
        now = part

    def count(frame: Any, what: str, argument: Any) -> None:
        if what == "call" and frame.f_code is not mark.__code__:
            counts[now] += 1

    sys.setprofile(count)
    try:
        in_parts(iteration, mark)
    finally:
        sys.setprofile(None)
    return {part: counts[part] for part in PARTS}


def longest(kernels: Iterable[tuple[str, float]]) -> list[list[Any]]:
    """The kernels that take longest in an iteration: name, microseconds, launches."""
    took: dict[str, float] = defaultdict(float)
    launches: Counter[str] = Counter()
    for name, us in kernels:
        took[name] += us
        launches[name] += 1
    return [[name, took[name], launches[name]] for name in sorted(took, key=lambda name: -took[name])[:LONGEST]]


def child(case: str, mode: str) -> dict[str, Any]:
    """All figures of one mode."""
    import torch
    from bench_anchors import CASES
    from bench_common import prepare_mode

    from compiler.runtime.timing import measure
    from compiler.runtime.trace import gpu_events, trace

    torch.set_float32_matmul_precision("high")
    torch._dynamo.config.recompile_limit = 64
    model, inputs, training = CASES[case]()
    step = prepare_mode(mode, model, inputs, training)
    for _ in range(WARM_CALLS):
        step()
    torch.cuda.synchronize()
    record = measure(step, mode, least=CALLS)
    assert record.wall_us is not None
    found: dict[str, Any] = {"wall": record.wall_us.p50, "cpu": record.cpu_us.p50, "note": step.note, "parts": {}}

    def event() -> Any:
        made = torch.cuda.Event(enable_timing=True)
        made.record()
        return made

    if mode not in WHOLE or "region by region" in step.note:
        step._latest = []  # the parts are called without the step, in whose place outputs would stay held
        found["parts"] = timed_parts(step.iteration, event, torch.cuda.synchronize)
        found["calls"] = python_calls(step.iteration)
    # The profiler comes last, for it can leave later launches slower.
    kernels = [(e.name, e.us) for e in gpu_events(trace(step, mode))]
    found |= {"busy": sum(us for _, us in kernels), "launches": len(kernels), "longest": longest(kernels)}
    return found


def table(case: str, found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One row's figures, modes side by side."""
    modes = list(found)
    lines = [f"## {case}", "", "| | " + " | ".join(modes) + " |", "|---" * (len(modes) + 1) + "|"]
    for name, label in (("wall", "wall"), ("cpu", "CPU"), ("busy", "GPU busy"), ("launches", "kernels and copies")):
        lines.append(f"| {label} | " + " | ".join(_figure(found[mode].get(name)) for mode in modes) + " |")
    for part in PARTS:
        cells = [found[mode].get("parts", {}).get(part) for mode in modes]
        calls = [found[mode].get("calls", {}).get(part) for mode in modes]
        for label, values in (
            ("CPU", [cell[0] if cell else None for cell in cells]),
            ("GPU", [cell[1] if cell else None for cell in cells]),
            ("Python calls", calls),
        ):
            lines.append(f"| {part}: {label} | " + " | ".join(map(_figure, values)) + " |")
    for mode in modes:
        lines += ["", f"{mode}: {found[mode].get('note') or 'no note'}", ""]
        if found[mode].get("longest"):
            lines += ["| longest kernels | µs an iteration | launches |", "|---|---|---|"]
            lines += [f"| `{name[:100]}` | {us:.1f} | {count} |" for name, us, count in found[mode]["longest"]]
    return [*lines, ""]


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def main() -> int:
    """The command line above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="the Markdown file that the tables are written to")
    parser.add_argument("--only", default="training", help="rows whose names contain this")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--child", nargs=2, metavar=("ROW", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be timed here.", file=sys.stderr)
        return 1
    if options.child:
        print("\n" + json.dumps(child(*options.child)))
        return 0
    from bench_anchors import CASES

    lines = [f"# Parts of a training iteration\n\n{torch.cuda.get_device_name()}, torch {torch.__version__}\n"]
    for case in CASES:
        if "training" not in case or options.only not in case:
            continue
        found: dict[str, Any] = {}
        for mode in options.modes.split(","):
            command = [sys.executable, __file__, "--child", case, mode]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            last = (done.stdout.strip().splitlines() or [""])[-1]
            failure = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
            found[mode] = json.loads(last) if done.returncode == 0 else {"note": f"failed: {failure}"}
        lines += table(case, found)
        print("\n".join(lines), flush=True)
        if options.file is not None:
            options.file.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
