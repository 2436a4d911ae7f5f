"""Rows of a length known only at run time, in registers and in passes: python tests/benchmarks/bench_dynamic_rows.py.

Prints Markdown. "chosen" is what the compiler does by itself. Takes about a minute on a GPU.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from torch import Tensor

import compiler.codegen.kernel as kernel
from compiler.backend import fusescope
from compiler.options import DEFAULTS

# the options persistent_inner, and the longest row in registers where one pass reduces it
WAYS: dict[str, tuple[int, int]] = {
    "in registers": (8192, 8192),
    "in passes": (0, 0),
    "chosen": (DEFAULTS.persistent_inner, kernel.MAX_ONLINE_ROW),
}
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda x: x.softmax(1),
    "layer_norm": lambda x: torch.layer_norm(x, [x.shape[1]]),
}
SIZES = ((16384, 1000), (16384, 3000), (4096, 8192))  # float32; compiled at the first, called at all
CALLS = 30


def main() -> int:
    """Time every function at every size in every way."""
    if not torch.cuda.is_available():
        print("No CUDA device: there is nothing to time here.", file=sys.stderr)
        return 1
    times: dict[tuple[str, int, int], list[float]] = {}
    for inner, online in WAYS.values():
        kernel.MAX_ONLINE_ROW = online
        torch._dynamo.reset()
        for name, function in FUNCTIONS.items():
            call = torch.compile(function, backend=fusescope, options={"persistent_inner": inner}, dynamic=True)
            for rows, columns in SIZES:
                x = torch.randn(rows, columns, device="cuda")
                times.setdefault((name, rows, columns), []).append(median_us(call, x))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; us a call, median of 7 times {CALLS}\n")
    print("| function | rows | elements a row | " + " | ".join(WAYS) + " |")
    print("|---|---|---|" + "---|" * len(WAYS))
    for (name, rows, columns), found in times.items():
        print(f"| {name} | {rows:,} | {columns:,} | " + " | ".join(f"{us:.1f}" for us in found) + " |")
    return 0


def median_us(call: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """Microseconds of one call on the GPU."""
    for _ in range(10):
        call(x)
    torch.cuda.synchronize()
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(CALLS):
            call(x)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
