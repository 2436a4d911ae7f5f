"""The command that writes parts of a session for other programs."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

from app.cli.errors import CommandError
from app.cli.html import report_html
from app.cli.show import find_kernel, kernel_text
from app.session import open_session
from compiler.report import Report

_CSV_COLUMNS = (
    "kernel",
    "language",
    "groups",
    "launches",
    "grid",
    "config",
    "registers",
    "spills",
    "shared_bytes",
    "estimated_bytes",
    "estimated_flops",
    "estimated_us",
    "measured_us",
)


def export_command(options: argparse.Namespace) -> int:
    """Write the one thing that was asked for and say where it is."""
    if options.output and not options.kernel:
        raise CommandError("-o goes with --kernel only.", "The other forms name their file themselves.", status=2)
    if options.kernel and not options.output:
        raise CommandError("--kernel needs -o FILE.", "'show --kernel NAME' prints it.", status=2)
    session = open_session(options.session)
    if options.html:
        write_text(options.html, report_html(session.report))
    elif options.kernel:
        write_text(options.output, kernel_text(find_kernel(session.report, options.kernel), "triton"))
    elif options.csv:
        write_text(options.csv, kernels_csv(session.report))
    else:
        from app.cli.window import write_svg

        write_svg(session, options.svg)
    print(f"Wrote {options.html or options.output or options.csv or options.svg}")
    return 0


def kernels_csv(report: Report) -> str:
    """One row a kernel. Lists are separated by blanks inside their cell; a figure that was not taken is empty."""
    groups: dict[str, list[str]] = {}
    for region in report.regions:
        for group in region.groups:
            groups.setdefault(group.kernel, []).append(f"{region.name}/{group.name}")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for kernel in report.kernels:
        writer.writerow(
            [
                kernel.name,
                kernel.language,
                " ".join(groups.get(kernel.name, [])),
                kernel.launches,
                " ".join(map(str, kernel.grid)),
                " ".join(f"{name}={value}" for name, value in kernel.config.items()),
                kernel.registers,
                kernel.spills,
                kernel.shared_bytes,
                kernel.estimated_bytes,
                kernel.estimated_flops,
                kernel.estimated_us,
                kernel.measured_us,
            ]
        )
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8.

    Raises:
        CommandError: the place cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.", "Choose another folder.") from error
