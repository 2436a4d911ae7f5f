"""Long runs of random programs: ``python -m tests.interpret.fuzz --seeds 0:1000``. Prints what fails, returns 1."""

from __future__ import annotations

import argparse
import os
import sys
import traceback


def main(arguments: list[str]) -> int:
    """Run the programs of a range of seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.interpret.fuzz", description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:end, the end not included")
    parser.add_argument("--length", type=int, default=10, help="lines of a program")
    options = parser.parse_args(arguments)
    os.environ["TRITON_INTERPRET"] = "1"  # before torch, which may import Triton
    from random import Random

    from tests.interpret.programs import random_program
    from tests.interpret.running import run_program

    first, end = (int(part) for part in options.seeds.split(":"))
    failed = []
    for seed in range(first, end):
        program = random_program(Random(seed), options.length)
        try:
            fault = run_program(program)
        except Exception:
            fault = traceback.format_exc(limit=-6)
        if fault:
            failed.append(seed)
            print(f"--- seed {seed}\n{program}\n{fault}\n", flush=True)
    print(f"{end - first} programs, {len(failed)} failed{': ' if failed else ''}{', '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
