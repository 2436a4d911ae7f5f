"""The command that writes parts of a session for other programs."""

from __future__ import annotations

import argparse
import csv
import io

from app.cli.errors import CommandError
from app.cli.html import report_html
from app.cli.show import find_kernel, kernel_text
from app.places import check_place, write_text
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
    if options.output and options.kernel is None:
        raise CommandError("-o goes with --kernel only.", "The other forms name their file themselves.", status=2)
    if options.kernel is not None and not options.output:
        raise CommandError("--kernel needs -o FILE.", "'show --kernel NAME' prints it.", status=2)
    place = options.html or options.output or options.csv or options.svg
    check_place(place, *_suffixes(options))
    session = open_session(options.session)
    if options.html:
        write_text(options.html, report_html(session.report))
    elif options.kernel is not None:
        write_text(options.output, kernel_text(find_kernel(session.report, options.kernel), "triton"))
    elif options.csv:
        write_text(options.csv, kernels_csv(session.report))
    else:
        from app.cli.window import write_svg

        write_svg(session, options.svg)
    print(f"Wrote {place}")
    return 0


def _suffixes(options: argparse.Namespace) -> tuple[str, ...]:
    if options.html:
        return ".html", ".htm"
    return (".csv",) if options.csv else (".svg",) if options.svg else (".py",)


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
                kernel.launches or None,
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
