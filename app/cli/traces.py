"""The commands that look at what other programs compiled."""

from __future__ import annotations

import argparse
import shlex
import sys

from app.cli.errors import CommandError
from app.cli.summary import summary
from app.importing import ImportingError, import_traces
from app.places import check_place
from app.recording.record import ProgramError, run_recorded
from app.session import SUFFIX, save_session


def import_command(options: argparse.Namespace) -> int:
    """Read a log, print its summary, write the session."""
    if options.output:
        check_place(options.output, SUFFIX)
    try:
        report = import_traces(options.place)
    except ImportingError as error:
        raise CommandError(error.message, error.hint) from error
    print(summary(report), flush=True)
    if options.output:
        save_session(options.output, report)
        print(f"\nWrote {options.output}; open it with: python main.py {shlex.quote(str(options.output))}")
    return 0


def record_command(options: argparse.Namespace) -> int:
    """Run the program and write its session. Returns the program's exit status."""
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise CommandError("There is no program to run.", "Name it after --, as in: -- python train.py.", status=2)
    check_place(options.output, SUFFIX)
    try:
        return run_recorded(program, options.output, lambda text: print(text, file=sys.stderr, flush=True))
    except ProgramError as error:
        raise CommandError(str(error), "Check its name; it is looked for as a shell does.") from error
