"""What a SOURCE on the command line or in the window names, parsed without loading anything."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import parse_qsl

from app.sources.errors import SourceError
from app.sources.gallery import example_path

FORMS = "example:NAME, FILE.py[:function], FILE.pt2 or package.module:function"

_FUNCTION_SUFFIX = re.compile(r"(?P<path>.+\.py):(?P<function>[^:/\\]*)", re.DOTALL)
_MODULE = re.compile(r"(?P<module>\w+(\.\w+)*):(?P<function>\w+)")


class SourceKind(StrEnum):
    """Which loader a source needs."""

    EXAMPLE = "example"
    FILE = "file"
    PROGRAM = "program"
    MODULE = "module"


@dataclass(frozen=True)
class SourceSpec:
    """A parsed SOURCE. ``path`` is set for examples and files, ``module`` for importable functions.

    ``options`` are the values after ``?`` ("example:gpt2?batch=8"), meant for the source's function.
    """

    text: str
    kind: SourceKind
    name: str
    path: Path | None = None
    module: str = ""
    function: str = ""
    options: dict[str, str] = field(default_factory=dict)


def parse_source(text: str) -> SourceSpec:
    """Parse a SOURCE.

    Raises:
        SourceError: the text has none of the four forms, or names an example or a file that does not exist.
    """
    text = text.strip()
    bare, options = _split_options(text)
    if bare.startswith(("record:", "trace:")):
        hint = "Record the program again to see what a change of it does."
        raise SourceError("This report is of what another program compiled, so there is no model to compile.", hint)
    if bare.startswith("example:"):
        name = bare.removeprefix("example:")
        return SourceSpec(text, SourceKind.EXAMPLE, name, path=example_path(name), function=name, options=options)
    if bare.lower().endswith(".pt2"):
        path = _existing(bare)
        return SourceSpec(text, SourceKind.PROGRAM, path.stem, path=path)
    with_function = _FUNCTION_SUFFIX.fullmatch(bare)
    if bare.lower().endswith(".py") or with_function:
        path = _existing(with_function["path"] if with_function else bare)
        function = with_function["function"] if with_function else ""
        return SourceSpec(text, SourceKind.FILE, function or path.stem, path=path, function=function, options=options)
    module = _MODULE.fullmatch(bare)
    if module:
        name = module["function"]
        return SourceSpec(text, SourceKind.MODULE, name, module=module["module"], function=name, options=options)
    if bare and _exists(bare):
        raise SourceError(f"{bare} is neither a .py file nor a .pt2 program.", f"A source is {FORMS}.")
    raise SourceError(f"'{text}' is not a source.", f"A source is {FORMS}.")


def is_source(text: str) -> bool:
    """Whether ``text`` has the form of a SOURCE, and not that of a session or a log. What it names need not exist."""
    bare = text.strip().partition("?")[0]
    if bare.startswith("example:") or bare.lower().endswith((".py", ".pt2")) or _FUNCTION_SUFFIX.fullmatch(bare):
        return True
    return _MODULE.fullmatch(bare) is not None and not _exists(bare)


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    if _exists(text):  # a file may have a question mark in its name
        return text, {}
    bare, mark, query = text.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if mark and not options:
        raise SourceError(f"'?{query}' sets no option.", "Write NAME=VALUE, as in example:gpt2?batch=8.")
    return bare, options


def _exists(text: str) -> bool:
    """Whether there is something at this path that can be asked for."""
    try:
        return Path(text).exists()
    except OSError:  # too long a name, or in a folder that is closed to us
        return False


def _existing(text: str) -> Path:
    try:
        path = Path(text).expanduser()
        if path.is_dir():
            raise SourceError(f"{path} is a folder, not a file.", f"A source is {FORMS}.")
        if not path.exists():
            raise SourceError(f"There is no file {path}.", "Check the name, and the folder it is relative to.")
        return path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: no such user behind a ~, or a link to itself
        reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        raise SourceError(f"{text} cannot be read: {reason}.", "Check the name, and that it may be read.") from error
