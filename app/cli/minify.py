"""The command that finds the smallest graph of a model that still fails."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import redirect_stdout

from app.cli.compile import command_error, target_named
from app.cli.errors import CommandError
from app.cli.text import count_text
from app.worker.minify import minify_source
from app.worker.work import explain


def minify_command(options: argparse.Namespace) -> int:
    """Search, and write the file. Returns 0, also where nothing fails."""
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which nothing has done yet
    target = target_named(options.target)
    if not options.output.parent.is_dir():
        raise CommandError(f"There is no folder {options.output.parent}.", "Give another place with -o.")
    try:
        with redirect_stdout(sys.stderr):
            found = minify_source(
                options.source,
                target,
                accuracy=options.accuracy,
                interpret=options.interpret,
                training=options.train,
            )
    except (Exception, SystemExit) as error:
        raise command_error(explain(error, 0)) from error
    if found is None:
        what = "gives other numbers than eager" if options.accuracy else "fails to compile"
        print(f"Nothing to minify: no graph of {options.source} {what}.")
        return 0
    options.output.write_text(found.text, encoding="utf-8")
    print(f"{found.failure}\n{count_text(found.nodes, 'call')} of {found.nodes_before} left, in {options.output}.")
    return 0
