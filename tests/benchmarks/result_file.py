"""Puts the table that a benchmark prints into its file of results; what people wrote around the table stays.

    python -m tests.benchmarks.bench_modules 10000 -o tests/benchmarks/results
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class _Both(io.StringIO):
    """Keeps what is written, and shows it."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)  # type: ignore[union-attr]
        return super().write(text)


def run(main: Callable[[list[int]], None], sizes: Sequence[int], name: str, table: int = 0) -> None:
    """Call ``main`` with the sizes of the command line; with -o its table takes the place of table number ``table``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int)
    parser.add_argument("-o", "--output", type=Path, help="the folder of the files of results")
    options = parser.parse_args()
    printed = _Both()
    with contextlib.redirect_stdout(printed):
        main(options.sizes or list(sizes))
    if options.output is not None:
        file = options.output / f"{name}.md"
        before = file.read_text() if file.exists() else f"# {name}\n\n2000-01-01\n\n|\n"
        file.write_text(with_table(before, printed.getvalue(), table, time.strftime("%Y-%m-%d", time.gmtime())))


def with_table(text: str, printed: str, number: int, day: str) -> str:
    """``text`` with the lines of ``printed`` that are a table in place of its table ``number``, of the day ``day``.

    A line of ``printed`` before its table takes the place of the one in ``text`` that begins alike.
    """
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    tables = list(re.finditer(r"(?:^\|.*\n?)+", text, re.MULTILINE))
    found = tables[number]
    text = f"{text[: found.start()]}{chr(10).join(rows)}\n{text[found.end() :]}"
    for line in printed.splitlines():
        beginning = line.split(":")[0]
        if ":" in line and not line.startswith("|"):
            told = re.compile(rf"^{re.escape(beginning)}:.*$", re.MULTILINE)
            text = told.sub(lambda match, line=line: line, text, count=1)
    return re.sub(r"\d{4}-\d{2}-\d{2}", day, text, count=1)
