"""The command that times a model on this machine's GPU, mode by mode."""

from __future__ import annotations

import argparse

from app.cli.compile import compile_for, deliver
from app.cli.errors import CommandError
from app.cli.model_code import run_model_code
from app.places import check_place
from app.session import SUFFIX
from app.worker.measure import measure_modes
from compiler.targets import local_target


def bench_command(options: argparse.Namespace) -> int:
    """Compile for the local GPU, run every mode, print percentiles and speedups."""
    if local_target() is None:
        hint = "Run it on a machine with one, or open a recorded session."
        raise CommandError("This machine has no GPU to measure on.", hint)
    if options.output:
        check_place(options.output, SUFFIX)
    compilation = compile_for(options, "local")
    measured = run_model_code(
        lambda: measure_modes(compilation, options.modes, options.iterations), options, f"timed {options.source}"
    )
    compilation.report.measurements = measured
    deliver(compilation.report, options)
    return 1 if any(m.equal_to_eager is False for m in measured) else 0
