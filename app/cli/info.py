"""The commands that list what can be compiled, and for what."""

from __future__ import annotations

import argparse

from app.cli.text import table
from app.sources import examples
from compiler.targets import TARGETS


def targets_command(_options: argparse.Namespace) -> int:
    """List the named GPUs."""
    rows = [
        (
            target.name,
            target.title,
            f"sm_{target.arch}" if target.backend == "cuda" else target.arch,
            target.multiprocessors,
            f"{target.bandwidth_gbs:.0f}",
            f"{target.tflops_fp32:.0f}",
            f"{target.tflops_fp16:.0f}",
            f"{target.memory_gb:.0f}",
            f"{target.l2_bytes / 2**20:.0f}",
            f"{target.shared_bytes / 1024:.0f}",
        )
        for target in TARGETS.values()
    ]
    headers = ("target", "GPU", "arch", "SMs", "GB/s", "TFLOP/s fp32", "fp16", "GB", "L2 MiB", "shared KiB")
    print(table(headers, rows, right=headers[3:]))
    print("\nDense peak rates, shared memory for one block. The figures are those of:")
    for target in TARGETS.values():
        print(f"  {target.name}: {target.source}")
    print("\nlocal is this machine's own GPU; 'doctor' says whether there is one.")
    return 0


def examples_command(_options: argparse.Namespace) -> int:
    """List the gallery with each model's options and their defaults."""
    for info in examples():
        print(f"example:{info.name}" + ("  (training)" if info.training else ""))
        print(f"    {info.description}")
        print(f"    {' '.join(f'--option {name}={value}' for name, value in _plain(info.options).items())}")
    return 0


def _plain(options: dict[str, str]) -> dict[str, str]:
    """Defaults as they are written on the command line: without Python's quotes."""
    return {name: value.strip("'\"") for name, value in options.items()}
