"""The command that prints what is in a session."""

from __future__ import annotations

import argparse
import difflib
import sys

from app.cli.errors import CommandError
from app.cli.jsonview import report_json
from app.cli.summary import summary
from app.session import open_session
from compiler.report import Kernel, Report

_NAMED = 12  # kernels in a hint, the most alike first


def show_command(options: argparse.Namespace) -> int:
    """Print a session's summary, its JSON, or one kernel's text."""
    if options.ir and options.kernel is None:
        raise CommandError("--ir goes with --kernel only.", "Name the kernel whose text you want.", status=2)
    report = open_session(options.session).report
    if options.kernel is not None:
        print(kernel_text(find_kernel(report, options.kernel), options.ir or "triton"))
    elif options.json:
        print_json(report)
    else:
        print(summary(report))
    return 0


def print_json(report: Report) -> None:
    """Write the report's JSON to stdout, as UTF-8 whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(report_json(report) + b"\n")


def find_kernel(report: Report, name: str) -> Kernel:
    """The kernel called ``name``, or the one of the group called so.

    Raises:
        CommandError: there is none.
    """
    group = next((group for region in report.regions for group in region.groups if group.name == name), None)
    kernel = report.kernel(name) or (report.kernel(group.kernel) if group else None)
    if kernel is None:
        names = [kernel.name for kernel in report.kernels]
        shown = ", ".join(difflib.get_close_matches(name, names, _NAMED, 0) or ["none"])
        more = f", … ({len(names)} in all)" if len(names) > _NAMED else ""
        raise CommandError(f"There is no kernel called '{name}'.", f"The session's kernels: {shown}{more}.")
    return kernel


def kernel_text(kernel: Kernel, ir: str) -> str:
    """The kernel's Triton source or one of its IRs.

    Raises:
        CommandError: the session has no such text.
    """
    text = kernel.source if ir == "triton" else kernel.irs.get(ir, "")
    if not text:
        has = ", ".join(["triton", *kernel.irs]) if kernel.source else ", ".join(kernel.irs) or "nothing"
        raise CommandError(f"The session has no {ir} of {kernel.name}.", f"It has {has}.")
    return text
