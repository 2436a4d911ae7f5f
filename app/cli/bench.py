"""The command that times a model on this machine's GPU, mode by mode."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout

from app.cli.compile import command_error, compile_for, deliver
from app.cli.errors import CommandError
from app.session import check_place
from app.worker.measure import measure_modes
from app.worker.work import explain
from compiler.targets import local_target


def bench_command(options: argparse.Namespace) -> int:
    """Compile for the local GPU, run every mode, print percentiles and speedups."""
    if local_target() is None:
        hint = "Run it on a machine with one, or open a recorded session."
        raise CommandError("This machine has no GPU to measure on.", hint)
    if options.output:
        check_place(options.output)
    compilation = compile_for(options, "local")
    try:
        with redirect_stdout(sys.stderr):
            measured = measure_modes(compilation, options.modes, options.iterations)
    except (Exception, SystemExit) as error:
        raise command_error(explain(error, 0)) from error
    compilation.report.measurements = measured
    deliver(compilation.report, options)
    return 1 if any(m.equal_to_eager is False for m in measured) else 0
