"""Where the CPU time of one call goes: python tests/benchmarks/bench_submit.py [--only NAMES].

For anchor rows, medians in microseconds of submitting one iteration: the launch alone; the graphed region, which
looks at addresses, launches and hands out outputs; the whole call through torch.compile, with Dynamo's guards and
AOTAutograd; the same without a graph, launch by launch; and through reduce-overhead.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench_anchors import CASES

NAMES = "relu_add_mul_1M,mlp8_b16,mobilenet,gpt2_b1"
REPEATS = 200


def submit_us(call: Callable[[], object]) -> float:
    """Median CPU time of a call on an idle GPU."""
    import torch

    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        result = call()
        times.append((time.perf_counter_ns() - began) / 1e3)
        del result
    return statistics.median(times)


def row(name: str) -> dict[str, float]:
    """Figures of one case by column."""
    import torch

    from compiler.backend import fusescope
    from compiler.runtime.cuda_graph import GraphedRegion
    from compiler.runtime.partitioned import PartitionedRegion

    torch._dynamo.reset()
    model, inputs, _ = CASES[name]()
    seen: list[list[Any]] = []
    regions: list[PartitionedRegion] = []

    class Watched(GraphedRegion):
        def __call__(self, values: list[Any]) -> list[Any]:
            seen.append(list(values))
            return super().__call__(values)

    options: dict[str, Any] = {"cuda_graph": True, "on_graphed_region": regions.append}
    with torch.no_grad():
        graphed = torch.compile(model, backend=fusescope, options=options)
        for _ in range(3):
            graphed(*inputs)
        (region, *_) = regions[0].graphs
        found = {"whole call": submit_us(lambda: graphed(*inputs))}
        region.__class__ = Watched
        graphed(*inputs)
        region.__class__ = GraphedRegion
        found["region"] = submit_us(lambda: region(seen[0]))
        found["launch"] = submit_us(region.latest.recorded.replay) if region.latest else 0.0
        torch._dynamo.reset()
        plain = torch.compile(model, backend=fusescope)
        for _ in range(3):
            plain(*inputs)
        found["without graph"] = submit_us(lambda: plain(*inputs))
        torch._dynamo.reset()
        overhead = torch.compile(model, mode="reduce-overhead")
        for _ in range(4):
            overhead(*inputs)
        found["reduce-overhead"] = submit_us(lambda: overhead(*inputs))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=NAMES, help="cases whose names contain one of these, separated by commas")
    words = parser.parse_args().only.split(",")
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be timed here.", file=sys.stderr)
        return 1
    for name in CASES:
        if any(word in name for word in words):
            figures = row(name)
            print(name, ", ".join(f"{column} {value:.1f}" for column, value in figures.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
