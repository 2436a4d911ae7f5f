"""Real models, inference and a training step, beside eager and Inductor.

    python tests/benchmarks/bench_models.py FOLDER --jobs 8           numbers and counts, several processes at once
    python tests/benchmarks/bench_models.py FOLDER --times            the same and times, on every GPU there is
    TRITON_INTERPRET=1 python tests/benchmarks/bench_models.py FOLDER --device cpu --jobs 1 --only gnn,unet

A child process runs one model and appends a row per phase and mode to the folder's models.jsonl as soon as it has it.
Run again with the same folder and the same compiler it goes on with what is missing. With times, children compile and
judge the numbers of all their modes side by side; then each of a GPU's is timed alone while the others wait, and last
they count launches under a profiler.

A result is right where ``torch._dynamo.utils.same`` says so with float64 as the referee; in training, every gradient
has to be. A gradient jumps where a ReLU's input crosses zero, and which side of it one of millions falls on is a matter
of rounding: a training step that is not right so is judged once more, beside the farthest of several runs of eager
whose inputs differ in their last place, and its note says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_children import Child, run_children, run_each
from bench_common import ROOT, first_line
from bench_store import RowFile, code_of_compiler
from models_table import MODES, PHASES, ModelRow, markdown

MOVED_RUNS = 16
LEAST_ITERATIONS = 50
NOTE_LENGTH = 400  # characters: of forty outputs that differ the first few tell
# Parts of the whole time: until then modes are begun, and until then a child has to be ready.
LAST_START, LAST_READY = 0.5, 0.7

Part = tuple[str, str]  # phase, mode


# --- one model, in a process of its own ----------------------------------------------------------------------------


@dataclass
class Prepared:
    """A mode that can be timed: the step, and the model in the phase that it was compiled in."""

    row: ModelRow
    step: Any
    model: Any

    def ready(self) -> None:
        """Put the model into the phase, for compiled code is guarded by it."""
        self.model.train(self.row.phase == "training")


def run_model(
    case: str, wanted: Sequence[Part], options: argparse.Namespace, write: Callable[[ModelRow], None], child: Child
) -> None:
    """The wanted phases and modes of one model: prepared, compared, and where asked for, timed."""
    warnings.simplefilter("ignore")
    import torch
    from zoo import MODELS

    torch.set_float32_matmul_precision(options.precision)
    torch.backends.cudnn.allow_tf32 = options.precision != "highest"
    # Each mode compiles the same code anew, and none may fall back to eager for having been compiled too often.
    torch._dynamo.config.recompile_limit = 64
    deadline = time.monotonic() + options.begin_seconds
    if options.times:
        child.search_quietly()
    torch.manual_seed(0)
    model, inputs = MODELS[case]()
    model = model.to(options.device)
    inputs = tuple(value.to(options.device) for value in inputs)
    prepared: list[Prepared] = []
    for phase in PHASES:
        modes = [mode for wanted_phase, mode in wanted if wanted_phase == phase]
        if modes:
            model.train(phase == "training")
            rows = _prepare_phase(case, phase, modes, model, inputs, child, deadline if options.times else None)
            for row, step in rows:
                row.finished = not options.times or step is None
                write(row)
                if step is not None:
                    prepared.append(Prepared(row, step, model))
    if options.times:
        _time(prepared, write, child)


def _time(prepared: Sequence[Prepared], write: Callable[[ModelRow], None], child: Child) -> None:
    import torch

    from compiler.runtime.timing import measure
    from compiler.runtime.trace import kernel_names, trace

    torch.cuda.synchronize()
    child.wait_for_turn()
    for one in prepared:
        row = one.row
        try:
            one.ready()
            one.step()
            record = measure(one.step, row.mode, least=LEAST_ITERATIONS)
            assert record.wall_us is not None
            row.wall_us, row.cpu_us, row.gpu_us = record.wall_us.p50, record.cpu_us.p50, record.gpu_us.p50
        except Exception as error:
            traceback.print_exc()
            row.failure, row.finished = first_line(error), True
        write(row)
    child.end_turn()
    # Only now, for a profiler that has run once can leave every later launch slower.
    for one in prepared:
        if not one.row.failure:
            one.ready()
            one.row.launches = len(kernel_names(trace(one.step, one.row.mode)))
            one.row.finished = True
            write(one.row)


def _prepare_phase(
    case: str, phase: str, modes: Sequence[str], model: Any, inputs: Any, child: Child, deadline: float | None
) -> list[tuple[ModelRow, Any]]:
    """Each mode's row with its step, or with None where it failed. After ``deadline`` no mode is begun."""
    from compiler.runtime.compare import compare_outputs, in_float64
    from compiler.runtime.modes import prepare

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

    with child.quiet() if deadline is not None else contextlib.nullcontext():  # searches for configurations wait
        eager = outputs_of(prepare("eager", model, inputs, training=training), model)
        exact, note = eager, ""
        try:
            exact_model, exact_inputs = in_float64(model, inputs)
            exact = outputs_of(prepare("eager", exact_model, exact_inputs, training=training), exact_model)
            del exact_model, exact_inputs
        except Exception as error:  # a kernel that knows no float64
            note = f"Compared with eager alone; float64 fails: {first_line(error)}."
    prepared: list[tuple[ModelRow, Any]] = []
    made: dict[str, Any] = {}
    for mode in modes:
        row = ModelRow(case, phase, mode, note=note)
        if deadline is not None and time.monotonic() > deadline:
            continue  # its turn comes when the benchmark is run again
        try:
            began = time.perf_counter()
            step = _prepare(mode, model, inputs, training, row, made)
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
            row.note = " ".join(filter(None, (row.note, _shortened(detail))))
            prepared.append((row, step))
        except Exception as error:
            traceback.print_exc()
            row.failure = first_line(error)
            prepared.append((row, None))
    return prepared


def _shortened(text: str) -> str:
    return text if len(text) <= NOTE_LENGTH else f"{text[:NOTE_LENGTH]} …"


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


def _prepare(mode: str, model: Any, inputs: Any, training: bool, row: ModelRow, made: dict[str, Any]) -> Any:
    """A step that has run once. Our own mode fills in what its regions consist of, and leaves in ``made`` what a graph
    is captured from."""
    import torch

    from compiler.runtime.modes import prepare

    if mode == "graph" and "compiled" in made:
        return prepare(mode, model, inputs, training=training, compiled=made["compiled"], whole=made["whole"])
    if mode != "compiled":
        return prepare(mode, model, inputs, training=training)
    from compiler.backend import Session, default_target, fusescope
    from compiler.dynamo.log import watch_dynamo
    from compiler.kernel_library import KernelLibrary
    from compiler.planning.schedule import Launch
    from compiler.runtime.executable import interpreting

    target = default_target()
    session = Session(target, KernelLibrary(target, binaries=not interpreting(), texts=False))
    compiled = torch.compile(model, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    with watch_dynamo() as dynamo:
        step = prepare(mode, model, inputs, training=training, compiled=compiled)
    row.regions, row.graph_breaks = len(session.regions), len(dynamo.graph_breaks)
    made.update(compiled=compiled, whole=bool(row.regions) and not row.graph_breaks)
    steps = [s for region in session.regions for s in region.steps]
    row.groups = sum(isinstance(s, Launch) for s in steps)
    row.externs = len(steps) - row.groups
    row.kernels = len({name for region in session.regions for name in region.kernels.values()})
    failed = [k.name for k in session.library.by_source.values() if k.error]
    if failed:
        row.note = f"{row.note} {len(failed)} kernels failed to compile: {failed[0]}.".strip()
    return step


# --- all of them ---------------------------------------------------------------------------------------------------


def rows_by_part(store: RowFile) -> dict[tuple[str, str, str], ModelRow]:
    """The latest row of each model, phase and mode."""
    return {(row.case, row.phase, row.mode): row for row in (ModelRow(**found) for found in store.read())}


def missing(store: RowFile, case: str, modes: Sequence[str]) -> list[Part]:
    """What of a model has not been measured to the end."""
    rows = rows_by_part(store)
    return [part for part in _parts(modes) if (case, *part) not in rows or not rows[(case, *part)].finished]


def run_all(cases: Sequence[str], options: argparse.Namespace, store: RowFile) -> None:
    """What is missing of each model, in a child process each. Where times are asked for all are prepared at once and
    then timed, one of each GPU at a time; else ``jobs`` run at once."""
    began = time.perf_counter()
    left = [case for case in cases if missing(store, case, options.modes)]
    arguments = [str(options.folder), "--device", options.device, "--modes", ",".join(options.modes)]
    arguments += ["--precision", options.precision, "--stamp", options.stamp, *(["--times"] if options.times else [])]
    arguments += ["--begin-seconds", str(LAST_START * options.budget_seconds)]

    def say(case: str, fate: str) -> None:
        rows = [row for (name, _, mode), row in rows_by_part(store).items() if name == case and mode == "compiled"]
        bad = [row for row in rows if row.failure or row.equal is False]
        lacking = missing(store, case, options.modes)
        facts = [f"{len(bad)} not right" if bad else "", f"{len(lacking)} parts missing. {fate}" if lacking else ""]
        print(f"{time.perf_counter() - began:6.1f} s  {case}  {', '.join(filter(None, facts))}", flush=True)

    if options.times:
        for case, _, fate in run_children(
            __file__,
            arguments,
            left,
            workers=options.workers or len(left) or 1,
            case_seconds=LAST_READY * options.budget_seconds,
            budget_seconds=options.budget_seconds,
            cwd=ROOT,
            lanes=[{"CUDA_VISIBLE_DEVICES": gpu} for gpu in visible_gpus()],
        ):
            say(case, fate)
        return

    children = options.folder / "children"
    commands = {
        case: [sys.executable, __file__, *arguments, "--child", case, "--child-folder", str(children / case)]
        for case in left
    }
    seconds = {"case_seconds": options.case_seconds, "budget_seconds": options.budget_seconds}
    for case, fate in run_each(commands, jobs=options.jobs, cwd=ROOT, logs=children, **seconds):
        say(case, fate)
        if "Traceback" in (text := (children / f"{case}.log").read_text(errors="replace")):
            print(f"--- {case}\n{text[-3000:]}", file=sys.stderr, flush=True)


def visible_gpus() -> list[str]:
    """The GPUs as CUDA_VISIBLE_DEVICES names them."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(at) for at in range(torch.cuda.device_count())]


def write_tables(options: argparse.Namespace, store: RowFile) -> bool:
    """models.md and models.json of all rows that there are; whether all of ours are right."""
    from zoo import MODELS

    found = rows_by_part(store)
    rows = [found[case, *part] for case in MODELS for part in _parts(options.modes) if (case, *part) in found]
    times = (
        " Medians of one iteration, each begun on an idle GPU: wall until its results are there, CPU until the call "
        f"returns, GPU between two events. Models were compiled side by side, {len(MODELS)} in all, and timed one "
        f"at a time on each of {options.gpus} GPUs; nothing else ran but the other GPU's."
        if options.times
        else ""
    )
    header = (
        f"{options.stamp}. Errors are ||x - float64|| / ||float64|| over outputs, gradients and buffers together; "
        f"right is judged for each alone.{times}"
    )
    (options.folder / "models.md").write_text(markdown(header, rows, options.modes, options.times))
    record = {"stamp": options.stamp, "rows": [asdict(row) for row in rows]}
    (options.folder / "models.json").write_text(json.dumps(record, indent=1) + "\n")
    return all(row.equal for row in rows if row.mode == "compiled")


def _parts(modes: Sequence[str]) -> list[Part]:
    return [(phase, mode) for phase in PHASES for mode in modes]


def stamp_of(options: argparse.Namespace) -> str:
    """What rows have to have in common to stand in one table."""
    import torch

    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU, kernels through Triton's interpreter"
    precision = "no TF32" if options.precision == "highest" else "float32 products may use TF32 in every mode"
    return f"{where}, torch {torch.__version__}, {precision}, compiler {code_of_compiler()}"


def main() -> int:
    """The command line."""
    from zoo import MODELS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="models whose names contain one of these, separated by commas")
    parser.add_argument("--modes", default="", help=f"of {', '.join(MODES)}; without times only compiled by default")
    parser.add_argument("--times", action="store_true", help="time every mode, on each GPU one model at a time")
    parser.add_argument("--workers", type=int, default=0, help="with times, models prepared at once; 0: all")
    parser.add_argument("--jobs", type=int, default=4, help="without times, processes at once")
    parser.add_argument("--precision", choices=("highest", "high"), help="of float32 products; with times high (TF32)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--case-seconds", type=float, default=240, help="without times, the most that a model takes")
    parser.add_argument("--budget-seconds", type=float, default=480, help="the whole ends after that")
    for hidden, kind in (("--child", str), ("--child-folder", Path), ("--stamp", str), ("--begin-seconds", float)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.modes = (options.modes or (",".join(MODES) if options.times else "compiled")).split(",")
    if unknown := set(options.modes) - set(MODES):
        parser.error(f"unknown modes: {', '.join(sorted(unknown))}")
    options.precision = options.precision or ("high" if options.times else "highest")
    if options.child:
        store = RowFile(options.folder / "models.jsonl", options.stamp)
        wanted = missing(store, options.child, options.modes)
        child = Child(options.child, options.child_folder)
        run_model(options.child, wanted, options, lambda row: store.append(asdict(row)), child)
        return 0
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        print("No CUDA device: nothing can be run here but --device cpu.", file=sys.stderr)
        return 1
    words = [word for word in options.only.split(",") if word]
    chosen = [case for case in MODELS if not words or any(word in case for word in words)]
    options.folder.mkdir(parents=True, exist_ok=True)
    options.stamp = stamp_of(options)
    options.gpus = len(visible_gpus())
    store = RowFile(options.folder / "models.jsonl", options.stamp)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what there is then becomes a table, too
    try:
        run_all(chosen, options, store)
    finally:
        right = write_tables(options, store)
        print((options.folder / "models.md").read_text())
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
