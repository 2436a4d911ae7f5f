"""Inductor's report of every gallery model on this machine's GPU, with times, as sessions in one archive.

    python -m tests.benchmarks.inductor_reports FOLDER [--models gpt2,mlp] [--iterations N] [--workers N]

Each model is compiled in a process of its own, ``--workers`` of them side by side; whatever is timed is alone on the
machine. FOLDER gets reports.zip with the sessions, and inductor_reports.md and .json with what was measured. In the
sessions "compiled" and "graph" are Inductor's code.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zipfile
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.bench_children import Child, run_children  # noqa: E402
from tests.benchmarks.inductor_kernels import gallery  # noqa: E402
from tests.inductor_checks import faults  # noqa: E402

MODES = ("eager", "compiled", "graph", "inductor-graph")
CASE_SECONDS = 120


def child_main(child: Child, iterations: int, folder: Path) -> None:
    """Compile one model, prepare every mode, wait for the turn, time, and write session and JSON."""
    from app.cli.jsonview import report_json
    from app.session import save_session
    from app.worker.measure import measure_modes, prepare_step
    from app.worker.protocol import Compile
    from app.worker.work import compile_source
    from compiler.runtime.capture import CaptureRefused

    child.search_quietly()
    with redirect_stdout(sys.stderr):
        request = Compile(0, f"example:{child.case}", "local", compiler="inductor")
        compilation = compile_source(request, lambda event: None)
        steps = {}
        for mode in MODES:
            with suppress(CaptureRefused):  # measure_modes asks again, and notes the reason
                steps[mode] = prepare_step(compilation, mode)
        for step in steps.values():
            step()
        child.wait_for_turn()
        compilation.report.measurements = measure_modes(compilation, MODES, iterations, steps)
    save_session(folder / f"{child.case}.fscope", compilation.report)
    row = json.loads(report_json(compilation.report)) | {"faults": faults(compilation.report)}
    child.rows.write_text(json.dumps(row) + "\n")


def table(rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """What was measured, as Markdown."""
    lines = [
        "# Inductor's reports of the gallery, with times",
        "",
        f"{time.strftime('%Y-%m-%d')}, {versions(rows)}. Medians in microseconds: GPU time between two events, and CPU",
        "time until the call returns. Models were compiled side by side and timed one at a time.",
        "",
        "Checks (`tests/inductor_checks.py`): every kernel and launch of the wrapper is in the report and the other",
        "way round, every refusal names two nodes of the graph, every unit has nodes, the report and itself are equal.",
        "",
        "Joined: how much of a traced iteration's GPU time leads to a kernel or call of the report, and of it how",
        "much exactly; the rest is the loss and other code outside the regions.",
        "",
        "| model | groups | calls | kernels | refusals | checks | joined | mode | GPU µs | CPU µs | as eager | GPU |",
        "|---|---:|---:|---:|---:|---|---|---|---:|---:|---|---|",
    ]
    for model, report in rows:
        if "error" in report:
            lines.append(f"| {model} | {report['error']} | | | | | | | | | | |")
            continue
        traced = report["provenance"]["time"]
        exact = traced["exact"] / max(traced["total"], 1e-9)
        both = exact + traced["inferred"] / max(traced["total"], 1e-9)
        joined = f"{both:.1%}, {exact:.1%} exactly"
        counts = [sum(len(x[key]) for x in report["regions"]) for key in ("groups", "extern_calls", "refusals")]
        for measurement in report["measurements"]:
            same = {True: "yes", False: "NO", None: "random"}[measurement.get("equal_to_eager")]
            lines.append(
                f"| {model} | {counts[0]} | {counts[1]} | {len(report['kernels'])} | {counts[2]} "
                f"| {'; '.join(report['faults']) or 'ok'} | {joined} "
                f"| {measurement['mode']} | {measurement['gpu_us']['p50']:.1f} | {measurement['cpu_us']['p50']:.1f} "
                f"| {same} | {measurement['gpu']} |"
            )
    return "\n".join(lines) + "\n"


def versions(rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """The versions that the reports name."""
    found = next((report["versions"] for _, report in rows if "versions" in report), {})
    return ", ".join(f"{name} {text}" for name, text in found.items())


def main() -> None:
    """The command line above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", default=",".join(gallery()))
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--budget-seconds", type=float, default=600)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child_main(Child(options.child, options.child_folder), options.iterations, options.folder)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    arguments = [str(options.folder.resolve()), "--iterations", str(options.iterations)]
    rows: list[tuple[str, dict[str, Any]]] = []
    began = time.perf_counter()
    for model, lines, fate in run_children(
        __file__,
        arguments,
        options.models.split(","),
        workers=options.workers,
        case_seconds=CASE_SECONDS,
        budget_seconds=options.budget_seconds,
        cwd=ROOT,
    ):
        rows.append((model, json.loads(lines[-1]) if lines else {"error": fate}))
        print(f"{time.perf_counter() - began:6.1f} s  {model}", flush=True)
    with zipfile.ZipFile(options.folder / "reports.zip", "w") as archive:
        for model, _ in rows:
            session = options.folder / f"{model}.fscope"
            if session.exists():
                archive.write(session, session.name)
    (options.folder / "inductor_reports.md").write_text(table(rows))
    (options.folder / "inductor_reports.json").write_text(json.dumps(dict(rows)) + "\n")


if __name__ == "__main__":
    main()
