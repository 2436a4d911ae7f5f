"""Which source files are the user's own, and their text for the session."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path

_MAX_BYTES = 1 << 20  # larger files are generated ones, not worth a place in a session


def own_text(path: Path) -> str | None:
    """The text of a Python file; None where it is part of an installed package, too large or not there."""
    return None if installed_root(path) else text_of(path)


def text_of(path: Path) -> str | None:
    """The text of a Python file; None where it is too large or not there."""
    if path.suffix != ".py" or not path.is_file() or path.stat().st_size > _MAX_BYTES:
        return None
    return path.read_text(encoding="utf-8", errors="replace")


def installed_root(path: Path) -> Path | None:
    """The folder of installed packages, or of Python's own library, that the file belongs to."""
    return next((root for root in installed_roots() if path.is_relative_to(root)), None)


def as_written_and_resolved(path: Path) -> tuple[Path, Path]:
    """Both forms that code objects may carry: with links, and with links resolved."""
    return path, path.resolve()


@cache
def installed_roots() -> tuple[Path, ...]:
    """The folders of installed packages and of Python's own library."""
    # packages before the standard library, whose folder may hold theirs
    paths = (Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))
    return tuple(dict.fromkeys(form for path in paths for form in as_written_and_resolved(path)))
