"""Times one model in each mode, in a process of its own, and writes what came out as JSON and Markdown.

A child process runs one case (``bench_children``) and appends a line of JSON per mode as soon as it has it, so that a
crash or a time-out costs only the modes that were still to come.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import statistics
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench_children import Child, run_children
from bench_rows import Row, write_results
from cores import quickest_core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

# name -> () -> (model, inputs, training), on the GPU
Cases = dict[str, Callable[[], tuple[Any, tuple[Any, ...], bool]]]

LEAST_ITERATIONS = 50
LAST_START = 0.7  # of a case's time: no mode is begun after that, for the process ends when the time is over
WARM_SECONDS = 0.15  # of calls before those that count: a process that waited for its turn starts with cold caches
INDUCTOR_MODES = frozenset(("inductor", "inductor-graph", "bound"))
APART = "@"  # between a case and the compiler that a child prepares it with

# "bound" is Inductor's kernels in one graph of the whole iteration with static inputs: what a replay can reach.
# "regions" is torch.compile with our backend and a graph for each region, Dynamo's guards included; "moving" the same
# with inputs that are elsewhere at every call, "lean" the same with Dynamo set to look at modules in fewer steps and to
# leave its ranges out of profiles, which changes nothing else; "unguarded" the same as "lean" under
# set_stance(skip_guard_eval_unsafe=True), which is the user's to choose: what "lean" takes longer is the guards.
# "floor" is torch.compile with a backend that launches the graph of "graph" and looks at nothing: with these kernels
# no backend takes less.
MODES = (
    "eager", "compiled", "graph", "regions", "lean", "unguarded", "moving", "floor", "inductor", "inductor-graph",
    "bound",
)  # fmt: skip
DEFAULT_MODES = ("eager", "compiled", "graph", "inductor", "inductor-graph")


def prepare_mode(mode: str, model: Any, inputs: tuple[Any, ...], training: bool) -> Any:
    """A step as ``compiler.runtime.modes`` makes it, or of a mode that only benchmarks have."""
    import torch

    from compiler.runtime.capture import _side_stream
    from compiler.runtime.modes import Iteration, Step, WholeGraphStep, prepare

    if mode in ("regions", "lean", "unguarded"):
        with torch._dynamo.config.patch({} if mode == "regions" else lean_settings()):
            step = prepare("graph", model, inputs, training=training, whole=False)
        facts = step.cuda_graph
        assert facts is not None
        reasons = [f"{reason.rule} {reason.node}".strip() for reason in facts.skip_reasons[1:]]  # the first is "asked"
        step.note = f"{facts.partitions} graphs, {facts.captures} captures. {', '.join(reasons)}".strip()
        return step
    if mode == "floor":
        replay = prepare("graph", model, inputs, training=training)
        call = torch.compile(model, backend=functools.partial(nothing_behind, work=replay))
        return Step(Iteration(call, model, inputs, training=training), "Dynamo, and the launch of a graph.")
    if mode == "moving":
        return MovingStep(model, inputs, training)
    if mode == "bound":
        device = torch.device("cuda", torch.cuda.current_device())
        iteration = Iteration(torch.compile(model), model, inputs, training=training)
        gc.collect()  # cycles keep earlier iterations' accumulators of gradients, which run on the stream they began on
        with torch.cuda.stream(_side_stream(device.index)):
            iteration()
        torch.cuda.synchronize()
        return WholeGraphStep(iteration, device, model)
    return prepare(mode, model, inputs, training=training)


def nothing_behind(gm: Any, example_inputs: Any, *, work: Callable[[], object] | None = None) -> Callable[..., Any]:
    """A backend that computes once and then returns what it has: what is left is Dynamo's own time, and ``work``."""
    from compiler.dynamo.hooks_guard import leave_out_hooks_guard
    from compiler.dynamo.ranges import leave_out_profiler_ranges

    leave_out_profiler_ranges()  # as our backend does
    leave_out_hooks_guard()
    kept: list[Any] = []

    def call(*inputs: Any) -> Any:
        if not kept:
            kept.append(gm(*inputs))
        return kept[0]

    def call_and_work(*inputs: Any) -> Any:
        work()
        return call(*inputs)

    return call if work is None else call_and_work


def lean_settings() -> dict[str, bool]:
    """Settings of Dynamo, as far as this torch has them, that save CPU time at every call of what is compiled then."""
    import torch

    wanted = {"record_runtime_overhead": False, "use_recursive_dict_tags_for_guards": True}
    return {name: value for name, value in wanted.items() if hasattr(torch._dynamo.config, name)}


class MovingStep:
    """torch.compile with our backend and CUDA Graphs, called on two sets of the same inputs in turn."""

    def __init__(self, model: Any, inputs: tuple[Any, ...], training: bool) -> None:
        import torch

        from compiler.backend import fusescope
        from compiler.runtime.modes import Iteration

        regions: list[Any] = []
        options: dict[str, Any] = {"cuda_graph": True, "on_graphed_region": regions.append}
        call = torch.compile(model, backend=fusescope, options=options)
        sets = (inputs, tuple(value.clone() for value in inputs))
        self._steps = [Iteration(call, model, one, training=training) for one in sets]
        self._calls = 0
        self._latest: Any = []
        for _ in range(4):
            self()
        (region, *_) = regions
        facts = region.facts()
        ways = ", ".join(f"{route.name} {route.route}" for route in facts.routes if route.route != "static")
        self.note = f"{ways}; {facts.copied_bytes} bytes copied a call."

    def __call__(self) -> None:
        self._latest = []
        self._calls += 1
        self._latest = self._steps[self._calls % 2]()

    def outputs(self) -> list[Any]:
        """As ``compiler.runtime.modes.Step`` has it."""
        from torch.utils._pytree import tree_leaves

        return [*tree_leaves(self._latest), *(parameter.grad for parameter in self._steps[0].parameters)]


def run_case(
    case: str,
    cases: Cases,
    modes: Sequence[str],
    write: Callable[[Row], None],
    child: Child,
    *,
    prepare_seconds: float,
    turns: int,
    count_kernels: bool,
) -> None:
    """Prepare every mode of one case in this process, and at each of its turns time them one after another.

    A row has the medians over the turns of each turn's medians. No mode is begun after ``prepare_seconds``, so that
    those before it are timed whatever comes.
    """
    import torch

    from compiler.runtime.trace import kernel_names, trace

    training, prepared = _prepare_case(case, cases, modes, write, child, prepare_seconds)
    torch.cuda.empty_cache()
    child.wait_for_turn()
    medians: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(turns):
        _wake()
        for row, step in prepared:
            if not row.failure:
                with quickest_core():  # for each mode anew: how quick a core is changes within seconds
                    _time(row, step, training, medians[row.mode])
                write(row)
        # What is left, if only to end, need not keep the others waiting. Kernels are counted only after the last turn,
        # for a profiler that has run once can leave every later launch slower.
        child.end_turn()
    for row, step in prepared:
        if count_kernels and not row.failure:
            row.kernels = len(kernel_names(trace(step, row.mode)))
            write(row)


def _time(row: Row, step: Any, training: bool, medians: list[tuple[float, float, float]]) -> None:
    """Add this turn's medians of wall, CPU and GPU time to ``medians``; the row gets the medians of those, and the
    quietest turn's."""
    import torch

    from compiler.runtime.timing import measure

    try:
        unguarded = torch.compiler.set_stance(skip_guard_eval_unsafe=row.mode == "unguarded")
        # A loop of inference enters no_grad once, not at every call.
        with unguarded, torch.set_grad_enabled(training):
            _warm(step)
            record = measure(step, row.mode, least=LEAST_ITERATIONS)
        assert record.wall_us is not None
        medians.append((record.wall_us.p50, record.cpu_us.p50, record.gpu_us.p50))
        row.wall_us, row.cpu_us, row.gpu_us = map(statistics.median, zip(*medians, strict=True))
        row.quiet_wall_us, row.quiet_cpu_us, _ = min(medians)
        row.turns = len(medians)
        row.iterations += record.iterations
    except Exception as error:
        traceback.print_exc()
        row.failure = first_line(error)


def _wake() -> None:
    """Keep the GPU busy until its clocks are up: what was timed first after a pause took a third longer, if small."""
    import torch

    square = torch.zeros(4096, 4096, device="cuda", dtype=torch.bfloat16)
    _warm(lambda: [square @ square for _ in range(20)])


def _warm(step: Callable[[], object]) -> None:
    import torch

    began = time.perf_counter()
    while time.perf_counter() - began < WARM_SECONDS:
        step()
        torch.cuda.synchronize()


def _prepare_case(
    case: str, cases: Cases, modes: Sequence[str], write: Callable[[Row], None], child: Child, seconds: float
) -> tuple[bool, list[tuple[Row, Any]]]:
    """Whether it is trained, and the modes that could be prepared, compared with eager.

    The others' rows are written, with their errors.
    """
    import torch

    from compiler.runtime.compare import compare_outputs, in_float64

    def outputs_of(step: Any) -> list[Any]:
        torch.manual_seed(0)
        step()
        torch.cuda.synchronize()
        return [value.clone() if isinstance(value, torch.Tensor) else value for value in step.outputs()]

    deadline = time.monotonic() + seconds
    child.search_quietly()
    torch.set_float32_matmul_precision("high")
    # Each mode compiles the same code anew, and none may fall back to eager for having been compiled too often.
    torch._dynamo.config.recompile_limit = 64
    model, inputs, training = cases[case]()
    with child.quiet():
        eager = outputs_of(prepare_mode("eager", model, inputs, training))
        exact, exact_failure = None, ""
        try:
            exact = outputs_of(prepare_mode("eager", *in_float64(model, inputs), training))
        except Exception as error:  # out of memory in float64, or a model that fixes its dtype
            exact_failure = first_line(error)
        torch.cuda.empty_cache()
    prepared: list[tuple[Row, Any]] = []
    for mode in modes:
        row = Row(case, mode)
        if time.monotonic() > deadline:
            row.failure = f"Not prepared: the modes before it took {seconds:.0f} s."
            write(row)
            continue
        try:
            began = time.perf_counter()
            step = prepare_mode(mode, model, inputs, training)
            torch.cuda.synchronize()
            row.compile_s = time.perf_counter() - began if mode != "eager" else 0.0
            row.note = step.note
            if exact is not None:
                comparison = compare_outputs(eager, outputs_of(step), exact)
                row.equal, row.error = comparison.equal, comparison.error
                row.eager_error = comparison.baseline_error
                row.note = " ".join(filter(None, (row.note, comparison.detail)))
            else:
                row.note = f"{row.note} Not compared: {exact_failure}".strip()
            prepared.append((row, step))
        except Exception as error:
            traceback.print_exc()
            row.failure = first_line(error)
            write(row)
    return training, prepared


def first_line(error: BaseException) -> str:
    """The first line of an error's text, with its type."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"


def modes_of(case: str, modes: Sequence[str]) -> list[str]:
    """The modes that a case runs in: "moving@256M" only those whose names contain "256M".

    What returns what it has has no gradients, so no training is run in "floor".
    """
    split = [mode.partition("@") for mode in modes]
    return [mode for mode, _, word in split if word in case and not (mode == "floor" and "training" in case)]


def children_of(case: str, modes: Sequence[str], *, apart: bool) -> dict[str, list[str]]:
    """The modes of a case by the child process that prepares them: one, or one for each compiler."""
    wanted = modes_of(case, modes)
    if not apart:
        return {case: wanted}
    parts = {
        "own": [m for m in wanted if m not in INDUCTOR_MODES],
        "inductor": [m for m in wanted if m in INDUCTOR_MODES],
    }
    return {f"{case}{APART}{name}": part for name, part in parts.items() if part}


def run_all(
    script: str, cases: Sequence[str], modes: Sequence[str], options: argparse.Namespace
) -> Iterator[list[Row]]:
    """The rows of each case, from child processes.

    A case or the whole may run out of time; what is missing is said in its row.
    """
    began = time.perf_counter()
    arguments = ["--modes", ",".join(modes), "--case-seconds", str(options.case_seconds)]
    arguments += ["--turns", str(options.turns), *(["--no-kernels"] if options.no_kernels else [])]
    children = {child: case for case in cases for child in children_of(case, modes, apart=options.apart)}
    done: dict[str, dict[str, Row]] = {case: {} for case in cases}
    missing = {case: sum(of == case for of in children.values()) for case in cases}
    for child, lines, fate in run_children(
        script,
        arguments,
        list(children),
        workers=options.workers,
        case_seconds=options.case_seconds,
        budget_seconds=options.budget_seconds,
        cwd=ROOT,
        turns=options.turns,
    ):
        case = children[child]
        found = {mode: Row(case, mode, failure=fate) for mode in children_of(case, modes, apart=options.apart)[child]}
        # A row is written again once its kernels are counted.
        done[case] |= {**found, **{row.mode: row for row in (Row(**json.loads(line)) for line in lines)}}
        missing[case] -= 1
        print(f"{time.perf_counter() - began:6.1f} s  {child}", flush=True)
        if not missing[case]:
            yield [done[case][mode] for mode in modes_of(case, modes)]


def main(
    name: str, title: str, cases: Cases, script: str, modes: Sequence[str], case_seconds: float, budget: float
) -> int:
    """The command line of both benchmarks."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("folder", nargs="?", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="cases whose names contain one of these, separated by commas")
    parser.add_argument(
        "--modes", default=",".join(modes), help=f"of {', '.join(MODES)}; MODE@WORD for cases whose names contain WORD"
    )
    parser.add_argument("--workers", type=int, default=1, help="cases prepared at the same time; each is timed alone")
    parser.add_argument(
        "--apart", action="store_true", help="a case's modes of each compiler in a process of their own"
    )
    parser.add_argument("--turns", type=int, default=1, help="of being timed, between those of other cases")
    parser.add_argument("--no-kernels", action="store_true", help="do not count kernels, which takes a trace of each")
    parser.add_argument("--case-seconds", type=float, default=case_seconds, help="to be ready, and again to be timed")
    parser.add_argument("--budget-seconds", type=float, default=budget)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen_modes = options.modes.split(",")
    if unknown := {mode.partition("@")[0] for mode in chosen_modes} - set(MODES):
        parser.error(f"unknown modes: {', '.join(sorted(unknown))}")
    if options.child:
        child, case = Child(options.child, options.child_folder), options.child.partition(APART)[0]
        with child.rows.open("a") as output:

            def write(row: Row) -> None:
                output.write(json.dumps(asdict(row)) + "\n")
                output.flush()

            run_case(
                case,
                cases,
                children_of(case, chosen_modes, apart=options.child != case)[options.child],
                write,
                child,
                prepare_seconds=options.case_seconds * LAST_START,
                turns=options.turns,
                count_kernels=not options.no_kernels,
            )
        return 0
    if options.folder is None:
        parser.error("give the folder to write to")
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be timed here.", file=sys.stderr)
        return 1
    words = [word for word in options.only.split(",") if word]
    chosen = [case for case in cases if not words or any(word in case for word in words)]
    plain_modes = list(dict.fromkeys(mode.partition("@")[0] for mode in chosen_modes))
    rows: list[Row] = []
    for done in run_all(script, chosen, chosen_modes, options):
        rows = sorted([*rows, *done], key=lambda row: chosen.index(row.case))
        write_results(options.folder, name, title, rows, plain_modes)  # what is done is kept, whatever comes
    print((options.folder / f"{name}.md").read_text())
    return 0 if all(row.equal is not False for row in rows) else 1
