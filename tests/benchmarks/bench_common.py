"""Times one model in each mode, in a process of its own, and writes what came out as JSON and Markdown.

A child process runs one case and appends a line of JSON per mode as soon as it has it, so that a crash or a time-out
costs only the modes that were still to come.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

# name -> () -> (model, inputs, training), on the GPU
Cases = dict[str, Callable[[], tuple[Any, tuple[Any, ...], bool]]]

# "bound" is Inductor's kernels in one graph of the whole iteration with static inputs: what a replay can reach.
# "regions" is torch.compile with our backend and a graph for each region, Dynamo's guards included; "moving" the same
# with inputs that are elsewhere at every call.
MODES = ("eager", "compiled", "graph", "regions", "moving", "inductor", "inductor-graph", "bound")
DEFAULT_MODES = ("eager", "compiled", "graph", "inductor", "inductor-graph")


@dataclass
class Row:
    """One case in one mode. Times are medians in microseconds; ``failure`` says why there are none."""

    case: str
    mode: str
    wall_us: float = 0.0
    cpu_us: float = 0.0
    gpu_us: float = 0.0
    kernels: int = 0
    compile_s: float = 0.0
    error: float = 0.0
    eager_error: float = 0.0
    equal: bool | None = None
    iterations: int = 0
    note: str = ""
    failure: str = ""


def prepare_mode(mode: str, model: Any, inputs: tuple[Any, ...], training: bool) -> Any:
    """A step as ``compiler.runtime.modes`` makes it, and the two modes that only benchmarks have."""
    import torch

    from compiler.runtime.modes import Iteration, WholeGraphStep, prepare

    if mode == "regions":
        return prepare("graph", model, inputs, training=training, whole=False)
    if mode == "moving":
        return MovingStep(model, inputs, training)
    if mode == "bound":
        iteration = Iteration(torch.compile(model), model, inputs, training=training)
        iteration()
        return WholeGraphStep(iteration, torch.device("cuda", torch.cuda.current_device()), model)
    return prepare(mode, model, inputs, training=training)


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
        self._latest: list[Any] = []
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
        return self._latest + [parameter.grad for parameter in self._steps[0].parameters]


def run_case(case: str, cases: Cases, modes: Sequence[str], write: Callable[[Row], None]) -> None:
    """Run every mode of one case in this process."""
    import torch

    from compiler.runtime.compare import compare_outputs, in_float64
    from compiler.runtime.timing import measure
    from compiler.runtime.trace import kernel_names, trace

    def outputs_of(step: Any) -> list[Any]:
        torch.manual_seed(0)
        step()
        torch.cuda.synchronize()
        return [value.clone() if isinstance(value, torch.Tensor) else value for value in step.outputs()]

    torch.set_float32_matmul_precision("high")
    model, inputs, training = cases[case]()
    eager = outputs_of(prepare_mode("eager", model, inputs, training))
    exact = exact_failure = None
    try:
        exact_model, exact_inputs = in_float64(model, inputs)
        exact = outputs_of(prepare_mode("eager", exact_model, exact_inputs, training))
        del exact_model, exact_inputs
    except Exception as error:  # out of memory in float64, or a model that fixes its dtype
        exact_failure = first_line(error)
    torch.cuda.empty_cache()
    # Each mode compiles the same code anew, and none may fall back to eager for having been compiled too often.
    torch._dynamo.config.recompile_limit = 64
    measured: list[tuple[Row, Any]] = []
    for mode in modes:
        row = Row(case, mode)
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
            record = measure(step, mode)
            assert record.wall_us is not None
            row.wall_us, row.cpu_us, row.gpu_us = record.wall_us.p50, record.cpu_us.p50, record.gpu_us.p50
            row.iterations = record.iterations
            measured.append((row, step))
        except Exception as error:
            traceback.print_exc()
            row.failure = first_line(error)
        write(row)
    # Only now, for a profiler that has run once can leave every later launch slower.
    for row, step in measured:
        row.kernels = len(kernel_names(trace(step, row.mode)))
        write(row)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, with its type."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"


def run_all(
    script: str, cases: Sequence[str], modes: Sequence[str], case_seconds: float, budget_seconds: float
) -> list[Row]:
    """Each case in a child process. A case or the whole may run out of time; what is missing is said in its row."""
    rows: list[Row] = []
    began = time.perf_counter()
    for case in cases:
        left = budget_seconds - (time.perf_counter() - began)
        failure = "Not run: the time for the whole benchmark was over."
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "rows"
            lines.touch()
            if left > 10:
                command = [
                    sys.executable,
                    script,
                    "--child",
                    case,
                    "--child-output",
                    str(lines),
                    "--modes",
                    ",".join(modes),
                ]
                limit = min(left, case_seconds)
                try:
                    code = subprocess.run(command, timeout=limit, cwd=ROOT, check=False).returncode
                    failure = f"The process ended with code {code}."
                except subprocess.TimeoutExpired:
                    failure = f"Stopped after {limit:.0f} s."
            # A row is written again once its kernels are counted.
            written = (Row(**json.loads(line)) for line in lines.read_text().splitlines())
            done = {row.mode: row for row in written}
        missing = [mode for mode in modes if mode not in done]
        rows += [*done.values()] + [Row(case, mode, failure=failure) for mode in missing]
        print(f"{time.perf_counter() - began:6.1f} s  {case}", flush=True)
    return rows


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive values; not a number where there are none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def markdown(title: str, header: str, rows: Sequence[Row], modes: Sequence[str]) -> str:
    """A table of wall times by mode with the geometric mean against eager, then every figure of every row."""
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.mode] = row
    lines = [f"# {title}", "", header, "", "## Wall time, median microseconds of one iteration", ""]
    lines += ["| model | " + " | ".join(modes) + " |", "|---" * (len(modes) + 1) + "|"]
    for case, found in by_case.items():
        cells = [f"{found[mode].wall_us:.1f}" if found[mode].wall_us else "-" for mode in modes]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    if "eager" in modes:
        means = []
        for mode in modes:
            pairs = [(found["eager"].wall_us, found[mode].wall_us) for found in by_case.values()]
            means.append(geometric_mean([eager / other for eager, other in pairs if eager and other]))
        lines.append(
            "| **speedup over eager, geometric mean** | " + " | ".join(f"{mean:.2f}x" for mean in means) + " |"
        )
    lines += ["", "## All figures", ""]
    lines += [
        "| model | mode | wall µs | CPU submit µs | GPU µs | kernels | compile s | error | eager error | equal | note |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if row.failure:
            lines.append(f"| {row.case} | {row.mode} | - | - | - | - | - | - | - | - | {_cell(row.failure)} |")
            continue
        equal = {None: "not compared", True: "yes", False: "**no**"}[row.equal]
        lines.append(
            f"| {row.case} | {row.mode} | {row.wall_us:.1f} | {row.cpu_us:.1f} | {row.gpu_us:.1f} | {row.kernels} "
            f"| {row.compile_s:.1f} | {row.error:.1e} | {row.eager_error:.1e} | {equal} | {_cell(row.note)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(
    name: str, title: str, cases: Cases, script: str, modes: Sequence[str], case_seconds: float, budget: float
) -> int:
    """The command line of both benchmarks."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("folder", nargs="?", type=Path, help="where the results are written")
    parser.add_argument("--only", default="", help="cases whose names contain one of these, separated by commas")
    parser.add_argument("--modes", default=",".join(modes), help=f"of {', '.join(MODES)}")
    parser.add_argument("--case-seconds", type=float, default=case_seconds)
    parser.add_argument("--budget-seconds", type=float, default=budget)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-output", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen_modes = options.modes.split(",")
    if unknown := set(chosen_modes) - set(MODES):
        parser.error(f"unknown modes: {', '.join(sorted(unknown))}")
    if options.child:
        with options.child_output.open("a") as output:

            def write(row: Row) -> None:
                output.write(json.dumps(asdict(row)) + "\n")
                output.flush()

            run_case(options.child, cases, chosen_modes, write)
        return 0
    if options.folder is None:
        parser.error("give the folder to write to")
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be timed here.", file=sys.stderr)
        return 1
    words = [word for word in options.only.split(",") if word]
    chosen = [case for case in cases if not words or any(word in case for word in words)]
    rows = run_all(script, chosen, chosen_modes, options.case_seconds, options.budget_seconds)
    import triton

    gpu = torch.cuda.get_device_name()
    header = (
        f"{gpu}, torch {torch.__version__}, triton {triton.__version__}, CUDA {torch.version.cuda}, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}. One synchronise before and after each iteration; float32 matmuls "
        "may use TF32 in every mode. Errors are ||x - float64|| / ||float64||, the largest over the outputs."
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / f"{name}.md").write_text(markdown(title, header, rows, chosen_modes))
    record = {
        "gpu": gpu,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "rows": [asdict(row) for row in rows],
    }
    (options.folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(markdown(title, header, rows, chosen_modes))
    return 0 if all(row.equal is not False for row in rows) else 1
