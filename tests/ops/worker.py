"""Runs operators for the suite: units of work come in on stdin, one a line, and what became of every case goes out as
JSON lines.

A process of its own, so that a crash or a hang costs one case: before each it says which one.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import sys
import time
import warnings
from typing import Any, TextIO

MAX_MEMORY_KB = 3_000_000  # past this the process asks to be replaced: compiled code piles up


def main(arguments: list[str]) -> int:
    """Serve until stdin ends or too much memory is in use."""
    parser = argparse.ArgumentParser(prog="python -m tests.ops.worker", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=5)
    options = parser.parse_args(arguments)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what operators print must not mix with the answers
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # before torch, which may import Triton
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # convolutions in float32, as everything else

    from tests.ops.running import gpu_works  # torch's own tests, which it imports, let nobody set flags any more

    _say(answers, {"ready": True})
    for line in sys.stdin:
        end = run_unit(json.loads(line), options.device, options.samples, answers)
        large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MAX_MEMORY_KB
        last = large or not gpu_works(options.device)
        _say(answers, {**end, "last": last})
        if last:
            break
    return 0


def run_unit(request: dict[str, Any], device: str, samples: int, answers: TextIO) -> dict[str, Any]:
    """Run the operator's cases from ``first`` on, every ``step``-th, as long as they begin within ``seconds``.

    The first sample of every dtype always runs, forward and backward. Returns the number of the next case, or None
    where that was all, and how many are left.
    """
    from compiler.backend import default_target
    from compiler.kernel_library import KernelLibrary
    from compiler.options import parse_options
    from tests.ops.cases import cases_of, operators
    from tests.ops.running import Outcome, gpu_works, run_case
    from tests.ops.tables import check_of

    op = operators()[request["op"]]
    first, step = request["first"], request["step"]
    untuned = parse_options({"autotune": False})  # timing configurations is no part of being right
    library = KernelLibrary(default_target(), binaries=device == "cuda", texts=False, options=untuned)
    start = time.monotonic()
    cases = enumerate(cases_of(op, device, samples))
    for number, case in cases:
        if number < first or (number - first) % step:
            continue
        optional = case.number > 0 or case.way not in ("forward", "backward")
        if (optional and time.monotonic() - start > request["seconds"]) or not gpu_works(device):
            return {"next": number, "left": 1 + sum((later - first) % step == 0 for later, _ in cases)}
        about = {"title": str(case), "dtype": str(case.dtype).removeprefix("torch."), "way": case.way}
        _say(answers, {"number": number, "case": about})
        try:
            outcome = run_case(case, library, check_of(op.name))
        except Exception as error:
            outcome = Outcome("suite", f"the suite itself fails: {type(error).__name__}: {error}")
        _say(answers, {"outcome": dataclasses.asdict(outcome)})
    return {"next": None, "left": 0}


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
