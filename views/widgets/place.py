"""Where a file goes that the user named: under the ending that says what is in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def with_ending(chosen: str, *endings: str) -> Path:
    """The chosen place, its name with the first of ``endings`` where it has none of them.

    Raises:
        FileExistsError: there is such a file, and nobody was asked whether it may be written over.
    """
    path = Path(chosen)
    if path.suffix.lower() in endings:
        return path
    path = path.with_name(path.name + endings[0])
    if path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    return path


def not_written(chosen: str, error: OSError) -> str:
    """The sentence that says which file could not be written, and why."""
    reason = f": {error.strerror}" if error.strerror else ""
    return f"{error.filename or chosen} cannot be written{reason}."
