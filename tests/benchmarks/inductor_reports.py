"""Inductor's report of every gallery model on this machine's GPU, with times, as sessions in one archive.

    python -m tests.benchmarks.inductor_reports FOLDER [--models gpt2,mlp] [--iterations N]

Each model is compiled and timed by the command line in a process of its own. FOLDER gets reports.zip with the sessions,
and inductor_reports.md and .json with what was measured. In the sessions "compiled" and "graph" are Inductor's code.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.inductor_kernels import ROOT, gallery

MODES = "eager,compiled,graph,inductor-graph"
TIMEOUT_S = 240


def recorded(model: str, session: Path, iterations: int) -> dict[str, Any]:
    """The command line's JSON of one model, or {"error": sentence}."""
    command = [sys.executable, "main.py", "bench", f"example:{model}", "--compiler", "inductor", "--modes", MODES]
    command += ["--iterations", str(iterations), "-o", str(session), "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took over {TIMEOUT_S} s"}
    if done.returncode:
        last = done.stderr.strip().splitlines()
        return {"error": last[-1] if last else f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """What was measured, as Markdown."""
    lines = [
        "# Inductor's reports of the gallery, with times",
        "",
        "Medians in microseconds: GPU time between two events, and CPU time until the call returns.",
        "",
        "| model | groups | calls | kernels | mode | GPU µs | CPU µs | GPU |",
        "|---|---:|---:|---:|---|---:|---:|---|",
    ]
    for model, report in rows:
        if "error" in report:
            lines.append(f"| {model} | {report['error']} | | | | | | |")
            continue
        groups = sum(len(region["groups"]) for region in report["regions"])
        calls = sum(len(region["extern_calls"]) for region in report["regions"])
        for measurement in report["measurements"]:
            lines.append(
                f"| {model} | {groups} | {calls} | {len(report['kernels'])} | {measurement['mode']} "
                f"| {measurement['gpu_us']['p50']:.1f} | {measurement['cpu_us']['p50']:.1f} | {measurement['gpu']} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", default=",".join(gallery()))
    parser.add_argument("--iterations", type=int, default=100)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, dict[str, Any]]] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(options.folder / "reports.zip", "w") as archive,
    ):
        for model in options.models.split(","):
            session = Path(scratch, f"{model}.fscope")
            rows.append((model, recorded(model, session, options.iterations)))
            if session.exists():
                archive.write(session, session.name)
            print(model, rows[-1][1].get("error", "done"), flush=True)
    (options.folder / "inductor_reports.md").write_text(table(rows))
    (options.folder / "inductor_reports.json").write_text(json.dumps(dict(rows)) + "\n")


if __name__ == "__main__":
    main()
