"""Real models, inference and a training step, beside eager and Inductor.

    python tests/benchmarks/bench_models.py FOLDER --jobs 8           numbers and counts, several processes at once
    python tests/benchmarks/bench_models.py FOLDER                    the same and times, one model at a time
    TRITON_INTERPRET=1 python tests/benchmarks/bench_models.py FOLDER --device cpu --only gnn,unet

A child process runs one model and writes a line of JSON per phase and mode as soon as it has it. A result is right
where ``torch._dynamo.utils.same`` says so with float64 as the referee; in training, every gradient has to be. A
gradient jumps where a ReLU's input crosses zero, and which side of it one of millions falls on is a matter of rounding:
a training step that is not right so is judged once more, beside the farthest of several runs of eager whose inputs
differ in their last place, and its note says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_common import ROOT, first_line
from bench_rows import geometric_mean

PHASES = ("inference", "training")
MODES = ("eager", "compiled", "inductor")
MOVED_RUNS = 16


@dataclass
class ModelRow:
    """One model in one phase and mode. Counts of groups, kernels and calls are of Fusescope's own report.

    ``launches`` are what the profiler saw on the GPU in one iteration; times are medians in microseconds.
    """

    case: str
    phase: str
    mode: str
    equal: bool | None = None
    error: float = 0.0
    eager_error: float = 0.0
    regions: int = 0
    graph_breaks: int = 0
    groups: int = 0
    kernels: int = 0
    externs: int = 0
    launches: int = 0
    wall_us: float = 0.0
    cpu_us: float = 0.0
    gpu_us: float = 0.0
    compile_s: float = 0.0
    note: str = ""
    failure: str = ""


# --- one model, in a process of its own ----------------------------------------------------------------------------


def run_model(case: str, modes: Sequence[str], device: str, timed: bool, write: Callable[[ModelRow], None]) -> None:
    """Both phases of one model in every mode."""
    warnings.simplefilter("ignore")
    import torch
    from zoo import MODELS

    torch.set_float32_matmul_precision("high" if timed else "highest")
    torch.backends.cudnn.allow_tf32 = timed
    torch._dynamo.config.recompile_limit = 64
    torch.manual_seed(0)
    model, inputs = MODELS[case]()
    model = model.to(device)
    inputs = tuple(value.to(device) for value in inputs)
    later: list[tuple[ModelRow, Any]] = []
    for phase in PHASES:
        model.train(phase == "training")
        later += _run_phase(case, phase, model, inputs, modes, timed, write)
    if timed:  # only now, for a profiler that has run once can leave every later launch slower
        from compiler.runtime.launches import launched_kernels

        for row, step in later:
            row.launches = len(launched_kernels(step))
            write(row)


def _run_phase(
    case: str, phase: str, model: Any, inputs: Any, modes: Sequence[str], timed: bool, write: Callable[[ModelRow], None]
) -> list[tuple[ModelRow, Any]]:
    from compiler.runtime.compare import compare_outputs, in_float64
    from compiler.runtime.modes import prepare
    from compiler.runtime.timing import measure

    training = phase == "training"
    buffers = {name: value.clone() for name, value in model.named_buffers()}

    def outputs_of(step: Any, of: Any) -> list[Any]:
        """Outputs and gradients of one iteration that begins with the buffers as they were."""
        import torch

        with torch.no_grad():
            for name, value in of.named_buffers():
                value.copy_(buffers[name])
        torch.manual_seed(0)
        step()
        found = [value.clone() if isinstance(value, torch.Tensor) else value for value in step.outputs()]
        return found + [value.clone() for value in of.buffers() if value.is_floating_point()]

    eager = outputs_of(prepare("eager", model, inputs, training=training), model)
    exact, note = eager, ""
    try:
        exact_model, exact_inputs = in_float64(model, inputs)
        exact = outputs_of(prepare("eager", exact_model, exact_inputs, training=training), exact_model)
        del exact_model, exact_inputs
    except Exception as error:  # a kernel that knows no float64
        note = f"Compared with eager alone; float64 fails: {first_line(error)}."
    measured = []
    for mode in modes:
        row = ModelRow(case, phase, mode, note=note)
        try:
            began = time.perf_counter()
            step = _prepare(mode, model, inputs, training, row)
            row.compile_s = time.perf_counter() - began if mode != "eager" else 0.0
            outputs = outputs_of(step, model)
            result = compare_outputs(eager, outputs, exact)
            row.equal, detail = result.equal, result.detail
            row.error, row.eager_error = _overall(outputs, exact), _overall(eager, exact)
            if training and not result.equal and exact is not eager:
                runs = [
                    outputs_of(prepare("eager", model, moved(inputs, seed), training=True), model)
                    for seed in range(MOVED_RUNS)
                ]
                row.equal = compare_outputs(_farthest(runs, exact), outputs, exact).equal
                farthest = max(_overall(run, exact) for run in runs)
                verdict = "right" if row.equal else "not right, either,"
                detail = (
                    f"{verdict} beside the farthest of {MOVED_RUNS} runs of eager whose inputs differ in their last "
                    f"place (error {farthest:.1e}){'' if row.equal else f': {detail}'}"
                )
            row.note = " ".join(filter(None, (row.note, detail)))
            if timed:
                record = measure(step, mode)
                assert record.wall_us is not None
                row.wall_us, row.cpu_us, row.gpu_us = record.wall_us.p50, record.cpu_us.p50, record.gpu_us.p50
            measured.append((row, step))
        except Exception as error:
            traceback.print_exc()
            row.failure = first_line(error)
        write(row)
    return measured


def moved(inputs: Sequence[Any], seed: int) -> tuple[Any, ...]:
    """The inputs, each of their floating-point numbers as it is or one step up or down, at random."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        steps = torch.randint(-1, 2, value.shape, generator=generator).to(value.device, value.dtype)
        return torch.nextafter(value, value + steps)

    return tuple(one(value) for value in inputs)


def _farthest(runs: Sequence[Sequence[Any]], exact: Sequence[Any]) -> list[Any]:
    """Of each output the run whose is farthest from ``exact``."""
    import torch

    def distance(value: Any, x: Any) -> float:
        return float((value.double() - x).square().sum()) if isinstance(x, torch.Tensor) else 0.0

    return [max(values, key=lambda v: distance(v, x)) for *values, x in zip(*runs, exact, strict=True)]


def _overall(values: Sequence[Any], exact: Sequence[Any]) -> float:
    """||values - exact|| / ||exact|| of all floating-point tensors as one vector: a gradient that is zero but for
    rounding (a bias before a norm) has no relative error of its own worth showing."""
    import torch

    pairs = [(v.double(), x.double()) for v, x in zip(values, exact, strict=True) if isinstance(x, torch.Tensor)]
    distance = sum(float((v - x).square().sum()) for v, x in pairs)
    return (distance / max(sum(float(x.square().sum()) for _, x in pairs), 1e-300)) ** 0.5


def _prepare(mode: str, model: Any, inputs: Any, training: bool, row: ModelRow) -> Any:
    """A step that has run once; our own mode fills in what its regions consist of."""
    import torch

    from compiler.runtime.modes import prepare

    torch._dynamo.reset()
    if mode != "compiled":
        return prepare(mode, model, inputs, training=training)
    from compiler.backend import Session, default_target, fusescope
    from compiler.dynamo_log import watch_dynamo
    from compiler.region import KernelLibrary
    from compiler.runtime.executable import interpreting
    from compiler.schedule import Launch

    target = default_target()
    session = Session(target, KernelLibrary(target, binaries=not interpreting(), texts=False))
    compiled = torch.compile(model, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    with watch_dynamo() as dynamo:
        step = prepare(mode, model, inputs, training=training, compiled=compiled)
    row.regions, row.graph_breaks = len(session.regions), len(dynamo.graph_breaks)
    steps = [s for region in session.regions for s in region.steps]
    row.groups = sum(isinstance(s, Launch) for s in steps)
    row.externs = len(steps) - row.groups
    row.kernels = len({name for region in session.regions for name in region.kernels.values()})
    failed = [k.name for k in session.library.by_source.values() if k.error]
    if failed:
        row.note = f"{row.note} {len(failed)} kernels failed to compile: {failed[0]}.".strip()
    return step


# --- all of them ---------------------------------------------------------------------------------------------------


def run_all(cases: Sequence[str], options: argparse.Namespace) -> list[ModelRow]:
    """Each model in a child process, ``jobs`` at once; rows in the order of the cases."""
    began = time.perf_counter()

    def run(case: str) -> list[ModelRow]:
        rows = _run_child(case, options, options.budget_seconds - (time.perf_counter() - began))
        bad = [row for row in rows if row.failure or row.equal is False]
        print(f"{time.perf_counter() - began:6.1f} s  {case}{f': {len(bad)} not right' if bad else ''}", flush=True)
        return rows

    with ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        return [row for rows in pool.map(run, cases) for row in rows]


def _run_child(case: str, options: argparse.Namespace, left: float) -> list[ModelRow]:
    wanted = [(phase, mode) for phase in PHASES for mode in options.modes]
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "rows"
        lines.touch()
        failure = "Not run: the time for the whole benchmark was over."
        if left > 10:
            command = [sys.executable, __file__, "--child", case, "--child-output", str(lines), "--device"]
            command += [options.device, "--modes", ",".join(options.modes), "--jobs", str(options.jobs)]
            threads = max((os.cpu_count() or 1) // max(options.jobs, 1), 1)
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads)} if options.jobs else None
            limit = min(left, options.case_seconds)
            with (Path(folder) / "log").open("wb") as log:
                try:
                    done = subprocess.run(
                        command, timeout=limit, cwd=ROOT, stdout=log, stderr=log, env=environment, check=False
                    )
                    failure = f"The process ended with code {done.returncode}."
                except subprocess.TimeoutExpired:
                    failure = f"Stopped after {limit:.0f} s."
            text = (Path(folder) / "log").read_text(errors="replace")
            if "Traceback" in text:
                print(f"--- {case}\n{text[-3000:]}", file=sys.stderr, flush=True)
        found = {}
        for line in lines.read_text().splitlines():
            row = ModelRow(**json.loads(line))
            found[row.phase, row.mode] = row  # a row is written again once its launches are counted
    return [found.get(key, ModelRow(case, *key, failure=failure)) for key in wanted]


def markdown(header: str, rows: Sequence[ModelRow], modes: Sequence[str], timed: bool) -> str:
    """How many are right, then a table a phase."""
    right = sum(row.equal is True for row in rows if row.mode == "compiled")
    total = sum(row.mode == "compiled" for row in rows)
    lines = ["# Real models", "", header, "", f"**{right} of {total} right** (both phases of every model)."]
    for phase in PHASES:
        lines += ["", f"## {phase.capitalize()}", ""]
        head = ["model", "right", "error", "eager's error", "regions", "breaks", "groups", "kernels", "extern calls"]
        if timed:
            head += [f"{mode} µs" for mode in modes] + [f"{mode} launches" for mode in modes]
        head += ["compile s", "note"]
        lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        by_case: dict[str, dict[str, ModelRow]] = {}
        for row in rows:
            if row.phase == phase:
                by_case.setdefault(row.case, {})[row.mode] = row
        lines += [_line(case, found, modes, timed) for case, found in by_case.items()]
        if timed and "eager" in modes:
            for mode in modes:
                pairs = [(f["eager"].wall_us, f[mode].wall_us) for f in by_case.values()]
                mean = geometric_mean([a / b for a, b in pairs if a and b])
                lines += ["", f"{mode}: {mean:.2f}x the speed of eager (geometric mean of wall times)."]
    return "\n".join(lines) + "\n"


def _line(case: str, found: dict[str, ModelRow], modes: Sequence[str], timed: bool) -> str:
    row = found.get("compiled") or next(iter(found.values()))
    right = {None: "-", True: "yes", False: "**no**"}[row.equal] if not row.failure else "**failed**"
    cells = [case, right, f"{row.error:.1e}", f"{row.eager_error:.1e}", row.regions, row.graph_breaks, row.groups]
    cells += [row.kernels, row.externs]
    if timed:
        cells += [f"{found[mode].wall_us:.0f}" if found[mode].wall_us else "-" for mode in modes]
        cells += [found[mode].launches or "-" for mode in modes]
    notes = [row.failure or row.note]
    notes += [f"{r.mode}: {r.failure or r.note}" for r in found.values() if r is not row and (r.failure or not r.equal)]
    cells += [f"{row.compile_s:.1f}", " ".join(filter(None, notes))]
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def main() -> int:
    """The command line."""
    from zoo import MODELS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="models whose names contain one of these, separated by commas")
    parser.add_argument("--modes", default="", help=f"of {', '.join(MODES)}; without times only compiled by default")
    parser.add_argument("--jobs", type=int, default=0, help="processes at once, without times; 0: one, with times")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--case-seconds", type=float, default=240)
    parser.add_argument("--budget-seconds", type=float, default=560)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-output", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    timed = options.jobs == 0 and options.device == "cuda"
    options.modes = (options.modes or (",".join(MODES) if timed else "compiled")).split(",")
    if unknown := set(options.modes) - set(MODES):
        parser.error(f"unknown modes: {', '.join(sorted(unknown))}")
    if options.child:
        with options.child_output.open("a") as output:

            def write(row: ModelRow) -> None:
                output.write(json.dumps(asdict(row)) + "\n")
                output.flush()

            run_model(options.child, options.modes, options.device, timed, write)
        return 0
    if options.folder is None:
        parser.error("give the folder to write to")
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        print("No CUDA device: nothing can be run here but --device cpu.", file=sys.stderr)
        return 1
    words = [word for word in options.only.split(",") if word]
    chosen = [case for case in MODELS if not words or any(word in case for word in words)]
    rows = run_all(chosen, options)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU, kernels through Triton's interpreter"
    precision = "float32 matmuls may use TF32 in every mode" if timed else "no TF32"
    header = (
        f"{where}, torch {torch.__version__}, {time.strftime('%Y-%m-%d', time.gmtime())}, {precision}. Errors are "
        "||x - float64|| / ||float64|| over outputs, gradients and buffers together; right is judged for each alone."
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    text = markdown(header, rows, options.modes, timed)
    (options.folder / "models.md").write_text(text)
    record = {"device": where, "torch": torch.__version__, "rows": [asdict(row) for row in rows]}
    (options.folder / "models.json").write_text(json.dumps(record, indent=1) + "\n")
    print(text)
    return 0 if all(row.equal for row in rows if row.mode == "compiled") else 1


if __name__ == "__main__":
    sys.exit(main())
