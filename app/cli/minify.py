"""The command that finds the smallest graph of a model that still fails."""

from __future__ import annotations

import argparse
import os

from app.cli.compile import target_named
from app.cli.errors import CommandError
from app.cli.model_code import run_model_code
from app.cli.text import count_text
from app.places import check_place, write_text
from app.sources import parse_source
from app.worker.minify import MinifyResult, minify_source


def minify_command(options: argparse.Namespace) -> int:
    """Search, and write the file. Returns 0, also where nothing fails."""
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which nothing has done yet
    target = target_named(options.target)
    check_place(options.output, ".py")
    source = run_model_code(lambda: parse_source(options.source), options, f"looked for {options.source}")
    if source.path == options.output.resolve():
        raise CommandError(f"{options.output} is the model itself.", "Give another place with -o.", status=2)
    found = run_model_code(lambda: _found(options, target), options, f"minified {options.source}")
    if found is None:
        what = "gives other numbers than eager" if options.accuracy else "fails to compile"
        print(f"Nothing to minify: no graph of {options.source} {what}.")
        return 0
    write_text(options.output, found.text)
    print(f"{found.failure}\n{count_text(found.nodes, 'call')} of {found.nodes_before} left, in {options.output}.")
    return 0


def _found(options: argparse.Namespace, target: str) -> MinifyResult | None:
    return minify_source(
        options.source,
        target,
        accuracy=options.accuracy,
        interpret=options.interpret,
        training=options.train,
        allow_unsafe=options.allow_unsafe,
    )
