"""Long runs of random programs, each compared with eager, in several processes:

    python -m tests.interpret.fuzz --seeds 0:10000 --length 10 --jobs 14 -o out/fuzz.json
    python -m tests.interpret.fuzz --seeds 0:2000 --trained                 with the gradients of their inputs

Prints what fails and returns 1. The result file has the seeds, the count, and every failing program.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 100  # programs that one process runs: what it compiles piles up in it


def main(arguments: list[str]) -> int:
    """Run the programs of a range of seeds."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.interpret.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0:200", help="first:end, the end not included")
    parser.add_argument("--length", type=int, default=10, help="lines of a program")
    parser.add_argument("--trained", action="store_true", help="compare gradients, too")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("-o", dest="file", type=Path, help="a JSON file for the result")
    parser.add_argument("--chunk", action="store_true", help=argparse.SUPPRESS)  # a process of our own
    options = parser.parse_args(arguments)
    first, end = (int(part) for part in options.seeds.split(":"))
    if options.chunk:
        json.dump(run_seeds(first, end, options.length, options.trained), sys.stdout)
        return 0
    start = time.monotonic()
    failures = run_chunks(first, end, options.length, options.jobs, options.trained)
    numbers = ", ".join(str(f["seeds"]) for f in failures)
    print(f"{end - first} programs, {len(failures)} failed{': ' if failures else ''}{numbers}")
    if options.file is not None:
        result = {
            "seeds": [first, end],
            "length": options.length,
            "trained": options.trained,
            "programs": end - first,
            "failed": len(failures),
            "failures": failures,
            "seconds": round(time.monotonic() - start, 1),
            "jobs": options.jobs,
            "date": datetime.now(UTC).date().isoformat(),
            "versions": {
                "python": platform.python_version(),
                "torch": version("torch"),
                "triton": version("triton"),
            },
        }
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if failures else 0


def run_chunks(first: int, end: int, length: int, jobs: int, trained: bool) -> list[dict[str, Any]]:
    """The failures among the seeds, found by processes that take ``CHUNK`` seeds each."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}

    def run(start: int) -> list[dict[str, Any]]:
        seeds = f"{start}:{min(start + CHUNK, end)}"
        command = [sys.executable, "-m", __spec__.name, "--seeds", seeds, "--length", str(length), "--chunk"]
        command += ["--trained"] * trained
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            found = [{"seeds": seeds, "program": "", "fault": f"the process crashed: {done.stderr[-2000:]}"}]
        else:
            found = json.loads(done.stdout)
        for failure in found:
            print(f"--- seed {failure['seeds']}\n{failure['program']}\n{failure['fault']}\n", flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return [failure for found in pool.map(run, range(first, end, CHUNK)) for failure in found]


def run_seeds(first: int, end: int, length: int, trained: bool) -> list[dict[str, Any]]:
    """The failures among the seeds, found in this process."""
    from random import Random

    from tests.interpret.programs import random_program
    from tests.interpret.running import run_program, train_program

    run = train_program if trained else run_program
    found = []
    for seed in range(first, end):
        program = random_program(Random(seed), length)
        try:
            fault = run(program)
        except Exception:
            fault = traceback.format_exc(limit=-6)
        if fault:
            found.append({"seeds": seed, "program": str(program), "fault": fault})
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
