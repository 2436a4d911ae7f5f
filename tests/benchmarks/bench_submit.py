"""Where the CPU time of one call goes: python tests/benchmarks/bench_submit.py [--only NAMES].

For anchor rows, medians in microseconds of submitting one iteration: the launch alone; the graphed region, which
looks at addresses, launches and hands out outputs; the whole call through torch.compile, with Dynamo's guards; Dynamo
alone, with nothing behind it, which no backend can go below; both with Dynamo's leaner settings; the whole call without
a graph, launch by launch; and through reduce-overhead.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench_anchors import CASES
from bench_common import first_line, lean_settings

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


def nothing_behind(gm: Any, example_inputs: Any) -> Callable[..., Any]:
    """A backend that computes once and then returns what it has: what is left is Dynamo's own time."""
    kept: list[Any] = []

    def call(*inputs: Any) -> Any:
        if not kept:
            kept.append(gm(*inputs))
        return kept[0]

    return call


def row(name: str) -> Iterator[tuple[str, float]]:
    """Figures of one case by column."""
    import torch

    from compiler.backend import fusescope
    from compiler.runtime.cuda_graph import GraphedRegion
    from compiler.runtime.partitioned import PartitionedRegion

    model, inputs, _ = CASES[name]()
    seen: list[list[Any]] = []
    regions: list[PartitionedRegion] = []

    class Watched(GraphedRegion):
        def __call__(self, values: list[Any]) -> list[Any]:
            seen.append(list(values))
            return super().__call__(values)

    def whole_call(calls: int = 3, **how: Any) -> Callable[[], object]:
        torch._dynamo.reset()
        compiled = torch.compile(model, **how)
        for _ in range(calls):
            compiled(*inputs)
        return lambda: compiled(*inputs)

    graphs: dict[str, Any] = {"cuda_graph": True, "on_graphed_region": regions.append}
    with torch.no_grad():
        call = whole_call(backend=fusescope, options=graphs)
        (region, *_) = regions[0].graphs
        yield "whole call", submit_us(call)
        region.__class__ = Watched
        call()
        region.__class__ = GraphedRegion
        yield "region", submit_us(lambda: region(seen[0]))
        yield "launch", submit_us(region.latest.recorded.replay) if region.latest else 0.0
        with torch._dynamo.config.patch(lean_settings()):
            yield "whole call, lean", submit_us(whole_call(backend=fusescope, options={"cuda_graph": True}))
            yield "Dynamo alone, lean", submit_us(whole_call(backend=nothing_behind))
        yield "Dynamo alone", submit_us(whole_call(backend=nothing_behind))
        yield "without graph", submit_us(whole_call(backend=fusescope))
        yield "reduce-overhead", submit_us(whole_call(4, mode="reduce-overhead"))


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
            print(name, end="", flush=True)
            try:
                for column, value in row(name):
                    print(f", {column} {value:.1f}", end="", flush=True)
            except Exception as error:  # the other rows are worth having
                print(f", {first_line(error)}", end="")
            print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
