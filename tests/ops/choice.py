"""Which operators a command line asks for."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence


def chosen_ops(parser: argparse.ArgumentParser, asked: str, known: Sequence[str]) -> list[str]:
    """Those named in ``asked``, by commas, or all. The program ends with 2 where there is none of a name."""
    names = [name for name in asked.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        near = list(dict.fromkeys(n for name in unknown for n in difflib.get_close_matches(name, known, n=3)))
        meant = f"; near are {', '.join(near)}" if near else ""
        parser.exit(2, f"There is no operator called {' or '.join(map(repr, unknown))}{meant}.\n")
    return names or list(known)
