"""Where something is, told in two parts: a name to know it by, and its folder."""

from __future__ import annotations

from pathlib import Path


def name_and_folder(source: str) -> tuple[str, str]:
    """A file's name, and its folder as people write it; a source that is no path of a file is all name."""
    path = Path(source)
    if not path.is_absolute():
        return source, ""
    folder, home = path.parent, Path.home()
    return path.name, f"~/{folder.relative_to(home).as_posix()}" if home in folder.parents else str(folder)
