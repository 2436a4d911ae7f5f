"""CUDA Graphs of independent branches on one stream and on several: python tests/benchmarks/bench_streams.py.

Prints Markdown: what the runtime measured both ways when it captured, which it kept, and the wall time of a call
(median, one synchronise each) with ``graph_streams`` at 1 and at 4. Outputs are judged beside eager's by a float64 run,
and must be the same at every call. About half a minute on a GPU.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from torch import Tensor, nn

from compiler.backend import fusescope
from compiler.runtime.compare import compare_outputs, in_float64

BRANCHES, STREAMS, CALLS = 4, 4, 200


class Branches(nn.Module):
    """Branches that only the input and the sum at the end have in common."""

    def __init__(self, layer: Callable[[], nn.Module], depth: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(layer() for _ in range(depth))) for _ in range(BRANCHES))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([branch(x) for branch in self.branches]).sum(0)


def linear(side: int) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Linear(side, side), nn.GELU())


def convolution(channels: int) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU())


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "4 x 6 products of 64x256 and 256x256": (lambda: Branches(linear(256), 6), lambda: torch.randn(64, 256)),
    "4 x 4 convolutions of 32x28x28": (lambda: Branches(convolution(32), 4), lambda: torch.randn(1, 32, 28, 28)),
    "4 x 3 products of 4096x4096 and 4096x4096": (lambda: Branches(linear(4096), 3), lambda: torch.randn(4096, 4096)),
    "4 x 1 product of 16x64 and 64x64": (lambda: Branches(linear(64), 1), lambda: torch.randn(16, 64)),
}


def main() -> int:
    """Time every model both ways; 1 where an output is not eager's."""
    if not torch.cuda.is_available():
        print("No CUDA device: there is nothing to time here.", file=sys.stderr)
        return 1
    torch.set_float32_matmul_precision("high")
    # cuDNN chooses by layout among kernels of float32 and of TF32, and the layout is one of the things compiled.
    torch.backends.cudnn.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; us, median of {CALLS} calls\n")
    print(f"| branches | replay, 1 stream | replay, {STREAMS} streams | kept | a call, graph_streams=1 | ={STREAMS} |")
    print("|---|---|---|---|---|---|")
    faults: list[str] = []
    errors: list[str] = []
    for name, (make, inputs) in MODELS.items():
        torch.manual_seed(0)
        model, x = make().cuda().eval(), inputs().cuda()
        with torch.no_grad():
            exact_model, exact_inputs = in_float64(model, (x,))
            exact, eager = exact_model(*exact_inputs), model(x)
            calls = [captured(model, x, streams) for streams in (1, STREAMS)]
            for streams, (call, _) in zip((1, STREAMS), calls, strict=True):
                where = f"{name}, graph_streams={streams}"
                first = call(x).clone()
                judged = compare_outputs([eager], [first], [exact])
                errors.append(f"| {where} | {judged.error:.1e} | {judged.baseline_error:.1e} |")
                if not judged.equal:
                    faults.append(f"{where}: {judged.detail}")
                # A step that did not wait for what it reads would not come out the same every time.
                if other := sum(not torch.equal(call(x), first) for _ in range(CALLS)):
                    faults.append(f"{where}: {other} of {CALLS} calls returned something else than the first.")
            walls = [median_us(call, x) for call, _ in calls]
        facts = calls[1][1][0].facts()
        both = " | ".join("-" if us is None else f"{us:.1f}" for us in (facts.one_stream_us, facts.forked_us))
        reasons = "; ".join(reason.detail for reason in facts.skip_reasons)
        kept = f"{facts.streams} stream{'s' if facts.streams > 1 else ''}{f' ({reasons})' if reasons else ''}"
        print(f"| {name} | {both} | {kept} | {walls[0]:.1f} | {walls[1]:.1f} |", flush=True)
    print("\n| outputs | error | eager's error |\n|---|---|---|", *errors, sep="\n")
    print("\nEvery output is as near to float64 as eager's, and the same at every call." if not faults else "\nWrong:")
    print(*faults, sep="\n")
    return 1 if faults else 0


def captured(model: nn.Module, x: Tensor, streams: int) -> tuple[Callable[[Tensor], Tensor], list[Any]]:
    """The model compiled and captured, and its regions."""
    torch._dynamo.reset()
    regions: list[Any] = []
    options = {"cuda_graph": True, "graph_streams": streams, "on_graphed_region": regions.append}
    call = torch.compile(model, backend=fusescope, options=options)
    for _ in range(3):
        call(x)
    return call, regions


def median_us(call: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """Wall time of a call with its synchronise."""
    took = []
    for _ in range(CALLS):
        began = time.perf_counter_ns()
        call(x)
        torch.cuda.synchronize()
        took.append((time.perf_counter_ns() - began) / 1e3)
    return statistics.median(took)


if __name__ == "__main__":
    sys.exit(main())
