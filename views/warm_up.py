"""Imports that a panel needs at its first use, made beforehand on another thread."""

from __future__ import annotations

import importlib

_LATER = ("numpy.ma", "pygments.lexers.python")  # the first median, the first line of code


def import_the_rest() -> None:
    """Import them."""
    for name in _LATER:
        importlib.import_module(name)
