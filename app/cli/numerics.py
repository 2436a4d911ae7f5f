"""The command that compares every value that a model's regions write with float64."""

from __future__ import annotations

import argparse
import os

import msgspec

from app.cli.compile import DEFAULT_TARGET, target_named
from app.cli.model_code import run_model_code
from app.cli.text import count_text, table
from app.worker.numerics import numerics_of
from app.worker.protocol import CheckNumerics
from compiler.report import Numerics


def numerics_command(options: argparse.Namespace) -> int:
    """Check, and print the values, the largest error first."""
    target = target_named(options.target)
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which nothing has done yet
        target = options.target if options.target not in ("", "local") else DEFAULT_TARGET
    request = CheckNumerics(
        0, options.source, target, options.train, options.dynamic, dict(options.option), options.allow_unsafe
    )
    found = run_model_code(lambda: numerics_of(request), options, f"checked the numbers of {options.source}")
    print(msgspec.json.encode(found).decode() if options.json else _text(found))
    return 0


def _text(found: Numerics) -> str:
    if not found.nodes:
        return "No value to check: the model's regions write no floating-point tensor."
    headers = ("region", "unit", "node", "dtype", "error", "eager's error")
    rows = [
        (check.region, check.unit, check.node, check.dtype, f"{check.error:.2e}", f"{check.eager_error:.2e}")
        for check in sorted(found.nodes, key=lambda check: -check.error)
    ]
    told = f"{count_text(len(rows), 'value')} against float64, on {found.device}"
    return f"{table(headers, rows, right=headers[4:])}\n\n{told}"
