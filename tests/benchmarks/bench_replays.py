"""A million replays of the gallery's mlp, every output checked: python tests/benchmarks/bench_replays.py [--replays N].

The model is called through torch.compile with CUDA Graphs, on one of 64 inputs in turn, each at an address of its own.
Each output is copied into a slot of its own; after every 64 calls all slots are compared with eager's on the GPU and a
running maximum takes up the largest difference, so nothing is left unchecked and nothing waits. Memory is printed along
the way; it must not grow.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

INPUTS = 64
TOLERANCE = 2e-2  # of the largest eager magnitude; float32 matmuls round to TF32 in both


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replays", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=200, help="stop after this time, however far it came")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device: nothing can be replayed here.", file=sys.stderr)
        return 1
    from compiler.backend import fusescope
    from resources.examples.mlp import mlp

    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model, (x,) = mlp()
    model, x = model.cuda().eval(), x.cuda()
    regions: list[Any] = []
    options: dict[str, Any] = {"cuda_graph": True, "on_graphed_region": regions.append}
    compiled = torch.compile(model, backend=fusescope, options=options)
    with torch.no_grad():
        inputs = [torch.randn_like(x) for _ in range(INPUTS)]
        eager = [model(value) for value in inputs]
        scale = max(float(value.abs().max()) for value in eager)
        for value in inputs[:4]:
            compiled(value)
        outputs, worst = torch.stack(eager), torch.zeros((), device="cuda")
        expected, slots = outputs.clone(), outputs.unbind()

        def check() -> None:
            # The differences stay in the slots, so one that the next round leaves out shows.
            torch.sub(outputs, expected, out=outputs)
            torch.maximum(worst, torch.linalg.vector_norm(outputs, float("inf")), out=worst)

        def one_round() -> None:
            for value, slot in zip(inputs, slots, strict=True):
                slot.copy_(compiled(value))
            check()

        slots[0].copy_(compiled(inputs[1]))
        check()
        if float(worst) <= TOLERANCE * scale:
            print("The check does not see a wrong output.")
            return 1
        worst.zero_()
        one_round()
        torch.cuda.synchronize()
        allocated, resident = torch.cuda.memory_allocated(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        replayed = regions[0].replays
        began = time.perf_counter()
        done = 0
        while done < arguments.replays and time.perf_counter() - began < arguments.seconds:
            for _ in range(min(1000, (arguments.replays - done) // INPUTS + 1)):
                one_round()
                done += INPUTS
            print(
                f"{done:9,} calls, {time.perf_counter() - began:6.1f} s, largest difference "
                f"{float(worst) / scale:.2e} of {scale:.2f}, allocated {torch.cuda.memory_allocated():,} bytes",
                flush=True,
            )
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
    facts = regions[0].facts()
    replays = regions[0].replays - replayed
    grown = torch.cuda.memory_allocated() - allocated
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
    right = float(worst) <= TOLERANCE * scale
    print(f"{replays:,} replays of {done:,} calls, {seconds / done * 1e6:.1f} us each; captures: {facts.captures}")
    print("inputs:", ", ".join(f"{r.name} {r.route}" for r in facts.routes if r.route != "static"))
    print("without a graph:", [reason.rule for reason in facts.skip_reasons] or "never")
    print(f"GPU memory grew by {grown:,} bytes, the process by {resident:,} KiB; outputs right: {right}")
    return 0 if right and grown <= 0 and replays == done else 1


if __name__ == "__main__":
    sys.exit(main())
