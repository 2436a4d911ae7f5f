"""Runs operators for the suite: names come in on stdin, one a line, and what became of them goes out as JSON lines.

A process of its own, so that a crash or a hang costs one operator. Before each case it says which one, so that the
suite can tell what crashed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import warnings
from typing import Any, TextIO

from tests.ops.report import new_record

MAX_MEMORY_KB = 3_000_000  # past this the process asks to be replaced: compiled code piles up
MAX_FAILURES_KEPT = 6


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
        request = json.loads(line)
        record = run_operator(request["op"], options.device, options.samples, request["seconds"], answers)
        large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MAX_MEMORY_KB
        last = large or not gpu_works(options.device)
        _say(answers, {"record": record, "last": last})
        if last:
            break
    return 0


def run_operator(
    name: str, device: str, samples: int, seconds: float, progress: TextIO | None = None
) -> dict[str, Any]:
    """All cases of an operator that begin within ``seconds``, as a record of the results.

    The first sample of every dtype always runs, forward and backward.
    """
    from compiler.backend import default_target
    from compiler.options import parse_options
    from compiler.region import KernelLibrary
    from tests.ops.cases import cases_of, operators
    from tests.ops.running import Outcome, gpu_works, run_case
    from tests.ops.tables import check_of, expected_refusals

    op = operators()[name]
    untuned = parse_options({"autotune": False})  # timing configurations is no part of being right
    library = KernelLibrary(default_target(), binaries=device == "cuda", texts=False, options=untuned)
    refusals = [row for row in expected_refusals() if row.op == name]
    used = set()
    record = new_record(name)
    start = time.monotonic()
    for case in cases_of(op, device, samples):
        optional = case.number > 0 or case.way not in ("forward", "backward")
        late = optional and time.monotonic() - start > seconds
        if late or not gpu_works(device):
            record["left_out"] += 1
            continue
        dtype = str(case.dtype).removeprefix("torch.")
        if dtype not in record["dtypes"]:
            record["dtypes"].append(dtype)
        if progress is not None:
            _say(progress, {"at": str(case)})
        try:
            outcome = run_case(case, library, check_of(op.name))
        except Exception as error:
            outcome = Outcome("suite", f"the suite itself fails: {type(error).__name__}: {error}")
        row = next((r for r in refusals if r.covers(name, dtype, case.way)), None)
        expected = outcome.kind == "refused" and row is not None and row.error in outcome.message
        record["groups"] += outcome.groups
        record["uncompiled"] += not outcome.compiled
        for target, count in outcome.externs.items():
            record["externs"][target] = record["externs"].get(target, 0) + count
        if expected:
            record["refused"] += 1
            used.add(row)
        elif outcome.kind == "pass":
            record["passed"] += 1
        elif outcome.kind == "skip":
            record["skipped"] += 1
            record["skips"][outcome.message] = record["skips"].get(outcome.message, 0) + 1
        else:
            record["failed"] += 1
            if len(record["failures"]) < MAX_FAILURES_KEPT:
                record["failures"].append({"case": str(case), "kind": outcome.kind, "message": outcome.message})
    for row in refusals:
        if row not in used:
            record["failed"] += 1
            message = f"expected.toml says that it is refused ({row.error!r}), but it is not"
            record["failures"].append({"case": name, "kind": "unexpected success", "message": message})
    record["seconds"] = round(time.monotonic() - start, 2)
    record["status"] = "fail" if record["failed"] else "pass" if record["passed"] or record["refused"] else "skip"
    return record


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
