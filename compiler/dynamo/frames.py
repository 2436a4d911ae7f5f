"""Stack traces as text, read into source lines without torch at hand: a log may come from another machine."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

from compiler.report import SourceLine

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_MODULES = re.compile(r"[/\\]nn[/\\]modules[/\\]\w+\.py$")
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch[/\\]")


def parse_stack(text: str) -> list[SourceLine]:
    """Read a stack trace as Python prints it, innermost first; frames inside torch are left out."""
    frames: list[SourceLine] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = _FRAME.match(line)
        if match is None or is_torchs(match["file"]):
            continue
        code = lines[number + 1].strip() if number + 1 < len(lines) and not _FRAME.match(lines[number + 1]) else ""
        frames.append(SourceLine(match["file"], int(match["line"]), users_function(match["function"].strip()), code))
    frames.reverse()
    return frames


def users_function(name: str) -> str:
    """The function's name as the user wrote it: Dynamo names what follows a graph break in it after the line."""
    match = _RESUMED.match(name)
    return match["name"] if match else name


def is_torchs(file: str) -> bool:
    """Whether a file is part of torch: of the one here, or of one installed where the text was written."""
    own = torch_folder()
    return bool(_INSTALLED.search(file)) or (own is not None and file.startswith(str(own)))


def is_torchs_module(file: str) -> bool:
    """Whether a file is one of those in which torch defines its modules."""
    return bool(_MODULES.search(file)) and is_torchs(file)


@cache
def torch_folder() -> Path | None:
    """Where torch is installed, found without importing it; None where it is not."""
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent if spec is not None and spec.origin else None
