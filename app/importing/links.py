"""Symbolic links in a folder of logs: what leads out of the folder is none of its logs, and is not read."""

from __future__ import annotations

import os
from pathlib import Path


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path``, its links followed, is in ``folder`` or below it. The folder itself may be a link."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a link to itself
        return False


def links_out(folder: Path) -> list[str]:
    """The links in or below ``folder`` that lead out of it, named from there, in order."""
    found = []
    for place, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink() and not is_inside(path, folder):
                found.append(path.relative_to(folder).as_posix())
    return sorted(found)
