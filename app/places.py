"""Places that files are written to: what keeps one from being used is told before the work, and no file is left half
written."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME_KEPT = 40  # characters of a file's name in that of its temporary one: all of a long name would make it too long


class PlaceError(Exception):
    """A file cannot be written where it should be. ``message`` is one sentence, ``hint`` what to do next.

    ``status`` is the command line's: 1, or 2 where the name itself is wrong.
    """

    def __init__(self, message: str, hint: str = "", *, status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status


def check_place(path: Path, *suffixes: str) -> None:
    """Whether a file could be written at ``path``, asked before the work that makes it.

    Raises:
        PlaceError: it could not, or its name does not end in one of ``suffixes``, where there are any: a slip of the
            hand must not write a session over somebody's model.
    """
    if reason := _obstacle(path):
        raise PlaceError(f"{path} cannot be written: {reason}.", "Choose another place.")
    if suffixes and path.suffix.lower() not in suffixes:
        meant = path.name + suffixes[0]
        raise PlaceError(f"{path} does not end in {' or '.join(suffixes)}.", f"Call it {meant}, say.", status=2)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new, empty file beside ``path`` to write to, which takes its place at the end. One that was there stays whole
    where the block raises.

    Raises:
        OSError: the place cannot be written.
    """
    if reason := _no_file(path):
        raise OSError(errno.EINVAL, reason)
    with _beside(path) as temporary:
        yield temporary
        os.replace(temporary, path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new, empty file in the folder of ``path``, and so on its file system: a rename is one step there."""
    temporary = path.with_name(f".{path.name[:_NAME_KEPT]}.{os.getpid()}.tmp")
    with open(temporary, "xb"):
        pass
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8.

    Raises:
        PlaceError: the place cannot be written.
    """
    with told(path), replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What writing to ``path`` runs into, as the one error that is told.

    Raises:
        PlaceError: the block raised OSError.
    """
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}."
        raise PlaceError(message, "Choose another place; nothing was changed.") from error


def _obstacle(path: Path) -> str:
    """What keeps a file from being written at ``path``; "" for nothing."""
    folder = path.parent
    try:
        if reason := _no_file(path):
            return reason
        if not folder.is_dir():
            return f"there is no folder {folder}"
        if path.exists() and not os.access(path, os.W_OK):
            return "permission denied"
        with _beside(path):  # the system's word that a folder may be written to does not go for every one
            return ""
    except OSError as error:  # too long a name, say
        return (error.strerror or str(error)).lower()


def _no_file(path: Path) -> str:
    """What stands at ``path`` and is no file, or "". A rename over a device (/dev/null) would take its place."""
    if not path.exists() or path.is_file():
        return ""
    return "it is a folder" if path.is_dir() else "it is no regular file"
