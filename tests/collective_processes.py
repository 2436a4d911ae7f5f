"""Models with collectives in two processes: each compiles, runs and compares with eager; a program of its own.

``python -m tests.collective_processes --rank R --store FILE [--device cuda]`` prints what became of it as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROCESSES = 2
ROWS, SIDE = 8, 32


def outcomes(device: str, backend: str, seconds: int) -> list[dict[str, Any]]:
    """What each of the processes says; an assertion with their errors where one fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.collective_processes", "--device", device, "--backend", backend]
        here = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        environment = {**here, **os.environ}
        root = Path(__file__).parents[1]
        started = [
            subprocess.Popen(
                [*command, "--rank", str(rank), "--store", f"{folder}/store"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=root,
            )
            for rank in range(PROCESSES)
        ]  # fmt: skip
        try:
            said = [process.communicate(timeout=seconds) for process in started]
        finally:
            for process in started:
                process.kill()
    faults = [error for process, (_, error) in zip(started, said, strict=True) if process.returncode]
    assert not faults, "\n\n".join(fault[-3000:] for fault in faults)
    return [json.loads(output.strip().splitlines()[-1]) for output, _ in said]


def model(x: Any, weight: Any) -> list[Any]:
    """All three collectives, with work between each and its wait that would like to have its operands' memory."""
    import torch
    from torch.distributed import _functional_collectives as functional

    group = torch.distributed.group.WORLD
    hidden = torch.relu(x @ weight).softmax(-1)
    total = functional.all_reduce(hidden, "sum", group)
    own = torch.tanh(hidden @ weight).softmax(-1)
    gathered = functional.all_gather_tensor(own, 0, group)
    mine = (own * 3).softmax(-1) @ weight
    scattered = functional.reduce_scatter_tensor(gathered.softmax(-1), "sum", 0, group)
    transposed = functional.all_reduce(mine.t(), "max", group)
    return [total + 1, gathered.softmax(0), torch.relu(scattered - mine), transposed.t() + own]


def run(device: str, backend: str, rank: int, store: str) -> dict[str, Any]:
    """Join the group, call the model compiled and not; the facts of its graphs."""
    import torch
    import torch.distributed as distributed

    from compiler.backend import fusescope

    if device == "cuda":
        torch.cuda.set_device(rank)
    distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=PROCESSES)
    torch.manual_seed(rank)  # every process has numbers of its own
    weight = torch.randn(SIDE, SIDE, device=device)
    said: dict[str, Any] = {}
    modes: dict[str, dict[str, Any]] = {"plain": {}}
    if device == "cuda":
        modes |= {"parts": {"cuda_graph": True}, "whole": {"cuda_graph": True, "graph_collectives": True}}
    for mode, options in modes.items():
        torch._dynamo.reset()
        regions: list[Any] = []
        session = None
        if mode == "plain":
            session = own_session()
            options["session"] = session
        compiled = torch.compile(model, backend=fusescope, options={**options, "on_graphed_region": regions.append})
        held = []
        for call in range(4 if mode == "plain" else 8):
            x = torch.randn(ROWS, SIDE, device=device)
            if call > 2 and rank == 0:
                held.append(x)  # so that from here on inputs move in one process and not in the other
            expected = model(x, weight)
            for got, right in zip(compiled(x, weight), expected, strict=True):
                torch.testing.assert_close(got, right, rtol=1e-4, atol=1e-4)
        if session is not None:
            (region,) = session.regions
            said["calls"] = [s.detail for s in region.steps if getattr(s, "reason", "") == "collective"]
            said["kernels"] = sum(not hasattr(step, "reason") for step in region.steps)
        for graphed in regions:
            facts = graphed.facts()
            said[mode] = {
                "replays": graphed.replays, "partitions": facts.partitions, "captures": facts.captures,
                "reasons": [[r.rule, r.node, r.source.file if r.source else "", r.detail] for r in facts.skip_reasons],
                "kernels": [node.name for node in facts.topology],
            }  # fmt: skip
            graphed.release()
        del compiled, regions
    distributed.barrier()
    distributed.destroy_process_group()
    return said


def own_session() -> Any:
    """A session of the backend whose regions can be looked at."""
    from compiler.backend import Session, default_target
    from compiler.kernel_library import KernelLibrary
    from compiler.runtime.executable import interpreting

    target = default_target()
    return Session(target, KernelLibrary(target, binaries=not interpreting(), texts=False))


def main() -> None:
    """One of the processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--store", required=True)
    given = parser.parse_args()
    print(json.dumps(run(given.device, given.backend, given.rank, given.store)))


if __name__ == "__main__":
    main()
